from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handing_over import Conversation, Prices, Tokens, Work, bootstrap, covered, queries, tokens


def test_every_request_reads_what_came_before_from_the_cache() -> None:
    conversation = Conversation()
    conversation.request(100, 10)
    conversation.request(20, 5)
    conversation.request(0, 1)
    assert conversation.paid == Tokens(cache_write=120, cache_read=110 + 135, output=16)
    assert conversation.context == 136


def test_a_price_is_the_sum_over_the_kinds_of_tokens() -> None:
    assert Tokens(cache_write=4, cache_read=10, output=2).cost(Prices()) == 4 * 1.25 + 10 * 0.1 + 2 * 5


def test_text_in_front_of_the_work_is_written_once_and_read_in_each_later_request() -> None:
    work = Work(base=1000, requests=20, added=100, output=10)
    assert work.run(50) - work.run() == Tokens(cache_write=50, cache_read=50 * 19)


def test_a_call_is_a_request_more_whose_result_is_read_by_all_later_ones() -> None:
    work = Work(base=1000, requests=3, added=100, output=10)
    more = work.run(0, [(7, 500)]) - work.run()
    # The call's request writes the prompt in the place of the first one, which then reads it with the call.
    assert more == Tokens(cache_write=500, cache_read=1007 + 2 * 507, output=7)


@given(st.floats(0, 1e6), st.lists(st.tuples(st.floats(0, 1e4), st.floats(0, 1e5)), max_size=5))
def test_more_to_read_never_costs_less(before: float, calls: list[tuple[float, float]]) -> None:
    prices = Prices()
    assert Work().run(before, calls).cost(prices) >= Work().run().cost(prices) - 1e-6


def test_four_characters_are_a_token() -> None:
    assert tokens("x" * 10) == 2.5


@pytest.mark.parametrize(
    ("patterns", "text", "expected"),
    [
        (["alpha"], "the ALPHA", True),
        (["alpha", "beta"], "alpha and\nbeta", True),
        (["beta", "alpha"], "alpha and\nbeta", True),
        (["alpha", "beta"], "alpha", False),
        (["alpha", "beta"], "alpha" + " " * 50 + "beta", False),
        (["alpha", "beta"], "alpha" + " " * 50 + "beta" + " " * 10 + "alpha", True),
        (["alpha", "beta"], "beta" + " " * 50 + "alpha", False),
        ([r"\b4 ?h\b", "stale"], "stale after 4 h", True),
        (["alpha", "beta", "gamma"], "gamma alpha beta", True),
        (["alpha"], "", False),
    ],
)
def test_a_fact_is_covered_when_its_patterns_match_near_one_another(
    patterns: list[str], text: str, expected: bool
) -> None:
    assert covered(patterns, text, window=20) is expected


@given(st.text(max_size=60), st.text(max_size=60))
def test_text_around_a_statement_does_not_hide_it(before: str, after: str) -> None:
    assert covered(["PendingId", "reused"], f"{before} the PendingId is reused {after}")


def test_questions_come_from_the_task_alone() -> None:
    task = ["You take over the bug report about ids.", "Write the post-mortem.", "Why did no test catch it?"]
    assert queries(task) == [
        "Bug report about ids",
        "Bug report about ids: Write the post-mortem.",
        "Bug report about ids: Why did no test catch it?",
    ]
    assert queries(["You take over the work on locks."]) == ["Locks"]


def _mean(groups: list[list[float]]) -> float:
    return sum(group[0] for group in groups) / len(groups)


def test_an_interval_of_equal_groups_is_a_point() -> None:
    assert bootstrap([[3.0]] * 8, _mean, rounds=50) == (3.0, 3.0)


def test_an_interval_contains_the_value_and_repeats_itself() -> None:
    chance = random.Random(5)
    groups = [[chance.gauss(10, 2)] for _ in range(40)]
    low, high = bootstrap(groups, _mean, rounds=2000)
    assert low < _mean(groups) < high
    # Twice 1.96 standard errors, give or take.
    assert high - low == pytest.approx(2 * 1.96 * 2 / math.sqrt(40), rel=0.35)
    assert bootstrap(groups, _mean, rounds=2000) == (low, high)


def test_draws_without_a_value_are_left_out() -> None:
    def ratio(groups: list[list[float]]) -> float:
        total = sum(group[1] for group in groups)
        return sum(group[0] for group in groups) / total if total else float("nan")

    low, high = bootstrap([[1.0, 0.0], [1.0, 1.0]], ratio, rounds=200)
    assert 1 <= low <= high
    assert all(math.isnan(value) for value in bootstrap([[1.0, 0.0]], ratio, rounds=20))
