"""The two tables of a memory that rows are published to: a working copy, a folder, or tables in an object store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from funes.errors import CorruptMemoryError, FunesError
from funes.memory.identity import newest_version
from funes.memory.lance import is_lance_fault, lance_module
from funes.memory.maintenance import FTS, SMALL_FRAGMENT, index_chunks, index_vectors, tidy
from funes.memory.remote.faults import RemoteMovedError
from funes.memory.remote.merge import KEY_COLUMNS, Holdings
from funes.memory.remote.source import model_of
from funes.memory.schema import CHUNK_COLUMNS, CHUNKS, VECTORS, chunks_schema

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

WAITING_ROWS = 1000
"""Rows that readers search without an index: a delta for each push would cost them all more to fetch than it saves."""

UNVERIFIED_AGE = timedelta(days=1)
"""In a store that anybody may write to, a file that no version names is a left-over only when it is this old."""


class Tables:
    """The tables of a memory, open at their newest versions.

    Args:
        label: what the user calls the memory.
        location: folder or address of the memory.
        present: which of the two tables are there.
        options: storage options for an object store.
        store: whether it is in one, where others may write at any time.
        unread: whether nobody reads it yet, as is so with a working copy.

    Attributes:
        chunks, vectors: the datasets, None where there is none yet.
        crossed: whether somebody else wrote between looking and appending.
    """

    def __init__(
        self,
        label: str,
        location: str,
        present: Iterable[str],
        options: Mapping[str, str] | None = None,
        *,
        store: bool = False,
        unread: bool = False,
    ) -> None:
        self.label = label
        self.location = location.rstrip("/")
        self.options = dict(options or {})
        self.store = store
        self._unread = unread
        self.crossed = False
        there = set(present)
        self._began = self._newest()
        self.chunks = self._read(lambda: self._open(CHUNKS)) if CHUNKS in there else None
        self.vectors = self._read(lambda: self._open(VECTORS)) if VECTORS in there else None

    def check(self, model: str) -> None:
        """Look whether rows of this version of funes, with vectors of this model, can be added.

        Raises:
            FunesError: when the memory was made by another program or with another model.
        """
        if self.chunks is not None:
            absent = sorted(set(CHUNK_COLUMNS) - set(self.chunks.schema.names))
            if absent:
                raise FunesError(
                    f"{self.label} was made by another program (its table has no column {absent[0]}), so it can be "
                    "read but not added to; push to a new name."
                )
        vectors = self.vectors
        if vectors is not None and self._read(vectors.count_rows) and (made := model_of(vectors)) != model:
            raise FunesError(
                f"The vectors of {self.label} were made with {made or 'an unknown model'} and yours with {model}, "
                "which cannot be compared; push to a new name."
            )

    def holdings(self) -> Holdings:
        """Take stock of what is there.

        What two writers of a store left twice there, because one was killed before it had cleared up, is cleared up.
        """
        held = self._read(self._holdings)
        if held.doubled and self.store:
            self._read(self._clear_up)
            held = self._read(self._holdings)
        return held

    def _clear_up(self) -> None:
        from funes.memory.remote.crossing import remove_twice_stored
        from funes.memory.remote.stores import is_overtaken

        try:
            remove_twice_stored(self)
        except BaseException as error:
            # Whoever was quicker removes the same rows.
            if not (is_lance_fault(error) and is_overtaken(error)):
                raise
            self.reopen()

    def _holdings(self) -> Holdings:
        if self.chunks is None:
            return Holdings()
        keys = self.chunks.to_table(columns=list(KEY_COLUMNS))
        ids: Sequence[str] = []
        if self.vectors is not None:
            ids = self.vectors.to_table(columns=["id"]).column("id").to_pylist()
        return Holdings.of(keys, ids)

    def append_rows(self, batches: Iterator[pa.RecordBatch]) -> None:
        """Append rows to the chunks table in one commit, making the table if there is none."""
        if self.chunks is None:
            self.chunks = self._create(CHUNKS, chunks_schema())
        if not self._unread and FTS not in {index.name for index in self.chunks.describe_indices()}:
            # The word index is made first, so that no reader ever meets rows without its way to cut words; also where
            # whoever made the table was killed, or has not come to it yet.
            index_chunks(self.chunks)
        self.chunks = self._append(self.chunks, chunks_schema(), batches)

    def append_vectors(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
        """Append rows to the vectors table in one commit, making the table if there is none.

        Args:
            batches: rows of `schema`.
            schema: that of a vectors table, with the model's id.
        """
        if self.vectors is None or (not self.vectors.count_rows() and not self.vectors.schema.metadata):
            self.vectors = self._create(VECTORS, schema)
        self.vectors = self._append(self.vectors, schema.remove_metadata(), batches)

    def maintain(self, *, compact: bool = False, alone: bool = True) -> None:
        """Index what waits for it, merge small fragments, remove old versions; as far as it is worth it.

        Args:
            compact: do all of it, whatever it costs.
            alone: whether nobody else can be writing, as in a working copy or under the locks of a folder.
        """
        waiting = 0 if compact else WAITING_ROWS
        if self.chunks is not None:
            index_chunks(self.chunks, waiting)
            self._tidy(self.chunks, compact, alone)
        if self.vectors is not None:
            index_vectors(self.vectors, waiting)
            self._tidy(self.vectors, compact, alone)
        if compact:
            self._merge_indexes()
            self.reopen()
            for table in (self.chunks, self.vectors):
                if table is not None:
                    self._tidy(table, compact, alone)

    def versions(self) -> tuple[int, int]:
        """Versions of the two tables, 0 for one that is not there."""
        return tuple(0 if table is None else int(table.version) for table in (self.chunks, self.vectors))  # type: ignore[return-value]

    def birth(self) -> str:
        """What tells the memory from others, the same for all who look: the transaction that made its chunks table.

        Empty when the record of that is gone.
        """
        try:
            made = self.chunks.read_transaction(1) if self.chunks is not None else None
        except BaseException as error:
            if not is_lance_fault(error):
                raise
            return ""
        return "" if made is None else str(made.uuid).replace("-", "")

    def bytes_held(self) -> int:
        """Bytes of the data files and indexes of the open versions."""
        total = 0
        for table in (self.chunks, self.vectors):
            if table is not None:
                files = [file for fragment in table.get_fragments() for file in fragment.data_files()]
                total += sum(int(file.file_size_bytes or 0) for file in files)
                total += sum(int(index.total_size_bytes or 0) for index in table.describe_indices())
        return total

    def path(self, name: str) -> str:
        """Address of a table or file of the memory."""
        return f"{self.location}/{name}"

    def _tidy(self, table: Any, compact: bool, alone: bool) -> None:
        if alone:
            # Whoever shares the memory reads again what is rewritten.
            tidy(table, thoroughly=compact, big=SMALL_FRAGMENT)
        elif compact:
            table.optimize.compact_files()
            table.cleanup_old_versions(older_than=UNVERIFIED_AGE, error_if_tagged_old_versions=False)

    def _merge_indexes(self) -> None:
        """Make one index of the deltas of each."""
        for table in (self.chunks, self.vectors):
            if table is not None:
                table.optimize.optimize_indices(num_indices_to_merge=len(table.describe_indices()) + 64)

    def reopen(self) -> None:
        """Move on to the newest versions."""
        self.chunks = self._open(CHUNKS) if self.chunks is not None else None
        self.vectors = self._open(VECTORS) if self.vectors is not None else None

    def _create(self, name: str, schema: pa.Schema) -> Any:
        """Make an empty table; a table that somebody else makes at the same moment is a fault, and stays.

        It is committed as the change that follows version 0, because a table written with `mode="create"` replaces
        one that appears between Lance's look and its commit, with all rows in it.
        """
        lance = lance_module()
        return lance.LanceDataset.commit(
            self.path(name),
            lance.LanceOperation.Overwrite(schema, []),
            read_version=0,
            max_retries=0,
            enable_stable_row_ids=True,
            **self._options(),
        )

    def _append(self, table: Any, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Any:
        import pyarrow as pa

        reader = pa.RecordBatchReader.from_batches(schema, (batch.cast(schema) for batch in batches))
        before = int(table.version)
        table = lance_module().write_dataset(reader, table, mode="append", **self._options())
        self.crossed = self.crossed or int(table.version) != before + 1
        return table

    def _read(self, action: Callable[[], T]) -> T:
        """Run an action and turn any fault of the storage into one sentence."""
        try:
            return action()
        except BaseException as error:
            if not is_lance_fault(error):
                raise
            if self.store:
                from funes.memory.remote.stores import store_fault

                raise store_fault(error, self.location) from error
            if self._newest() != self._began:
                raise RemoteMovedError(f"{self.label} was written to meanwhile; run the command again.") from error
            raise CorruptMemoryError(
                f"{self.label} is damaged: its tables cannot be read, so nothing can be added; push to a new name."
            ) from error

    def _newest(self) -> list[int]:
        """Versions of the tables that are in a folder."""
        return [] if self.store else [newest_version(Path(self.location), name) for name in (CHUNKS, VECTORS)]

    def _open(self, name: str) -> Any:
        return lance_module().dataset(self.path(name), **self._options())

    def _options(self) -> dict[str, Any]:
        return {"storage_options": self.options} if self.options else {}
