"""`--json`: one JSON document on stdout, its schema documented in `docs/agent-format.md`.

Texts are verbatim; JSON's own escapes keep control characters from a terminal.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from typing import Any

from funes.memory.sessions import SessionSummary
from funes.search.model import Hit, Neighbour, RecallResult
from funes.ui.views import Reading, ScanResult, SessionList, TurnView

_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def dumps(document: dict[str, Any]) -> str:
    """A document as indented JSON with a final line end; keys keep their order."""
    text = json.dumps(document, ensure_ascii=False, indent=2, default=_value)
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


def recall_json(result: RecallResult, label: str, query: str) -> dict[str, Any]:
    """Hits of a recall."""
    return {"memory": label, "query": query, "notes": result.notes, "hits": [_hit(hit, label) for hit in result.hits]}


def _hit(hit: Hit, label: str) -> dict[str, Any]:
    chunk = hit.chunk
    return {
        "id": chunk.id,
        "memory": label,
        "score": round(hit.score, 6),
        "weak": hit.weak,
        "text": chunk.text,
        "session_id": chunk.session_id,
        "turn_uuid": chunk.turn_uuid,
        "seq": chunk.seq,
        "ts": chunk.ts,
        "harness": chunk.harness,
        "workdir": chunk.workdir,
        "repo": chunk.repo,
        "branch": chunk.branch,
        "role": chunk.role,
        "block_type": chunk.block_type,
        "tool_name": chunk.tool_name,
        "block_idx": chunk.block_idx,
        "split_idx": chunk.split_idx,
        "source_path": chunk.source_path,
        "before": [_neighbour(neighbour) for neighbour in hit.before],
        "after": [_neighbour(neighbour) for neighbour in hit.after],
    }


def _neighbour(neighbour: Neighbour) -> dict[str, Any]:
    return {
        "role": neighbour.role,
        "block_type": neighbour.block_type,
        "seq": neighbour.seq,
        "text": neighbour.text,
    }


def reading_json(reading: Reading) -> dict[str, Any]:
    """Turns of a session."""
    return {
        "memory": reading.label,
        "session": _session(reading.session),
        "turns": [_turn(turn) for turn in reading.turns],
    }


def _turn(turn: TurnView) -> dict[str, Any]:
    blocks = [{"type": block.type, "tool_name": block.tool_name, "text": block.text} for block in turn.blocks]
    return {"uuid": turn.uuid, "seq": turn.seq, "ts": turn.ts, "role": turn.role, "blocks": blocks}


def sessions_json(listing: SessionList) -> dict[str, Any]:
    """A list of sessions."""
    sessions = [_session(session) for session in listing.sessions]
    return {"memory": listing.label, "sessions": sessions, "more": listing.more}


def _session(session: SessionSummary) -> dict[str, Any]:
    return {
        "id": session.id,
        "harness": session.harness,
        "workdir": session.workdir,
        "repo": session.repo,
        "branch": session.branch,
        "title": session.title,
        "first_prompt": session.first_prompt,
        "parent_id": session.parent_id,
        "kind": session.kind,
        "turns": session.turns,
        "passages": session.passages,
        "first_ts": session.first_ts,
        "last_ts": session.last_ts,
        "source_path": session.source_path,
    }


def scan_json(result: ScanResult) -> dict[str, Any]:
    """Places of an exact text."""
    return {
        "memory": result.label,
        "session_id": result.session.id,
        "literal": result.literal,
        "total": result.total,
        "matches": [asdict(match) for match in result.matches],
    }


def _value(value: object) -> object:
    """How `json` writes what it does not know."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    return str(value)
