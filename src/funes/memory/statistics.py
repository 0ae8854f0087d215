"""What a memory holds, in numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from funes.memory.schema import CHUNKS, REFERENCE, SESSION_TYPE, VECTORS, quoted

if TYPE_CHECKING:
    import pyarrow as pa

    from funes.memory.backing import Backing
    from funes.memory.handle import TableHandle


@dataclass(slots=True)
class MemoryStatistics:
    """Counts and sizes of a memory.

    Attributes:
        label: what the user calls the memory.
        where: its folder, or its address.
        passages: stored passages, copies not counted.
        copies: rows that only say that a session contains a passage stored under another one.
        sessions: number of sessions.
        passages_by_harness, sessions_by_harness: the same by harness.
        passages_by_type: the same by block type.
        waiting: passages without a row in the vectors table.
        waiting_by_type: the same by block type.
        embedded: rows of the vectors table.
        models: ids of the models that made vectors.
        rulesets: ids of the secret rules that the text was scanned with, with the number of passages of each.
        bytes_text, bytes_vectors, bytes_indexes: bytes on disk of the live version and of what is kept of older ones.
        versions: number of versions kept of the two tables.
        last_indexed: time of the newest version of the chunks table.
        first_ts, last_ts: time of the earliest and latest passage.
    """

    label: str
    where: str
    passages: int = 0
    copies: int = 0
    sessions: int = 0
    passages_by_harness: dict[str, int] = field(default_factory=dict)
    sessions_by_harness: dict[str, int] = field(default_factory=dict)
    passages_by_type: dict[str, int] = field(default_factory=dict)
    waiting: int = 0
    waiting_by_type: dict[str, int] = field(default_factory=dict)
    embedded: int = 0
    models: list[str] = field(default_factory=list)
    rulesets: dict[str, int] = field(default_factory=dict)
    bytes_text: int = 0
    bytes_vectors: int = 0
    bytes_indexes: int = 0
    versions: tuple[int, int] = (0, 0)
    last_indexed: datetime | None = None
    first_ts: datetime | None = None
    last_ts: datetime | None = None


def collect(label: str, backing: Backing, chunks: TableHandle, vectors: TableHandle | None) -> MemoryStatistics:
    """Count everything that a memory holds, without reading its text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = MemoryStatistics(label, backing.where)
    rows = chunks.scan(
        ["id", "session_id", "harness", "block_type", "ts", "offset", "ruleset"],
        f"block_type != {quoted(SESSION_TYPE)}",
    )
    own = rows.filter(pc.not_equal(rows.column("offset"), REFERENCE)) if "offset" in rows.column_names else rows
    found.passages, found.copies = own.num_rows, rows.num_rows - own.num_rows
    found.passages_by_type = _tally(own, "block_type")
    found.rulesets = _tally(own, "ruleset")
    found.passages_by_harness = _tally(own, "harness")
    pairs = rows.group_by([name for name in ("session_id", "harness") if name in rows.column_names]).aggregate([])
    found.sessions = pc.count_distinct(rows.column("session_id")).as_py()
    found.sessions_by_harness = _tally(pairs, "harness")
    if rows.num_rows and "ts" in rows.column_names:
        bounds = pc.min_max(rows.column("ts")).as_py()
        found.first_ts, found.last_ts = bounds["min"], bounds["max"]
    embedded = pa.chunked_array([], pa.string())
    if vectors is not None:
        present = vectors.scan(["id", "model"])
        embedded = present.column("id")
        found.models = sorted(pc.unique(present.column("model")).to_pylist())
    elif chunks.inline_model:
        embedded = chunks.scan(["id"], "vector IS NOT NULL").column("id")
        found.models = [chunks.inline_model]
    found.embedded = len(embedded)
    waiting = own.filter(pc.invert(pc.is_in(own.column("id"), embedded.combine_chunks())))
    found.waiting, found.waiting_by_type = waiting.num_rows, _tally(waiting, "block_type")
    found.bytes_text = backing.size(CHUNKS, indexes=False)
    found.bytes_vectors = backing.size(VECTORS, indexes=False)
    found.bytes_indexes = backing.size(CHUNKS, indexes=True) + backing.size(VECTORS, indexes=True)
    found.versions = (backing.versions(CHUNKS), backing.versions(VECTORS))
    found.last_indexed = backing.changed(CHUNKS)
    return found


def _tally(table: pa.Table, column: str) -> dict[str, int]:
    """Count the rows by the values of a column, most frequent first."""
    import pyarrow.compute as pc

    if column not in table.column_names:
        return {}
    counts = [(item["values"] or "", item["counts"]) for item in pc.value_counts(table.column(column)).to_pylist()]
    return dict(sorted(counts, key=lambda item: (-item[1], item[0])))
