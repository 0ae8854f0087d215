"""An open table: reads that survive a writer, and faults in plain words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from funes.memory.backing import Backing, FolderBacking
from funes.memory.dialect import Dialect
from funes.memory.lance import is_lance_fault
from funes.memory.register import NARROW_COLUMNS, Register, RegisterReader
from funes.memory.token_values import TokenValues

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")


class TableHandle:
    """A Lance dataset that is kept open between queries.

    A writer may compact the table and remove the files of old versions while the handle is open; a read that fails is
    therefore tried again on the newest version before it counts as a fault.

    Args:
        place: the memory's folder, or what else holds its tables.
        name: the table's folder in it.
        narrow: what its register holds of each row.

    Raises:
        CorruptMemoryError: when the table cannot be opened.
        RemoteError: when what holds it cannot be reached.
    """

    def __init__(self, place: Path | Backing, name: str, narrow: Sequence[str] = NARROW_COLUMNS) -> None:
        self.backing = FolderBacking(place) if isinstance(place, Path) else place
        self.name = name
        self.dataset: Any = None
        self._dialect: Dialect | None = None
        self._register: Register | None = None
        self._registers = RegisterReader(narrow)
        self._lock = Lock()
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

    def register(self) -> Register:
        """The register of the open version; it is read when it is asked for first."""
        return self.attempt(self._current_register)

    def ranked(self, score: str, condition: str | None, **options: Any) -> list[tuple[str, float]]:
        """Search, and name what is found.

        Args:
            score: the column that Lance makes for the search, `_score` or `_distance`.
            condition: SQL that rows have to meet, applied before ranking.
            options: `full_text_query` or `nearest`, and `limit`.

        Returns:
            `(id, score)` pairs as Lance ranks them.
        """

        def search() -> list[tuple[str, float]]:
            register = self._current_register()
            scanner = register.dataset.scanner(
                columns=[score], filter=condition, prefilter=True, with_row_id=True, **options
            )
            rows = scanner.to_table()
            positions = register.by_row_id(rows.column("_rowid").to_numpy())
            scores = rows.column(score).to_numpy()[positions >= 0].tolist()
            return list(zip(register.ids_at(positions[positions >= 0]), scores, strict=True))

        return self.attempt(search)

    def by_id(self, ids: Sequence[str], columns: Sequence[str]) -> pa.Table:
        """Read the rows that have the texts of passages, in the order of their places in the table.

        Args:
            ids: the passages; those that the table lacks are left out.
            columns: columns to read besides the id; those that the table lacks are left out.
        """
        import pyarrow as pa

        places, rows = self._taken(ids, columns)
        rows = rows.append_column("id", pa.array([ids[place] for place in places.tolist()], pa.string()))
        return self.dialect.translated(rows, columns)

    def token_values(self, ids: Sequence[str], column: str, nothing: npt.NDArray[Any]) -> TokenValues:
        """Read what is stored of the tokens of passages.

        Args:
            ids: the passages, each once; those that the table lacks, and those that have null there, are left out.
            column: a binary column.
            nothing: the values of no token, `(0,)` or `(0, width)`.

        Returns:
            The passages in the order of their places in the table.
        """
        places, rows = self._taken(ids, [column])
        if column not in rows.column_names:
            return TokenValues(nothing, np.zeros(0, np.int64), np.zeros(0, np.int64))
        return TokenValues.of(rows.column(column), places, nothing)

    def _taken(self, ids: Sequence[str], columns: Sequence[str]) -> tuple[npt.NDArray[np.int64], pa.Table]:
        """Rows of passages in the table's order, and where in `ids` they are; of an id that comes twice the first."""
        stored = [name for name in columns if name in self.columns - {"id"}]

        def read() -> tuple[npt.NDArray[np.int64], pa.Table]:
            register = self._current_register()
            positions, places = np.unique(register.by_id(ids), return_index=True)
            places, positions = places[positions >= 0], positions[positions >= 0]
            return places, register.dataset.take(positions, columns=stored)

        return self.attempt(read)

    def attempt(self, action: Callable[[], T]) -> T:
        """Run a read; when it fails, once more on the newest version, and again as long as there is a newer one.

        Raises:
            CorruptMemoryError: when it fails on a version that stays the newest.
        """
        failed = 0
        while True:
            try:
                return action()
            except BaseException as error:
                if not is_lance_fault(error):
                    raise
                if failed == self.version:
                    raise self.backing.fault(error) from error
            failed = self.version
            self._reopen()

    def _current_register(self) -> Register:
        with self._lock:
            if self._register is None or self._register.dataset is not self.dataset:
                self._register = self._registers.read(self.dataset, self.dialect)
            return self._register

    def _reopen(self) -> None:
        try:
            self.dataset = self.backing.open(self.name)
            self._dialect = None
        except BaseException as error:
            if not is_lance_fault(error):
                raise
            raise self.backing.fault(error) from error
