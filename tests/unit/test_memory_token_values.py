"""Token values: binary columns taken over from Arrow."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funes.memory.token_values import TokenValues

TOKENS = st.lists(st.integers(0, 65_535), max_size=5)
ROWS = st.lists(st.none() | TOKENS, max_size=12)


def column(rows: list[list[int] | None], cuts: list[int]) -> pa.ChunkedArray:
    """Rows of little-endian uint16 in several chunks, each a slice of a longer array."""
    content = [None if row is None else np.array(row, "<u2").tobytes() for row in rows]
    whole = pa.array([b"xx", *content, b"yyyy"], pa.binary())
    edges = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    chunks = [whole.slice(1 + first, end - first) for first, end in pairwise(edges)]
    return pa.chunked_array(chunks, pa.binary())


@given(ROWS, st.lists(st.integers(0, 12), max_size=3))
def test_rows_come_one_after_the_other_and_null_is_left_out(rows: list[list[int] | None], cuts: list[int]) -> None:
    places = np.arange(len(rows))[::-1].copy()
    found = TokenValues.of(column(rows, cuts), places, np.zeros(0, "<u2"))
    known = [(place, row) for place, row in zip(places.tolist(), rows, strict=True) if row is not None]
    assert found.places.tolist() == [place for place, _ in known]
    assert found.lengths.tolist() == [len(row) for _, row in known]
    assert found.values.tolist() == [value for _, row in known for value in row]


@pytest.mark.parametrize("cuts", [[], [1]])
def test_values_may_be_rows_themselves(cuts: list[int]) -> None:
    found = TokenValues.of(column([[1, 2], [], [3, 4, 5, 6]], cuts), np.arange(3), np.zeros((0, 2), "<u2"))
    assert found.values.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert found.lengths.tolist() == [1, 0, 2]


def test_joined() -> None:
    one = TokenValues(np.array([1, 2]), np.array([2]), np.array([7]))
    both = one.joined(TokenValues(np.array([3]), np.array([0, 1]), np.array([0, 3])))
    assert both.values.tolist() == [1, 2, 3]
    assert both.lengths.tolist() == [2, 0, 1]
    assert both.places.tolist() == [7, 0, 3]
