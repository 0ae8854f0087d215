"""Token vectors in 48 bytes each.

Late interaction needs a vector for every token of every passage; as float32 that would be 1.5 KB a token. Here a
vector is projected to 192 dimensions (PCA, fitted once by bench/fit_projection.py and shipped), turned by a random
rotation so that every dimension is close to Gaussian with the same variance, and each dimension is stored in 2 bits:
the index of the nearest of four levels, which are those of Lloyd and Max for a unit Gaussian. What a code stands for is
scaled to length 1, so a score is a cosine. Two bits lose nothing measurable in ranking (docs/models.md).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from funes.models import threads

Floats = NDArray[np.float32]
Codes = NDArray[np.uint8]

DIMENSIONS = 192
BYTES = DIMENSIONS // 4  # of one token's code
_ASSETS = Path(__file__).parent / "assets"
_GROUP = 2048  # tokens decoded at once

_EDGE = 0.9816  # Lloyd-Max for a unit Gaussian, 4 levels (Max 1960, table I)
_LEVELS = np.array([-1.510, -0.4528, 0.4528, 1.510], np.float32)


@cache
def _projection(name: str) -> Floats:
    """A shipped projection, (width, 192) float32."""
    return cast("Floats", np.load(_ASSETS / f"{name}.npy").astype(np.float32))


@cache
def _levels() -> Floats:
    """What each byte stands for, (256, 4): the first dimension in the lowest bits."""
    byte = np.arange(256)
    return np.ascontiguousarray(np.stack([_LEVELS[(byte >> shift) & 3] for shift in (0, 2, 4, 6)], axis=1))


def project(token_vectors: Floats, space: str = "tokens") -> Floats:
    """Token vectors in the codes' space.

    Args:
        token_vectors: (t, width) float32.
        space: `"tokens"` for last hidden states, `"pieces"` for input word-piece vectors.

    Returns:
        (t, 192) float32, unit rows.
    """
    return _unit(token_vectors @ _projection(space))


def quantize(token_vectors: Floats) -> Codes:
    """Codes of last hidden states.

    Args:
        token_vectors: (t, width) float32.

    Returns:
        (t, 48) uint8.
    """
    return encode(project(token_vectors))


def encode(unit_rows: Floats) -> Codes:
    """Codes of vectors that are in the codes' space already.

    Args:
        unit_rows: (t, 192) float32, unit rows.

    Returns:
        (t, 48) uint8.
    """
    edge = np.float32(_EDGE / DIMENSIONS**0.5)
    index = (unit_rows > -edge).view(np.uint8)
    index += (unit_rows > 0).view(np.uint8)
    index += (unit_rows > edge).view(np.uint8)
    four = index.reshape(len(index), BYTES, 4)
    return cast("Codes", four[..., 0] | four[..., 1] << 2 | four[..., 2] << 4 | four[..., 3] << 6)


def decode(codes: Codes) -> Floats:
    """The unit vectors that codes stand for, (t, 192) float32."""
    return _unit(_looked_up(codes))


def score_matrix(query_tokens: Floats, codes: Codes) -> Floats:
    """Cosine of every query token with every passage token.

    Args:
        query_tokens: (q, 192) float32, unit rows.
        codes: (t, 48) uint8.

    Returns:
        (q, t) float32.
    """
    vectors = _looked_up(codes)
    scores = query_tokens @ vectors.T
    scores /= np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return scores


def best_matches(query_tokens: Floats, codes: Codes, lengths: NDArray[np.int64]) -> Floats:
    """For each passage, each query token's best cosine: what late interaction sums.

    Args:
        query_tokens: (q, 192) float32, unit rows.
        codes: (t, 48) uint8, those of all passages, one passage after the other.
        lengths: (n,) int64, tokens of each passage, which may be 0; they sum to t.

    Returns:
        (n, q) float32; 0 for a passage without tokens.
    """
    result = np.zeros((len(lengths), len(query_tokens)), np.float32)
    filled = np.flatnonzero(lengths)
    ends = np.cumsum(lengths)
    # In groups whose decoded vectors stay in the cache.
    groups = np.split(filled, np.flatnonzero(np.diff(ends[filled] // _GROUP)) + 1)
    # BLAS threads cost many times more than they gain on matrices this small, above all on a busy machine.
    with threads.one_blas_thread():
        for group in groups:
            if len(group):
                starts = ends[group] - lengths[group]
                scores = score_matrix(query_tokens, codes[starts[0] : ends[group[-1]]])
                result[group] = np.maximum.reduceat(scores, starts - starts[0], axis=1).T
    return result


def _looked_up(codes: Codes) -> Floats:
    """What codes stand for before scaling, (t, 192) float32."""
    # take() with a mode other than "raise" copies whole entries: a tenth of the time of indexing.
    levels = np.take(_levels(), codes, axis=0, mode="clip")
    return cast("Floats", levels.reshape(len(codes), DIMENSIONS))


def _unit(rows: Floats) -> Floats:
    """Rows scaled to length 1, in place; a zero row stays zero."""
    length = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    rows /= np.maximum(length, np.float32(1e-12))[:, None]
    return rows
