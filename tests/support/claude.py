"""Small Claude Code transcripts for tests: records as the program writes them, with invented content."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from funes.traces.claude import ClaudeSource
from funes.traces.model import ReadReport, Session, Turn

SESSION = "11111111-2222-4333-8444-555555555555"
OTHER = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"


def record(kind: str, uuid: str, content: Any = "", parent: str | None = None, **extra: Any) -> dict[str, Any]:
    """A user or assistant record; `extra` keys override the usual ones."""
    message = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {"id": extra.pop("message_id", f"msg_{uuid}"), "model": "claude-test"}
    base = {
        "parentUuid": parent,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/work/project",
        "sessionId": SESSION,
        "version": "2.1.110",
        "gitBranch": "main",
        "type": kind,
        "message": message,
        "uuid": uuid,
        "timestamp": "2026-01-02T03:04:05.678Z",
    }
    return base | extra


def text(value: str) -> dict[str, Any]:
    """A text block."""
    return {"type": "text", "text": value}


def call(call_id: str, name: str, **given: Any) -> dict[str, Any]:
    """A tool call."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def result(call_id: str, content: Any) -> dict[str, Any]:
    """A tool result."""
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


def write(path: Path, records: Iterable[dict[str, Any]]) -> Path:
    """Write a transcript, its folders included."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as stream:
        for item in records:
            stream.write(json.dumps(item, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
    return path


def read(path: Path, resume: dict[str, Any] | None = None) -> tuple[list[tuple[Session, Turn]], ReadReport]:
    """Read a transcript."""
    report = ReadReport()
    return list(ClaudeSource().read(path, report, resume)), report


def texts(turns: Iterable[tuple[Session, Turn]]) -> list[tuple[str, str, str, str]]:
    """What was said: role, origin, block type and text of each block."""
    return [(turn.role, turn.origin, block.type, block.text) for _, turn in turns for block in turn.blocks]
