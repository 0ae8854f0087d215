"""What was there before an agent's files are changed, kept on disk until the change is whole.

A killed `add` or `remove` leaves its journal behind, and the next one puts back what it says. Only what nobody else has
touched since is put back: each content that funes or, at its word, the agent has written is noted by its hash. While
the agent's own command runs, nobody knows what it writes; a file that changed no later than shortly after the command
was started counts as the command's.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FORMAT = 1
COMMAND_SECONDS = 20
"""How long after its start an agent's command may have written a file, when funes was killed while it ran."""

NOTHING = ""
"""Stands for the hash of a file that is not there."""

_active: ContextVar[Journal | None] = ContextVar("journal", default=None)


@dataclass(slots=True)
class Original:
    """A file as it is without funes.

    Attributes:
        data: its content, None when there is no file.
        mode: its permission bits.
        written: hashes of the contents that it was given since.
    """

    data: bytes | None
    mode: int = 0
    written: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Journal:
    """The journal of one change.

    Attributes:
        path: where it is kept; nobody else may read it, since settings hold things that belong in no second place.
        files: the files that are put back.
        folders: folders that were there.
        known: what the agent's module wants to know to undo what it began.
        running: whether a command of the agent's was started last.
    """

    path: Path
    files: dict[Path, Original] = field(default_factory=dict)
    folders: list[Path] = field(default_factory=list)
    known: dict[str, Any] = field(default_factory=dict)
    running: bool = False

    @classmethod
    def load(cls, path: Path) -> Journal | None:
        """Read what a killed run left; None when there is nothing that can be understood."""
        from funes.agents import files

        try:
            value = json.loads(files.read(path) or b"null")
            if value["format"] != FORMAT:
                return None
            originals = {
                Path(name): Original(None if data is None else base64.b64decode(data), int(mode), list(written))
                for name, data, mode, written in value["files"]
            }
            return cls(path, originals, [Path(name) for name in value["folders"]], value["known"], value["running"])
        except (ValueError, KeyError, TypeError):
            return None

    def save(self) -> None:
        """Write it."""
        from funes.agents import files

        value = {
            "format": FORMAT,
            "files": [
                [
                    os.fspath(path),
                    None if original.data is None else base64.b64encode(original.data).decode("ascii"),
                    original.mode,
                    original.written,
                ]
                for path, original in self.files.items()
            ],
            "folders": [os.fspath(folder) for folder in self.folders],
            "known": self.known,
            "running": self.running,
        }
        files.write(self.path, (json.dumps(value) + "\n").encode(), files.PRIVATE)

    def discard(self) -> None:
        """Delete it: the change is whole."""
        from funes.agents import files

        files.delete(self.path)

    @contextmanager
    def active(self) -> Iterator[None]:
        """Note what is written meanwhile."""
        token = _active.set(self)
        try:
            yield
        finally:
            _active.reset(token)

    def untouched(self) -> dict[Path, Original]:
        """The files that nobody else has touched, as they are without funes."""
        from funes.agents import files

        since = self.path.stat().st_mtime_ns if self.running else 0
        found = {}
        for path, original in self.files.items():
            now = _hash(files.read(path))
            if now in (_hash(original.data), *original.written) or _changed_until(path, since):
                found[path] = original
        return found


def journal_file(base: Path, name: str) -> Path:
    """Where the journal of an agent is kept.

    Args:
        base: the FUNES_HOME.
        name: the agent.
    """
    return base / "agents" / f"{name}.undo.json"


def note_known(known: dict[str, Any]) -> None:
    """Note what the agent's module wants to know to undo what it is about to begin."""
    journal = _active.get()
    if journal is not None:
        journal.known = dict(known)
        journal.save()


def note_writing(path: Path, data: bytes | None) -> None:
    """Note the content that a file is about to get; None when it is about to be deleted."""
    journal = _active.get()
    original = journal.files.get(path) if journal is not None else None
    if journal is not None and original is not None and _hash(data) not in (_hash(original.data), *original.written):
        original.written.append(_hash(data))
        journal.save()


@contextmanager
def noting_command() -> Iterator[None]:
    """Note that a command of the agent's runs meanwhile, and then what the files are."""
    journal = _active.get()
    if journal is None:
        yield
        return
    from funes.agents import files

    journal.running = True
    journal.save()
    try:
        yield
    finally:
        for path, original in journal.files.items():
            now = _hash(files.read(path))
            if now not in (_hash(original.data), *original.written):
                original.written.append(now)
        journal.running = False
        journal.save()


def sweep(paths: Iterable[Path]) -> None:
    """Delete the halves of files that a killed `write` left beside the files that it was to replace."""
    for path in paths:
        target = Path(os.path.realpath(path))
        with suppress(OSError):
            for half in target.parent.glob(f".{target.name}.funes-*"):
                half.unlink()


def _changed_until(path: Path, since: int) -> bool:
    try:
        changed = path.stat().st_mtime_ns
    except OSError:
        return False
    return since > 0 and changed <= since + COMMAND_SECONDS * 10**9


def _hash(data: bytes | None) -> str:
    return NOTHING if data is None else hashlib.sha256(data).hexdigest()
