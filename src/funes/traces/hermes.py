"""Hermes Agent: `state.db` of the main profile and of the others, its JSONL exports and its old JSONL transcripts."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import sys
from array import array
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from funes.traces import hermes_export
from funes.traces.hermes_db import Database
from funes.traces.hermes_sessions import SESSION_COLUMNS, lineage_of, read_session
from funes.traces.hermes_turns import SessionTurns
from funes.traces.model import Head, ReadReport, Session, Turn
from funes.traces.sqlite_files import UnreadableError, files_of, open_for_reading
from funes.traces.streams import SQLITE_MAGIC

# Changes when the same rows give other turns, so that databases read by an earlier version are read again.
_READER = 1


class HermesSource:
    """Hermes Agent's traces."""

    name = "hermes"
    harness = "hermes"

    def roots(self) -> list[Path]:
        """Return Hermes's home: `HERMES_HOME`, else the platform's default."""
        if override := os.environ.get("HERMES_HOME"):
            return [Path(override).expanduser()]
        if sys.platform == "win32" and (local := os.environ.get("LOCALAPPDATA")):
            return [Path(local) / "hermes"]
        return [Path.home() / ".hermes"]

    def files(self, root: Path) -> Iterator[Path]:
        """Yield the databases of all profiles and the transcripts of versions before them."""
        for home in (root, *_sorted_glob(root, "profiles/*")):
            database = home / "state.db"
            if database.is_file():
                yield database
            else:
                yield from _sorted_glob(home, "sessions/session_*.json")
            yield from _sorted_glob(home, "sessions/*.jsonl")

    def matches(self, head: Head) -> bool:
        """Recognise a database by its columns and a JSONL file by its records."""
        if head.start.startswith(SQLITE_MAGIC) and head.tables:
            return {"messages", "sessions"} <= head.tables and _is_hermes(head.path)
        # A damaged or empty database is told by its name, so that reading it says what is wrong.
        return head.path.name == "state.db" or hermes_export.matches(head)

    def stamp(self, path: Path) -> str:
        """Return the sizes, times and inodes of the file and of its `-wal`, where commits stay for hours."""
        own, wal, _ = files_of(path)
        return "|".join(_stamp(file) for file in (own, wal))

    def read(
        self, path: Path, report: ReadReport, resume: dict[str, Any] | None = None
    ) -> Iterator[tuple[Session, Turn]]:
        """Stream the turns of all sessions, one session after the other.

        A database is continued by leaving out the sessions whose rows have not changed; a session that has changed is
        read from its start, because a turn's identity depends on what came before it.
        """
        try:
            with path.open("rb") as stream:
                start = stream.read(len(SQLITE_MAGIC))
        except OSError as error:
            report.failed = f"it cannot be opened: {error.strerror or error}"
            return
        if start != SQLITE_MAGIC and path.suffix != ".db":
            is_snapshot = ".json" in path.suffixes
            yield from (hermes_export.read_snapshot if is_snapshot else hermes_export.read_jsonl)(path, report)
            return
        try:
            yield from _read_database(path, report, resume)
        except UnreadableError as error:
            report.failed = str(error)


def _read_database(path: Path, report: ReadReport, resume: dict[str, Any] | None) -> Iterator[tuple[Session, Turn]]:
    before = _stamp(path)
    with open_for_reading(path) as (connection, way):
        database = Database(connection)
        rows = database.sessions(SESSION_COLUMNS, report)
        ids = database.message_ids(report)
        known = _known(resume)
        complete = not report.damaged
        marks: dict[str, str] = {}
        for session_id, message_ids in ids.items():
            row = rows.get(session_id, {"id": session_id or "unknown-session"})
            lineage = lineage_of(row, rows)
            mark = _mark(row, lineage, message_ids, report.redact)
            if known.get(session_id) != mark:
                faults = len(report.damaged), report.skipped["further damaged records"]
                yield from _read_session(database, message_ids, read_session(row, rows, str(path)), lineage, report)
                if faults != (len(report.damaged), report.skipped["further damaged records"]):
                    continue
            marks[session_id] = mark
        if way == "immutable" and (before != _stamp(path) or files_of(path)[1].exists()):
            report.damage("Hermes wrote to the database while it was read; the next run reads it again")
        elif complete:
            report.resume = {"reader": _READER, "sessions": marks}


def _read_session(
    database: Database, ids: array[int], session: Session, lineage: str, report: ReadReport
) -> Iterator[tuple[Session, Turn]]:
    turns = SessionTurns(session, lineage, report)
    for message in database.messages(ids, report):
        for turn in turns.feed(message):
            yield session, turn
    for turn in turns.finish():
        yield session, turn


def _known(resume: dict[str, Any] | None) -> Mapping[str, str]:
    if not resume or resume.get("reader") != _READER or not isinstance(resume.get("sessions"), dict):
        return {}
    marks: dict[str, str] = resume["sessions"]
    return marks


def _mark(row: Mapping[str, Any], lineage: str, ids: array[int], redact: Callable[[str], str]) -> str:
    """Hash what a session's turns are made of, short of their content: rewritten messages have new row ids."""
    described = redact(repr([lineage, *(row.get(name) for name in SESSION_COLUMNS)]))
    return hashlib.blake2b(described.encode("utf-8", "replace") + ids.tobytes(), digest_size=8).hexdigest()


def _is_hermes(path: Path) -> bool:
    """Whether a database with such tables is Hermes's; one that is damaged may be, and says so when it is read."""
    try:
        with open_for_reading(path) as (connection, _):
            return bool({"source", "started_at"} & Database(connection).session_columns)
    except (UnreadableError, sqlite3.DatabaseError):
        return path.name == "state.db"


def _sorted_glob(root: Path, pattern: str) -> list[Path]:
    try:
        return sorted(root.glob(pattern))
    except OSError:
        return []


def _stamp(path: Path) -> str:
    try:
        found = path.stat()
    except OSError:
        return "-"
    return f"{found.st_size}:{found.st_mtime_ns}:{found.st_ino}"
