"""Changing what is stored: the exception to append-only, for redactions and for what the user has forgotten.

The fragments that hold the rows concerned are written anew and take the place of the old ones in one commit, so a
killed process leaves the memory as it was or as it should be. The former text is then still in old versions and in the
words index. A marker file says so, until the indexes are made again and the old files removed; whoever writes next
finishes that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from funes.chunking import Chunk
from funes.memory.counts import FILE as COUNTS_FILE
from funes.memory.counts import count_pieces
from funes.memory.handle import TableHandle
from funes.memory.identity import REWRITING, newest_version, unfinished_rewrite
from funes.memory.lance import give_memory_back, guarded, lance_module, written
from funes.memory.lock import VECTORS_LOCK, WAIT_SECONDS, WORDS_LOCK, WriterLock
from funes.memory.maintenance import index_chunks, index_vectors, remove_old_versions
from funes.memory.schema import CHUNKS, FILTER_COLUMNS, REFERENCE, SESSION_TYPE, VECTORS, chunks_to_table, quoted
from funes.memory.store import refuse_foreign

if TYPE_CHECKING:
    import pyarrow as pa

ADDRESS = "_rowaddr"
"""Column of a row's place: the number of its fragment in the upper 32 bits, its position there in the lower ones."""

FRAGMENT_ROWS = 20_000


class MemoryRewriter:
    """A memory whose rows can be replaced and removed; a context manager that holds the locks of both tables.

    Args:
        folder: the memory's folder; it has to hold a memory.
        wait: seconds to wait for another writer.
        doing: what to tell another writer.

    Raises:
        LockedError: on entering, when another writer keeps a lock.
        CorruptMemoryError: on entering, when a table cannot be read.
    """

    def __init__(self, folder: Path, wait: float = WAIT_SECONDS, doing: str = "changing the memory") -> None:
        self.folder = folder
        self._locks = [WriterLock(folder, name, wait, doing) for name in (WORDS_LOCK, VECTORS_LOCK)]
        self._chunks: Any = None

    def __enter__(self) -> MemoryRewriter:
        try:
            for lock in self._locks:
                lock.acquire()
            self._chunks = self._open(CHUNKS)
            refuse_foreign(self.folder, self._chunks.schema.names)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for lock in reversed(self._locks):
            lock.release()

    @property
    def version(self) -> int:
        """Number of the chunks table's newest version."""
        return newest_version(self.folder)

    def scan(self, columns: Sequence[str], condition: str | None = None) -> pa.Table:
        """Read rows of the chunks table, in order, with their addresses in the column `ADDRESS`."""
        return guarded(
            self.folder,
            lambda: self._chunks.scanner(
                columns=list(columns), filter=condition, prefilter=True, with_row_address=True
            ).to_table(),
        )

    def replace(self, rows: Mapping[int, Sequence[Chunk]], restamped: Iterable[int] = (), ruleset: str = "") -> None:
        """Replace and remove rows of the chunks table in one commit, and vectors accordingly in another.

        Of the header rows of a session that lie in a fragment concerned, only the newest one stays.

        Args:
            rows: by the address of a row, what takes its place; nothing for a row that goes.
            restamped: addresses of rows of which only the id of the secret rules changes.
            ruleset: that id.
        """
        stamped = frozenset(restamped) - rows.keys()
        if not rows and not stamped:
            return
        self._mark()
        fragments = sorted({address >> 32 for address in (*rows, *stamped)})
        edits = {**dict.fromkeys(self._old_headers(fragments), ()), **rows}

        def edited(table: pa.Table) -> pa.Table:
            return _spliced(_restamped(table, stamped, ruleset), edits)

        written(self.folder, lambda: _rewrite(self._chunks, fragments, edited))
        self._chunks = self._open(CHUNKS)
        self._follow()

    def finish(self) -> bool:
        """Make the indexes again and remove the files of old versions, if there was a rewrite; says whether.

        This also completes a rewrite that was killed.
        """
        if not unfinished_rewrite(self.folder):
            return False
        self._follow()
        chunks = self._open(CHUNKS)
        written(self.folder, lambda: index_chunks(chunks, 0, anew=True))
        written(self.folder, lambda: remove_old_versions(self._open(CHUNKS)))
        self._chunks = self._open(CHUNKS)
        if newest_version(self.folder, VECTORS):
            vectors = self._open(VECTORS)
            written(self.folder, lambda: index_vectors(vectors, 0, anew=True))
            written(self.folder, lambda: remove_old_versions(self._open(VECTORS)))
        (self.folder / COUNTS_FILE).unlink(missing_ok=True)
        if newest_version(self.folder, VECTORS):
            handle = TableHandle(self.folder, VECTORS)
            counts = count_pieces(self.folder, handle)
            counts.version = handle.version
            counts.save(self.folder)
        give_memory_back()
        (self.folder / REWRITING).unlink()
        return True

    def _follow(self) -> None:
        """Remove the vectors of passages that are gone, and bring the columns of the others up to date.

        They change when another session stores the passage now, or when a name was redacted.
        """
        if not newest_version(self.folder, VECTORS):
            return
        own = f"offset != {REFERENCE} AND block_type != {quoted(SESSION_TYPE)}"
        columns = ["id", "session_id", "workdir", "repo", "branch"]
        passages = self.scan(columns, own)
        now = {row[0]: row for row in zip(*(passages.column(name).to_pylist() for name in columns), strict=True)}
        dataset = self._open(VECTORS)
        stored = guarded(self.folder, lambda: dataset.scanner(columns=columns, with_row_address=True).to_table())
        gone: set[int] = set()
        moved: dict[int, str] = {}
        for address, *row in zip(*(stored.column(name).to_pylist() for name in (ADDRESS, *columns)), strict=True):
            identifier = row[0]
            if identifier not in now:
                gone.add(address)
            elif now[identifier] != tuple(row):
                moved[address] = identifier
        if not gone and not moved:
            return
        new = self._filter_values(set(moved.values()))

        def edited(table: pa.Table) -> pa.Table:
            return _followed(table, gone, {address: new[identifier] for address, identifier in moved.items()})

        fragments = sorted({address >> 32 for address in (*gone, *moved)})
        written(self.folder, lambda: _rewrite(dataset, fragments, edited))

    def _filter_values(self, ids: set[str]) -> dict[str, dict[str, Any]]:
        """Values of the columns that the vectors table repeats, by passage."""
        if not ids:
            return {}
        from funes.memory.schema import quoted_list

        condition = f"id IN ({quoted_list(sorted(ids))}) AND offset != {REFERENCE}"
        rows = self.scan(["id", *FILTER_COLUMNS], condition).drop_columns([ADDRESS]).to_pylist()
        return {row.pop("id"): row for row in rows}

    def _old_headers(self, fragments: Sequence[int]) -> list[int]:
        """Addresses of header rows in some fragments that a newer header of the same session replaces.

        Rewritten fragments come last, so a kept old header would pass for the newest.
        """
        headers = self.scan(["session_id"], f"block_type = {quoted(SESSION_TYPE)}")
        pairs = list(zip(headers.column("session_id").to_pylist(), headers.column(ADDRESS).to_pylist(), strict=True))
        newest = dict(pairs)
        concerned = set(fragments)
        return [address for session, address in pairs if address != newest[session] and address >> 32 in concerned]

    def _mark(self) -> None:
        (self.folder / REWRITING).touch()

    def _open(self, table: str) -> Any:
        return guarded(self.folder, lambda: lance_module().dataset(str(self.folder / table)))


def _rewrite(dataset: Any, fragments: Sequence[int], edited: Callable[[pa.Table], pa.Table]) -> None:
    """Replace fragments by what `edited` makes of their rows, in one commit."""
    import pyarrow as pa

    lance = lance_module()

    def batches() -> Iterator[pa.RecordBatch]:
        for number in fragments:
            rows = dataset.get_fragment(number).scanner(with_row_address=True).to_table()
            yield from edited(rows).select(dataset.schema.names).cast(dataset.schema).to_batches()

    made = lance.fragment.write_fragments(
        pa.RecordBatchReader.from_batches(dataset.schema, batches()),
        dataset,
        mode="append",
        max_rows_per_file=FRAGMENT_ROWS,
        data_storage_version="stable",
        enable_stable_row_ids=True,
    )
    operation = lance.LanceOperation.Update(
        removed_fragment_ids=list(fragments),
        updated_fragments=[],
        new_fragments=[fragment for fragment in made if fragment.physical_rows],
        fields_modified=[],
    )
    lance.LanceDataset.commit(dataset, operation, read_version=dataset.version)


def _restamped(table: pa.Table, stamped: frozenset[int], ruleset: str) -> pa.Table:
    """The rows, some of them with another id of the secret rules."""
    if not stamped:
        return table
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = pa.array([address in stamped for address in table.column(ADDRESS).to_pylist()], pa.bool_())
    column = pc.if_else(wanted, ruleset, table.column("ruleset"))
    return table.set_column(table.column_names.index("ruleset"), "ruleset", column)


def _spliced(table: pa.Table, edits: Mapping[int, Sequence[Chunk]]) -> pa.Table:
    """The rows, some of them replaced."""
    import pyarrow as pa

    parts = []
    start = 0
    rows = table.drop_columns([ADDRESS])
    for position, address in enumerate(table.column(ADDRESS).to_pylist()):
        if address in edits:
            parts.append(rows.slice(start, position - start))
            if edits[address]:
                parts.append(chunks_to_table(edits[address]).select(rows.column_names).cast(rows.schema))
            start = position + 1
    return pa.concat_tables([*parts, rows.slice(start)])


def _followed(table: pa.Table, gone: set[int], moved: Mapping[int, Mapping[str, Any]]) -> pa.Table:
    """Rows of the vectors table without those that are gone, and with the new columns of those that moved."""
    import pyarrow as pa

    addresses = table.column(ADDRESS).to_pylist()
    rows = table.drop_columns([ADDRESS])
    for name in FILTER_COLUMNS if moved else ():
        values = rows.column(name).to_pylist()
        for position, address in enumerate(addresses):
            if address in moved:
                values[position] = moved[address][name]
        place = rows.column_names.index(name)
        rows = rows.set_column(place, rows.schema.field(place), pa.array(values, rows.schema.field(place).type))
    return rows.filter(pa.array([address not in gone for address in addresses], pa.bool_()))
