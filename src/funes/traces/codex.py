"""Codex: rollouts of every version since the single JSON document of the TypeScript command line.

The rollout file is the trace; `history.jsonl` and the SQLite files beside it repeat parts of it, except for the names
that people give their sessions (`session_index.jsonl`).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from funes.traces.codex_document import is_document, read_document, starts_document
from funes.traces.codex_events import Kind, item_kind, skip_reason
from funes.traces.codex_items import mapping, string
from funes.traces.codex_lineage import file_ids
from funes.traces.codex_rollout import Rollout
from funes.traces.detect import walk
from funes.traces.jsonl import iter_records, resume_point, resume_state
from funes.traces.model import Head, ReadReport, Session, Turn
from funes.traces.streams import open_trace

_RECORD_TYPES = frozenset(("session_meta", "response_item", "turn_context", "event_msg", "compacted"))
_FOLDERS = ("sessions", "archived_sessions")
# Changes when the state of a read means something else, so that what an earlier version stopped in is read in full.
_READER = 1
_SESSION_FIELDS = ("id", "workdir", "repo", "branch", "title", "parent_id", "kind")


class CodexSource:
    """The trace source of Codex, under `CODEX_HOME` or `~/.codex`."""

    name = "codex"
    harness = "codex"

    def roots(self) -> list[Path]:
        """Return the folders of live and of archived sessions."""
        return [_home() / folder for folder in _FOLDERS]

    def files(self, root: Path) -> Iterator[Path]:
        """Return the rollouts below a root, oldest first, so that a session comes before its forks.

        Of a compressed rollout and a plain one of the same name the plain one is taken: Codex unpacks a rollout to go
        on with it, and the compressed file may be left behind.
        """
        found = [path for path in walk(root) if path.name.startswith("rollout-")]
        yield from sorted(found, key=lambda path: (path.name, path))

    def matches(self, head: Head) -> bool:
        """Whether the file holds records of a rollout, or is a document of the TypeScript command line."""
        return any(map(_is_rollout_record, head.records)) or (starts_document(head.start) and b'"items"' in head.start)

    def stamp(self, path: Path) -> str:
        """Return size, times and inode of the rollout, and where the session's name stands, which is kept elsewhere."""
        status = path.stat()
        line = _named(path, file_ids(path))[1]
        return f"{status.st_size}:{status.st_mtime_ns}:{status.st_ino}:{line or ''}"

    def read(
        self, path: Path, report: ReadReport, resume: dict[str, Any] | None = None
    ) -> Iterator[tuple[Session, Turn]]:
        """Stream the turns of a rollout; see `TraceSource.read`."""
        given = resume
        if resume is not None and resume.get("version") != _READER:
            resume = None
        if resume is not None:
            ids = file_ids(path) or [string(mapping(resume.get("session")).get("id"))]
            if resume.get("name") != _title(path, ids):
                # A new name has to reach the session's rows, which takes a turn: read it all.
                resume = None
        names = file_ids(path)
        point = resume_point(path, resume)
        report.anew = point is None and given is not None
        state = resume if point and resume else {}
        session = Session(names[0] if names else path.name.split(".")[0], self.harness, source_path=str(path))
        _restore(session, mapping(state.get("session")))
        session.title = _title(path, names or [session.id]) or session.title
        known = session.title
        rollout = Rollout(session, names, report, lambda kind: _has_items(path, kind), mapping(state.get("rollout")))
        try:
            with open_trace(path) as stream:
                if is_document(stream, path):
                    yield from _counted(rollout, [read_document(stream, report)], report)
                    return
                offset, line = point or (0, 1)
                reader = iter_records(
                    stream, report, offset, line=line, skip=lambda head: skip_reason(head, rollout.coverage.covered)
                )
                yield from _counted(rollout, (record for _, record in reader), report)
        except OSError as error:
            report.failed = report.failed or f"it cannot be opened: {error.strerror or error}"
            return
        name = _title(path, names or [session.id])
        session.title = name or session.title
        if point and session.title != known:
            report.sessions.append(session)
        report.resume = resume_state(
            path, reader, session=_kept(session), rollout=rollout.state(), name=name, version=_READER
        )


def _counted(rollout: Rollout, records: Iterable[dict[str, Any]], report: ReadReport) -> Iterator[tuple[Session, Turn]]:
    for record in records:
        for turn in rollout.feed(record):
            report.turns += 1
            yield rollout.session, turn
    for turn in rollout.finish():
        report.turns += 1
        yield rollout.session, turn


def _has_items(path: Path, kind: Kind) -> bool:
    """Whether any record of a rollout is a conversation item of a kind; the first one ends the search."""
    with open_trace(path) as stream:
        for _, record in iter_records(stream, ReadReport(), skip=_is_no_item):
            if item_kind(record) == kind:
                return True
    return False


def _is_no_item(line: bytes) -> str | None:
    return "not an item" if line.startswith(b'{"timestamp"') and b'"response_item"' not in line[:200] else None


def _is_rollout_record(record: dict[str, Any]) -> bool:
    kind = string(record.get("type"))
    if kind in _RECORD_TYPES:
        return isinstance(record.get("payload"), dict)
    if isinstance(record.get("session"), dict) and isinstance(record.get("items"), list):
        return True
    if "record_type" in record:
        return not kind
    if not kind:
        return "instructions" in record and "id" in record and "timestamp" in record
    if kind == "message":
        content = record.get("content")
        parts = content if isinstance(content, list) else []
        return any(mapping(part).get("type") in ("input_text", "output_text") for part in parts)
    return kind in ("function_call", "function_call_output", "local_shell_call") and "call_id" in record


def _home() -> Path:
    override = os.environ.get("CODEX_HOME")
    return Path(override).expanduser() if override else Path.home() / ".codex"


def _restore(session: Session, values: dict[str, Any]) -> None:
    for field in _SESSION_FIELDS:
        if value := string(values.get(field)):
            setattr(session, field, value)


def _kept(session: Session) -> dict[str, str]:
    return {field: getattr(session, field) for field in _SESSION_FIELDS}


def _title(path: Path, ids: list[str]) -> str:
    """Name of a session in the index of the Codex home that its rollout lies in; empty when it has none."""
    return _named(path, ids)[0]


def _named(path: Path, ids: list[str]) -> tuple[str, int]:
    """The name, and where in the index the line that gives it ends, in bytes; an empty name when there is none."""
    home = next((parent.parent for parent in path.parents if parent.name in _FOLDERS), None) or _home()
    index = home / "session_index.jsonl"
    try:
        status = index.stat()
        titles = _titles(index, status.st_size, status.st_mtime_ns)
    except OSError:
        # No index, or one that cannot be read: the sessions have no names.
        return "", 0
    return next((titles[ident] for ident in ids if ident in titles), ("", 0))


@functools.lru_cache(maxsize=4)
def _titles(index: Path, size: int, mtime: int) -> dict[str, tuple[str, int]]:
    """Names and places by session id; the last line about a session counts."""
    titles: dict[str, tuple[str, int]] = {}
    with open_trace(index) as stream:
        for place, record in iter_records(stream, ReadReport()):
            if name := string(record.get("thread_name")).strip():
                titles[string(record.get("id"))] = name, place
    return titles
