"""Writing the chunks table: look-up and append under one lock, indexes, clean-up.

Rows are only ever added. A batch is one Lance commit, so a killed writer leaves whole batches or nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from funes.chunking import Chunk
from funes.errors import CorruptMemoryError
from funes.memory.identity import ensure_identity, newest_version
from funes.memory.lance import give_memory_back, guarded, lance_module, written
from funes.memory.lock import WAIT_SECONDS, WORDS_LOCK, WriterLock
from funes.memory.maintenance import DELTA_ROWS, index_chunks, tidy
from funes.memory.schema import (
    CHUNK_COLUMNS,
    CHUNKS,
    REFERENCE,
    SESSION_TYPE,
    chunks_to_table,
    quoted,
    quoted_list,
    table_to_chunks,
)

if TYPE_CHECKING:
    import pyarrow as pa

IDS_AT_ONCE = 2000
CACHE_BYTES = 64 << 20
LONG_RUN_ROWS = 50_000
STORED_COLUMNS = ("id", "turn_uuid", "seq", "block_idx", "split_idx", "offset")


@dataclass(slots=True)
class StoredSession:
    """What the table holds of one session.

    Attributes:
        table: the places of its rows, headers left out; None when there are none.
        header: the newest header row, None when there is none.
        next_seq: position of its next new turn.
        last: time of its latest turn.
    """

    table: pa.Table | None = None
    header: Chunk | None = None
    next_seq: int = 0
    last: datetime | None = None

    def rows(self, turns: Iterable[str], ids: Iterable[str]) -> list[tuple[Any, ...]]:
        """Rows of some turns and rows with some ids, a tuple of `STORED_COLUMNS` each.

        Of a session that has grown for days, a new turn needs few rows.
        """
        if self.table is None:
            return []
        import pyarrow as pa
        import pyarrow.compute as pc

        wanted = pc.or_(
            pc.is_in(self.table.column("turn_uuid"), pa.array(turns, pa.string())),
            pc.is_in(self.table.column("id"), pa.array(ids, pa.string())),
        )
        found = self.table.filter(wanted)
        return list(zip(*(found.column(name).to_pylist() for name in STORED_COLUMNS), strict=True))


class MemoryWriter:
    """The chunks table, open for appending; a context manager that holds the writer lock.

    Args:
        folder: the memory's folder, made when it does not exist.
        wait: seconds to wait for another writer.

    Raises:
        LockedError: on entering, when another writer keeps the lock.
        CorruptMemoryError: on entering, when there is a table that cannot be read.
    """

    def __init__(self, folder: Path, wait: float = WAIT_SECONDS) -> None:
        self.folder = folder
        self.identity = ""
        self._lock = WriterLock(folder, WORDS_LOCK, wait, doing="indexing")
        self._dataset: Any = None
        self._before: Any = None
        self._added = 0

    def __enter__(self) -> MemoryWriter:
        self._lock.acquire()
        try:
            self.identity = ensure_identity(self.folder)
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    @property
    def version(self) -> int:
        """Number of the table's newest version, 0 when there is none."""
        return int(self._dataset.version) if self._dataset is not None else newest_version(self.folder)

    def holds_rows(self) -> bool:
        """Whether the table had rows before this writer appended any."""
        self._open()
        return self._before is not None

    def stored_session(self, session_id: str) -> StoredSession:
        """Read what the table held of a session before this writer appended anything."""
        self._open()
        if self._before is None:
            return StoredSession()
        import pyarrow.compute as pc

        header = self._header(session_id)
        rows = self._scan([*STORED_COLUMNS, "ts"], f"session_id = {quoted(session_id)} AND seq >= 0")
        if not rows.num_rows:
            return StoredSession(header=header)
        return StoredSession(rows, header, pc.max(rows.column("seq")).as_py() + 1, pc.max(rows.column("ts")).as_py())

    def stored_texts(self, ids: Sequence[str]) -> set[str]:
        """Find which of these passages were stored, under whatever session, before this writer appended anything."""
        self._open()
        found: set[str] = set()
        if self._before is None:
            return found
        for start in range(0, len(ids), IDS_AT_ONCE):
            condition = f"id IN ({quoted_list(ids[start : start + IDS_AT_ONCE])}) AND offset != {REFERENCE}"
            found.update(self._scan(["id"], condition).column("id").to_pylist())
        return found

    def block_pieces(self, session_id: str, turn: str, block_idx: int, block_type: str) -> list[tuple[int, str]]:
        """Read the `(offset, text)` of each chunk of a block as it was before this writer appended anything.

        Args:
            session_id: a session that contains it.
            turn: uuid of the turn.
            block_idx: its position in the turn.
            block_type: its type; a block of another type at the place is not read.

        Returns:
            The chunks in order; nothing when the text of one of them is not stored.
        """
        self._open()
        if self._before is None:
            return []
        condition = (
            f"session_id = {quoted(session_id)} AND turn_uuid = {quoted(turn)} AND block_idx = {block_idx} "
            f"AND block_type = {quoted(block_type)} AND seq >= 0"
        )
        rows = self._scan(["id", "split_idx", "text", "offset"], condition).sort_by("split_idx").to_pylist()
        absent = [row["id"] for row in rows if row["text"] is None]
        texts = {}
        for start in range(0, len(absent), IDS_AT_ONCE):
            condition = f"id IN ({quoted_list(absent[start : start + IDS_AT_ONCE])}) AND offset != {REFERENCE}"
            texts.update({row["id"]: row for row in self._scan(["id", "text", "offset"], condition).to_pylist()})
        whole = [texts.get(row["id"], row) for row in rows]
        if any(row["text"] is None for row in whole):
            return []
        return [(row["offset"], row["text"]) for row in whole]

    def append(self, chunks: Sequence[Chunk]) -> None:
        """Append rows in one commit."""
        if chunks:
            self._open()
            table = chunks_to_table(chunks)
            written(self.folder, lambda: self._append(table))
            self._added += len(chunks)

    def index(self) -> None:
        """Bring the indexes up to date in the middle of a run, when rows enough are waiting for it.

        That is a fifth of the table within bounds: in a long run, big deltas are better than many.
        """
        if self._dataset is not None:
            self._index(min(max(DELTA_ROWS, self._dataset.count_rows() // 5), LONG_RUN_ROWS), 0)

    def finish(self) -> None:
        """Index, compact and clean up if there is reason to. Call once, after the last append."""
        if self._dataset is not None:
            self._index(DELTA_ROWS, self._added)
        if self._dataset is not None and written(self.folder, lambda: tidy(self._dataset, added=self._added)):
            self._dataset = self._newest()

    def _index(self, delta_rows: int, added: int) -> None:
        if written(self.folder, lambda: index_chunks(self._dataset, delta_rows, added=added)):
            self._dataset = self._newest()
            give_memory_back()

    def _append(self, table: pa.Table) -> None:
        if self._dataset is None:
            # The word index is made first, so that no reader ever meets rows without its way to cut words.
            self._dataset = lance_module().write_dataset(
                table.slice(0, 0),
                str(self.folder / CHUNKS),
                mode="create",
                data_storage_version="stable",
                enable_stable_row_ids=True,
            )
            index_chunks(self._dataset)
        self._dataset = lance_module().write_dataset(table, self._dataset, mode="append")

    def _header(self, session_id: str) -> Chunk | None:
        condition = f"session_id = {quoted(session_id)} AND block_type = {quoted(SESSION_TYPE)}"
        headers = table_to_chunks(self._scan(list(CHUNK_COLUMNS), condition))
        return headers[-1] if headers else None

    def _scan(self, columns: list[str], condition: str) -> pa.Table:
        return guarded(self.folder, lambda: self._before.scanner(columns=columns, filter=condition).to_table())

    def _open(self) -> None:
        """Open the table at the first use, so that a run that finds nothing new never imports Lance."""
        if self._dataset is not None or not newest_version(self.folder):
            return
        self._dataset = self._newest()
        refuse_foreign(self.folder, self._dataset.schema.names)
        self._before = self._dataset

    def _newest(self) -> Any:
        # The default caches may grow to gigabytes while an index is built.
        sizes = {"index_cache_size_bytes": CACHE_BYTES, "metadata_cache_size_bytes": CACHE_BYTES}
        return guarded(self.folder, lambda: lance_module().dataset(str(self.folder / CHUNKS), **sizes))


def refuse_foreign(folder: Path, columns: Sequence[str]) -> None:
    """Refuse to write to the table of another program.

    Args:
        folder: the memory's folder.
        columns: names of the chunks table's columns.

    Raises:
        CorruptMemoryError: when it lacks one.
    """
    missing = sorted(set(CHUNK_COLUMNS) - set(columns))
    if missing:
        raise CorruptMemoryError(
            f"The memory in {folder} was made by another program (it has no column {missing[0]}), so it can "
            "be read but not added to; set FUNES_HOME to another folder to index."
        )
