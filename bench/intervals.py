"""Bootstrap intervals: how far a mean over questions may be from what other questions would have given."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

RESAMPLES = 10_000
SHARE = 0.95


def interval(values: Sequence[float], groups: Sequence[str] | None = None, seed: int = 1) -> tuple[float, float]:
    """The percentile bootstrap interval of a mean (Efron 1979).

    Args:
        values: one for each question; of a paired comparison, the differences.
        groups: what questions belong together and are drawn together; None when each stands for itself.
        seed: of the resampling.

    Returns:
        Lower and upper bound of the middle 95 % of the resampled means.
    """
    data = np.asarray(values, np.float64)
    if groups is None:
        sums, sizes = data, np.ones(len(data))
    else:
        names, where = np.unique(np.asarray(groups), return_inverse=True)
        sums = np.bincount(where, data, len(names))
        sizes = np.bincount(where, minlength=len(names)).astype(np.float64)
    chance = np.random.default_rng(seed)
    means = np.empty(RESAMPLES)
    for start in range(0, RESAMPLES, 1000):
        drawn = chance.integers(len(sums), size=(min(1000, RESAMPLES - start), len(sums)))
        means[start : start + len(drawn)] = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.quantile(means, [(1 - SHARE) / 2, (1 + SHARE) / 2])
    return float(low), float(high)
