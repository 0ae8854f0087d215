"""The secrets gate: whole blocks, both engines, and nothing at all when one of them does not work."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from funes.chunking import Chunk
from funes.commands.publishing.gate import Gate
from funes.errors import FunesError
from funes.memory.remote.merge import Holdings
from funes.memory.remote.source import Source
from funes.models.pinned import VECTORS_ID
from funes.secrets import EngineError, Redactor, kingfisher
from funes.ui.sharing_text import held_lines
from tests.support.sharing import TOKEN, Machine, reference, turn_rows
from tests.support.small_memory import header


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path, "one")


def judge(machine, tmp_path, there=None):
    source = Source(machine.memory, tmp_path / "work", VECTORS_ID)
    there = there or Holdings()
    missing = source.catalogue.lacking(source.catalogue.offer(words=True), there)
    verdict = Gate(source).verdict(missing)
    left = missing.without(verdict.places, source.catalogue, there)
    return verdict, [(source.catalogue.sessions[place], source.catalogue.ids[place]) for place in left.rows.tolist()]


def test_a_block_with_a_finding_is_held_back_and_the_rest_goes(machine, tmp_path):
    rows = machine.remember("a", ["clean", f"export GITHUB_TOKEN={TOKEN}", "clean again"], vectors=False)
    verdict, left = judge(machine, tmp_path)
    assert [(held.session, held.turn, held.type) for held in verdict.held] == [("a", rows[1].turn_uuid, "text")]
    assert verdict.held[0].rules == {"github-token": 1}
    assert left == [("a", rows[0].id), ("a", rows[2].id)]
    assert TOKEN not in repr(verdict)


def test_a_secret_across_a_split_is_found_and_all_pieces_are_held_back(machine, tmp_path):
    filler = "some words that fill the line. " * 37
    text = filler[: 1200 - 20] + " " + TOKEN + " " + filler * 2
    rows = turn_rows("a", 0, text)
    assert len(rows) > 2
    # Cut so that no piece has the whole token, as no funes would: the gate must not rely on how a block was cut.
    cut = text.index(TOKEN) + len(TOKEN) // 2
    rows[0].text, rows[1].offset, rows[1].text = text[:cut], cut, text[cut : rows[2].offset + 100]
    machine.store(rows, vectors=False)
    assert not any(TOKEN in (row.text or "") for row in rows)
    verdict, left = judge(machine, tmp_path)
    assert verdict.held[0].passages == len(rows)
    assert left == []


words = st.lists(
    st.sampled_from(["the", "build", "of", "this", "branch", "is", "green", "again", "after", "a", "rebase"]),
    max_size=60,
)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words, words, st.lists(st.floats(0, 1), max_size=4))
def test_a_secret_is_found_wherever_it_is_and_wherever_the_block_was_cut(tmp_path_factory, before, after, cuts):
    folder = tmp_path_factory.mktemp("gate")
    text = " ".join([*before, TOKEN, *after])
    edges = sorted({0, len(text), *(int(cut * len(text)) for cut in cuts)})
    (whole,) = turn_rows("a", 0, "x")
    rows = []
    for number, (start, end) in enumerate(pairwise(edges)):
        values = {name: getattr(whole, name) for name in whole.__slots__}
        place = {"id": f"{number:024x}", "text": text[start:end], "split_idx": number, "offset": start}
        rows.append(Chunk(**(values | place)))
    machine = Machine(folder, "one")
    machine.store([*rows, *turn_rows("b", 0, " ".join(before) or "clean")], vectors=False)
    verdict, left = judge(machine, folder)
    assert [(held.session, held.passages) for held in verdict.held] == [("a", len(rows))]
    assert [session for session, _ in left] == ["b"]


def test_what_of_a_block_is_there_already_is_scanned_with_the_rest(machine, tmp_path):
    text = "x " * 590 + TOKEN + " y" * 300
    rows = turn_rows("a", 0, text)
    cut = text.index(TOKEN) + 10
    rows[0].text, rows[1].offset, rows[1].text = text[:cut], cut, text[cut:]
    machine.store(rows[:2], vectors=False)
    source = Source(machine.memory, tmp_path / "work", VECTORS_ID)
    there = Holdings(rows=source.catalogue.rows[:1], texts=source.catalogue.passages[:1], sessions=frozenset("a"))
    assert judge(machine, tmp_path, there)[1] == []


def test_copies_of_a_held_back_block_stay_too(machine, tmp_path):
    (row,) = machine.remember("a", [f"the deploy key is {TOKEN}"], vectors=False)
    machine.store([reference(row, "b", 0), *turn_rows("b", 1, "clean")], vectors=False)
    verdict, left = judge(machine, tmp_path)
    assert {held.session for held in verdict.held} == {"a", "b"}
    assert [session for session, _ in left] == ["b"]


def test_titles_and_the_other_columns_are_scanned(machine, tmp_path):
    machine.remember("a", ["words"], vectors=False, title=f"Rotate {TOKEN}")
    machine.remember("b", ["words of b"], vectors=False, branch=f"fix/{TOKEN}")
    machine.remember("c", ["words of c"], vectors=False, title="Fine")
    verdict, left = judge(machine, tmp_path)
    assert {(held.session, held.type, *held.rules) for held in verdict.held} == {
        ("a", "session", "github-token"),
        ("b", "text", "branch: github-token"),
    }
    assert [session for session, _ in left] == ["a", "c"]


@pytest.mark.parametrize("column", ["turn_uuid", "parent_uuid", "origin", "workdir", "source_path", "tool_name"])
def test_no_column_carries_a_credential_past_the_gate(machine, tmp_path, column):
    machine.remember("a", ["words"], vectors=False, **{column: f"x-{TOKEN}"})
    verdict, left = judge(machine, tmp_path)
    (held,) = verdict.held
    assert [rule.partition(": ")[0] for rule in held.rules] == [column]
    assert TOKEN not in repr(held)
    assert left == []


def test_a_session_whose_id_is_a_credential_is_held_back_without_showing_it(machine, tmp_path):
    machine.remember(f"s-{TOKEN}", ["words"], vectors=False, title="Fine", turn_uuid="t1")
    verdict, left = judge(machine, tmp_path)
    assert [(held.type, [*held.rules]) for held in verdict.held] == [
        ("text", ["session_id: github-token"]),
        ("session", ["session_id: github-token"]),
    ]
    assert TOKEN not in repr(verdict.held)
    assert left == []


def test_the_remedy_is_one_that_works():
    def remedies(*rules):
        lines = held_lines([{"session": "a", "turn": "t", "type": "text", "rules": dict.fromkeys(rules, 1)}])
        return [line.partition(" ")[0] for line in lines[2:]]

    assert remedies("github-token") == remedies("branch: github-token") == ["`funes"]
    assert remedies("source_path: github-token") == ["ids"]
    assert remedies("github-token", "session_id: github-token") == ["`funes", "ids"]


def test_a_marker_of_an_earlier_redaction_is_clean(machine, tmp_path):
    text = Redactor(require_both=True).redact(f"export GITHUB_TOKEN={TOKEN}\npassword = 'Tulip-falcon67!'").text
    assert text is not None
    assert text.count("[REDACTED:") == 2
    machine.remember("a", [text], vectors=False)
    verdict, left = judge(machine, tmp_path)
    assert (verdict.held, len(left)) == ([], 1)


def test_a_secret_in_the_form_of_a_marker_is_none(machine, tmp_path):
    machine.remember("a", [f"[REDACTED:{TOKEN}]"], vectors=False)
    assert judge(machine, tmp_path)[1] == []


def test_nothing_passes_when_an_engine_is_missing(machine, tmp_path, monkeypatch):
    machine.remember("a", ["words"], vectors=False)

    def absent():
        raise kingfisher.EngineUnavailableError("it is not installed")

    monkeypatch.setattr(kingfisher, "engine", absent)
    with pytest.raises(FunesError, match="Both secret scanners are needed"):
        judge(machine, tmp_path)


def test_nothing_passes_when_an_engine_misses_a_canary(machine, tmp_path, monkeypatch):
    machine.remember("a", ["words"], vectors=False)
    monkeypatch.setattr(kingfisher.Kingfisher, "scan", lambda self, text: [])
    with pytest.raises(FunesError, match="do not work: Kingfisher misses an invented"):
        judge(machine, tmp_path)


@pytest.mark.parametrize("reason", ["kingfisher timed out", "kingfisher failed", "own rules failed"])
def test_nothing_passes_when_a_scan_fails(machine, tmp_path, monkeypatch, reason):
    machine.remember("a", ["fine", "the one that fails", "fine too"], vectors=False)
    scan = Redactor.scan

    def failing(self, text):
        if "fails" in text:
            raise EngineError(reason)
        return scan(self, text)

    monkeypatch.setattr(Redactor, "scan", failing)
    with pytest.raises(FunesError, match=f"Nothing is published, because a secret scanner failed .{reason}"):
        judge(machine, tmp_path)


def test_each_block_is_scanned_once(machine, tmp_path, monkeypatch):
    machine.remember("a", ["first", "second"], vectors=False)
    machine.store([header("a", "A")], vectors=False)
    source = Source(machine.memory, tmp_path / "work", VECTORS_ID)
    gate = Gate(source)
    seen = []
    scan = Redactor.scan
    monkeypatch.setattr(Redactor, "scan", lambda self, text: (seen.append(text), scan(self, text))[1])
    missing = source.catalogue.lacking(source.catalogue.offer(words=True), Holdings())
    counted: list[int] = []
    assert gate.verdict(missing, counted.append).blocks == 2
    assert gate.verdict(missing).blocks == 2
    assert sum(counted) == 2
    assert [text for text in seen if text in ("first", "second", "A")] == ["first", "second", "A"]


def test_the_gate_says_nothing_about_no_rows(machine, tmp_path):
    machine.remember("a", ["words"], vectors=False)
    source = Source(machine.memory, tmp_path / "work", VECTORS_ID)
    missing = source.catalogue.lacking(np.zeros(0, np.int64), Holdings())
    verdict = Gate(source).verdict(missing)
    assert (verdict.held, verdict.blocks) == ([], 0)
