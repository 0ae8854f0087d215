"""The cross-encoder's stage: what it reads, in what time, and what becomes of the scores."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funes.models import threads
from funes.search.model import RecallOptions
from funes.search.reranking import rerank
from tests.support.cross_encoders import KnownAnswers


@pytest.fixture(autouse=True)
def two_at_once(monkeypatch):
    monkeypatch.setattr(threads, "workers", lambda: 2)


def order(
    reader: Any, texts: Sequence[str], scores: Sequence[float], wished: Sequence[float] = (), **options: Any
) -> tuple[list[str], np.ndarray]:
    """The passages' texts, best first, and their new scores aligned with `texts`."""
    ids = [str(number) for number in range(len(texts))]
    extra = np.array(wished or [0.0] * len(texts), np.float32)
    text = dict(zip(ids, texts, strict=True)).__getitem__
    new = rerank(reader, "why", ids, text, np.array(scores, np.float32), extra, RecallOptions(**options), reader.clock)
    return [texts[index] for index in np.argsort(-new, kind="stable")], new


def test_what_was_read_is_in_the_readers_order_above_the_rest():
    reader = KnownAnswers({"a": 1.0, "b": -3.0, "c": 5.0, "d": 9.0})
    best, new = order(reader, ["a", "b", "c", "d"], [0.9, 0.8, 0.7, 0.6], rerank_top=3)
    assert best == ["c", "a", "b", "d"]
    assert reader.read == ["a", "b", "c"]
    assert new == pytest.approx([0.8, 0.7, 0.9, 0.6])


def test_passages_are_read_best_first_wherever_they_stand():
    reader = KnownAnswers(dict.fromkeys("abcde", 0.0))
    order(reader, ["a", "b", "c", "d", "e"], [0.1, 0.5, 0.3, 0.2, 0.4])
    assert reader.read == ["b", "e", "c", "d", "a"]


def test_what_was_wished_counts_within_the_new_order():
    """`c` answers best and is of the wrong time; `b`, of the right one, overtakes it, and `d` stays below both."""
    reader = KnownAnswers({"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0})
    best, new = order(reader, ["a", "b", "c", "d"], [0.9, 0.85, 0.8, 0.7], [0.0, 0.3, 0.0, 0.1], rerank_top=3)
    assert best == ["b", "c", "a", "d"]
    assert new == pytest.approx([0.8, 0.9, 0.85, 0.7])


@pytest.mark.parametrize(("seconds", "read"), [(0.0, 2), (1.9, 2), (2.1, 4), (3.1, 6), (60.0, 7)])
def test_reading_ends_before_the_step_that_would_be_late(seconds, read):
    reader = KnownAnswers({letter: number for number, letter in enumerate("abcdefg")}, cost=1.0)
    best, _ = order(reader, list("abcdefg"), np.linspace(1, 0.4, 7), rerank_seconds=seconds)
    assert len(reader.read) == read
    assert best == list("abcdefg"[:read][::-1] + "abcdefg"[read:])


def test_a_passage_that_stands_twice_is_read_once_and_takes_no_place():
    reader = KnownAnswers({"A b": 1.0, "c": 2.0, "d": 3.0})
    best, _ = order(reader, ["A b", "a  B", "c", "d"], [0.9, 0.8, 0.7, 0.6], rerank_top=2)
    assert reader.read == ["A b", "c"]
    assert best == ["c", "A b", "a  B", "d"]


def test_nothing_to_read():
    reader = KnownAnswers({"a": 1.0})
    assert order(reader, [], [])[0] == []
    assert order(reader, ["a"], [0.5], rerank_top=0)[0] == ["a"]
    assert reader.read == []


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.sampled_from([-1.0, 0.0, 2.0])), max_size=12),
    st.integers(1, 14),
)
@settings(deadline=None)
def test_no_order_is_left_to_chance(values, top):
    """Equal scores included: the read ones are strictly ordered, above all others, whose scores are as they were."""
    texts = [str(number) for number in range(len(values))]
    scores = [score for score, _ in values]
    reader = KnownAnswers({text: answer for text, (_, answer) in zip(texts, values, strict=True)})
    _, new = order(reader, texts, scores, rerank_top=top)
    read = sorted(reader.read, key=lambda text: -reader.answers[text])
    numbers = [new[int(text)] for text in read]
    assert all(above > below for above, below in pairwise(numbers))
    others = [index for index, text in enumerate(texts) if text not in read]
    assert all(new[index] == np.float32(scores[index]) for index in others)
    assert not others or not read or min(numbers) > max(new[index] for index in others)
    assert np.allclose(sorted(new), sorted(scores), atol=1e-5)
