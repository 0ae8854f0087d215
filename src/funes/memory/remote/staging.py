"""Copies of a version of a memory's tables that are made of links, so that they cost no time and no space.

A copy stays whole while its original is compacted and cleaned up, and is a place to write the next version: Lance never
changes a file, so appending to a copy adds files beside the links and leaves the originals alone.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from funes.errors import FunesError
from funes.memory.identity import newest_version
from funes.memory.lance import guarded, lance_module, settled
from funes.memory.schema import CHUNKS, VECTORS

TABLES = (CHUNKS, VECTORS)
_TRANSACTION = "transaction file"
_TRIES = 5


def live_files(dataset: Any) -> frozenset[str]:
    """Paths of the files of a dataset's open version, relative to the table's folder."""
    import pyarrow.compute as pc

    version = int(dataset.version)
    files = dataset.tracked_files(min_version=version).read_all()
    files = files.filter(pc.equal(files.column("version"), version))
    pairs = zip(files.column("path").to_pylist(), files.column("type").to_pylist(), strict=True)
    # The record of the transaction is for writers that were under way meanwhile; reading and appending do without.
    return frozenset(path for path, kind in pairs if kind != _TRANSACTION)


def freeze(folder: Path, copy: Path) -> None:
    """Make a copy of the newest version of a memory that stays as it is while others write.

    Args:
        folder: the memory's folder.
        copy: the folder to make, on the same file system.

    Raises:
        FunesError: when files vanish again and again, because another process compacts the memory.
        CorruptMemoryError: when a table cannot be read.
    """
    for _ in range(_TRIES):
        shutil.rmtree(copy, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            for name in TABLES:
                if newest_version(folder, name):
                    files = settled(folder, lambda name=name: live_files(lance_module().dataset(str(folder / name))))  # type: ignore[misc]
                    link_files(folder / name, sorted(files), copy / name)
            return
    raise FunesError(f"The memory in {folder} changes all the time; run the command again in a minute.")


def link_files(source: Path, files: Iterable[str], target: Path) -> None:
    """Link files into another folder, or copy them where that is not possible.

    Hard links of the files themselves, not of links to them as the Hugging Face cache has: they survive their original.

    Args:
        source: a folder.
        files: paths below it.
        target: the folder in which they get the same paths.

    Raises:
        FileNotFoundError: when a file is gone.
    """
    for path in files:
        destination = target / path
        destination.parent.mkdir(parents=True, exist_ok=True)
        original = os.path.realpath(source / path)
        try:
            os.link(original, destination)
        except FileNotFoundError:
            raise
        except OSError:  # another file system, or one without links
            shutil.copyfile(original, destination)


def table_files(folder: Path) -> dict[str, Path]:
    """The files of the newest version of both tables: path in the memory → file."""
    found: dict[str, Path] = {}
    for name in TABLES:
        if newest_version(folder, name):
            table = guarded(folder, lambda name=name: lance_module().dataset(str(folder / name)))  # type: ignore[misc]
            found |= {f"{name}/{path}": folder / name / path for path in live_files(table)}
    return found
