"""Agent traces of Hugging Face datasets, as Parquet: one row a session.

Where a row has the raw trace, its own harness's parser reads it, which keeps times, ids and complete tool results; else
its `messages` are read, which the dataset's loader made of it.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from funes.traces.model import Head, ReadReport, Session, TraceSource, Turn
from funes.traces.parquet_messages import read_messages
from funes.traces.parquet_rows import Row, UnreadableError, column_names, open_rows
from funes.traces.streams import PARQUET_MAGIC

_TRACE_COLUMNS = frozenset(("trace", "traces"))
_IDENTITY_COLUMNS = frozenset(("harness", "session_id", "file_path", "file_name", "metadata"))
_UNSAFE = re.compile(r"[^\w.+ -]")


class ParquetSource:
    """Parquet files of agent traces; there is no folder where they are kept, they are named on the command line."""

    name = "parquet"
    harness = "parquet"

    def roots(self) -> list[Path]:
        """Return no folder."""
        return []

    def files(self, root: Path) -> Iterator[Path]:
        """Yield the Parquet files below a folder."""
        yield from sorted(root.rglob("*.parquet"))

    def matches(self, head: Head) -> bool:
        """Recognise a Parquet file by its columns; one that is damaged is taken, so that its reading says so."""
        if not head.start.startswith(PARQUET_MAGIC):
            return False
        try:
            names = column_names(head.path)
        except UnreadableError:
            return True
        return bool(names & _TRACE_COLUMNS) or ("messages" in names and bool(names & _IDENTITY_COLUMNS))

    def stamp(self, path: Path) -> str:
        """Return the file's size, time and inode."""
        found = path.stat()
        return f"{found.st_size}:{found.st_mtime_ns}:{found.st_ino}"

    def read(
        self, path: Path, report: ReadReport, resume: dict[str, Any] | None = None
    ) -> Iterator[tuple[Session, Turn]]:
        """Stream the turns of all rows; there is nothing to resume from, because such a file is not appended to."""
        with tempfile.TemporaryDirectory(prefix="funes-", ignore_cleanup_errors=True) as folder:
            try:
                for row in open_rows(path, report):
                    yield from _read_row(_Place(path, row, Path(folder)), report)
            except UnreadableError as error:
                report.failed = str(error)


@dataclass(slots=True)
class _Place:
    """A row, the file it stands in, and a folder to unpack its trace into."""

    path: Path
    row: Row
    folder: Path

    @property
    def label(self) -> str:
        """How the row is named to a user."""
        return f"row {self.row.number}"


def _read_row(place: _Place, report: ReadReport) -> Iterator[tuple[Session, Turn]]:
    try:
        trace = place.row.trace()
    except ValueError as error:
        report.damage(f"{place.label}: its trace cannot be read ({error})")
        trace = b""
    if trace:
        turns_before = report.turns
        yield from _read_trace(place, trace, report)
        if report.turns > turns_before:
            return
    if place.row.messages is None:
        if not trace:
            report.damage(f"{place.label}: it has neither a trace nor messages")
        return
    session = Session(
        id=place.row.agent_id or place.row.session_id,
        harness=place.row.harness or "unknown",
        workdir=place.row.workdir,
        branch=place.row.branch,
        title=place.row.title,
        parent_id=place.row.session_id if place.row.agent_id else "",
        kind="subagent" if place.row.agent_id else "main",
        source_path=str(place.path),
    )
    for turn in read_messages(place.row, session, report):
        yield session, turn


def _read_trace(place: _Place, trace: bytes, report: ReadReport) -> Iterator[tuple[Session, Turn]]:
    """Read a row's raw trace with the parser of its harness, from a file with the name that it had."""
    folder = place.folder / str(place.row.number)
    file = folder.joinpath(*_safe_parts(place.row.file_name))
    inner = ReadReport(redact=report.redact)
    try:
        file.parent.mkdir(parents=True)
        file.write_bytes(trace)
        source = _source_for(file, place.row.harness)
        if source is None:
            if place.row.messages is None:
                report.damage(f"{place.label}: its trace is of no harness known here")
            return
        for session, turn in source.read(file, inner):
            session.source_path = str(place.path)
            session.harness = place.row.harness or session.harness
            session.workdir = session.workdir or place.row.workdir
            session.branch = session.branch or place.row.branch
            session.title = session.title or place.row.title
            report.turns += 1
            yield session, turn
    except Exception as error:
        # One row's trace must not cost the other rows, whatever a parser (another package's, maybe) makes of it.
        report.damage(f"{place.label}: {type(error).__name__}: {error}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _add(report, inner, place.label)


def _source_for(file: Path, harness: str) -> TraceSource | None:
    """Find the parser: the named harness's when it recognises the file, else whichever does."""
    from funes.traces.detect import read_head
    from funes.traces.registry import sources

    head = read_head(file)
    others = [source for source in sources() if source.name != ParquetSource.name]
    others.sort(key=lambda source: source.harness != harness)
    return next((source for source in others if source.matches(head)), None)


def _add(report: ReadReport, inner: ReadReport, label: str) -> None:
    report.records += inner.records
    report.skipped.update(inner.skipped)
    for sentence in inner.damaged:
        report.damage(f"{label}: {sentence}")
    if inner.failed:
        report.damage(f"{label}: {inner.failed}")
    if inner.torn_tail:
        report.damage(f"{label}: the last line of its trace is unfinished")


def _safe_parts(name: str) -> list[str]:
    """Return the last parts of a path from another machine, harmless: a parser may look at the folders' names."""
    parts = [_UNSAFE.sub("_", part).strip() for part in re.split(r"[/\\]", name)]
    parts = [part for part in parts if part.strip(". ")]
    return [part[:100] for part in parts[-4:-1]] + [parts[-1][-150:] if parts else "trace.jsonl"]
