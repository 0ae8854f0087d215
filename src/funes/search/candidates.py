"""Candidates: which passages are worth scoring, by words and by dense vector, tier by tier.

Tool output is ten times the prose and would crowd it out, so every tier has lists of its own; the tool tiers get a
fifth of the places unless the caller asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from funes.memory.filters import Filter
from funes.memory.reader import MemoryReader
from funes.memory.schema import CALLS, OUTPUT, PROSE
from funes.models.stop_words import STOP_WORDS
from funes.search.fusion import reciprocal_rank_fusion
from funes.search.time_words import TimeSpan

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

TOOL_SHARE = 0.2
"""A tool tier's places, as a share of the prose's."""

TIMELY_SHARE = 0.25
"""Places for passages of the time that the question names, as a share of all."""

DEPTH = 3
"""Length of a list for each place: a passage in the middle of both lists is worth more than one high in one of them."""


PUNCTUATION = "?!.,:;\"'()[]«»“”‘’…"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage in the running.

    Attributes:
        id: the passage's id.
        tier: `prose`, `calls` or `output`.
        fused: its score in the fused lists.
        timely: whether it was found among passages of the time that the question names.
    """

    id: str
    tier: str
    fused: float
    timely: bool = False


@dataclass(frozen=True, slots=True)
class _Tier:
    name: str
    types: tuple[str, ...]
    places: int


def find_candidates(
    reader: MemoryReader,
    query: str,
    vector: Callable[[], npt.NDArray[np.float32]] | None,
    where: Filter,
    places: int,
    span: TimeSpan | None = None,
) -> list[Candidate]:
    """Passages of each tier by words and, with a vector, by meaning, fused by rank.

    A question that names a time gets passages of that time besides, a quarter as many.

    Args:
        reader: the memory.
        query: the question.
        vector: gives the question's dense vector, `(384,)` float32; called while words are being looked for. None for
            words only.
        where: conditions on the passages.
        places: most candidates of the first tier in play.
        span: the time that the question names, if any.

    Returns:
        Candidates in order of their tier, then of their fused score, best first; each passage once.
    """
    found = _by_tier(reader, query, vector, where, places)
    if span is None:
        return found
    margin = span.margin / 2
    then = replace(where, since=span.start - margin, until=span.end + margin)
    timely = _by_tier(reader, span.rest(query), vector, then, max(1, round(places * TIMELY_SHARE)))
    among = {candidate.id for candidate in timely}
    merged = [replace(candidate, timely=candidate.id in among) for candidate in found]
    known = {candidate.id for candidate in found}
    return merged + [replace(candidate, timely=True) for candidate in timely if candidate.id not in known]


def _by_tier(
    reader: MemoryReader,
    query: str,
    vector: Callable[[], npt.NDArray[np.float32]] | None,
    where: Filter,
    places: int,
) -> list[Candidate]:
    tiers = _tiers(where, places)
    words = content_words(query)
    narrowed = [(replace(where, types=tier.types), DEPTH * tier.places) for tier in tiers]
    with ThreadPoolExecutor(2) as pool:
        searches = [[pool.submit(reader.words, words, among, limit)] for among, limit in narrowed]
        if vector is not None:
            dense = vector()
            for lists, (among, limit) in zip(searches, narrowed, strict=True):
                lists.append(pool.submit(reader.nearest, dense, among, limit))
    found: list[Candidate] = []
    for tier, lists in zip(tiers, searches, strict=True):
        fused = reciprocal_rank_fusion([[identifier for identifier, _ in one.result()] for one in lists])
        found += [Candidate(identifier, tier.name, score) for identifier, score in fused[: tier.places]]
    return found


def _tiers(where: Filter, places: int) -> list[_Tier]:
    asked = set(where.types) or {*PROSE, *CALLS, *OUTPUT}
    tiers: list[_Tier] = []
    for name, types in (("prose", PROSE), ("calls", CALLS), ("output", OUTPUT)):
        if chosen := tuple(kind for kind in types if kind in asked):
            share = TOOL_SHARE if tiers and not where.types else 1.0
            tiers.append(_Tier(name, chosen, max(1, round(places * share))))
    return tiers or [_Tier("prose", tuple(where.types), places)]


def content_words(query: str) -> str:
    """A question without its function words, which half of all passages contain; all of it when there is nothing else.

    Looking for them costs as much as for all others, and fills the long lists with passages that share nothing else.
    """
    kept = [word for word in query.split() if word.strip(PUNCTUATION).lower() not in STOP_WORDS]
    return " ".join(kept) or query


def ids(candidates: Sequence[Candidate]) -> list[str]:
    """The candidates' ids, in order."""
    return [candidate.id for candidate in candidates]
