"""Writing the vectors table: which passages wait for a vector, and appending what was computed for them.

The table has a lock of its own, so that an agent's finished turn is stored and searchable by words while another
process computes vectors for hours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from funes.errors import FunesError
from funes.memory.counts import COUNTED, PieceCounts
from funes.memory.identity import newest_version
from funes.memory.lance import corrupt, is_lance_fault, lance_module, settled, written
from funes.memory.lock import VECTORS_LOCK, WAIT_SECONDS, WriterLock
from funes.memory.maintenance import index_vectors, tidy
from funes.memory.schema import (
    CHUNKS,
    DIMENSIONS,
    FILTER_COLUMNS,
    PROSE,
    REFERENCE,
    SESSION_TYPE,
    VECTORS,
    quoted_list,
    tier_of,
    vectors_schema,
)

if TYPE_CHECKING:
    import pyarrow as pa

MODEL_KEY = b"funes:model"


class MovedOnError(FunesError):
    """Another process has changed the chunks table and removed the files of the version that was looked at."""


@dataclass(slots=True)
class Waiting:
    """Passages without a vector, in the order in which they should get one.

    Attributes:
        places: `(n,)` int64, positions in the version of the chunks table that was looked at.
        tiers: `(n,)` int8, index into `schema.TIERS`.
    """

    places: npt.NDArray[np.int64]
    tiers: npt.NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.places)


class VectorWriter:
    """The vectors table, open for appending; a context manager that holds its lock.

    Args:
        folder: the memory's folder.
        model: id of the model; vectors of another model are replaced.
        wait: seconds to wait for another process that computes vectors.

    Raises:
        LockedError: on entering, when another process keeps the lock.
        CorruptMemoryError: on entering, when a table cannot be read.
    """

    def __init__(self, folder: Path, model: str, wait: float = WAIT_SECONDS) -> None:
        self.folder = folder
        self.model = model
        self._lock = WriterLock(folder, VECTORS_LOCK, wait, doing="computing vectors")
        self._chunks: Any = None
        self._vectors: Any = None
        self._counts = PieceCounts.empty()
        self._added = 0

    def __enter__(self) -> VectorWriter:
        self._lock.acquire()
        try:
            settled(self.folder, self._open)
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    def outdated(self) -> bool:
        """Whether passages were added since `waiting` looked."""
        return newest_version(self.folder) != int(self._chunks.version)

    def waiting(self) -> Waiting:
        """Find the passages without a vector: tier by tier, in each the newest session first."""
        return settled(self.folder, self._waiting)

    def replaces(self) -> bool:
        """Whether there are vectors of another model, which the first ones that are appended replace."""
        return self._vectors is None and newest_version(self.folder, VECTORS) > 0

    def without_vectors(self, ids: Sequence[str]) -> pa.Table:
        """Read those of some passages that have no vector: the columns of `passages`, in the table's order."""
        return settled(self.folder, lambda: self._without_vectors(ids))

    def passages(self, places: npt.NDArray[np.int64]) -> pa.Table:
        """Read the id, text and filter columns of passages.

        Args:
            places: `(n,)` int64, from `waiting`.

        Raises:
            MovedOnError: when another process has moved the table on and removed the files; look for `waiting` again.
            CorruptMemoryError: when the table cannot be read.
        """
        columns = ["id", "text", *FILTER_COLUMNS]
        order = np.argsort(places, kind="stable")
        try:
            rows = self._chunks.take(places[order].tolist(), columns=columns)
        except BaseException as error:
            if not is_lance_fault(error):
                raise
            if self.outdated():
                raise MovedOnError(f"The memory in {self.folder} changes; run the command again.") from error
            raise corrupt(self.folder, error) from error
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return rows.take(back)

    def append(
        self,
        passages: pa.Table,
        dense: npt.NDArray[np.float32],
        codes: list[npt.NDArray[np.uint8] | None],
        pieces: list[npt.NDArray[np.uint16]],
    ) -> None:
        """Append vectors in one commit.

        Args:
            passages: rows from `passages`.
            dense: `(n, 384)` float32, unit rows.
            codes: for each passage `(tokens, 48)` uint8, or None.
            pieces: for each passage `(tokens,)` word pieces.
        """
        table = self._table(passages, dense, codes, pieces)
        written(self.folder, lambda: self._append(table))
        self._added += table.num_rows
        kinds = passages.column("block_type").to_pylist()
        for kind, row_codes, row_pieces in zip(kinds, codes, pieces, strict=True):
            if kind in PROSE and row_codes is not None:
                self._counts.add(row_pieces)
        self._save_counts()

    def finish(self) -> None:
        """Index, compact and clean up as far as it is worth it. Call once, after the last append."""
        if self._vectors is not None:
            done = written(self.folder, lambda: index_vectors(self._vectors, added=self._added))
            if written(self.folder, lambda: tidy(self._vectors, added=self._added)) or done:
                self._save_counts()

    def _open(self) -> None:
        lance = lance_module()
        self._chunks, self._vectors = lance.dataset(str(self.folder / CHUNKS)), None
        if newest_version(self.folder, VECTORS):
            self._vectors = lance.dataset(str(self.folder / VECTORS))
            if (self._vectors.schema.metadata or {}).get(MODEL_KEY, b"").decode() != self.model:
                self._vectors = None
                return
            kept = PieceCounts.load(self.folder)
            if kept is None or kept.version != int(self._vectors.version):
                # A killed writer, or other maintenance: counting the rows takes a tenth of a second, reading them more.
                coded = self._vectors.count_rows(COUNTED)
                if kept is None or kept.rows != coded:
                    kept = self._recount()
                self._counts = kept
                written(self.folder, self._save_counts)  # once, whatever becomes of what is to be appended
            self._counts = kept

    def _save_counts(self) -> None:
        self._counts.version = newest_version(self.folder, VECTORS)
        self._counts.save(self.folder)

    def _recount(self) -> PieceCounts:
        counts = PieceCounts.empty()
        rows = self._vectors.scanner(columns=["pieces"], filter=COUNTED).to_table()
        for pieces in rows.column("pieces").to_pylist():
            counts.add(np.frombuffer(pieces, "<u2"))
        return counts

    def _waiting(self) -> Waiting:
        import pyarrow as pa
        import pyarrow.compute as pc

        self._look_again()
        rows = self._chunks.to_table(columns=["id", "session_id", "block_type", "ts", "offset"])
        rows = rows.append_column("place", pa.array(np.arange(rows.num_rows)))
        latest = rows.group_by("session_id").aggregate([("ts", "max")])
        rows = rows.filter(
            pc.and_(
                pc.not_equal(rows.column("offset"), REFERENCE), pc.not_equal(rows.column("block_type"), SESSION_TYPE)
            )
        )
        if self._vectors is not None:
            present = self._vectors.to_table(columns=["id"]).column("id").combine_chunks()
            rows = rows.filter(pc.invert(pc.is_in(rows.column("id"), present)))
        session = pc.index_in(rows.column("session_id"), latest.column("session_id").combine_chunks())
        newest_first = _ranks(latest)
        kinds = rows.column("block_type").combine_chunks().dictionary_encode()
        tier_by_kind = np.array([tier_of(kind) for kind in kinds.dictionary.to_pylist()], np.int8)
        tiers = tier_by_kind[kinds.indices.to_numpy()] if rows.num_rows else np.zeros(0, np.int8)
        places = rows.column("place").to_numpy()
        order = np.lexsort((places, newest_first[session.to_numpy()], tiers))
        return Waiting(places[order], tiers[order])

    def _look_again(self) -> None:
        if self.outdated():
            self._chunks = lance_module().dataset(str(self.folder / CHUNKS))

    def _without_vectors(self, ids: Sequence[str]) -> pa.Table:
        self._look_again()
        columns = ["id", "text", *FILTER_COLUMNS]
        left = list(dict.fromkeys(ids))
        if self._vectors is not None:
            condition = f"id IN ({quoted_list(left)})"
            present = set(self._vectors.scanner(columns=["id"], filter=condition).to_table().column("id").to_pylist())
            left = [identifier for identifier in left if identifier not in present]
        condition = f"id IN ({quoted_list(left)}) AND offset != {REFERENCE}" if left else "false"
        return self._chunks.scanner(columns=columns, filter=condition).to_table()

    def _table(
        self,
        passages: pa.Table,
        dense: npt.NDArray[np.float32],
        codes: list[npt.NDArray[np.uint8] | None],
        pieces: list[npt.NDArray[np.uint16]],
    ) -> pa.Table:
        import pyarrow as pa

        schema = vectors_schema().with_metadata({MODEL_KEY: self.model.encode()})
        flat = pa.array(dense.astype(np.float16).reshape(-1))
        columns = {
            "id": passages.column("id"),
            "vector": pa.FixedSizeListArray.from_arrays(flat, DIMENSIONS),
            "codes": pa.array([None if row is None else row.tobytes() for row in codes], pa.binary()),
            "pieces": pa.array([row.astype("<u2").tobytes() for row in pieces], pa.binary()),
            "model": pa.array([self.model] * passages.num_rows, pa.string()),
            **{name: passages.column(name) for name in FILTER_COLUMNS},
        }
        return pa.table({name: columns[name] for name in schema.names}, schema=schema)

    def _append(self, table: pa.Table) -> None:
        lance = lance_module()
        if self._vectors is None:
            self._vectors = lance.write_dataset(
                table,
                str(self.folder / VECTORS),
                mode="overwrite" if newest_version(self.folder, VECTORS) else "create",
                data_storage_version="stable",
                enable_stable_row_ids=True,
            )
        else:
            self._vectors = lance.write_dataset(table, self._vectors, mode="append")


def _ranks(latest: pa.Table) -> npt.NDArray[np.int64]:
    """Rank of each session, the one with the latest passage first; sessions without times come last."""
    import pyarrow.compute as pc

    order = pc.sort_indices(
        latest, sort_keys=[("ts_max", "descending"), ("session_id", "ascending")]
    ).to_numpy()  # nulls at the end
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return ranks
