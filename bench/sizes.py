"""Bytes per chunk of a whole memory, part by part."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from big_memory import BigMemory
from funes.memory.lance import lance_module
from funes.memory.schema import CHUNKS, VECTORS
from measure import Row

TARGET = 4096


_NOT_USED = "no longer used"
UNUSED = frozenset(f"{name.removesuffix('.lance')} index {_NOT_USED}" for name in (CHUNKS, VECTORS))
"""Parts that no version of a table needs but old ones."""


def bytes_per_chunk(memory: BigMemory) -> Row:
    """Weigh every file of a memory: both tables, their indexes, old versions that are kept, the counts."""
    parts: Counter[str] = Counter()
    for table in (CHUNKS, VECTORS):
        parts += _table(memory.folder, table)
    tables = {CHUNKS, VECTORS}
    for path in memory.folder.iterdir():
        if path.name not in tables and path.is_file():
            parts["other files"] += path.stat().st_size
    total = sum(parts.values())
    each = {name: size / memory.chunks for name, size in parts.most_common()}
    return Row(
        "bytes per chunk, all tables and indexes",
        f"{total / memory.chunks / 1024:.2f} KB",
        "4 KB",
        "yes" if total / memory.chunks <= TARGET else "no",
        f"every file of the memory of {memory.chunks:,} chunks; bytes a chunk: "
        + ", ".join(f"{name} {size:,.0f}" for name, size in each.items() if size >= 1),
        each,
    )


def _table(folder: Path, name: str) -> Counter[str]:
    """Sizes of a table's parts: columns by what they are for, indexes by name, the rest."""
    root = folder / name
    dataset = lance_module().dataset(str(root))
    label = name.removesuffix(".lance")
    indexes = {str(segment.uuid): index.name for index in dataset.describe_indices() for segment in index.segments}
    parts: Counter[str] = Counter()
    for path in root.rglob("*"):
        if not path.is_file():
            continue
        place = path.relative_to(root).parts
        size = path.stat().st_size
        if place[0] == "_indices":
            parts[f"{label} index {indexes.get(place[1], _NOT_USED)}"] += size
        elif place[0] == "data":
            parts[f"{label} rows"] += size
        else:
            parts[f"{label} versions"] += size
    for column, size in _columns(dataset).items():
        parts[f"{label} rows"] -= size
        parts[f"{label} {column}"] += size
    return parts


def _columns(dataset: object) -> Counter[str]:
    """Bytes on disk of the columns that matter."""
    from lance.file import LanceFileReader

    sizes: Counter[str] = Counter()
    for fragment in dataset.get_fragments():  # type: ignore[attr-defined]
        for file in fragment.data_files():
            reader = LanceFileReader(f"{dataset.uri}/data/{file.path}")  # type: ignore[attr-defined]
            statistics = reader.file_statistics().columns
            names = [field.name for field in reader.metadata().schema]
            if len(names) == len(statistics):
                for column, one in zip(names, statistics, strict=True):
                    if column in ("text", "vector", "codes", "pieces"):
                        sizes[column] += one.size_bytes
    return sizes
