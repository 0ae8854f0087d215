"""The last stage: a cross-encoder reads the question beside the best passages and puts them in its own order.

It costs a forward pass for each passage, so it gets a number of passages and a time. The passages are read best first,
a few at a time, and reading ends before the step that would not be done in time; what was read is then a prefix of the
list. The prefix's scores are dealt out again in the new order: what follows it stays below it, and a score keeps its
meaning, which a classifier's output has not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from funes.models import threads
from funes.search.model import RecallOptions
from funes.search.selection import fingerprint

if TYPE_CHECKING:
    from funes.models.cross_encoder import CrossEncoder

Floats = npt.NDArray[np.float32]


def rerank(
    cross_encoder: CrossEncoder,
    question: str,
    ids: Sequence[str],
    text: Callable[[str], str],
    scores: Floats,
    wished: Floats,
    options: RecallOptions,
    clock: Callable[[], float] = time.monotonic,
) -> Floats:
    """Order the best passages by a cross-encoder.

    Args:
        cross_encoder: the model.
        question: as it was asked.
        ids: the passages.
        text: gives the text of a passage; one that stands in the list twice is read once.
        scores: `(n,)` float32, what they scored so far, aligned with `ids`.
        wished: `(n,)` float32, the part of it for what was asked of time, of which the cross-encoder knows nothing: it
            counts once more within the new order.
        options: how many different passages to read at most, and for how long; the first step is taken whatever it
            costs.
        clock: gives the time in seconds.

    Returns:
        `(n,)` float32 new scores: the same numbers, dealt out anew among the passages that were read.
    """
    began = clock()
    order = np.argsort(-scores, kind="stable").tolist()
    prints: list[bytes] = []
    wanted: dict[bytes, int] = {}
    for index in order:
        mark = fingerprint(text(ids[index]))
        if mark not in wanted and len(wanted) == options.rerank_top:
            break
        wanted.setdefault(mark, index)
        prints.append(mark)
    pairs = cross_encoder.pairs(question, [text(ids[index]) for index in wanted.values()])
    step = max(1, threads.workers())
    found: list[float] = []
    longest = 0.0
    for first in range(0, len(pairs), step):
        before = clock()
        if found and before + longest > began + options.rerank_seconds:
            break
        found += cross_encoder.scores(pairs[first : first + step]).tolist()
        longest = max(longest, clock() - before)
    answers = dict(zip(wanted, found, strict=False))
    read = next((place for place, mark in enumerate(prints) if mark not in answers), len(prints))
    ranked = sorted(range(read), key=lambda place: (-answers[prints[place]], place))
    steps = np.sort((scores - wished)[order[:read]])[::-1]
    timely = [float(step + wished[order[place]]) for step, place in zip(steps, ranked, strict=True)]
    ranked = [ranked[index] for index in sorted(range(read), key=lambda index: (-timely[index], index))]
    new = scores.copy()
    below = scores[order[read]] if read < len(order) else np.float32(-np.inf)
    for place in reversed(range(read)):
        # Equal scores would leave the order to whoever sorts next.
        below = max(scores[order[place]], np.nextafter(below, np.float32(np.inf)))
        new[order[ranked[place]]] = below
    return new
