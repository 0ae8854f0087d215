from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funes.models import codes
from funes.models.codes import BYTES, DIMENSIONS


def unit_rows(count, seed=0):
    rows = np.random.default_rng(seed).standard_normal((count, DIMENSIONS)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@given(st.integers(0, 200), st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_a_code_stands_for_a_unit_vector_near_the_original(count, seed):
    rows = unit_rows(count, seed)
    coded = codes.encode(rows)
    assert coded.shape == (count, BYTES)
    assert coded.dtype == np.uint8
    decoded = codes.decode(coded)
    np.testing.assert_allclose(np.linalg.norm(decoded, axis=1), 1, atol=1e-5)
    # Lloyd-Max levels keep 88 % of a Gaussian's variance, which is a cosine of 0.94.
    assert count == 0 or (decoded * rows).sum(axis=1).min() > 0.88


def test_coding_what_a_code_stands_for_gives_the_code():
    coded = np.random.default_rng(1).integers(0, 256, (50, BYTES)).astype(np.uint8)
    vectors = codes.decode(coded) * np.linalg.norm(codes._looked_up(coded), axis=1, keepdims=True)
    np.testing.assert_array_equal(codes.encode(vectors / np.float32(DIMENSIONS**0.5)), coded)


def test_the_first_dimension_is_in_the_lowest_bits():
    row = np.full((1, DIMENSIONS), -1, np.float32)
    row[0, :4] = [-1, -0.01, 0.01, 1]
    assert codes.encode(row)[0].tolist() == [0b11_10_01_00] + [0] * (BYTES - 1)


@given(st.lists(st.integers(0, 90), max_size=12), st.integers(1, 9), st.sampled_from([1, 64, 2048]))
@settings(max_examples=40, deadline=None)
def test_best_matches_are_the_largest_cosines(lengths, questions, group):
    query = unit_rows(questions, 1)
    passages = [codes.encode(unit_rows(length, index)) for index, length in enumerate(lengths)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codes, "_GROUP", group)
        best = codes.best_matches(
            query, np.concatenate([codes.encode(unit_rows(0)), *passages]), np.array(lengths, int)
        )
    assert best.shape == (len(lengths), questions)
    for row, passage in zip(best, passages, strict=True):
        cosines = query @ codes.decode(passage).T
        np.testing.assert_allclose(codes.score_matrix(query, passage), cosines, atol=1e-5)
        expected = cosines.max(axis=1) if len(passage) else np.zeros(questions)
        np.testing.assert_allclose(row, expected, atol=1e-5)


def test_no_query_tokens():
    assert codes.best_matches(unit_rows(0), codes.encode(unit_rows(3)), np.array([3])).shape == (1, 0)


def test_scores_stay_near_the_uncompressed_cosines():
    query, passage = unit_rows(20, 2), unit_rows(400, 3)
    error = codes.score_matrix(query, codes.encode(passage)) - query @ passage.T
    assert np.abs(error).mean() < 0.03


@pytest.mark.parametrize("space", ["tokens", "pieces"])
def test_the_shipped_projections(space):
    projection = codes._projection(space)
    assert projection.shape == (384, DIMENSIONS)
    # float16 rounds the orthonormal columns by up to 2^-11 of each entry.
    np.testing.assert_allclose(projection.T @ projection, np.eye(DIMENSIONS), atol=2e-3)
    assert sum(path.stat().st_size for path in codes._ASSETS.glob("*.npy")) < 300_000


def test_projecting_nothing_and_a_zero_vector():
    assert codes.quantize(np.zeros((0, 384), np.float32)).shape == (0, BYTES)
    np.testing.assert_array_equal(codes.project(np.zeros((1, 384), np.float32)), np.zeros((1, DIMENSIONS)))
