from __future__ import annotations

import re
from pathlib import Path

import pytest

from bundles import Bundle, find_trace, load, session_text
from handing_over import covered, queries
from tests.support.claude_sessions import ClaudeSession

BUNDLES = load()


def test_there_are_a_dozen_bundles_of_different_sessions() -> None:
    assert len(BUNDLES) >= 12
    assert len({bundle.session for bundle in BUNDLES}) == len(BUNDLES)


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda bundle: bundle.name)
def test_a_bundle_is_whole(bundle: Bundle) -> None:
    assert 5 <= len(bundle.facts) <= 7
    assert bundle.task[0].startswith("You take over ")
    assert 4 <= len(queries(bundle.task)) <= 6
    for fact in bundle.facts:
        assert fact.patterns
        assert fact.turns == tuple(sorted(fact.turns))
        assert all(0 <= turn <= bundle.until for turn in fact.turns)
        assert fact.turns, fact.fact
        assert fact.source in ("question", "author")
        for pattern in fact.patterns:
            re.compile(pattern)


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda bundle: bundle.name)
def test_the_task_gives_no_fact_away(bundle: Bundle) -> None:
    assert not [fact.fact for fact in bundle.facts if covered(fact.patterns, "\n".join(bundle.task))]


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda bundle: bundle.name)
def test_handoff_and_summary_are_short_and_about_the_session(bundle: Bundle) -> None:
    for text in (bundle.handoff, bundle.summary):
        assert 500 < len(text) < 3000
        assert any(covered(fact.patterns, text) for fact in bundle.facts)


def test_bundles_match_no_facts_of_one_another() -> None:
    for number, bundle in enumerate(BUNDLES):
        other = BUNDLES[(number + 1) % len(BUNDLES)]
        assert not [fact.fact for fact in other.facts if covered(fact.patterns, bundle.handoff)]


def test_a_resumed_session_is_all_but_the_thinking_up_to_the_turn(tmp_path: Path) -> None:
    session = ClaudeSession(tmp_path, "bundle")
    session.prompt("first question")
    session.answer("a hidden thought", "thinking")
    session.answer("first answer")
    session.tool("Bash", {"command": "ls"}, "the output")
    session.prompt("second question")
    path = find_trace(session.id, tmp_path)
    assert path == session.path
    whole = session_text(path, 99)
    assert "hidden" not in whole
    assert [part in whole for part in ("first question", "first answer", "ls", "the output", "second question")] == [
        True
    ] * 5
    assert session_text(path, 0) == "first question"
    assert find_trace("another", tmp_path) is None


def test_of_a_compacted_session_the_summary_and_what_follows_are_left(tmp_path: Path) -> None:
    session = ClaudeSession(tmp_path, "compacted")
    session.prompt("before")
    summary = {"role": "user", "content": "the summary"}
    record = {"type": "user", "uuid": "u9", "parentUuid": None, "sessionId": session.id, "cwd": session.cwd}
    record |= {"timestamp": "2026-04-01T10:00:00Z", "version": "2.1.100", "message": summary, "isCompactSummary": True}
    session.write(record)
    session.prompt("after")
    assert session_text(session.path, 99) == "the summary\nafter"
    assert session_text(session.path, 0) == "before"
