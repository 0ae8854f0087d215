"""The columns of the two tables, and the way from `Chunk` to Arrow and back.

`chunks.lance` has one row for each chunk of each session. A passage that several sessions contain is stored once:
the other sessions have rows with the same id whose text is null. Each session also has header rows (block type
`session`); the newest one says what the session is called and where it comes from.

`vectors.lance` has one row for each embedded passage. It repeats the columns that filters need, so that a filtered
vector search does not have to look at the other table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from funes.chunking import Chunk

if TYPE_CHECKING:
    import pyarrow as pa

CHUNKS = "chunks.lance"
VECTORS = "vectors.lance"
DIMENSIONS = 384

SESSION_TYPE = "session"
"""Block type of a session's header rows."""

PROSE = ("text", "thinking", "summary")
CALLS = ("tool_use",)
OUTPUT = ("tool_result",)
TIERS = (PROSE, CALLS, OUTPUT)
"""Block types in the order in which they are embedded."""

CHUNK_COLUMNS = (
    "id",
    "text",
    "session_id",
    "workdir",
    "repo",
    "branch",
    "turn_uuid",
    "parent_uuid",
    "seq",
    "ts",
    "role",
    "block_type",
    "tool_name",
    "source_path",
    "block_idx",
    "split_idx",
    "offset",
    "harness",
    "origin",
    "ruleset",
)
FILTER_COLUMNS = ("session_id", "workdir", "repo", "branch", "ts", "role", "block_type", "harness")
REFERENCE = -1
"""`offset` of a row whose text is null: a small column, so that such rows are found without reading any text."""

REQUIRED_COLUMNS = frozenset({"id", "text", "session_id", "turn_uuid", "block_type"})
"""Without these a table is no memory; the others have defaults, since another program's memory may lack them."""

_INTEGERS = frozenset({"seq", "block_idx", "split_idx", "offset"})
_DEFAULTS: dict[str, Any] = {"text": None, "ts": None, **dict.fromkeys(_INTEGERS, 0)}


def chunks_schema() -> pa.Schema:
    """Arrow schema of `chunks.lance`."""
    import pyarrow as pa

    fields = []
    for name in CHUNK_COLUMNS:
        if name == "text":
            fields.append(pa.field(name, pa.string(), metadata={"lance-encoding:compression": "zstd"}))
        elif name == "ts":
            fields.append(pa.field(name, pa.timestamp("us", "UTC")))
        elif name in _INTEGERS:
            fields.append(pa.field(name, pa.int64() if name == "offset" else pa.int32(), nullable=False))
        else:
            fields.append(pa.field(name, pa.string(), nullable=False))
    return pa.schema(fields)


def vectors_schema() -> pa.Schema:
    """Arrow schema of `vectors.lance`."""
    import pyarrow as pa

    filters = [pa.field(name, pa.timestamp("us", "UTC") if name == "ts" else pa.string()) for name in FILTER_COLUMNS]
    return pa.schema(
        [
            pa.field("id", pa.string(), nullable=False),
            pa.field("vector", pa.list_(pa.float16(), DIMENSIONS)),
            pa.field("codes", pa.binary()),
            pa.field("pieces", pa.binary()),
            pa.field("model", pa.string(), nullable=False),
            *filters,
        ]
    )


def chunks_to_table(chunks: Sequence[Chunk]) -> pa.Table:
    """Rows of `chunks.lance` from chunks, in order."""
    import pyarrow as pa

    schema = chunks_schema()
    columns = [pa.array([getattr(chunk, name) for chunk in chunks], schema.field(name).type) for name in CHUNK_COLUMNS]
    return pa.Table.from_arrays(columns, schema=schema)


def table_to_chunks(table: pa.Table) -> list[Chunk]:
    """Chunks from rows; columns that the table lacks, and nulls where a chunk has none, get defaults."""
    columns: list[list[Any]] = []
    for name in CHUNK_COLUMNS:
        default = _DEFAULTS.get(name, "")
        if name not in table.column_names:
            columns.append([default] * table.num_rows)
            continue
        values = table.column(name).to_pylist()
        columns.append([default if value is None else value for value in values])
    return [Chunk(*row) for row in zip(*columns, strict=True)]


def header_row(
    *,
    session_id: str,
    harness: str,
    title: str,
    parent_id: str,
    kind: str,
    workdir: str,
    repo: str,
    branch: str,
    source_path: str,
    ts: Any,
    ruleset: str,
) -> Chunk:
    """Make the row that carries a session's title, parent and kind.

    Args:
        session_id: the session.
        harness: its facet.
        workdir: where it began.
        repo: its repository.
        branch: its branch at the start.
        source_path: the file it was read from.
        title: the session's name, redacted; may be empty.
        parent_id: the session that it was spawned or forked from, or empty.
        kind: `main`, `subagent` or `fork`.
        ts: time of the latest turn known when the row was made, or None.
        ruleset: id of the secret rules that the title was scanned with.
    """
    key = "\x1f".join((SESSION_TYPE, harness, session_id, title, parent_id, kind, workdir, repo, branch))
    return Chunk(
        id=hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest(),
        text=title,
        session_id=session_id,
        workdir=workdir,
        repo=repo,
        branch=branch,
        turn_uuid="",
        parent_uuid=parent_id,
        seq=-1,
        ts=ts,
        role="system",
        block_type=SESSION_TYPE,
        tool_name="",
        source_path=source_path,
        block_idx=0,
        split_idx=0,
        offset=0,
        harness=harness,
        origin=kind,
        ruleset=ruleset,
    )


def tier_of(block_type: str) -> int:
    """Position of a block type in `TIERS`; unknown types come last."""
    for tier, types in enumerate(TIERS):
        if block_type in types:
            return tier
    return len(TIERS)


def quoted(value: str) -> str:
    """Render a string as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"


def quoted_list(values: Iterable[str]) -> str:
    """Strings as the inside of an SQL `IN (…)`."""
    return ", ".join(quoted(value) for value in values)
