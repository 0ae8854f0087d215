"""Late interaction: for each word piece of the question its best cosine in the passage, weighted by rarity, summed.

The formula is ColBERT's MaxSim (Khattab and Zaharia, SIGIR 2020) with weights. Divided by the sum of the weights it is
a weighted mean cosine, so scores of different questions are of the same size.

A passage without token codes (its vectors are not made yet, or it is tool output) gets the same sum over the word
pieces' input vectors, which needs no forward pass. The two sums differ in level and spread, so the second is mapped on
the first by a line fitted, question by question, on the candidates that have both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from funes.memory.reader import MemoryReader, TokenCodes
from funes.models import codes as token_codes
from funes.search.rarity import piece_weights

if TYPE_CHECKING:
    from funes.models.encoder import Encoder, QueryEncoding

Floats = npt.NDArray[np.float32]

ENOUGH_PAIRS = 20
"""Candidates with both scores below which no line is fitted."""

DEFAULT_LINE = (0.75, 0.12)
"""Slope and offset where there are too few pairs: the median of the fitted lines on the evaluation sets."""


def late_interaction(reader: MemoryReader, encoder: Encoder, query: QueryEncoding, ids: Sequence[str]) -> Floats:
    """Score passages against a question.

    Args:
        reader: the memory that holds the passages.
        encoder: the model that encoded `query`.
        query: the question's token vectors, `(q, 192)`.
        ids: the passages.

    Returns:
        `(n,)` float32, weighted mean cosines, in the order of `ids`.
    """
    weights = piece_weights(query.pieces, *reader.piece_counts())
    if not len(weights):
        return np.zeros(len(ids), np.float32)
    weights /= weights.sum()
    stored = _with_pieces(reader, encoder, ids)
    coded = np.array([one.codes is not None for one in stored], bool)
    scores = np.zeros(len(ids), np.float32)
    if coded.any():
        matrices = [one.codes for one in stored if one.codes is not None]
        scores[coded] = token_codes.best_matches(query.tokens, matrices) @ weights
    if not coded.all():
        static = _static(encoder, query, stored) @ weights
        slope, offset = _line(static[coded], scores[coded])
        scores[~coded] = slope * static[~coded] + offset
    return scores


def _with_pieces(reader: MemoryReader, encoder: Encoder, ids: Sequence[str]) -> list[TokenCodes]:
    """What is stored of each passage; one that waits for its vectors is tokenised here."""
    stored = reader.codes(ids)
    if waiting := [identifier for identifier in ids if identifier not in stored]:
        rows = reader.rows(waiting)
        known = [identifier for identifier in waiting if identifier in rows]
        for identifier, pieces in zip(known, encoder.pieces([rows[i].text or "" for i in known]), strict=True):
            stored[identifier] = TokenCodes(None, pieces)
    nothing = TokenCodes(None, np.zeros(0, np.uint16))
    return [stored.get(identifier, nothing) for identifier in ids]


def _static(encoder: Encoder, query: QueryEncoding, stored: Sequence[TokenCodes]) -> Floats:
    """Best cosine of each question piece among each passage's word-piece vectors, `(n, q)`.

    The passages share most of their vocabulary, so each piece is compared once and then looked up.
    """
    vocabulary, where = np.unique(np.concatenate([one.pieces for one in stored]), return_inverse=True)
    result = np.zeros((len(stored), len(query.pieces)), np.float32)
    if not len(vocabulary):
        return result
    table = query.static @ encoder.static_matrix(vocabulary.astype(np.uint16)).T
    lengths = np.array([len(one.pieces) for one in stored])
    filled = lengths > 0
    starts = np.cumsum(lengths) - lengths
    result[filled] = np.maximum.reduceat(table[:, where], starts[filled], axis=1).T
    return result


def _line(static: Floats, scores: Floats) -> tuple[float, float]:
    """Least-squares line from the static sum to the coded one."""
    if len(static) < ENOUGH_PAIRS or float(static.std()) < 1e-4:
        return DEFAULT_LINE
    slope = float(np.cov(static, scores)[0, 1] / static.var(ddof=1))
    slope = min(max(slope, 0.0), 1.5)
    return slope, float(scores.mean() - slope * static.mean())
