"""Chunks, hits and sessions to render, with every field overridable."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from funes.chunking import Chunk
from funes.memory.sessions import SessionSummary

MOMENT = datetime(2026, 5, 2, 10, 11, 12, 345678, tzinfo=UTC)
SESSION = "1a2b3c4d-0000-4000-8000-000000000001"
TURN = "9f8e7d6c-0000-4000-8000-000000000002"


def make_chunk(text: str = "We moved off the streaming parser.", **fields: Any) -> Chunk:
    values: dict[str, Any] = {
        "id": "0" * 24,
        "text": text,
        "session_id": SESSION,
        "workdir": "/home/dev/api",
        "repo": "acme/api",
        "branch": "main",
        "turn_uuid": TURN,
        "parent_uuid": "",
        "seq": 4,
        "ts": MOMENT,
        "role": "assistant",
        "block_type": "text",
        "tool_name": "",
        "source_path": "/home/dev/.claude/projects/api/session.jsonl",
        "block_idx": 0,
        "split_idx": 0,
        "offset": 0,
        "harness": "claude_code",
        "origin": "agent",
        "ruleset": "r1",
    }
    return Chunk(**(values | fields))


def make_session(**fields: Any) -> SessionSummary:
    values: dict[str, Any] = {
        "id": SESSION,
        "harness": "claude_code",
        "repo": "acme/api",
        "branch": "main",
        "workdir": "/home/dev/api",
        "title": "Parser rewrite",
        "first_prompt": "Why is the parser slow?",
        "parent_id": "",
        "kind": "main",
        "turns": 12,
        "passages": 30,
        "first_ts": MOMENT,
        "last_ts": MOMENT,
        "source_path": "/home/dev/.claude/projects/api/session.jsonl",
    }
    return SessionSummary(**(values | fields))
