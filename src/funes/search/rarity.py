"""How much each word piece of a question weighs: rare ones decide.

The weight is log(1 + N / (1 + df)), with df counted in the memory. A memory that has few vectors yet, or none, has no
counts to speak of, so a prior worth a hundred passages is mixed in: the vocabulary of BERT's uncased models is sorted
by frequency, hence a piece's position predicts its share of passages by Zipf's law.

An identifier or a word with a typo falls into many pieces, all of them rare, that say one thing: a word of four pieces
counts twice what a word of one does, not four times.
"""

from __future__ import annotations

from collections.abc import Sequence
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


def shared_by_words(weights: npt.NDArray[np.float32], continues: Sequence[bool]) -> npt.NDArray[np.float32]:
    """Weights whose sum over a word grows with the square root of its number of pieces.

    Args:
        weights: `(q,)` float32, of a question's word pieces.
        continues: for each of them whether it continues the word of the piece before it.

    Returns:
        `(q,)` float32.
    """
    words = np.cumsum(~np.asarray(continues, bool))
    return cast("npt.NDArray[np.float32]", (weights / np.sqrt(np.bincount(words)[words])).astype(np.float32))
