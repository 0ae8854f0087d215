"""Where a memory's tables are kept: a folder here, or an object store (`remote/stores.py`)."""

from __future__ import annotations

import contextlib
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from funes.errors import FunesError
from funes.memory.counts import PieceCounts
from funes.memory.identity import manifest_version, newest_version
from funes.memory.lance import corrupt, is_lance_fault, lance_module


class Backing(Protocol):
    """What holds the tables of a memory.

    Attributes:
        where: what to call it in a sentence.
        folder: the folder of the tables; one that cannot exist when they are not in a folder.
    """

    where: str
    folder: Path

    def has(self, table: str) -> bool:
        """Whether there is a version of a table."""
        ...

    def open(self, table: str) -> Any:
        """Open the newest version of a table as a Lance dataset."""
        ...

    def fault(self, error: BaseException) -> FunesError:
        """Make the error for a fault of the storage."""
        ...

    def counts(self) -> PieceCounts | None:
        """The counts of word pieces that are kept beside the tables, if any."""
        ...

    def size(self, table: str, *, indexes: bool) -> int:
        """Bytes of a table's files: those of its indexes, or all the others."""
        ...

    def versions(self, table: str) -> int:
        """Number of versions that are kept of a table."""
        ...

    def changed(self, table: str) -> datetime | None:
        """When the newest version of a table was written, None when not known."""
        ...


class FolderBacking:
    """Tables in a folder.

    Args:
        folder: the folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.where = str(folder)

    def has(self, table: str) -> bool:
        """Whether there is a version of a table."""
        return bool(self._manifests(table))

    def open(self, table: str) -> Any:
        """Open the newest version of a table as a Lance dataset."""
        while True:
            newest = newest_version(self.folder, table)
            try:
                return lance_module().dataset(str(self.folder / table))
            except BaseException as error:
                # A writer may remove a version that has just been listed, once there is a newer one.
                if not is_lance_fault(error) or newest_version(self.folder, table) == newest:
                    raise

    def fault(self, error: BaseException) -> FunesError:
        """Make the error for a fault of the storage."""
        return corrupt(self.folder, error)

    def counts(self) -> PieceCounts | None:
        """The counts of word pieces that are kept beside the tables, if any."""
        return PieceCounts.load(self.folder)

    def size(self, table: str, *, indexes: bool) -> int:
        """Bytes of a table's files: those of its indexes, or all the others."""
        total, root = 0, self.folder / table
        for folder, _, files in os.walk(root):
            if ("_indices" in Path(folder).relative_to(root).parts) == indexes:
                for name in files:
                    with contextlib.suppress(FileNotFoundError):  # a writer cleans up while this walks
                        total += os.stat(os.path.join(folder, name)).st_size
        return total

    def versions(self, table: str) -> int:
        """Number of versions that are kept of a table."""
        return len(self._manifests(table))

    def changed(self, table: str) -> datetime | None:
        """When the newest version of a table was written, None when there is none."""
        manifests = self._manifests(table)
        return datetime.fromtimestamp(max(path.stat().st_mtime for path in manifests), UTC) if manifests else None

    def _manifests(self, table: str) -> list[Path]:
        return [path for path in (self.folder / table / "_versions").glob("*") if manifest_version(path.name)]
