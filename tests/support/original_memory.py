"""A memory as the original program, which is written in Rust, publishes it: one table with a vector in each row.

Its `ts` is text, its vectors are those of `BAAI/bge-small-en-v1.5`, its text index has no positions; there are no
header rows, no `branch`, no `offset`, and in older ones neither `harness` nor `repo`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from funes.chunking import Chunk
from funes.memory.lance import lance_module
from tests.support.small_memory import cache_session, parser_session

MODEL = "BAAI/bge-small-en-v1.5"
DIMENSIONS = 384
_INTEGERS = ("seq", "block_idx", "split_idx")
_COLUMNS = (
    "id",
    "text",
    "session_id",
    "workdir",
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
)


def make_original_memory(
    folder: Path, chunks: Sequence[Chunk] | None = None, *, harness: bool = True, indexed: bool = True
) -> Path:
    """Write such a memory.

    Args:
        folder: where to.
        chunks: its rows; None for two sessions of `small_memory`.
        harness: whether it has the columns that came later, `harness` and `repo`.
        indexed: whether it has its text index.
    """
    import pyarrow as pa

    rows = [one for one in chunks or [*parser_session(), *cache_session()] if one.text is not None]
    vectors = np.random.default_rng(7).standard_normal((len(rows), DIMENSIONS)).astype(np.float32)
    columns: dict[str, pa.Array] = {}
    for name in (*_COLUMNS, "vector", *(("harness", "repo") if harness else ())):
        if name == "vector":
            columns[name] = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), DIMENSIONS)
        elif name in _INTEGERS:
            columns[name] = pa.array([getattr(row, name) for row in rows], pa.int64())
        elif name == "ts":
            columns[name] = pa.array([row.ts.strftime("%Y-%m-%dT%H:%M:%S.000Z") if row.ts else "" for row in rows])
        else:
            columns[name] = pa.array([getattr(row, name) or None for row in rows], pa.string())
    table = pa.table(columns).replace_schema_metadata({"embedding_model": MODEL})
    dataset = lance_module().write_dataset(table, str(folder / "chunks.lance"))
    if indexed:
        dataset.create_scalar_index("text", "INVERTED", name="text_idx", with_position=False)
    return folder
