"""The parts of bench/retrieval.py that could be wrong without anyone noticing: grading, intervals, stages, the pile."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from funes.__main__ import main
from funes.memory.filters import Filter
from funes.memory.reader import MemoryReader
from funes.search import context, evidence, ranking
from funes.search.context import Surroundings
from funes.search.model import Hit
from generate import generate
from intervals import interval
from layouts import FOUR
from question_sets import Asked, QuestionSet
from retrieval import METRICS, Grades, grade
from retrieval import rows as table_rows
from stages import STAGES, Recall, _set
from tests.support.chunks import make_chunk
from tests.support.small_memory import make_memory


def asked(evidence_keys, sessions=("s1",)):
    def covers(hit):
        return frozenset({hit.chunk.turn_uuid}) & set(evidence_keys)

    return Asked("why", "plain", Path(), frozenset(evidence_keys), covers, frozenset(sessions), "g")


def hits(*turns, session="s1"):
    return [
        Hit(make_chunk(f"text {number}", turn_uuid=turn, session_id=session), 1.0) for number, turn in enumerate(turns)
    ]


def test_shares_of_the_evidence_and_the_first_of_it():
    grades = grade(asked({"a", "b", "c"}), hits("x", "a", "y", "z", "b", "q"), by_turn=False)
    assert grades == {
        "@1": 0.0,
        "@5": pytest.approx(2 / 3),
        "@10": pytest.approx(2 / 3),
        "MRR": 0.5,
        "session @1": 1.0,
        "any @10": 1.0,
        "all @10": 0.0,
    }


def test_hits_of_one_turn_count_once_where_a_turn_is_the_unit():
    found = hits("x", "x", "x", "x", "x", "a")
    assert grade(asked({"a"}), found, by_turn=True)["@5"] == 1.0
    assert grade(asked({"a"}), found, by_turn=False)["@5"] == 0.0
    assert grade(asked({"a"}), found, by_turn=True)["MRR"] == 0.5


def test_nothing_found_is_nothing_gained():
    assert set(grade(asked({"a"}), [], by_turn=False).values()) == {0.0}
    assert grade(asked({"a"}, ["s2"]), hits("a"), by_turn=False)["session @1"] == 0.0


def test_intervals_are_those_of_the_mean():
    random = np.random.default_rng(0)
    values = (random.random(400) < 0.3).astype(float)
    low, high = interval(values.tolist())
    error = values.std() / 20
    assert low == pytest.approx(values.mean() - 1.96 * error, abs=0.006)
    assert high == pytest.approx(values.mean() + 1.96 * error, abs=0.006)
    assert interval([0.5] * 30) == (0.5, 0.5)


def test_questions_of_a_group_are_drawn_together():
    values, groups = [0.0] * 50 + [1.0] * 50, ["a"] * 50 + ["b"] * 50
    low, high = interval(values, groups)
    assert (low, high) == (0.0, 1.0)
    assert interval(values)[0] > 0.35


def test_a_stage_turns_off_what_exists_and_puts_it_back():
    before = ranking.completed, ranking.WIDENED, evidence.WEIGHT
    for stage in STAGES:
        with _set(stage.without):
            for module, name, value in stage.without:
                assert getattr(module, name) == value
    after = ranking.completed, ranking.WIDENED, evidence.WEIGHT
    assert after == before
    with pytest.raises(AttributeError), _set([(evidence, "NO_SUCH_WEIGHT", 0)]):
        pass


def test_without_context_a_passage_has_its_own_score_whatever_stands_around_it():
    own, around = np.array([[0.5, -0.2]], np.float32), [Surroundings(prompt="p", around=("", "n"))]
    late = next(stage for stage in STAGES if stage.name == "late interaction")
    with _set(late.without):
        for matches in ({}, {"p": np.array([0.9, 0.9], np.float32)}):
            assert ranking.completed(own, around, matches) is own
    # Where the context counts, it does.
    assert context.completed(own, around, {"p": np.array([0.9, 0.9], np.float32)}).min() > 0.5


def test_a_stage_is_compared_with_the_one_before_and_the_fused_lists_with_the_better_of_them():
    graded = [Grades(stage) for stage in STAGES[:4]]
    for grades, value in zip(graded, (0.5, 0.25, 0.75, 1.0), strict=True):
        grades.values.update({metric: [value] * 4 for metric in METRICS})
    questions = QuestionSet("set", [asked({"a"})] * 4, 10, False, "")
    gains = [row[-1] for row in table_rows(questions, graded)]
    assert gains == ["–", "–", "+25.0 (+25.0 to +25.0)", "+25.0 (+25.0 to +25.0)"]


def test_the_first_stage_is_the_pipeline_without_a_model(tmp_path):
    reader = MemoryReader.open(str(make_memory(tmp_path)))
    found = Recall(STAGES[0], reader, encoder=None)("streaming parser", 3)
    assert "streaming parser" in (found[0].chunk.text or "")
    assert len(found) <= 3


def digests(folder):
    files = sorted(path for path in folder.rglob("*") if path.suffix == ".jsonl")
    return [(path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in files]


def test_the_pile_is_the_same_for_a_seed_and_every_harness_reads_it(tmp_path, monkeypatch, capsys):
    pile = generate(tmp_path / "a", 24, 5, FOUR)
    assert digests(tmp_path / "a") == digests(generate(tmp_path / "b", 24, 5, FOUR).folder)
    assert digests(tmp_path / "a") != digests(generate(tmp_path / "c", 24, 6, FOUR).folder)
    monkeypatch.setenv("FUNES_HOME", str(tmp_path / "home"))
    assert main(["index", str(pile.folder), "--yes", "--budget", "0"]) == 0
    capsys.readouterr()
    reader = MemoryReader.open(str(tmp_path / "home" / "memory"))
    assert dict(reader.statistics().sessions_by_harness) == {"claude_code": 6, "codex": 6, "pi": 6, "hermes": 6}
    for question in pile.questions:
        rows = reader.rows(identifier for identifier, _ in reader.words(question.answer, Filter(), 200))
        assert {row.session_id for row in rows.values() if question.answer in row.text} == {question.session_id}
