"""The Hugging Face cache, as its own client lays it out: contents in `blobs/`, a folder of links for each commit.

A snapshot counts as complete once a note of its files lies in `funes/<commit>.json` beside them, written last. Every
file is checked before it is moved into `blobs/`, so other programs never see half of one either.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

from funes.errors import FunesError
from funes.memory.remote.tokens import hf_home

NOTES = "funes"
LEFT_OVER_SECONDS = 86_400.0


def cache_folder() -> Path:
    """Folder of all repositories in the cache."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if value := os.environ.get(name):
            return Path(value).expanduser()
    return hf_home() / "hub"


class RepoCache:
    """One dataset repository in the cache.

    Args:
        repo: `<org>/<name>`.
    """

    def __init__(self, repo: str) -> None:
        self.folder = cache_folder() / f"datasets--{repo.replace('/', '--')}"

    def snapshot(self, commit: str) -> Path:
        """Folder of one commit's files."""
        return self.folder / "snapshots" / commit

    def blob(self, key: str) -> Path:
        """Path of a content."""
        return self.folder / "blobs" / key

    def temporary(self, key: str) -> Path:
        """Path for a content that is still on its way."""
        return self.folder / "blobs" / f"{key}.{uuid.uuid4().hex[:8]}.incomplete"

    def sweep(self) -> None:
        """Remove what downloads left that were killed; one that still runs is younger than a day."""
        before = time.time() - LEFT_OVER_SECONDS
        for path in self.folder.glob("blobs/*.incomplete"):
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < before:
                    path.unlink()

    def has(self, commit: str, path: str, size: int) -> bool:
        """Whether a commit's file is there, whole."""
        return _size(self.snapshot(commit) / path) == size

    def has_blob(self, key: str, size: int) -> bool:
        """Whether a content is there, whole."""
        return _size(self.blob(key)) == size

    def link(self, commit: str, path: str, key: str) -> None:
        """Make a content that is in `blobs/` visible in a commit's folder.

        Raises:
            OSError: when the cache cannot be written.
        """
        target = self.snapshot(commit) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}")
        try:
            temporary.symlink_to(os.path.relpath(self.blob(key), target.parent))
        except (OSError, NotImplementedError):
            shutil.copyfile(self.blob(key), temporary)  # a file system without links
        os.replace(temporary, target)

    def complete(self, commit: str, revision: str, files: Mapping[str, int]) -> None:
        """Note that a snapshot is complete, and that it is the newest of its revision.

        Args:
            commit: the snapshot.
            revision: the branch or tag that it was found under.
            files: path and size of every file that belongs to it.

        Raises:
            FunesError: when the cache cannot be written.
        """
        try:
            _write(self._note(commit), json.dumps({"files": dict(files)}) + "\n")
        except OSError as error:
            raise unwritable(error) from error
        self.point(revision, commit)

    def point(self, revision: str, commit: str) -> None:
        """Note that a complete snapshot is the newest of a revision.

        Raises:
            FunesError: when the cache cannot be written.
        """
        try:
            _write(self._ref(revision), commit)
            if revision != commit:
                _write(self.folder / "refs" / revision, commit)
        except OSError as error:
            raise unwritable(error) from error

    def is_complete(self, commit: str) -> bool:
        """Whether a commit's files are all there."""
        try:
            files = json.loads(self._note(commit).read_text(encoding="utf-8"))["files"]
            return all(self.has(commit, path, size) for path, size in files.items())
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return False

    def newest(self, revision: str) -> tuple[str, Path] | None:
        """The snapshot that was the newest of a revision when it was last looked at; None when it is not whole."""
        try:
            commit = self._ref(revision).read_text(encoding="utf-8").strip()
        except OSError:
            return None
        return (commit, self.snapshot(commit)) if commit and self.is_complete(commit) else None

    def use(self, commit: str) -> None:
        """Note that a snapshot is being read now."""
        with contextlib.suppress(OSError):  # a cache that cannot be written is read all the same
            os.utime(self._note(commit))

    def notes(self) -> list[Path]:
        """The notes of all snapshots that funes has brought."""
        return list((self.folder / NOTES).glob("*.json"))

    def refs(self) -> list[Path]:
        """The files that say at which commit a revision stands."""
        places = (self.folder / "refs", self.folder / NOTES / "refs")
        return [path for place in places for path in place.rglob("*") if path.is_file()]

    def _note(self, commit: str) -> Path:
        return self.folder / NOTES / f"{commit}.json"

    def _ref(self, revision: str) -> Path:
        return self.folder / NOTES / "refs" / revision


def unwritable(error: OSError) -> FunesError:
    """The error for a cache that cannot be written."""
    return FunesError(
        f"The Hugging Face cache in {cache_folder()} cannot be written ({error.strerror or error}); check its "
        "permissions and the free space, or set HF_HOME to another folder."
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)
