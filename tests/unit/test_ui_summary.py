"""The summary of an index run, and status as text."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from funes.commands.indexing.report import IndexReport
from funes.commands.indexing.state import TraceOutcome, TraceState
from funes.commands.status import sum_up
from funes.memory.statistics import MemoryStatistics
from funes.ui.status_text import counts, problem_lines, status_text
from funes.ui.summary import summary_text
from funes.ui.views import StatusReport, TraceProblem


def test_nothing_new_is_one_line():
    assert summary_text(IndexReport(traces=150, unchanged=150, waiting=0)) == "150 traces: nothing new\n"


def test_interrupted_before_anything_was_read_is_not_called_nothing_new():
    report = IndexReport(traces=71, interrupted=True)
    assert summary_text(report).splitlines() == [
        "71 traces: 0 read, 0 unchanged; 0 sessions, 0 turns",
        "interrupted: what is stored stays, and the next run goes on from here",
    ]


def test_summary_says_what_came_in_and_what_did_not():
    report = IndexReport(
        traces=3,
        unchanged=1,
        read=2,
        sessions=2,
        new_sessions=1,
        turns=40,
        parsed=1234,
        stored=1200,
        copies=30,
        known=4,
        waiting=200,
        embedded=1000,
        skipped=Counter({"harness text": 12}),
        redactions=Counter({"aws": 2, "jwt": 1}),
        failed=[(Path("/t/a.jsonl"), "it is empty")],
        unrecognised=[Path("/t/b.json")],
        damaged=[(Path("/t/c.jsonl"), "line 4: not JSON")] * 12,
        notes=["Only one secret engine is here."],
        words_seconds=1.25,
        vectors_seconds=2.0,
        interrupted=True,
    )
    lines = summary_text(report).splitlines()
    assert lines[:8] == [
        "3 traces: 2 read, 1 unchanged; 2 sessions, 1 of them new, 40 turns in 1.2 s",
        "passages: 1,234 parsed, 1,200 stored, 30 stored by another session, 4 already there",
        "vectors: 1,000 made in 2.0 s, 200 waiting (they are found by words; the next `funes index` goes on)",
        "left out: harness text 12",
        "redacted: aws 2, jwt 1",
        "skipped: /t/a.jsonl: it is empty",
        "skipped: /t/b.json: not a trace of any harness known here",
        "partly read: /t/c.jsonl: line 4: not JSON",
    ]
    assert lines.count("partly read: /t/c.jsonl: line 4: not JSON") == 10
    assert lines[-3:] == [
        "partly read: and 2 more; `funes status` lists them",
        "note: Only one secret engine is here.",
        "interrupted: what is stored stays, and the next run goes on from here",
    ]


def test_a_file_name_cannot_drive_the_terminal():
    report = IndexReport(traces=1, failed=[(Path("/t/\x1b]0;x\x07\n.jsonl"), "no")])
    assert "\x1b" not in summary_text(report)
    assert summary_text(report).count("\n") == 2


def test_totals_over_traces():
    def trace(path, **fields):
        return TraceState(path, "claude", "", True, TraceOutcome(**fields))

    totals = sum_up(
        [
            trace(
                "/b", records=5, turns=4, passages=9, stored=7, copies=1, known=1, skipped=Counter(x=2), torn_tail=True
            ),
            trace("/a", failed="it is a folder"),
            trace("/c", damaged=["line 1: not JSON"], redactions=Counter(aws=1), skipped=Counter(x=1, y=9)),
            trace("/d", unrecognised=True),
            trace("/e", records=1),
        ]
    )
    assert (totals.traces, totals.records, totals.parsed, totals.stored) == (5, 6, 9, 7)
    assert list(totals.skipped.items()) == [("y", 9), ("x", 3)]
    assert totals.redactions == {"aws": 1}
    assert totals.problems == [
        TraceProblem("/a", True, ["it is a folder"]),
        TraceProblem("/b", False, ["the last line is unfinished and waits for the next run"]),
        TraceProblem("/c", False, ["line 1: not JSON"]),
        TraceProblem("/d", True, ["not a trace of any harness known here"]),
    ]


def test_problems_past_the_limit_are_counted():
    problems = [TraceProblem(f"/{number}", False, ["a", "b", "c", "d", "e"]) for number in range(30)]
    lines = problem_lines(problems)
    assert lines[0] == "partly read: /0: a; b; c (and 2 more)"
    assert lines[-1] == "and 10 more traces; `funes status --json` names them all"
    assert len(lines) == 21


def test_counts_past_the_limit_are_added_up():
    assert counts({"a": 1000, "": 2}) == "a 1,000, - 2"
    assert counts({str(n): n for n in range(5)}, 3) == "0 0, 1 1, 2 2, 2 other kinds 7"
    assert counts({str(n): n for n in range(4)}, 3) == "0 0, 1 1, 2 2, 3 3"


def test_status_names_another_model():
    held = MemoryStatistics("kb", Path("/kb"), passages=3, sessions=1, models=["BAAI/bge-small-en-v1.5"], embedded=3)
    held.last_indexed = datetime(2026, 5, 2, tzinfo=UTC)
    text = status_text(StatusReport(held, None, "all-MiniLM", None))
    assert "model: vectors made with BAAI/bge-small-en-v1.5; this version uses all-MiniLM (not on this machine" in text
    assert "last indexed: 2026-05-02T00:00:00Z\n" in text
    assert "turns from: - to -\n" in text
    assert "traces: not known on this machine\n" in text
