"""Opening an SQLite database for reading while its program may be writing to it.

The database is never opened for writing, and no file is left beside it. In WAL mode SQLite can only read a database
together with its `-wal` and `-shm` files, and creates them when they are missing; so:

- `-wal` and `-shm` are there: open it read-only in place, which takes part in the program's own locking;
- neither is there: nobody has it open, the file alone is complete (`immutable=1`);
- `-wal` without `-shm`, or the folder does not let SQLite in: copy the database and its `-wal`, and read the copy.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from funes.traces.streams import SQLITE_MAGIC

BUSY_SECONDS = 5.0
"""How long a read waits for another program's lock."""

_TRIES = 3

Way = Literal["in place", "immutable", "copy"]


class UnreadableError(Exception):
    """The file cannot be read at all; the message is a clause that says why."""


@contextmanager
def open_for_reading(path: Path) -> Iterator[tuple[sqlite3.Connection, Way]]:
    """Open a database for reading.

    Yields:
        The connection and how it was opened.

    Raises:
        UnreadableError: it cannot be opened, or is no database.
    """
    with tempfile.TemporaryDirectory(prefix="funes-", ignore_cleanup_errors=True) as folder:
        connection, way = _connect(path.resolve(), Path(folder))
        try:
            yield connection, way
        finally:
            connection.close()


def files_of(path: Path) -> tuple[Path, Path, Path]:
    """Return the database's own file, its `-wal` and its `-shm`; of a linked one those beside the file itself."""
    own = path.resolve()
    return own, own.with_name(own.name + "-wal"), own.with_name(own.name + "-shm")


def _connect(path: Path, folder: Path) -> tuple[sqlite3.Connection, Way]:
    _, wal, shm = files_of(path)
    fault: Exception | None = None
    for _ in range(_TRIES):
        is_wal_mode = _check_header(path)
        try:
            if is_wal_mode and not wal.exists():
                connection = _opened(path, "mode=ro&immutable=1")
                if not wal.exists():
                    return connection, "immutable"
                connection.close()  # the program was started meanwhile
            elif not is_wal_mode or shm.exists():
                return _opened(path, "mode=ro"), "in place"
            else:
                break
        except sqlite3.DatabaseError as error:
            if _is_damage(error):
                raise UnreadableError(f"the database is damaged ({clause(error)})") from error
            fault = error
            if not _is_transient(error):
                break
            time.sleep(0.05)
    if isinstance(fault, sqlite3.OperationalError) and "locked" in str(fault):
        raise UnreadableError("another program has locked it; the next run reads it") from fault
    try:
        return _opened(_copied(path, folder), "mode=rw"), "copy"
    except sqlite3.DatabaseError as error:
        raise UnreadableError(f"the database is damaged ({clause(error)})") from error


def _check_header(path: Path) -> bool:
    """Return whether the database is in WAL mode, by its header."""
    try:
        with path.open("rb") as stream:
            header = stream.read(100)
    except OSError as error:
        raise UnreadableError(f"it cannot be opened: {error.strerror or error}") from error
    if not header:
        raise UnreadableError("it is empty")
    if not header.startswith(SQLITE_MAGIC):
        raise UnreadableError("it is not an SQLite database")
    return 2 in header[18:20]


def _opened(path: Path, options: str) -> sqlite3.Connection:
    """Connect, and make sure that the database can be read.

    Raises:
        sqlite3.DatabaseError: it cannot.
    """
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{options}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,  # a generator may be closed by another thread than the one that started it
    )
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    try:
        connection.execute("PRAGMA query_only=ON")
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.DatabaseError as error:
            if "schema" not in str(error):
                raise
            # One broken entry of the schema (of a search index, as a rule) makes SQLite refuse all tables.
            connection.execute("PRAGMA writable_schema=ON")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection


def _copied(path: Path, folder: Path) -> Path:
    """Copy a database and its log; the copy is of one moment unless the files change all the time.

    Raises:
        UnreadableError: there is no way to copy it.
    """
    copy = folder / "state.db"
    # A rollback journal that a crash left belongs to the database like the log does.
    companions = ("", "-wal", "-journal")
    try:
        for _ in range(_TRIES):
            before = [_stat(path.with_name(path.name + suffix)) for suffix in companions]
            for suffix in companions:
                source, target = path.with_name(path.name + suffix), copy.with_name(copy.name + suffix)
                target.unlink(missing_ok=True)
                if source.exists():
                    shutil.copyfile(source, target)
            if before == [_stat(path.with_name(path.name + suffix)) for suffix in companions]:
                break
    except OSError as error:
        raise UnreadableError(f"it cannot be copied to a folder where it can be read: {error.strerror}") from error
    return copy


def _stat(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    return not isinstance(error, sqlite3.OperationalError) or "malformed" in str(error)


def _is_transient(error: sqlite3.DatabaseError) -> bool:
    """Whether the fault may be the moment in which the program moves its log into the database."""
    return "disk I/O" in str(error) or "locked" in str(error)


def clause(error: sqlite3.DatabaseError) -> str:
    """Return what SQLite says about a fault."""
    return str(error) or type(error).__name__
