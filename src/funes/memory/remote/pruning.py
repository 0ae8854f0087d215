"""Removing versions of memories from the Hugging Face cache that nobody has read for long.

A memory that is read daily leaves a snapshot for each version. One goes when funes brought it here, nothing but what
funes brought lies in it, it is not among the latest, no revision stands at it, and no process of funes has opened it
for `UNUSED_SECONDS`: each opening renews its note, and nobody keeps a version open that long without opening it again.
Should a content go that a snapshot needs after all, that snapshot is not whole any more, and the next command fetches
what it lacks.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from funes.memory.remote.cache import RepoCache

UNUSED_SECONDS = 7 * 86_400.0
KEPT = 3
"""How many versions stay however old they are."""

BESIDE = frozenset({"README.md"})
"""What a push fetches beside the files that a note names."""


def prune(cache: RepoCache) -> int:
    """Remove old versions of one repository; a cache that cannot be written stays as it is.

    Args:
        cache: the repository in the cache.

    Returns:
        The number of versions removed.
    """
    removed, contents = 0, set[Path]()
    with contextlib.suppress(OSError):
        for note in _unused(cache):
            links = _links(cache.snapshot(note.stem), note)
            if links is None:
                continue
            note.unlink()
            contents |= {Path(os.path.realpath(link)) for link in links}
            for link in links:
                link.unlink()
            _remove_empty(cache.snapshot(note.stem))
            removed += 1
        if contents:
            needed = {Path(os.path.realpath(path)) for path in _below(cache.folder / "snapshots")}
            for content in contents - needed:
                if content.parent == Path(os.path.realpath(cache.folder / "blobs")):
                    content.unlink(missing_ok=True)
    return removed


def _unused(cache: RepoCache) -> list[Path]:
    """Notes of versions that may go."""
    times = {note: note.stat().st_mtime for note in cache.notes()}
    latest = sorted(times, key=times.__getitem__)[-KEPT:]
    before = time.time() - UNUSED_SECONDS
    named = {ref.read_text(encoding="utf-8").strip() for ref in cache.refs()}
    return [note for note in times if times[note] < before and note not in latest and note.stem not in named]


def _links(snapshot: Path, note: Path) -> list[Path] | None:
    """The links that a snapshot consists of; None when there is something in it that funes did not bring."""
    try:
        files = set(json.loads(note.read_text(encoding="utf-8"))["files"]) | BESIDE
    except (ValueError, KeyError, TypeError):
        return None
    links = list(_below(snapshot))
    ours = all(link.is_symlink() and link.relative_to(snapshot).as_posix() in files for link in links)
    return links if ours else None


def _below(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):
        yield from (Path(place, name) for name in names)


def _remove_empty(folder: Path) -> None:
    places: Iterable[tuple[str, list[str], list[str]]] = os.walk(folder, topdown=False)
    for place, _, _ in places:
        with contextlib.suppress(OSError):
            os.rmdir(place)
