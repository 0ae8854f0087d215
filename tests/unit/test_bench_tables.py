from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hits import hits
from measure import machine, percentile, spread
from peers.base import Found
from peers.bm25 import match
from side_by_side import grade
from tables import Table, markdown, publish, sizes

ANSWER = """\
[2026-01-02T03:04:05Z] claude_code /home/dev/shop/0123abcd text  score=0.616
  → get 0123abcd-1 turn-1 --memory local
first line
second line
  ~ [user text seq9] a neighbour
---
[2026-01-02T03:04:05Z] codex /home/dev/shop/9876abcd tool_result  score=-0.100 weak
  → get 9876abcd-2 turn-2 --memory local
[2026-01-01] a line that looks like a head score=1.000
---
"""


def test_hits_of_an_answer_are_taken_apart() -> None:
    first, second = hits(ANSWER)
    assert (first.session, first.turn, first.score) == ("0123abcd-1", "turn-1", 0.616)
    assert first.text == "first line\nsecond line"
    assert (second.session, second.score) == ("9876abcd-2", -0.1)
    assert second.text == "[2026-01-01] a line that looks like a head score=1.000"


def test_an_answer_without_hits_has_none() -> None:
    assert hits("no results\n") == []


@given(st.text())
def test_any_text_can_be_taken_apart(text: str) -> None:
    for hit in hits(text):
        assert hit.session


def test_results_are_graded_by_session_and_by_what_is_shown() -> None:
    found = [Found("b", "alpha"), Found("b", "beta"), Found("a", "Alpha and\nbeta")]
    assert grade(found, "a", ["alpha", "beta"]) == {
        "session @1": 0.0,
        "session @5": 1.0,
        "MRR": 0.5,
        "answer shown @5": 1.0,
        "nothing found": 0.0,
    }
    # Two results do not make one answer.
    assert grade(found[:2], "b", ["alpha", "beta"])["answer shown @5"] == 0
    assert grade([], "a", ["x"]) == dict.fromkeys(("session @1", "session @5", "MRR", "answer shown @5"), 0.0) | {
        "nothing found": 1.0
    }


def test_a_question_becomes_any_of_its_words() -> None:
    assert match('Why "did" it fail, why?') == '"why" OR "did" OR "it" OR "fail"'
    assert match("?") == '""'


def test_percentiles_are_interpolated() -> None:
    assert percentile([4, 1, 3, 2], 0.5) == 2.5
    assert percentile([5], 0.95) == 5
    assert spread([1.0, 3.0])["p95"] == pytest.approx(2.9)


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert markdown(["a", "b"], [["x", "yyyy"]]) == "| a   | b    |\n| --- | ---- |\n| x   | yyyy |"
    assert markdown(["a"], []) == "| a   |\n| --- |"


def test_sizes_are_numbers_with_commas_between_them() -> None:
    assert sizes("1000, 20,") == [1000, 20]


def test_numbers_are_written_with_what_they_were_measured_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = Table("latency", "Latency", ["a"], [["1 ms"]], ["10 questions."], {"walls": [0.001]})
    target = publish(table, machine(), argparse.Namespace(quick=True, out=tmp_path / "new"))
    content = json.loads(target.read_text(encoding="utf-8"))
    assert target.name.startswith("latency-")
    assert content["rows"] == [["1 ms"]]
    assert content["data"] == {"walls": [0.001]}
    assert content["machine"]["python"]
    printed = capsys.readouterr().out
    assert "| 1 ms |" in printed
    assert "- 10 questions." in printed
    assert "load average" in printed
    assert "not figures to quote" in printed
