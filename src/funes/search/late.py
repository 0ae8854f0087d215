"""Late interaction: for each word piece of the question its best cosine in the passage, weighted by rarity, summed.

The formula is ColBERT's MaxSim (Khattab and Zaharia, SIGIR 2020) with weights. Divided by the sum of the weights it is
a weighted mean cosine, so scores of different questions are of the same size.

A passage without token codes (its vectors are not made yet, or it is tool output) gets the same sum over the word
pieces' input vectors, which needs no forward pass. The two sums differ in level and spread, so the second is mapped on
the first by a line fitted, question by question, on the candidates that have both.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import compress
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


TOKENISING_SECONDS = 0.5
"""Most time for tokenising passages that have no row of vectors; those that it does not suffice for come last."""

TOKENISED_AT_ONCE = 48


class LateInteraction:
    """One question against the passages of a memory.

    Args:
        reader: the memory that holds the passages.
        encoder: the model that encoded `query`.
        query: the question's token vectors, `(q, 192)`; it has at least one.

    Attributes:
        weights: `(q,)` float32, what each word piece of the question counts; they sum to 1.
    """

    def __init__(self, reader: MemoryReader, encoder: Encoder, query: QueryEncoding) -> None:
        self._reader = reader
        self._encoder = encoder
        self._query = query
        self._line: tuple[float, float] | None = None
        self._seconds = TOKENISING_SECONDS
        weights = piece_weights(query.pieces, *reader.piece_counts())
        self.weights: Floats = weights / weights.sum()

    def matches(self, ids: Sequence[str]) -> Floats:
        """What each word piece of the question finds in each passage.

        The line from word-piece vectors to token codes is fitted on the first passages that are asked for.

        Args:
            ids: the passages.

        Returns:
            `(n, q)` float32, best cosines, in the order of `ids`; times `weights`, a weighted mean cosine.
        """
        stored = self._with_pieces(ids)
        coded = np.array([one.codes is not None for one in stored], bool)
        result = np.zeros((len(ids), len(self.weights)), np.float32)
        if coded.any():
            matrices = [one.codes for one in stored if one.codes is not None]
            result[coded] = token_codes.best_matches(self._query.tokens, matrices)
        if not coded.all():
            # Those that have codes are looked at in both ways until there is a line.
            needed = ~coded if self._line is not None else np.ones(len(ids), bool)
            static = np.zeros_like(result)
            static[needed] = _static(self._encoder, self._query, list(compress(stored, needed)))
            if self._line is None:
                self._line = _line(static[coded] @ self.weights, result[coded] @ self.weights)
            slope, offset = self._line
            result[~coded] = slope * static[~coded] + offset
        return result

    def _with_pieces(self, ids: Sequence[str]) -> list[TokenCodes]:
        """What is stored of each passage; one without a row of vectors is tokenised here, within the time for that."""
        stored = self._reader.codes(ids)
        if waiting := [identifier for identifier in ids if identifier not in stored]:
            texts = self._reader.texts(waiting)
            known = [identifier for identifier in waiting if identifier in texts]
            for start in range(0, len(known), TOKENISED_AT_ONCE):
                if self._seconds <= 0:
                    break
                began = time.monotonic()
                part = known[start : start + TOKENISED_AT_ONCE]
                for identifier, pieces in zip(part, self._encoder.pieces([texts[i] for i in part]), strict=True):
                    stored[identifier] = TokenCodes(None, pieces)
                self._seconds -= time.monotonic() - began
        nothing = TokenCodes(None, np.zeros(0, np.uint16))
        return [stored.get(identifier, nothing) for identifier in ids]


def _static(encoder: Encoder, query: QueryEncoding, stored: Sequence[TokenCodes]) -> Floats:
    """Best cosine of each question piece among each passage's word-piece vectors, `(n, q)`.

    The passages share most of their vocabulary, so each piece is compared once and then looked up.
    """
    pieces = np.concatenate([one.pieces for one in stored])
    result = np.zeros((len(stored), len(query.pieces)), np.float32)
    if not len(pieces):
        return result
    present = np.zeros(int(pieces.max()) + 1, bool)  # sorting the pieces would take longer than all the rest
    present[pieces] = True
    table = encoder.static_matrix(np.flatnonzero(present).astype(np.uint16)) @ query.static.T
    where = (np.cumsum(present) - 1)[pieces]
    lengths = np.array([len(one.pieces) for one in stored])
    filled = lengths > 0
    starts = np.cumsum(lengths) - lengths
    result[filled] = np.maximum.reduceat(np.take(table, where, axis=0), starts[filled], axis=0)
    return result


def _line(static: Floats, scores: Floats) -> tuple[float, float]:
    """Least-squares line from the static sum to the coded one."""
    if len(static) < ENOUGH_PAIRS or float(static.std()) < 1e-4:
        return DEFAULT_LINE
    slope = float(np.cov(static, scores)[0, 1] / static.var(ddof=1))
    slope = min(max(slope, 0.0), 1.5)
    return slope, float(scores.mean() - slope * static.mean())
