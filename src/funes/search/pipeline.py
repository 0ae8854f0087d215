"""Recall: from a question to hits.

words and dense vector → fused candidates → late interaction → session evidence and recency → one passage once →
neighbours. Every stage is a module of its own; this one only puts them in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from funes.memory.reader import MemoryReader
from funes.search.candidates import Candidate, find_candidates, ids
from funes.search.evidence import session_bonus
from funes.search.late import late_interaction
from funes.search.model import Hit, RecallOptions, RecallResult
from funes.search.neighbours import add_neighbours
from funes.search.recency import recency_bonus
from funes.search.reranking import rerank
from funes.search.selection import Scored, select

if TYPE_CHECKING:
    from funes.models.cross_encoder import CrossEncoder
    from funes.models.encoder import Encoder

WEAK_BELOW = 0.43
"""Weighted mean cosine under which a passage is not close to the question (docs/ranking.md)."""

TOOL_HANDICAP = 0.02
"""Tool text is full of identifiers and matches more by chance; it has to be closer than prose by this much."""

FUSED_TOOL_DISCOUNT = np.float32(0.1)
"""The same for fused scores, which know ranks only: a tier's first passage may be far from the question."""


def recall(
    reader: MemoryReader,
    encoder: Encoder | None,
    query: str,
    options: RecallOptions,
    cross_encoder: CrossEncoder | None = None,
) -> RecallResult:
    """Find the passages that answer a question.

    Args:
        reader: the memory.
        encoder: the memory's model; None to search by words only.
        query: the question, as it was asked.
        options: filters and sizes.
        cross_encoder: orders the top of the list; None to leave it as it is.

    Returns:
        Hits, best first. Each is a stored passage, whole.
    """
    encoded = encoder.encode_query(query) if encoder is not None else None
    vector = encoded.dense if encoded is not None else None
    places = max(options.candidates, options.k)
    candidates = find_candidates(reader, query, vector, options.where, places)
    rows = reader.rows(ids(candidates))
    candidates = [candidate for candidate in candidates if candidate.id in rows]
    if not candidates:
        return RecallResult()
    chunks = [rows[candidate.id] for candidate in candidates]
    # A question of function words only has nothing that late interaction could look for.
    if encoder is None or encoded is None or options.rerank == "off" or not len(encoded.pieces):
        closeness = None
        scores = np.array([candidate.fused for candidate in candidates], np.float32)
        scores *= (1 - FUSED_TOOL_DISCOUNT * _is_tool(candidates)) / scores.max()
    else:
        closeness = late_interaction(reader, encoder, encoded, ids(candidates))
        scores = closeness - np.float32(TOOL_HANDICAP) * _is_tool(candidates)
        scores += session_bonus(scores, [chunk.session_id for chunk in chunks])
    recency = recency_bonus([chunk.ts for chunk in chunks], options.half_life_days)
    scores += recency
    if cross_encoder is not None:
        scores = rerank(cross_encoder, query, chunks, scores, options)
        if options.half_life_days:  # asked for; the default decides only between passages that are otherwise equal
            scores += recency
    scored = [Scored(chunk, float(score)) for chunk, score in zip(chunks, scores, strict=True)]
    chosen = select(scored, options.k, bound_tools=not options.where.types)
    hits = [Hit(one.chunk, one.score) for one in chosen]
    if closeness is not None:
        close = {candidate.id: float(value) for candidate, value in zip(candidates, closeness, strict=True)}
        for hit in hits:
            hit.weak = close[hit.chunk.id] < WEAK_BELOW
    add_neighbours(reader, hits, options.neighbors)
    return RecallResult(hits)


def _is_tool(candidates: list[Candidate]) -> npt.NDArray[np.float32]:
    return np.array([candidate.tier != "prose" for candidate in candidates], np.float32)
