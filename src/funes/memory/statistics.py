"""What a memory holds, in numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from funes.memory.handle import TableHandle


@dataclass(slots=True)
class MemoryStatistics:
    """Counts and sizes of a memory.

    Attributes:
        label, folder: which memory.
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
    folder: Path
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


def collect(label: str, folder: Path, chunks: TableHandle, vectors: TableHandle | None) -> MemoryStatistics:
    """Count everything."""
    raise NotImplementedError
