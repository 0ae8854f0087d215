"""Adding rows to the tables of a destination, the same for every kind of it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from funes.memory.counts import COUNTED, PieceCounts
from funes.memory.identity import FORMAT
from funes.memory.remote.merge import Holdings, Missing
from funes.memory.remote.publish import Publication
from funes.memory.remote.source import Source
from funes.memory.remote.tables import Tables
from funes.memory.schema import REFERENCE, SESSION_TYPE

if TYPE_CHECKING:
    import pyarrow as pa


def append(tables: Tables, source: Source, missing: Missing, there: Holdings, done: Publication) -> None:
    """Append what is missing: text first, so that no vector is ever without its passage.

    Args:
        tables: of the destination.
        source: the local memory.
        missing: what the destination lacks of it.
        there: what the destination holds.
        done: what was appended is added to its numbers, also when a fault ends this in between.
    """
    rows = _Counted(source.rows(missing, there.texts.tolist()))
    if len(missing.rows) or len(missing.titles):
        tables.append_rows(iter(rows))
        done.rows += rows.rows
        done.titles += rows.titles
        done.copies += rows.copies
    batches = source.vectors(missing, there.vectors.tolist())
    first = next(batches, None)
    if first is not None:
        vectors = _Counted(_chain(first, batches))
        tables.append_vectors(iter(vectors), source.vectors_schema())
        done.vectors += vectors.rows


class _Counted:
    """Passes batches on and counts their rows, and of those of the chunks table the titles and the references."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self.batches = batches
        self.rows = self.titles = self.copies = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self.batches:
            self.rows += batch.num_rows
            if "offset" in batch.schema.names:
                self.titles += batch.column("block_type").to_pylist().count(SESSION_TYPE)
                self.copies += batch.column("offset").to_pylist().count(REFERENCE)
            yield batch


def _chain(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


def new_identity(birth: str = "") -> bytes:
    """Content of `memory.json` for a memory that has none.

    Args:
        birth: what tells the memory from others; empty to draw something.
    """
    return (json.dumps({"format": FORMAT, "id": birth or uuid.uuid4().hex}) + "\n").encode()


def refresh_counts(tables: Tables, folder: Path) -> bool:
    """Count the word pieces again when the file in a folder is missing or has fallen behind; says whether it did.

    A twentieth is not worth sending the file for: the weights that come of it hardly differ.
    """
    if tables.vectors is None:
        return False
    coded = int(tables.vectors.count_rows(COUNTED))
    kept = PieceCounts.load(folder)
    if kept is not None and 0.95 * coded <= kept.rows <= 1.05 * coded:
        return False
    counts = PieceCounts.empty()
    scanner = tables.vectors.scanner(columns=["pieces"], filter=f"{COUNTED} AND pieces IS NOT NULL")
    for batch in scanner.to_batches():
        for pieces in batch.column("pieces").to_pylist():
            counts.add(np.frombuffer(pieces, "<u2"))
    counts.version = int(tables.vectors.version)
    counts.save(folder)
    return True
