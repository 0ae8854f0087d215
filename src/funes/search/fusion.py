"""Reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

CONSTANT = 60
"""The paper's k: how little the first ranks differ from one another."""


def reciprocal_rank_fusion(lists: Sequence[Sequence[str]], constant: int = CONSTANT) -> list[tuple[str, float]]:
    """Merge ranked lists.

    Args:
        lists: ids, best first; a list may be empty.
        constant: added to each rank, counted from 1.

    Returns:
        `(id, score)` pairs, best first; ids with equal scores in alphabetical order, so that the result is repeatable.

    >>> reciprocal_rank_fusion([["a", "b"], ["b"]])[0][0]
    'b'
    """
    scores: defaultdict[str, float] = defaultdict(float)
    for ranked in lists:
        for rank, identifier in enumerate(dict.fromkeys(ranked), start=1):
            scores[identifier] += 1 / (constant + rank)
    ordered = sorted(scores)
    ordered.sort(key=scores.__getitem__, reverse=True)  # equal scores stay in alphabetical order
    return [(identifier, scores[identifier]) for identifier in ordered]
