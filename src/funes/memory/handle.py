"""An open table: reads that survive a writer, and faults in plain words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from funes.memory.backing import Backing, FolderBacking
from funes.memory.dialect import Dialect
from funes.memory.lance import is_lance_fault

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")


class TableHandle:
    """A Lance dataset that is kept open between queries.

    A writer may compact the table and remove the files of old versions while the handle is open; a read that fails is
    therefore tried once more on the newest version before it counts as a fault.

    Args:
        place: the memory's folder, or what else holds its tables.
        name: the table's folder in it.

    Raises:
        CorruptMemoryError: when the table cannot be opened.
        RemoteError: when what holds it cannot be reached.
    """

    def __init__(self, place: Path | Backing, name: str) -> None:
        self.backing = FolderBacking(place) if isinstance(place, Path) else place
        self.name = name
        self.dataset: Any = None
        self._dialect: Dialect | None = None
        self._reopen()

    @property
    def version(self) -> int:
        """Number of the open version."""
        return int(self.dataset.version)

    @property
    def columns(self) -> frozenset[str]:
        """Names of the table's columns."""
        return frozenset(self.dataset.schema.names)

    @property
    def dialect(self) -> Dialect:
        """What the table lacks."""
        if self._dialect is None:
            self._dialect = Dialect.of(self.dataset.schema)
        return self._dialect

    @property
    def inline_model(self) -> str | None:
        """Id of the model that made the vectors in the table itself, as another program keeps them; None without."""
        if "vector" not in self.columns:
            return None
        metadata = self.dataset.schema.metadata or {}
        return str(metadata.get(b"embedding_model", b"an unknown model").decode())

    def refresh(self) -> bool:
        """Open the newest version if there is a newer one than the open one; says whether."""
        try:
            newest = int(self.dataset.latest_version)
        except BaseException as error:
            if not is_lance_fault(error):
                raise
            newest = -1
        if newest == self.version:
            return False
        self._reopen()
        return True

    def scan(self, columns: Sequence[str], condition: str | None = None, **options: Any) -> pa.Table:
        """Read rows.

        Args:
            columns: columns to read; those that the table lacks are left out.
            condition: SQL that rows have to meet, applied before any ranking.
            options: further arguments of Lance's scanner (`limit`, `nearest`, `full_text_query`, …).
        """
        present = self.columns | {"_score", "_distance", "_rowid"}
        wanted = [name for name in columns if name in present]
        rows = self.attempt(
            lambda: self.dataset.scanner(columns=wanted, filter=condition, prefilter=True, **options).to_table()
        )
        return self.dialect.translated(rows, columns)

    def attempt(self, action: Callable[[], T]) -> T:
        """Run a read, once more on the newest version when it fails.

        Raises:
            CorruptMemoryError: when it fails there too.
        """
        try:
            return action()
        except BaseException as error:
            if not is_lance_fault(error):
                raise
        self._reopen()
        try:
            return action()
        except BaseException as error:
            if not is_lance_fault(error):
                raise
            raise self.backing.fault(error) from error

    def _reopen(self) -> None:
        try:
            self.dataset = self.backing.open(self.name)
            self._dialect = None
        except BaseException as error:
            if not is_lance_fault(error):
                raise
            raise self.backing.fault(error) from error
