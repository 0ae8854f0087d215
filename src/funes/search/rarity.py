"""How much each word piece of a question weighs: rare ones decide.

The weight is log(1 + N / (1 + df)), with df counted in the memory. A memory that has few vectors yet, or none, has no
counts to speak of, so a prior worth a hundred passages is mixed in: the vocabulary of BERT's uncased models is sorted
by frequency, hence a piece's position predicts its share of passages by Zipf's law.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt

FIRST_WORD = 1996
"""Id of the most frequent word (`the`); the ids before it are special tokens and single characters."""

PRIOR_PASSAGES = 100
_ZIPF = 15.0
_CHARACTER_SHARE = 0.1


def piece_weights(
    pieces: npt.NDArray[np.uint16], frequencies: npt.NDArray[np.int64], passages: int
) -> npt.NDArray[np.float32]:
    """Weights of a question's word pieces.

    Args:
        pieces: `(q,)` word-piece ids.
        frequencies: `(vocabulary,)` number of the memory's passages that contain each piece.
        passages: number of passages counted.

    Returns:
        `(q,)` float32, positive.
    """
    rank = pieces.astype(np.float64) - FIRST_WORD
    share = np.where(rank >= 0, _ZIPF / (np.maximum(rank, 0) + _ZIPF), _CHARACTER_SHARE)
    document_frequency = frequencies[pieces] + PRIOR_PASSAGES * share
    weights = np.log1p((passages + PRIOR_PASSAGES) / (1 + document_frequency))
    return cast("npt.NDArray[np.float32]", weights.astype(np.float32))
