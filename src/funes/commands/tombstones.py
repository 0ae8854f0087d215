"""Sessions that the user has forgotten: a text file in FUNES_HOME that keeps the next index run from storing them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, unquote

from funes.errors import FunesError
from funes.memory.lock import WriterLock
from funes.paths import funes_home

FILE = "forgotten.txt"
LOCK = "forgotten.lock"
LOCK_SECONDS = 10.0
_PLAIN = "-_.:@+=/,~"
_HEAD = """\
# Sessions that `funes forget` removed, and the day: `funes index` leaves them out.
# `funes forget --undo SESSION` takes a line away; then the next `funes index` reads the session's trace again.
"""


def tombstones_file() -> Path:
    """Path of the file, whether there is one or not."""
    return funes_home() / FILE


def read_tombstones() -> dict[str, str]:
    """Read which sessions are forgotten, with the day of each.

    Raises:
        FunesError: when the file cannot be read, or a line cannot be understood. Nothing may be indexed then.
    """
    path = tombstones_file()
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise FunesError(f"{path} cannot be read ({error}); mend or delete that file.") from error
    found = {}
    for number, line in enumerate(text.split("\n"), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) > 2:
            raise FunesError(f"{path}, line {number}: a line is `SESSION DAY`, nothing else; mend or delete it.")
        found[unquote(words[0])] = words[1] if len(words) > 1 else ""
    return found


def bury(sessions: Iterable[str]) -> None:
    """Add sessions; those that are there already keep their day."""
    today = datetime.now(UTC).date().isoformat()
    with _lock():
        _write({**dict.fromkeys(sessions, today), **read_tombstones()})


def raise_again(sessions: Iterable[str]) -> None:
    """Take sessions out."""
    gone = set(sessions)
    with _lock():
        _write({session: day for session, day in read_tombstones().items() if session not in gone})


def _lock() -> WriterLock:
    """Between reading the list and writing it nobody else may change it."""
    return WriterLock(funes_home(), LOCK, LOCK_SECONDS, doing="changing the list of forgotten sessions")


def _write(tombstones: dict[str, str]) -> None:
    path = tombstones_file()
    if not tombstones:
        path.unlink(missing_ok=True)
        return
    lines = "".join(f"{quote(session, safe=_PLAIN)} {day}\n" for session, day in sorted(tombstones.items()))
    temporary = path.with_name(f".{FILE}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(_HEAD + lines, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise FunesError(f"{path} cannot be written ({error.strerror}); check the folder's permissions.") from error
