"""Candidates: which passages are worth scoring, by words and by dense vector, tier by tier.

Tool output is ten times the prose and would crowd it out, so every tier has places of its own; the tool tiers get a
fifth of the prose's unless the caller asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
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


_Search = Callable[[Filter, int], list[tuple[str, float]]]
"""Finds the best passages that meet conditions, at most so many."""

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
    together = _together(_tiers(where, places))
    by_words = partial(reader.words, content_words(query))
    with ThreadPoolExecutor(2) as pool:
        running = [[pool.submit(_ranked, reader, by_words, where, tiers)] for tiers in together]
        if vector is not None:
            by_meaning = partial(reader.nearest, vector())
            for lists, tiers in zip(running, together, strict=True):
                lists.append(pool.submit(_ranked, reader, by_meaning, where, tiers))
    found: list[Candidate] = []
    for tiers, lists in zip(together, running, strict=True):
        for tier, *own in zip(tiers, *(one.result() for one in lists), strict=True):
            fused = reciprocal_rank_fusion(own)
            found += [Candidate(identifier, tier.name, score) for identifier, score in fused[: tier.places]]
    return found


def _together(tiers: list[_Tier]) -> list[list[_Tier]]:
    """Tiers that are searched together: the tool tiers, since a search costs much the same whatever it finds."""
    return [tiers[:1], tiers[1:]] if len(tiers) > 1 else [tiers]


def _ranked(reader: MemoryReader, search: _Search, where: Filter, tiers: list[_Tier]) -> list[list[str]]:
    """Search tiers together; for each its list, best first.

    A tier that the others leave less than half of its places is searched alone.
    """
    types = tuple(kind for tier in tiers for kind in tier.types)
    limit = DEPTH * sum(tier.places for tier in tiers)
    found = [identifier for identifier, _ in search(replace(where, types=types), limit)]
    if len(tiers) == 1:
        return [found]
    typed = list(zip(found, reader.block_types(found), strict=True))
    lists = [[identifier for identifier, kind in typed if kind in tier.types] for tier in tiers]
    for tier, own in zip(tiers, lists, strict=True):
        if len(found) == limit and len(own) < tier.places / 2:
            alone = search(replace(where, types=tier.types), DEPTH * tier.places)
            own[:] = [identifier for identifier, _ in alone]
    return lists


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
