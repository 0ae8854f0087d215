"""Hermes's list of approved hooks: funes's entries put in and taken out, under the lock that Hermes uses itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from funes.agents import files, json_text
from funes.agents.assets import json_bytes
from funes.agents.journal import note_writing
from funes.errors import FunesError
from funes.paths import shown

LIST = "approvals"


def load(path: Path) -> dict[str, Any]:
    """The list with what is around it; empty when there is none.

    Raises:
        FunesError: when it is none.
    """
    _, value = json_text.load(path)
    if value is not None and not (isinstance(value, dict) and isinstance(value.get(LIST, []), list)):
        raise files.unfit(path, "is no list of approvals")
    return value or {}


def is_own(entry: Any) -> bool:
    """Whether a hook, or the approval of one, is of funes."""
    command = entry.get("command") if isinstance(entry, dict) else None
    return isinstance(command, str) and "funes.hook hermes" in command


def own(approved: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The entries of funes."""
    return [entry for entry in approved.get(LIST, []) if is_own(entry)]


def missing(approved: Mapping[str, Any]) -> list[list[str]]:
    """What is not there yet and should be gone again when funes is, as `remove` takes it."""
    return ([] if LIST in approved else [[LIST]]) + ([] if approved else [[]])


def add(path: Path, entries: Sequence[Mapping[str, str]]) -> None:
    """Approve hooks.

    Args:
        path: the list.
        entries: `event` and `command` of each.

    Raises:
        FunesError: when the list cannot be read or written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(path):
        text, _ = json_text.load(path)
        if LIST not in load(path):
            text = json_bytes(load(path) | {LIST: [dict(entry) for entry in entries]}).decode()
        else:
            for entry in entries:
                text = json_text.with_item(text, (LIST,), dict(entry))
        files.write(path, text.encode())


def remove(path: Path, absent: Sequence[Sequence[str]]) -> None:
    """Take funes's approvals back.

    Args:
        path: the list.
        absent: what `missing` said before they were given.

    Raises:
        FunesError: when the list cannot be read or written.
    """
    if not path.is_file():
        return
    with _locked(path):
        numbers = json_text.positions(load(path).get(LIST), is_own)
        json_text.strip(path, [(LIST, number) for number in numbers], absent)


def lock_of(path: Path) -> Path:
    """The file whose lock Hermes holds while it changes a list."""
    return path.with_name(f"{path.name}.lock")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold Hermes's lock on its list; the file for it goes again if it was not there."""
    import fcntl

    lock = lock_of(path)
    made = not lock.exists()
    if made:
        note_writing(lock, b"")
    try:
        with open(lock, "a", encoding="utf-8") as stream:
            fcntl.flock(stream.fileno(), fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise FunesError(f"{shown(lock)} cannot be locked: {error.strerror or error}.") from error
    finally:
        if made:
            files.delete(lock)
