"""Hermes sessions as JSON: `hermes sessions export`, and what versions before `state.db` wrote.

An export has one session a line, with its messages. A transcript is one session, named after it, whose first line is
`{"role": "session_meta", …}` and whose other lines are messages. A snapshot (`session_<id>.json`) is one JSON document.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from funes.traces.hermes_sessions import SESSION_COLUMNS, lineage_of, read_session
from funes.traces.hermes_turns import SessionTurns
from funes.traces.jsonl import iter_records, open_trace, sanitize
from funes.traces.model import Head, ReadReport, Session, Turn

_SNAPSHOT = re.compile(rb'\s*\{\s*"session_id"\s*:')
_ROLES = frozenset(("user", "assistant", "tool", "system", "session_meta"))


def matches(head: Head) -> bool:
    """Whether a file's beginning is an export's, a transcript's or a snapshot's."""
    if _SNAPSHOT.match(head.start) and b'"session_start"' in head.start:
        return True
    return any(_is_session(record) or record.get("role") == "session_meta" for record in head.records)


def read_snapshot(path: Path, report: ReadReport) -> Iterator[tuple[Session, Turn]]:
    """Stream the turns of a snapshot."""
    try:
        with open_trace(path) as stream:
            document = sanitize(json.loads(stream.read(), strict=False))
    except OSError as error:
        report.failed = f"it cannot be opened: {error.strerror or error}"
        return
    except (ValueError, RecursionError) as error:
        report.failed = f"it is not JSON: {error}"
        return
    if not isinstance(document, dict) or not isinstance(document.get("messages"), list):
        report.failed = "it is JSON, but not a session of Hermes's"
        return
    document |= {"id": document.get("id") or document.get("session_id") or path.stem.removeprefix("session_")}
    yield from _read_export(document | {"source": document.get("platform")}, {}, str(path), report)


def read_jsonl(path: Path, report: ReadReport) -> Iterator[tuple[Session, Turn]]:
    """Stream the turns of an export or a transcript, from the start: neither is appended to."""
    rows = _session_rows(path)
    transcript: SessionTurns | None = None
    session = Session("", "hermes")
    try:
        with open_trace(path) as stream:
            for _, record in iter_records(stream, report, is_record=_is_record):
                if _is_session(record):
                    report.records -= 1  # its messages are the records
                    yield from _read_export(record, rows, str(path), report)
                elif _is_message(record):
                    report.records -= 1
                    if transcript is None:
                        session = read_session({"id": _stem(path)} | _meta(record), {}, str(path))
                        transcript = SessionTurns(session, session.id, report)
                    for turn in transcript.feed(record):
                        yield session, turn
                else:
                    report.skipped["unknown record"] += 1
    except OSError as error:
        report.failed = f"it cannot be opened: {error.strerror or error}"
    if transcript is not None:
        for turn in transcript.finish():
            yield session, turn


def _read_export(
    record: Mapping[str, Any], rows: Mapping[str, Mapping[str, Any]], source_path: str, report: ReadReport
) -> Iterator[tuple[Session, Turn]]:
    segments = record.get("segments")
    # An export of a whole lineage repeats the messages of its sessions behind them.
    parts = [part for part in segments if _is_session(part)] if isinstance(segments, list) else []
    for part in parts or [record]:
        session = read_session(part, rows, source_path)
        turns = SessionTurns(session, lineage_of(part, rows), report)
        for message in part["messages"]:
            if not isinstance(message, dict):
                report.damage(f"session {session.id}: a message is not a JSON object")
                continue
            for turn in turns.feed(message):
                yield session, turn
        for turn in turns.finish():
            yield session, turn


def _session_rows(path: Path) -> dict[str, dict[str, Any]]:
    """Read the sessions' own fields: a session may stand before its parent, which says where it belongs."""
    rows: dict[str, dict[str, Any]] = {}
    try:
        with open_trace(path) as stream:
            for _, record in iter_records(stream, ReadReport(), is_record=_is_record):
                parts = record.get("segments")
                for part in [record, *(parts if isinstance(parts, list) else [])]:
                    if _is_session(part):
                        rows[str(part["id"])] = {key: part.get(key) for key in SESSION_COLUMNS}
    except OSError:
        return {}  # said when the file is read
    return rows


def _is_session(record: object) -> bool:
    return (
        isinstance(record, dict)
        and isinstance(record.get("messages"), list)
        and bool(record.get("id"))
        and ("source" in record or "started_at" in record)
    )


def _is_message(record: Mapping[str, Any]) -> bool:
    return record.get("role") in _ROLES and "type" not in record


def _is_record(record: Mapping[str, Any]) -> bool:
    """Whether an object found inside a damaged line is a session; a message alone would lose its session."""
    return _is_session(record)


def _meta(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a transcript's first line says about the session."""
    if record.get("role") != "session_meta":
        return {}
    found = {"source": record.get("platform"), "cwd": record.get("cwd"), "title": record.get("title")}
    return {key: value for key, value in found.items() if isinstance(value, str)}


def _stem(path: Path) -> str:
    return path.name.removesuffix(".zst").removesuffix(".jsonl")
