"""Hermes sessions as JSONL: `hermes sessions export`, and the transcripts that versions before `state.db` wrote.

An export has one session a line, with its messages; a transcript is one session, whose first line is
`{"role": "session_meta", …}` and whose other lines are messages, named after the session.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from funes.traces.hermes_sessions import SESSION_COLUMNS, lineage_of, read_session
from funes.traces.hermes_turns import SessionTurns
from funes.traces.jsonl import iter_records, open_trace
from funes.traces.model import ReadReport, Session, Turn

_ROLES = frozenset(("user", "assistant", "tool", "system", "session_meta"))


def matches(records: Sequence[Mapping[str, Any]]) -> bool:
    """Whether records at the beginning of a file are an export's or a transcript's."""
    return any(_is_session(record) or record.get("role") == "session_meta" for record in records)


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
