"""The state of indexing: what it keeps, whose it is, and that it never stands in the way."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path

import pytest

from funes.commands.indexing.state import UNKNOWN, IndexState, TraceOutcome, TraceState, read_traces
from funes.errors import FunesError


def outcome(**fields: object) -> TraceOutcome:
    return TraceOutcome(**fields)  # type: ignore[arg-type]


@pytest.fixture
def state(tmp_path: Path) -> IndexState:
    state = IndexState(tmp_path / "home" / "state.sqlite")
    state.adopt("memory-1", 0)
    return state


def test_what_is_recorded_comes_back(state: IndexState) -> None:
    found = outcome(
        records=5,
        turns=4,
        stored=3,
        skipped=Counter({"harness text": 2}),
        redactions=Counter({"password": 1}),
        damaged=["line 3: naïve 🦉"],
        torn_tail=True,
    )
    trace = TraceState("/a/b.jsonl", "claude", "stamp 1", False, found, {"offset": 10, "prefix": "ab"})
    state.record([trace], 7)
    kept = state.traces()["/a/b.jsonl"]
    assert kept.read_at > 0
    kept.read_at = 0.0
    assert kept == trace
    assert isinstance(kept.outcome.skipped, Counter)
    state.record([TraceState("/a/b.jsonl", "claude", "stamp 2", True, outcome())], 8)
    assert state.traces()["/a/b.jsonl"].stamp == "stamp 2"
    assert len(state.traces()) == 1


def test_it_belongs_to_one_memory_and_no_older_version_of_it(state: IndexState) -> None:
    assert state.belongs_to("memory-1", 0)
    state.record([TraceState("/a", "claude", "s", True, outcome())], 7)
    assert state.belongs_to("memory-1", 7)
    assert state.belongs_to("memory-1", 8)
    assert not state.belongs_to("memory-1", 6)
    assert not state.belongs_to("memory-2", 9)
    assert not state.belongs_to("", 9)
    state.adopt("memory-2", UNKNOWN)
    assert state.traces() == {}
    assert state.waiting == UNKNOWN
    assert state.belongs_to("memory-2", 1)


def test_waiting_model_and_repos_are_kept(state: IndexState) -> None:
    assert (state.waiting, state.model) == (0, "")
    state.waiting = 12
    state.model = "m"
    state.remember_repos({"/w": "a/b"})
    state.remember_repos({"/w": "a/c", "/x": "d/e"})
    state.close()
    with IndexState(state.path) as again:
        assert (again.waiting, again.model) == (12, "m")
        assert again.repos() == {"/w": "a/c", "/x": "d/e"}
        again.adopt("other", 0)
        assert again.repos() == {"/w": "a/c", "/x": "d/e"}


def test_a_read_that_continued_adds_to_the_earlier_one() -> None:
    later = outcome(records=2, turns=2, sessions=1, stored=2, damaged=["line 9: x"], skipped=Counter(a=1))
    later.add(
        outcome(records=10, turns=8, sessions=3, stored=7, known=1, damaged=["line 3: y"], skipped=Counter(a=2, b=1))
    )
    assert (later.records, later.turns, later.sessions, later.stored, later.known) == (12, 10, 3, 9, 1)
    assert later.damaged == ["line 3: y", "line 9: x"]
    assert later.skipped == Counter(a=3, b=1)


def test_another_formats_state_is_started_over(state: IndexState) -> None:
    state.record([TraceState("/a", "claude", "s", True, outcome())], 1)
    state.close()
    database = sqlite3.connect(state.path)
    database.execute("PRAGMA user_version = 99")
    database.close()
    with IndexState(state.path) as again:
        assert again.traces() == {}
        assert not again.belongs_to("memory-1", 5)


def test_an_unusable_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "state.sqlite").write_bytes(b"no database at all" * 500)
    with pytest.raises(FunesError, match="delete that file"):
        IndexState(tmp_path / "state.sqlite")
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "folder", tmp_path / "state.sqlite" / "below"):
        with pytest.raises(FunesError, match="permissions"):
            IndexState(path)


def test_reading_for_display_makes_no_file(state: IndexState, tmp_path: Path) -> None:
    assert read_traces(tmp_path / "absent.sqlite", "memory-1", 1) == {}
    assert not (tmp_path / "absent.sqlite").exists()
    state.record([TraceState("/a", "claude", "s", True, outcome())], 1)
    assert list(read_traces(state.path, "memory-1", 1)) == ["/a"]
    assert read_traces(state.path, "memory-2", 1) == {}


def test_outcomes_of_other_versions_are_understood() -> None:
    assert TraceOutcome.from_json('{"records": 3, "added_later": 1}').records == 3
