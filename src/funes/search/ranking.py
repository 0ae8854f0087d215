"""Ranking: the candidates' scores, by late interaction in context, or by the order of their lists."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from funes.memory.reader import MemoryReader
from funes.memory.register import Passage
from funes.search.candidates import Candidate, ids
from funes.search.context import READ_IN_CONTEXT, WIDENED, completed, surroundings
from funes.search.evidence import session_bonus
from funes.search.late import LateInteraction
from funes.search.model import RecallOptions
from funes.search.time_words import TIME_SHARE

Floats = npt.NDArray[np.float32]

WEAK_BELOW = 0.43
"""Weighted mean cosine under which a passage is not close to the question (docs/ranking.md)."""

TOOL_HANDICAP = 0.05
"""Tool text is full of identifiers and matches more by chance; it has to be closer than prose by this much."""

HANDICAPS = {"thinking": 0.05, "summary": 0.04, "tool_use": TOOL_HANDICAP, "tool_result": TOOL_HANDICAP}
"""How much closer than what somebody said to somebody a passage has to be, by its type. Thinking goes over what is said
afterwards, when it has become an answer; a summary touches on everything and tells nothing whole."""

FUSED_TOOL_DISCOUNT = np.float32(0.1)
"""The same for fused scores, which know ranks only: a tier's first passage may be far from the question."""


@dataclass(slots=True)
class Ranked:
    """Passages, their scores, and the ids of those that are not close to the question."""

    passages: list[Passage]
    scores: Floats
    weak: frozenset[str] = frozenset()


def by_fusion(reader: MemoryReader, candidates: list[Candidate]) -> Ranked:
    """The order of the candidates' lists.

    Args:
        reader: the memory.
        candidates: passages in the running.
    """
    known = reader.passages(ids(candidates))
    candidates = [candidate for candidate in candidates if candidate.id in known]
    scores = np.array([candidate.fused for candidate in candidates], np.float32)
    if len(scores):
        scores *= (1 - FUSED_TOOL_DISCOUNT * _are_tools(candidates)) / scores.max()
    return Ranked(list(known.values()), scores)


def by_late_interaction(
    reader: MemoryReader, candidates: list[Candidate], late: LateInteraction, options: RecallOptions
) -> Ranked:
    """Late interaction, for the best in context, and what their sessions add to it.

    Args:
        reader: the memory.
        candidates: passages in the running.
        late: the question.
        options: how many passages are wanted, and which.

    Returns:
        The best candidates and what stands around them, in no order.
    """
    alone = late.matches(ids(candidates))
    first = alone @ late.weights - TOOL_HANDICAP * _are_tools(candidates)
    first += [TIME_SHARE * candidate.timely for candidate in candidates]
    order = np.argsort(-first, kind="stable")
    best = order[: max(READ_IN_CONTEXT, options.k)].tolist()
    known = reader.passages([candidates[index].id for index in best])
    passages = list(known.values())
    if not passages:
        return Ranked([], np.zeros(0, np.float32))
    matches = {candidates[index].id: alone[index] for index in best if candidates[index].id in known}
    outline = reader.outline(prose=True)
    around = surroundings(outline, list(known))
    missing = {identifier: None for one in around for identifier in one.ids() if identifier not in matches}
    near = {identifier: None for one in around[:WIDENED] for identifier in one.around if identifier in missing}
    matches |= zip(missing, late.matches(list(missing)), strict=True)
    added = list(reader.passages(list(near), options.where).values())
    around += surroundings(outline, [passage.id for passage in added])
    passages += added
    own = np.stack([matches[passage.id] for passage in passages])
    scores = completed(own, around, matches) @ late.weights
    scores -= np.array([HANDICAPS.get(passage.block_type, 0.0) for passage in passages], np.float32)
    scores += session_bonus(scores, [passage.session_id for passage in passages])
    far = own @ late.weights < WEAK_BELOW
    return Ranked(passages, scores, frozenset(passages[index].id for index in np.flatnonzero(far)))


def _are_tools(candidates: list[Candidate]) -> Floats:
    return np.array([candidate.tier != "prose" for candidate in candidates], np.float32)
