"""Token vectors in 48 bytes each.

Late interaction needs a vector for every token of every passage; as float32 that would be 1.5 KB a token. Here a
vector is projected to 192 dimensions (PCA, fitted once by bench/fit_projection.py and shipped), turned by a random
rotation so that every dimension is close to Gaussian with the same variance, and each dimension is stored in 2 bits:
the index of the nearest of four levels, which are those of Lloyd and Max for a unit Gaussian. What a code stands for is
scaled to length 1, so a score is a cosine. Two bits lose nothing measurable in ranking (docs/models.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import cast

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Codes = NDArray[np.uint8]

DIMENSIONS = 192
BYTES = DIMENSIONS // 4  # of one token's code

_EDGE = np.float32(0.9816)  # Lloyd-Max for a unit Gaussian, 4 levels (Max 1960, table I)
_LEVELS = np.array([-1.510, -0.4528, 0.4528, 1.510], np.float32)


@cache
def _projection(name: str) -> Floats:
    """A shipped projection, (width, 192) float32."""
    with (files("funes.models") / "assets" / f"{name}.npy").open("rb") as file:
        return cast(Floats, np.load(file).astype(np.float32))


@cache
def _levels() -> Floats:
    """What each byte stands for, (256, 4): the first dimension in the lowest bits."""
    byte = np.arange(256)
    return np.stack([_LEVELS[(byte >> shift) & 3] for shift in (0, 2, 4, 6)], axis=1)


@cache
def _squares() -> Floats:
    """Squared length of what each byte stands for, (256,)."""
    return np.square(_levels()).sum(axis=1)


def project(token_vectors: Floats, space: str = "tokens") -> Floats:
    """Token vectors in the codes' space.

    Args:
        token_vectors: (t, width) float32.
        space: `"tokens"` for last hidden states, `"pieces"` for input word-piece vectors.

    Returns:
        (t, 192) float32, unit rows.
    """
    projected = token_vectors @ _projection(space)
    return _unit(projected)


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
    scaled = unit_rows * np.float32(DIMENSIONS**0.5)
    index = (scaled > -_EDGE).view(np.uint8)
    index = index + (scaled > 0) + (scaled > _EDGE)
    four = index.reshape(len(index), BYTES, 4)
    return cast(Codes, four[..., 0] | four[..., 1] << 2 | four[..., 2] << 4 | four[..., 3] << 6)


def decode(codes: Codes) -> Floats:
    """The unit vectors that codes stand for, (t, 192) float32."""
    vectors = _levels()[codes].reshape(len(codes), DIMENSIONS)
    vectors /= _lengths(codes)[:, None]
    return cast(Floats, vectors)


def score_matrix(query_tokens: Floats, codes: Codes) -> Floats:
    """Cosine of every query token with every passage token.

    Args:
        query_tokens: (q, 192) float32, unit rows.
        codes: (t, 48) uint8.

    Returns:
        (q, t) float32.
    """
    scores = query_tokens @ _levels()[codes].reshape(len(codes), DIMENSIONS).T
    scores /= _lengths(codes)
    return cast(Floats, scores)


def best_matches(query_tokens: Floats, passages: Sequence[Codes]) -> Floats:
    """For each passage, each query token's best cosine: what late interaction sums.

    Args:
        query_tokens: (q, 192) float32, unit rows.
        passages: codes of each passage, (t_i, 48) uint8; t_i may be 0.

    Returns:
        (n, q) float32; 0 for a passage without tokens.
    """
    return _best(query_tokens, passages, score_matrix)


def best_static_matches(query_pieces: Floats, passages: Sequence[Floats]) -> Floats:
    """The same over word-piece vectors.

    Args:
        query_pieces: (q, 192) float32, unit rows.
        passages: each passage's word-piece vectors, (t_i, 192) float32, unit rows.

    Returns:
        (n, q) float32; 0 for a passage without tokens.
    """
    return _best(query_pieces, passages, lambda query, rows: query @ rows.T)


def _best(query, passages, score):  # type: ignore[no-untyped-def]
    lengths = np.array([len(passage) for passage in passages], np.int64)
    result = np.zeros((len(passages), len(query)), np.float32)
    filled = np.flatnonzero(lengths)
    # In groups of a few thousand tokens, so that the decoded vectors stay in the cache.
    group: list[int] = []
    size = 0
    for index in filled.tolist():
        group.append(index)
        size += int(lengths[index])
        if size >= 4096 or index == filled[-1]:
            scores = score(query, np.concatenate([passages[i] for i in group]))
            starts = np.cumsum([0, *lengths[group[:-1]]])
            result[group] = np.maximum.reduceat(scores, starts, axis=1).T
            group, size = [], 0
    return result


def _lengths(codes: Codes) -> Floats:
    return cast(Floats, np.sqrt(_squares()[codes].sum(axis=1)))


def _unit(rows: Floats) -> Floats:
    """Rows scaled to length 1, in place; a zero row stays zero."""
    length = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    rows /= np.maximum(length, np.float32(1e-12))[:, None]
    return rows
