"""Session evidence: a passage counts more when its session has other close passages.

A question is mostly about one piece of work, and work leaves more than one passage. The bonus of a session is the mean,
over its best three candidates, of what they score above the average candidate; a session with one lucky passage gets a
third of what a session about the subject gets. On the evaluation sets half of that bonus helps at every depth
(docs/ranking.md has the figures).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import numpy.typing as npt

WEIGHT = 0.5
PASSAGES = 3

Floats = npt.NDArray[np.float32]


def session_bonus(scores: Floats, sessions: Sequence[str]) -> Floats:
    """What each passage gains from its session.

    Args:
        scores: `(n,)` the candidates' scores.
        sessions: the candidates' session ids.

    Returns:
        `(n,)` float32, at least 0, in the unit of `scores`.
    """
    if not len(scores):
        return scores
    above = np.maximum(scores - scores.mean(), 0.0)
    totals: dict[str, float] = {}
    counts: dict[str, int] = {}
    for index in np.argsort(-above, kind="stable").tolist():
        session = sessions[index]
        if counts.get(session, 0) < PASSAGES:
            counts[session] = counts.get(session, 0) + 1
            totals[session] = totals.get(session, 0.0) + float(above[index])
    bonus = np.array([totals[session] for session in sessions], np.float32)
    return cast("Floats", WEIGHT / PASSAGES * bonus)
