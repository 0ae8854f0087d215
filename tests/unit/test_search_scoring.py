"""The arithmetic of recall: fusion, rarity, session evidence, recency, selection."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funes.memory.register import Passage
from funes.memory.token_values import TokenValues
from funes.models.encoder import QueryEncoding
from funes.search.candidates import content_words
from funes.search.evidence import PASSAGES, WEIGHT, session_bonus
from funes.search.fusion import reciprocal_rank_fusion
from funes.search.late import DEFAULT_LINE, _line, _static
from funes.search.rarity import FIRST_WORD, piece_weights, shared_by_words
from funes.search.recency import DEFAULT_SHARE, EXPLICIT_SHARE, recency_bonus
from funes.search.selection import Scored, select

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def passage(identifier: str, session: str = "s1", kind: str = "text") -> Passage:
    return Passage(identifier, session, kind, NOW)


def test_fusion_adds_reciprocal_ranks() -> None:
    fused = dict(reciprocal_rank_fusion([["a", "b"], ["b", "c"]]))
    assert fused == pytest.approx({"a": 1 / 61, "b": 1 / 62 + 1 / 61, "c": 1 / 62})


@given(st.lists(st.lists(st.text("abcdef", min_size=1, max_size=2), max_size=8), max_size=4))
def test_fusion_keeps_every_id_once_and_sorted(lists: list[list[str]]) -> None:
    fused = reciprocal_rank_fusion(lists)
    assert {identifier for identifier, _ in fused} == {identifier for one in lists for identifier in one}
    assert len(fused) == len(dict(fused))
    scores = [score for _, score in fused]
    assert scores == sorted(scores, reverse=True)


def test_a_rare_piece_weighs_more_than_a_common_one() -> None:
    frequencies = np.zeros(30_522, np.int64)
    common, rare = FIRST_WORD + 5000, FIRST_WORD + 5001
    frequencies[common] = 900
    weights = piece_weights(np.array([common, rare], np.uint16), frequencies, 1000)
    assert weights[1] > 3 * weights[0] > 0


def test_an_empty_memory_still_knows_that_the_is_common() -> None:
    weights = piece_weights(np.array([FIRST_WORD, FIRST_WORD + 9000], np.uint16), np.zeros(30_522, np.int64), 0)
    assert weights[1] > 4 * weights[0] > 0


def test_the_pieces_of_a_word_share_its_weight() -> None:
    weights = shared_by_words(np.full(6, 3, np.float32), [False, False, True, True, True, False])
    assert weights == pytest.approx([3, 1.5, 1.5, 1.5, 1.5, 3])  # four pieces count twice what a single one does


def test_a_question_may_begin_within_a_word() -> None:
    assert shared_by_words(np.ones(1, np.float32), [True]) == pytest.approx([1])
    assert shared_by_words(np.ones(3, np.float32), [True, False, True]) == pytest.approx([1, 0.5**0.5, 0.5**0.5])


def test_session_bonus_is_half_the_mean_of_the_best_three_above_average() -> None:
    scores = np.array([0.9, 0.8, 0.7, 0.6, 0.1, 0.1], np.float32)
    bonus = session_bonus(scores, ["a", "a", "a", "a", "b", "c"])
    mean = float(scores.mean())
    expected = WEIGHT * (0.9 + 0.8 + 0.7 - 3 * mean) / PASSAGES
    assert bonus[:4] == pytest.approx([expected] * 4, rel=1e-5)
    assert bonus[4:] == pytest.approx([0, 0])


def test_a_lone_passage_gains_a_third_of_what_a_full_session_gains() -> None:
    scores = np.array([0.8, 0.8, 0.8, 0.8, 0.0, 0.0, 0.0, 0.0], np.float32)
    bonus = session_bonus(scores, ["lone", "full", "full", "full", "d", "e", "f", "g"])
    assert bonus[0] == pytest.approx(bonus[1] / 3, rel=1e-5)


def test_session_bonus_of_nothing() -> None:
    assert len(session_bonus(np.zeros(0, np.float32), [])) == 0


def test_recency_halves_with_each_half_life() -> None:
    times = [NOW, NOW - timedelta(days=10), NOW - timedelta(days=20), None]
    bonus = recency_bonus(times, 10, NOW)
    assert bonus == pytest.approx([EXPLICIT_SHARE, EXPLICIT_SHARE / 2, EXPLICIT_SHARE / 4, 0])


def test_recency_is_gentle_by_default_and_off_at_zero() -> None:
    assert recency_bonus([NOW], None, NOW) == pytest.approx([DEFAULT_SHARE])
    assert recency_bonus([NOW], 0, NOW) == pytest.approx([0])


def test_a_time_in_the_future_counts_as_now() -> None:
    assert recency_bonus([NOW + timedelta(days=3)], None, NOW) == pytest.approx([DEFAULT_SHARE])


def test_one_passage_is_shown_once() -> None:
    texts = {"a": "Same  text", "b": "same text"}
    chosen = select([Scored(passage("a"), 2), Scored(passage("b"), 1)], 5, True, texts.__getitem__)
    assert [one.passage.id for one in chosen] == ["a"]


def test_texts_are_read_as_far_as_they_may_be_shown() -> None:
    read: list[str] = []

    def text(identifier: str) -> str:
        read.append(identifier)
        return identifier

    select([Scored(passage(f"m{i:02}", session=f"s{i}"), 100 - i) for i in range(50)], 3, True, text)
    assert read == ["m00", "m01", "m02"]
    read.clear()
    select([Scored(passage(f"m{i:02}"), 100 - i) for i in range(50)], 4, True, text)
    assert read == [f"m{i:02}" for i in range(7)]  # three of the session, and four that may take what is left


def test_a_marathon_session_gets_three_quarters_of_the_places() -> None:
    long = [Scored(passage(f"m{i}", session="marathon"), 10 - i) for i in range(8)]
    short = [Scored(passage(f"o{i}", session=f"other{i}"), 1 - i / 10) for i in range(4)]
    chosen = select([*long, *short], 8, True, str)
    assert sum(one.passage.session_id == "marathon" for one in chosen) == 6
    assert len(chosen) == 8


def test_a_part_of_a_turn_stands_for_it() -> None:
    long = [Scored(passage(f"m{i}"), 10 - i, turn=7) for i in range(3)]
    others = [Scored(passage("same-session"), 2, turn=8), Scored(passage("other", session="s2"), 1, turn=7)]
    chosen = select([*long, *others], 3, True, str)
    assert [one.passage.id for one in chosen] == ["m0", "same-session", "other"]


def test_more_of_a_turn_is_shown_when_nothing_else_is_left() -> None:
    long = [Scored(passage(f"m{i}"), 10 - i, turn=7) for i in range(3)]
    chosen = select([*long, Scored(passage("other", session="s2"), 1, turn=7)], 3, True, str)
    assert [one.passage.id for one in chosen] == ["m0", "m1", "other"]


def test_a_bound_is_exceeded_when_nothing_else_is_left() -> None:
    only = [Scored(passage(f"m{i}", session="marathon"), 10 - i) for i in range(8)]
    assert [one.passage.id for one in select(only, 6, True, str)] == [f"m{i}" for i in range(6)]


def test_tools_get_a_quarter_of_the_places_unless_they_are_asked_for() -> None:
    tools = [Scored(passage(f"t{i}", session=f"s{i}", kind="tool_result"), 9 - i) for i in range(8)]
    prose = [Scored(passage(f"p{i}", session=f"q{i}"), 1 - i / 10) for i in range(8)]
    bounded = select([*tools, *prose], 8, True, str)
    assert sum(one.passage.block_type == "tool_result" for one in bounded) == 2
    assert all(one.passage.block_type == "tool_result" for one in select([*tools, *prose], 8, False, str))


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 3), st.booleans()), max_size=30), st.integers(1, 12))
def test_selection_is_sorted_and_never_short(pool: list[tuple[float, int, bool]], k: int) -> None:
    scored = [
        Scored(passage(f"c{i}", session=f"s{session}", kind="tool_use" if tool else "text"), score)
        for i, (score, session, tool) in enumerate(pool)
    ]
    chosen = select(scored, k, True, str)
    assert len(chosen) == min(k, len(pool))
    assert [one.score for one in chosen] == sorted((one.score for one in chosen), reverse=True)


class _Vectors:
    """Word pieces whose vectors are known."""

    def __init__(self) -> None:
        self.table = np.random.default_rng(3).normal(size=(50, 6)).astype(np.float32)

    def static_matrix(self, pieces: np.ndarray) -> np.ndarray:
        return self.table[pieces]


@given(st.lists(st.lists(st.integers(0, 49), max_size=9), min_size=1, max_size=7))
def test_word_pieces_are_compared_as_if_one_by_one(passages: list[list[int]]) -> None:
    vectors = _Vectors()
    asked = vectors.table[:3] + np.float32(0.1)
    query = QueryEncoding(asked[0], asked, asked, np.arange(3, dtype=np.uint16))
    values = np.array([piece for passage in passages for piece in passage], np.uint16)
    stored = TokenValues(values, np.array([len(one) for one in passages]), np.arange(len(passages)))
    expected = [(asked @ vectors.table[one].T).max(axis=1) if one else np.zeros(3) for one in passages]
    found = _static(vectors, query, stored)  # type: ignore[arg-type]
    np.testing.assert_allclose(found, np.array(expected, np.float32), rtol=1e-5, atol=1e-6)


def test_the_line_from_static_to_coded_scores() -> None:
    static = np.linspace(0.2, 0.6, 40, dtype=np.float32)
    assert _line(static, 0.5 * static + 0.1) == pytest.approx((0.5, 0.1), abs=1e-4)
    assert _line(static[:5], static[:5]) == DEFAULT_LINE
    assert _line(np.full(40, 0.3, np.float32), static) == DEFAULT_LINE


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("Why did we move off the streaming parser?", "move off streaming parser?"),
        ("to be, or not to be?", "to be, or not to be?"),
        ("what does `is_in` do", "`is_in`"),
        ("(the) retry", "retry"),
        ("if this.done and not self.is_open", "this.done self.is_open"),
        ("", ""),
    ],
)
def test_function_words_are_not_looked_for(question: str, words: str) -> None:
    assert content_words(question) == words
