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
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from funes.memory.reader import MemoryReader
from funes.memory.token_values import TokenValues
from funes.models import codes as token_codes
from funes.search.rarity import piece_weights, shared_by_words

if TYPE_CHECKING:
    from funes.models.encoder import Encoder, QueryEncoding

Floats = npt.NDArray[np.float32]
Pieces = npt.NDArray[np.uint16]

CONTINUATION = "##"
"""Begins the name of a word piece that continues a word."""

ENOUGH_PAIRS = 20
"""Candidates with both scores below which no line is fitted."""

MOST_PAIRS = 50
"""About so many are enough for one."""

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
        continues = [encoder.tokens.name(piece).startswith(CONTINUATION) for piece in query.pieces.tolist()]
        weights = shared_by_words(piece_weights(query.pieces, *reader.piece_counts()), continues)
        self.weights: Floats = weights / weights.sum()

    def matches(self, ids: Sequence[str]) -> Floats:
        """What each word piece of the question finds in each passage.

        The line from word-piece vectors to token codes is fitted on the first passages that are asked for.

        Args:
            ids: the passages.

        Returns:
            `(n, q)` float32, best cosines, in the order of `ids`; times `weights`, a weighted mean cosine.
        """
        codes = self._reader.codes(ids)
        coded = np.zeros(len(ids), bool)
        coded[codes.places] = True
        result = np.zeros((len(ids), len(self.weights)), np.float32)
        result[codes.places] = token_codes.best_matches(self._query.tokens, codes.values, codes.lengths)
        if not coded.all():
            # Some of those that have codes are looked at in both ways, until there is a line.
            pairs = _spread(np.flatnonzero(coded)) if self._line is None else np.zeros(0, np.int64)
            looked_at = np.concatenate([pairs, np.flatnonzero(~coded)])
            static = self._static_matches([ids[index] for index in looked_at])
            if self._line is None:
                self._line = _line(static[: len(pairs)] @ self.weights, result[pairs] @ self.weights)
            slope, offset = self._line
            result[~coded] = slope * static[len(pairs) :] + offset
        return result

    def _static_matches(self, ids: Sequence[str]) -> Floats:
        """Best cosines among the passages' word-piece vectors, `(n, q)`; 0 for a passage without word pieces."""
        pieces = self._pieces(ids)
        result = np.zeros((len(ids), len(self.weights)), np.float32)
        result[pieces.places] = _static(self._encoder, self._query, pieces)
        return result

    def _pieces(self, ids: Sequence[str]) -> TokenValues:
        """The word pieces of passages; those without a row of vectors are tokenised here, within the time for that."""
        stored = self._reader.pieces(ids)
        waiting = np.delete(np.arange(len(ids)), stored.places).tolist()
        if not waiting:
            return stored
        texts = self._reader.texts([ids[place] for place in waiting])
        known = [place for place in waiting if ids[place] in texts]
        made: list[Pieces] = []
        for start in range(0, len(known), TOKENISED_AT_ONCE):
            if self._seconds <= 0:
                break
            began = time.monotonic()
            made += self._encoder.pieces([texts[ids[place]] for place in known[start : start + TOKENISED_AT_ONCE]])
            self._seconds -= time.monotonic() - began
        if not made:
            return stored
        lengths = np.array([len(one) for one in made], np.int64)
        return stored.joined(TokenValues(np.concatenate(made), lengths, np.array(known[: len(made)], np.int64)))


def _spread(indices: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """`MOST_PAIRS` of some indices, from everywhere among them."""
    return indices[:: max(1, len(indices) // MOST_PAIRS)]


def _static(encoder: Encoder, query: QueryEncoding, pieces: TokenValues) -> Floats:
    """Best cosine of each question piece among each passage's word-piece vectors, `(n, q)`.

    The passages share most of their vocabulary, so each piece is compared once and then looked up.
    """
    result = np.zeros((len(pieces.lengths), len(query.pieces)), np.float32)
    if not len(pieces.values):
        return result
    present = np.zeros(int(pieces.values.max()) + 1, bool)  # sorting the pieces would take longer than all the rest
    present[pieces.values] = True
    table = encoder.static_matrix(np.flatnonzero(present).astype(np.uint16)) @ query.static.T
    where = (np.cumsum(present) - 1)[pieces.values]
    filled = pieces.lengths > 0
    starts = np.cumsum(pieces.lengths) - pieces.lengths
    result[filled] = np.maximum.reduceat(np.take(table, where, axis=0), starts[filled], axis=0)
    return result


def _line(static: Floats, scores: Floats) -> tuple[float, float]:
    """Least-squares line from the static sum to the coded one."""
    if len(static) < ENOUGH_PAIRS or float(static.std()) < 1e-4:
        return DEFAULT_LINE
    slope = float(np.cov(static, scores)[0, 1] / static.var(ddof=1))
    slope = min(max(slope, 0.0), 1.5)
    return slope, float(scores.mean() - slope * static.mean())
