"""Recall: from a question to hits.

words and dense vector → fused candidates → late interaction → the same in context → session evidence and recency →
one passage once → neighbours. Every stage is a module of its own; this one only puts them in order.
"""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from funes.memory.outline import NOWHERE
from funes.memory.reader import MemoryReader
from funes.memory.register import Passage
from funes.search.candidates import find_candidates
from funes.search.late import LateInteraction
from funes.search.model import Hit, RecallOptions, RecallResult
from funes.search.neighbours import add_neighbours
from funes.search.ranking import by_fusion, by_late_interaction
from funes.search.recency import recency_bonus
from funes.search.reranking import rerank
from funes.search.selection import Scored, select
from funes.search.spelling import corrections
from funes.search.texts import Texts
from funes.search.time_words import TimeSpan, find_time_span, time_bonus

if TYPE_CHECKING:
    from funes.models.cross_encoder import CrossEncoder
    from funes.models.encoder import Encoder


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
    span = None if options.where.since or options.where.until else find_time_span(query)
    # The words that name the time would be looked for in passages, which seldom say when they were said.
    asked = span.rest(query) if span is not None else query
    notes = [_reading(query, span)] if span is not None else []
    places = max(options.candidates, options.k)
    if encoder is None:
        ranked = by_fusion(reader, find_candidates(reader, query, None, options.where, places, span))
    else:
        meant = corrections(asked, encoder, reader)
        notes += [
            f'"{word}" is in no prose of the memory; "{other}" is looked for, too' for word, other in meant.items()
        ]
        asked = " ".join([asked, *meant.values()])
        encoded = cache(lambda: encoder.encode_query(asked))
        candidates = find_candidates(
            reader, " ".join([query, *meant.values()]), lambda: encoded().dense, options.where, places, span
        )
        # A question of function words only has nothing that late interaction could look for.
        if options.rerank == "off" or not len(encoded().pieces):
            ranked = by_fusion(reader, candidates)
        else:
            ranked = by_late_interaction(reader, candidates, LateInteraction(reader, encoder, encoded()), options)
    passages = ranked.passages
    if not passages:
        return RecallResult()
    times = [passage.ts for passage in passages]
    recency = recency_bonus(times, options.half_life_days)
    timely = time_bonus(times, span)
    scores = ranked.scores + recency + timely
    order = np.argsort(-scores, kind="stable").tolist()
    texts = Texts(reader, [passages[index].id for index in order])
    if cross_encoder is not None:
        wished = timely + recency if options.half_life_days else timely  # the default recency is a tie-breaker only
        ids = [passage.id for passage in passages]
        scores = rerank(cross_encoder, asked, ids, texts, scores, wished, options)
    turns = _turns(reader, passages)
    scored = [Scored(*one) for one in zip(passages, scores.tolist(), turns, strict=True)]
    chosen = select(scored, options.k, not options.where.types, texts)
    rows = reader.rows(one.passage.id for one in chosen)
    hits = [
        Hit(rows[one.passage.id], one.score, one.passage.id in ranked.weak) for one in chosen if one.passage.id in rows
    ]
    add_neighbours(reader, hits, options.neighbors)
    return RecallResult(hits, notes)


def _turns(reader: MemoryReader, passages: list[Passage]) -> list[int | None]:
    """Numbers of the turns that passages belong to."""
    outline = reader.outline()
    places = outline.places([passage.id for passage in passages]).tolist()
    return [None if place == NOWHERE else outline.seq(place) for place in places]


def _reading(query: str, span: TimeSpan) -> str:
    """How the question's time was understood."""
    first, last = span.start.date(), (span.end - timedelta(microseconds=1)).date()
    words = query[slice(*span.words)].strip()
    days = f"{first}" if first == last else f"{first} to {last}"
    return f'"{words}" is read as {days}, and passages of that time come first; since and until say it exactly'
