"""What recall takes and gives: options in, hits out.

The classes are plain data, so that the command line, the MCP server and the formats can use them without loading any
of the numerical code.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from funes.chunking import Chunk
from funes.memory.filters import Filter

Rerank = Literal["cross-encoder", "late", "off"]

DEFAULT_K = 8
DEFAULT_CANDIDATES = 400
DEFAULT_NEIGHBORS = 1
DEFAULT_RERANK_TOP = 20
DEFAULT_RERANK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class RecallOptions:
    """How one recall is run.

    Attributes:
        k: hits to return, at least 1.
        candidates: passages that the fused lists pass to the reranker, at least `k`.
        half_life_days: age in days at which recency's share of the score halves; None for the gentle default, 0 for no
            recency at all.
        neighbors: passages to show before and after each hit, 0 for none.
        where: which passages may be returned; applied before ranking.
        rerank: the last stage: `cross-encoder`, `late` for late interaction over the candidates, `off` for the fused
            order; None for the cross-encoder when it is on this machine, else late interaction.
        rerank_top: different passages that the cross-encoder reads at most.
        rerank_seconds: time that it gets.
    """

    k: int = DEFAULT_K
    candidates: int = DEFAULT_CANDIDATES
    half_life_days: float | None = None
    neighbors: int = DEFAULT_NEIGHBORS
    where: Filter = field(default_factory=Filter)
    rerank: Rerank | None = None
    rerank_top: int = DEFAULT_RERANK_TOP
    rerank_seconds: float = DEFAULT_RERANK_SECONDS


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A passage next to a hit in its session: who said it, what it is, where it stands, its text."""

    role: str
    block_type: str
    seq: int
    text: str


@dataclass(slots=True)
class Hit:
    """One recalled passage.

    Attributes:
        chunk: the passage; `chunk.text` is never None here.
        score: higher is closer; comparable within one recall only.
        weak: whether the passage is not close to the question; every hit is weak when nothing close was found.
        before: neighbours that precede it in its session, in session order.
        after: neighbours that follow it, in session order.
    """

    chunk: Chunk
    score: float
    weak: bool = False
    before: list[Neighbour] = field(default_factory=list)
    after: list[Neighbour] = field(default_factory=list)


@dataclass(slots=True)
class RecallResult:
    """Hits of one recall, best first, and one-line notes for the reader (`words only: …`)."""

    hits: list[Hit] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
