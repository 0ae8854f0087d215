"""Finding traces in a folder, and telling by content which harness wrote a file."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from funes.traces.jsonl import iter_records
from funes.traces.model import Head, ReadReport, TraceSource
from funes.traces.streams import PARQUET_MAGIC, SQLITE_MAGIC, open_trace

HEAD_BYTES = 256 * 2**10
HEAD_LINES = 50

_SUFFIXES = (".jsonl", ".jsonl.zst", ".json", ".json.zst", ".db", ".sqlite", ".sqlite3", ".parquet")
_MAX_HEAD = 8 * 2**20
_NOT_SESSIONS = frozenset(
    """
    history.jsonl session_index.jsonl journal.jsonl sessions-index.json sessions.json custom-title.json settings.json
    settings.local.json package.json package-lock.json tsconfig.json
    """.split()  # noqa: SIM905
)
_NOT_ENTERED = frozenset((".git", "node_modules", "__pycache__", ".ralph", "tool-results", "file-history"))
_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_TABLE = re.compile(rb"CREATE (?:VIRTUAL )?TABLE (?:IF NOT EXISTS )?[\"'`\[]?(\w{1,100})")

Unreadable = Callable[[Path, OSError], None]


def is_session_name(path: Path) -> bool:
    """Whether a file's name does not rule it out as a session (indexes, histories, metadata, checkpoints)."""
    name = path.name
    if name in _NOT_SESSIONS or name.startswith(("request_dump_", "._")):
        return False
    return not (name.endswith(".meta.json") or ".checkpoint." in name)


def may_be_trace(path: str) -> bool:
    """Whether a file may be a trace, judged by its path below a folder (with `/`) as `walk` does."""
    parts = PurePosixPath(path)
    inside = not any(part in _NOT_ENTERED for part in parts.parts[:-1])
    return inside and path.endswith(_SUFFIXES) and is_session_name(Path(parts.name))


def walk(root: Path, unreadable: Unreadable | None = None) -> Iterator[Path]:
    """Yield the files below a folder that may be traces, judged by name, in a stable order.

    Links to folders are followed, each folder and each file is visited once, and of a file that is there both plain
    and compressed only the plain one is yielded, wherever it lies when the name holds an id.

    Args:
        root: a folder, or a file that is yielded whatever its name.
        unreadable: called once for each folder that cannot be read.
    """
    if not root.is_dir():
        if root.exists():
            yield root
        return
    seen: set[tuple[int, int]] = set()
    compressed: list[Path] = []
    plain: set[str] = set()
    for path in _files(root, seen, unreadable):
        if path.name.endswith(".zst"):
            compressed.append(path)
        else:
            plain |= {path.name, str(path)}
            yield path
    for path in compressed:
        twin = path.name if _ID.search(path.name) else str(path)
        if twin.removesuffix(".zst") not in plain:
            yield path


def _files(folder: Path, seen: set[tuple[int, int]], unreadable: Unreadable | None) -> Iterator[Path]:
    stack = [folder]
    while stack:
        folder = stack.pop()
        try:
            stat = folder.stat()
            if _known(stat, seen):
                continue
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            if unreadable is not None:
                unreadable(folder, error)
            continue
        below = []
        for entry in entries:
            try:
                if entry.is_dir():
                    if entry.name not in _NOT_ENTERED:
                        below.append(Path(entry.path))
                elif _is_candidate(entry) and not _known(entry.stat(), seen):
                    yield Path(entry.path)
            except OSError as error:
                if unreadable is not None:
                    unreadable(Path(entry.path), error)
        stack += reversed(below)


def _is_candidate(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(_SUFFIXES) and is_session_name(Path(entry.name)) and entry.is_file()


def _known(stat: os.stat_result, seen: set[tuple[int, int]]) -> bool:
    """Whether a file or folder was visited before (file systems without inode numbers have none to compare)."""
    key = (stat.st_dev, stat.st_ino)
    if not stat.st_ino or key not in seen:
        seen.add(key)
        return False
    return True


def read_head(path: Path) -> Head:
    """Read what is needed to recognise a file.

    Raises:
        OSError: the file cannot be read.
    """
    with open_trace(path) as stream:
        start = stream.peek(1)[:HEAD_BYTES] if not stream.seekable() else stream.read(HEAD_BYTES)
        if start.startswith(SQLITE_MAGIC):
            return Head(path, start, [], _tables(path, start))
        if start.startswith(PARQUET_MAGIC):
            # What follows may be raw traces, which the sources of those must not take for their own.
            return Head(path, PARQUET_MAGIC, [])
    return Head(path, start, _records(path, start))


def detect(path: Path, sources: Iterable[TraceSource]) -> TraceSource | None:
    """Return the source whose trace a file is, judged by content, or None.

    Raises:
        OSError: the file cannot be read.
    """
    head = read_head(path)
    return next((source for source in sources if source.matches(head)), None)


def find_traces(
    root: Path, sources: Iterable[TraceSource], unreadable: Unreadable | None = None
) -> Iterator[tuple[Path, TraceSource | None]]:
    """Yield each file below `root` that may be a trace with the source that recognises it, None when none does.

    Args:
        root: a folder or a file.
        sources: in the order in which they are asked.
        unreadable: called once for each folder and file that cannot be read.
    """
    known = list(sources)
    for path in walk(root, unreadable):
        try:
            yield path, detect(path, known)
        except OSError as error:
            if unreadable is not None:
                unreadable(path, error)


def _records(path: Path, start: bytes) -> list[dict[str, object]]:
    """Read the objects on the first lines; of a file that is one indented JSON document, the document."""
    records: list[dict[str, object]] = []
    report = ReadReport()
    with open_trace(path) as stream:
        for offset, record in iter_records(stream, report, max_lines=HEAD_LINES):
            records.append(record)
            if offset > HEAD_BYTES:
                break
    if not records and len(start) < HEAD_BYTES:
        try:
            document = json.loads(start)
        except (ValueError, RecursionError):
            return records
        if isinstance(document, dict):
            records.append(document)
    return records


def _tables(path: Path, start: bytes) -> frozenset[str]:
    """Return the names of an SQLite file's tables, without ever writing to it or beside it."""
    # A live database keeps recent pages, perhaps all of them, in its -wal file.
    wal = path.with_name(path.name + "-wal")
    try:
        if not wal.exists():
            connection = sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1", uri=True)
            try:
                rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            finally:
                connection.close()
            return frozenset(str(name) for (name,) in rows)
        with wal.open("rb") as stream:
            start += stream.read(_MAX_HEAD)
    except (sqlite3.Error, OSError):
        pass
    return frozenset(name.decode() for name in _TABLE.findall(start))
