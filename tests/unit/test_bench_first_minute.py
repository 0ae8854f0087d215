from __future__ import annotations

from pathlib import Path

from first_minute import Minute, answers, table
from generate import Pile, Question
from latency import stages_text
from measure import Cost

QUESTION = Question("why", "why plainly", "in the cart the loop was wrong", "session-1", 0.5)


def _answer(session: str, text: str) -> str:
    head = f"[2026-01-02T03:04:05Z] codex /home/dev/shop/{session} text  score=0.500"
    return f"{head}\n  → get {session} turn --memory local\n{text}\n---\n"


def test_an_answer_is_the_cause_in_the_right_session() -> None:
    text = "It failed because in the cart the loop was wrong."
    assert answers(_answer("session-2", text) + _answer("session-1", text), QUESTION)
    assert not answers(_answer("session-2", text), QUESTION)
    assert not answers(_answer("session-1", "It failed."), QUESTION)
    assert not answers("no results\n", QUESTION)


def test_what_was_not_measured_is_named_as_such() -> None:
    pile = Pile(Path(), 1000, 5_000_000, [QUESTION])
    words = Cost(12.3, 10, 200_000_000, "")
    latency = {"median": 0.1, "p95": 0.2, "least": 0.1, "most": 0.2, "n": 1}
    none = Minute(pile, 16_000, [], words, 1, 0.0, latency)
    some = Minute(pile, 16_000, [1.5, 4.0, 9.0], words, 1, 1.0, latency, Cost(60, 100, 1, ""), 16_000, 0.5)
    first, second = table([none, some]).rows
    assert (first[3], first[4], first[11], first[12]) == ("not found", "not found", "not run", "")
    assert (second[3], second[4], second[11], second[12]) == ("1.5 s", "9.0 s", "60 s, CPU 100 s", "50 %")


def test_stages_of_several_sizes_stand_side_by_side() -> None:
    small = {"chunks": 1000, "stages": {"words": {"wall": 0.001, "cpu": 0.002}}}
    large = {"chunks": 10_000, "stages": {"words": {"wall": 0.01, "cpu": 0.02}, "codes": {"wall": 0.1, "cpu": 0.2}}}
    lines = stages_text([small, large, {"chunks": 5, "stages": {}}]).splitlines()
    assert [cell.strip() for cell in lines[0].split("|")[1:-1]] == ["stage, ms wall / CPU", "1,000", "10,000"]
    assert [cell.strip() for cell in lines[2].split("|")[1:-1]] == ["words", "1.0 / 2.0", "10.0 / 20.0"]
    assert [cell.strip() for cell in lines[3].split("|")[1:-1]] == ["codes", "", "100.0 / 200.0"]
