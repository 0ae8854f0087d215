"""How many passages of prose contain each word piece: the weights of late interaction.

Counting a whole memory takes a second at a hundred thousand passages, so the counts are kept in a file beside the
tables. They are a statistic: slightly old ones do no harm, and they are counted again when the file is missing.
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from funes.memory.schema import PROSE, quoted_list

if TYPE_CHECKING:
    from funes.memory.backing import Backing
    from funes.memory.handle import TableHandle

VOCABULARY = 30_522
FILE = "piece-counts.npy"
FORMAT = 2
"""Of the file; one with another number at its end is made again."""

COUNTED = f"block_type IN ({quoted_list(PROSE)}) AND codes IS NOT NULL"
"""Rows that count. Tool calls are full of names and paths, which would make the words that matter in prose common."""


@dataclass(slots=True)
class PieceCounts:
    """Document frequencies.

    Attributes:
        frequencies: `(30522,)` int64, number of passages of prose that contain the word piece.
        rows: number of passages counted.
        version: the version of the vectors table that was counted, 0 when not known.
    """

    frequencies: npt.NDArray[np.int64]
    rows: int
    version: int = 0

    @classmethod
    def empty(cls) -> PieceCounts:
        """Start from nothing."""
        return cls(np.zeros(VOCABULARY, np.int64), 0)

    def add(self, pieces: npt.NDArray[Any]) -> None:
        """Count one passage by its word pieces, `(tokens,)` of any unsigned type."""
        self.frequencies[np.unique(pieces[pieces < VOCABULARY])] += 1
        self.rows += 1

    def save(self, folder: Path) -> None:
        """Write the file, atomically."""
        target = folder / FILE
        temporary = folder / f".{FILE}.{os.getpid()}"
        with temporary.open("wb") as stream:
            np.save(stream, np.append(self.frequencies, [self.rows, self.version, FORMAT]))
        temporary.replace(target)

    @classmethod
    def load(cls, folder: Path) -> PieceCounts | None:
        """Read the file; None when there is none, or none that can be used."""
        try:
            return cls.parse((folder / FILE).read_bytes())
        except OSError:
            return None

    @classmethod
    def parse(cls, content: bytes) -> PieceCounts | None:
        """Read the content of a file; None when it cannot be used."""
        try:
            values = np.load(io.BytesIO(content), allow_pickle=False)
        except (ValueError, EOFError):
            return None
        if values.shape != (VOCABULARY + 3,) or values.dtype != np.int64 or values[-1] != FORMAT:
            return None
        return cls(values[:-3], int(values[-3]), int(values[-2]))


def count_pieces(place: Path | Backing, vectors: TableHandle | None) -> PieceCounts:
    """Take the counts of a memory from the file when it covers nine tenths of the rows, else read them all.

    Args:
        place: the memory's folder, or what else holds its tables.
        vectors: its vectors, None without any.
    """
    if vectors is None:
        return PieceCounts.empty()
    kept = PieceCounts.load(place) if isinstance(place, Path) else place.counts()
    if kept is not None and kept.version == vectors.version:
        return kept
    coded = vectors.attempt(lambda: int(vectors.dataset.count_rows(COUNTED)))
    if kept is not None and 0.9 * coded <= kept.rows <= 1.1 * coded:
        return kept
    counts = PieceCounts.empty()
    rows = vectors.scan(["pieces"], f"{COUNTED} AND pieces IS NOT NULL")
    for pieces in rows.column("pieces").to_pylist():
        counts.add(np.frombuffer(pieces, "<u2"))
    return counts
