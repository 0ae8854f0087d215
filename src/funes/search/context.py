"""Context: a passage is read together with the prompt that it serves and what was said around it.

An answer seldom repeats the words of its question: "yes, because it blocks the writer" is found by what the prompt
before it says. So each word piece of the question may find its best match around the passage instead of in it, at a
discount: what the passage itself says counts whole, the prompt four fifths, the passage before it seven tenths, and
anything within three passages half. It is the passage's own sum of best matches that is completed, word piece by word
piece; a passage gains nothing from a neighbour that says the same (docs/ranking.md has the figures).

The passages around the best ones become candidates, too: an answer that shares no word with the question is found
through its prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
import numpy.typing as npt

from funes.memory.outline import NOWHERE, Outline

PROMPT = np.float32(0.8)
BEFORE = np.float32(0.7)
AROUND = np.float32(0.5)
"""What a match counts in the prompt, in the passage before, and in the others within `REACH`."""

REACH = 3
"""Passages of prose on each side that count as around."""

READ_IN_CONTEXT = 48
"""Candidates, the best by their own text, that are read in context."""

WIDENED = 24
"""Of these, how many have the passages around them considered as candidates."""

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a passage is read with, as ids.

    Attributes:
        prompt: the last part of the prompt that it serves; empty for a prompt, and before the first one.
        before: the passage before it in its session, empty for the first.
        around: those within `REACH`, on both sides, in order.
    """

    prompt: str = ""
    before: str = ""
    around: tuple[str, ...] = ()

    def ids(self) -> tuple[str, ...]:
        """All of them, none of them empty; some may come twice."""
        return tuple(identifier for identifier in (self.prompt, self.before, *self.around) if identifier)


def surroundings(outline: Outline, ids: Sequence[str]) -> list[Surroundings]:
    """Find what passages are read with.

    Args:
        outline: the order of the prose.
        ids: the passages.

    Returns:
        For each passage what surrounds it; nothing for one that is not prose.
    """
    found: list[tuple[int, int, list[int]]] = []
    for place in outline.places(ids).tolist():
        if place == NOWHERE:
            found.append((NOWHERE, NOWHERE, []))
            continue
        first, end = outline.session(place)
        prompt = NOWHERE if outline.is_prompt(place) else outline.prompt_before(place)
        around = [*range(max(first, place - REACH), place), *range(place + 1, min(end, place + REACH + 1))]
        found.append((prompt, place - 1 if place > first else NOWHERE, around))
    places = list({place for prompt, _, around in found for place in (prompt, *around)} - {NOWHERE})
    known = dict(zip(places, outline.ids(places), strict=True)) | {NOWHERE: ""}
    return [
        Surroundings(known[prompt], known[before], tuple(known[place] for place in around))
        for prompt, before, around in found
    ]


def completed(own: Floats, around: Sequence[Surroundings], matches: Mapping[str, Floats]) -> Floats:
    """Complete what passages say with what stands around them.

    Args:
        own: `(n, q)` best cosine of each word piece of the question in each passage.
        around: what each passage is read with.
        matches: the same for the surrounding passages, `(q,)` by id; what it lacks does not count.

    Returns:
        `(n, q)` float32, nowhere less than `own`.
    """
    rows = {identifier: row for row, identifier in enumerate(matches)}
    nothing = len(rows)
    found = np.full((nothing + 1, own.shape[1]), -np.inf, np.float32)
    for row, match in enumerate(matches.values()):
        found[row] = match
    columns: list[tuple[np.float32, Sequence[str]]] = [
        (PROMPT, [one.prompt for one in around]),
        (BEFORE, [one.before for one in around]),
        *((AROUND, column) for column in zip_longest(*(one.around for one in around), fillvalue="")),
    ]
    result = own.copy()
    for share, identifiers in columns:
        chosen = [rows.get(identifier, nothing) for identifier in identifiers]
        np.maximum(result, share * found[chosen], out=result)
    return result
