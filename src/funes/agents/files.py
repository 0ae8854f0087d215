"""Files of other programs: looked at before and after, written whole or not at all, put back byte by byte."""

from __future__ import annotations

import base64
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from funes.agents.journal import Original, note_writing
from funes.agents.model import Watch
from funes.errors import FunesError
from funes.paths import shown

PRIVATE = 0o600


def unfit(path: Path, why: str) -> FunesError:
    """The fault of a file that nobody can edit safely.

    Args:
        path: the file.
        why: a predicate: "is not valid JSON".
    """
    return FunesError(f"{shown(path)} {why}; mend it first, nothing was changed.")


def read(path: Path) -> bytes | None:
    """A file's bytes, None when there is none.

    Raises:
        FunesError: when it cannot be read.
    """
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise FunesError(f"{shown(path)} cannot be read: {error.strerror or error}.") from error


def check_writable(path: Path) -> None:
    """Look whether a file that is there may be written.

    The folder alone decides whether a file can be replaced, and some agents do replace a read-only one; but its owner
    meant it to stay as it is.

    Raises:
        FunesError: when it is read-only.
    """
    try:
        mode = path.stat().st_mode
    except OSError:
        return  # it is not there; or it cannot be looked at, which reading it will tell
    allowed = os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)
    if not (allowed and mode & 0o222):
        raise FunesError(f"{shown(path)} is read-only, so funes leaves it alone.")


def write(path: Path, data: bytes, mode: int | None = None) -> None:
    """Write a file whole: whoever reads it meanwhile sees the old or the new one. A link stays a link.

    Args:
        path: the file; missing folders are made.
        data: its content.
        mode: permission bits for a new file; a file that is there keeps its own.

    Raises:
        FunesError: when it cannot be written; the file is then as it was.
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.funes-{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        check_writable(target)
        with suppress(FileNotFoundError):
            mode = stat.S_IMODE(target.stat().st_mode)
        temporary.unlink(missing_ok=True)  # of a killed process that had our number
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
        try:
            with open(descriptor, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
                if mode is not None:
                    os.fchmod(stream.fileno(), mode)
                else:
                    os.fchmod(stream.fileno(), 0o666 & ~_umask())
            with suppress(FileNotFoundError, PermissionError):
                owner = target.stat()
                os.chown(temporary, owner.st_uid, owner.st_gid)
            note_writing(path, data)
            os.replace(temporary, target)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
    except OSError as error:
        raise FunesError(f"{shown(path)} cannot be written: {error.strerror or error}.") from error


def delete(path: Path) -> None:
    """Delete a file if it is there.

    Raises:
        FunesError: when it cannot be deleted.
    """
    note_writing(path, None)
    try:
        path.unlink(missing_ok=True)
    except NotADirectoryError:
        return
    except OSError as error:
        raise FunesError(f"{shown(path)} cannot be deleted: {error.strerror or error}.") from error


def delete_tree(folder: Path) -> None:
    """Delete a folder and everything below it, if it is there; a link is deleted, not what it points to.

    Raises:
        FunesError: when something cannot be deleted.
    """
    import shutil

    if folder.is_symlink() or folder.is_file():
        delete(folder)
        return
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        raise FunesError(f"{shown(folder)} cannot be deleted: {error.strerror or error}.") from error


def delete_empty(folders: Iterable[Path]) -> list[Path]:
    """Delete those of the folders that are empty, the deepest first, and return them."""
    gone = []
    for folder in sorted(folders, key=lambda folder: len(folder.parts), reverse=True):
        try:
            folder.rmdir()
        except OSError:
            continue  # not empty, or not there: both are fine
        gone.append(folder)
    return gone


def put_back(path: Path, original: Original) -> None:
    """Give a file its original content.

    Raises:
        FunesError: when it cannot be written.
    """
    if original.data is None:
        delete(path)
        return
    write(path, original.data, original.mode or None)
    if original.mode:
        with suppress(OSError):  # somebody else's file, which was writable all the same
            path.chmod(original.mode)


@dataclass(slots=True)
class Snapshot:
    """The watched files at one moment.

    Attributes:
        watch: what was looked at.
        files: content and permission bits of each file that was there.
        folders: the watched folders, those in watched trees and those above watched paths, that were there.
    """

    watch: Watch
    files: dict[Path, tuple[bytes, int]] = field(default_factory=dict)
    folders: set[Path] = field(default_factory=set)

    @classmethod
    def take(cls, watch: Watch) -> Snapshot:
        """Look at the files.

        Raises:
            FunesError: when one cannot be read.
        """
        snapshot = cls(watch)
        for path in watch.files:
            snapshot._see(path)
        for folder in watch.folders:
            snapshot._see_above(folder / "x")
        for tree in watch.trees:
            snapshot._see_above(tree)
            for above, folders, names in os.walk(tree):
                snapshot.folders.add(Path(above))
                snapshot.folders.update(Path(above, name) for name in folders)
                for name in names:
                    snapshot._see(Path(above, name))
        return snapshot

    def _see(self, path: Path) -> None:
        self._see_above(path)
        if (data := read(path)) is not None:
            self.files[path] = (data, stat.S_IMODE(path.stat().st_mode))

    def _see_above(self, path: Path) -> None:
        self.folders.update(parent for parent in path.parents if parent.is_dir())

    def restore(self) -> None:
        """Put everything back to this moment.

        Raises:
            FunesError: when a file cannot be written.
        """
        now = Snapshot.take(self.watch)
        for path in now.files.keys() - self.files.keys():
            delete(path)
        for path, (data, mode) in self.files.items():
            if path not in now.files or now.files[path][0] != data:
                write(path, data, mode)
        for folder in self.folders - now.folders:
            _make(folder)
        delete_empty(now.folders - self.folders)


@dataclass(frozen=True, slots=True)
class FileRecord:
    """How to put one file back if nobody has changed it since.

    What is kept is the stretch that differs, not a copy: settings hold things that belong in no second place.

    Attributes:
        path: the file.
        after: sha256 of the content that `add` left.
        before: the content before: `start` and `stop` of the stretch to replace, and the bytes that were there; None
            when there was no file.
        mode: permission bits before.
    """

    path: Path
    after: str
    before: tuple[int, int, bytes] | None
    mode: int = 0

    @classmethod
    def compare(cls, path: Path, before: bytes | None, after: bytes, mode: int = 0) -> FileRecord:
        """Make the record of a file from its contents before and after, and its permission bits before."""
        return cls(path, digest(after), None if before is None else _stretch(before, after), mode)

    def intact(self) -> bool:
        """Whether the file is as `add` left it."""
        data = read(self.path)
        return data is not None and digest(data) == self.after

    def original(self, data: bytes) -> Original:
        """The file from before.

        Args:
            data: the content that `add` left.
        """
        if self.before is None:
            return Original(None)
        start, stop, earlier = self.before
        return Original(data[:start] + earlier + data[stop:], self.mode)

    def to_json(self) -> dict[str, Any]:
        """The record for the receipt."""
        before = None
        if self.before is not None:
            start, stop, data = self.before
            before = [start, stop, base64.b64encode(data).decode("ascii")]
        return {"path": os.fspath(self.path), "after": self.after, "before": before, "mode": self.mode}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> FileRecord:
        """The record from the receipt."""
        before = value["before"]
        if before is not None:
            before = (int(before[0]), int(before[1]), base64.b64decode(before[2]))
        return cls(Path(value["path"]), value["after"], before, int(value["mode"]))


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FunesError(f"{shown(folder)} cannot be made: {error.strerror or error}.") from error


def digest(data: bytes) -> str:
    """Sha256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def changed(before: Snapshot, after: Snapshot) -> Iterator[tuple[Path, bytes | None, bytes | None]]:
    """The files that differ, with their contents before and after (None for no file), in the order of their paths."""
    for path in sorted(before.files.keys() | after.files.keys()):
        earlier, later = before.files.get(path), after.files.get(path)
        if (earlier and earlier[0]) != (later and later[0]):
            yield path, earlier and earlier[0], later and later[0]


def _stretch(before: bytes, after: bytes) -> tuple[int, int, bytes]:
    """The one stretch of `after` to replace, and by what, to have `before`."""
    shortest = min(len(before), len(after))
    start = next((n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), shortest)
    stop = 0
    while stop < shortest - start and before[-1 - stop] == after[-1 - stop]:
        stop += 1
    return start, len(after) - stop, before[start : len(before) - stop]


def _umask() -> int:
    """The process's file creation mask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
