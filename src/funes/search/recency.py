"""Recency: a tie-breaker by default, a preference when the caller names a half-life.

As a multiplier with a 30-day half-life, recency halves the accuracy on old history; a memory is asked about old work
more often than not. The default therefore adds at most a hundredth to a score.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import cast

import numpy as np
import numpy.typing as npt

DEFAULT_HALF_LIFE_DAYS = 30.0
DEFAULT_SHARE = 0.01
EXPLICIT_SHARE = 0.1
"""How much the newest passage gains when the caller names a half-life, on the scale of the scores (0 to 1)."""

_DAY = 86_400.0


def recency_bonus(
    times: Sequence[datetime | None], half_life_days: float | None, now: datetime | None = None
) -> npt.NDArray[np.float32]:
    """What each passage gains from being recent.

    Args:
        times: when each passage was said, aware; None counts as infinitely old.
        half_life_days: age at which the bonus halves; None for the gentle default, 0 for no bonus.
        now: the reference, aware; the present when None.

    Returns:
        `(n,)` float32, from 0 to the share.
    """
    if half_life_days is not None and half_life_days <= 0:
        return np.zeros(len(times), np.float32)
    share = DEFAULT_SHARE if half_life_days is None else EXPLICIT_SHARE
    half_life = half_life_days or DEFAULT_HALF_LIFE_DAYS
    reference = now or datetime.now(UTC)
    ages = np.array([np.inf if time is None else max(0.0, (reference - time).total_seconds() / _DAY) for time in times])
    return cast("npt.NDArray[np.float32]", (share * 0.5 ** (ages / half_life)).astype(np.float32))
