"""The human layout: the same content, harmless, whatever the width."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from funes.search.model import Hit, Neighbour, RecallResult
from funes.ui import human
from funes.ui.views import BlockView, Match, Reading, ScanResult, SessionList, TurnView
from tests.support.chunks import MOMENT, SESSION, TURN, make_chunk, make_session

HOSTILE = "\x1b]52;c;cm0=\x07\x1b[2Jtext [bold]not markup[/bold] :smile: \x9b31m"


def shown(print_it, *arguments, width=80, terminal=False):
    out = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=terminal,
        markup=False,
        emoji=False,
        highlight=False,
        soft_wrap=True,
    )
    print_it(out, *arguments)
    return out.file.getvalue()


def test_recall_has_score_session_and_the_command_that_shows_it():
    hit = Hit(make_chunk("line one\nline two"), 0.8126, before=[Neighbour("user", "text", 3, "asked\nbefore")])
    text = shown(human.print_recall, RecallResult([hit, Hit(make_chunk("other"), 0.1, weak=True)]), "local")
    assert " 1  0.813  assistant text  claude_code · acme/api · main" in text
    assert "    ↑ user text: asked before\n    line one\n    line two\n" in text
    assert f"    funes get {SESSION} {TURN}\n" in text
    assert " 2  0.100 weak" in text
    assert "Nothing is close" not in text
    assert shown(human.print_recall, RecallResult(), "local") == "Nothing found.\n"
    weak = shown(human.print_recall, RecallResult([Hit(make_chunk("other"), 0.1, weak=True)]), "/data/kb")
    assert weak.startswith("Nothing is close to the question")
    assert "--memory /data/kb" in weak


def test_nothing_in_a_passage_drives_the_terminal():
    chunk = make_chunk(HOSTILE, workdir=HOSTILE, repo="", branch=HOSTILE, tool_name=HOSTILE, session_id=HOSTILE)
    hit = Hit(chunk, 0.5, before=[Neighbour("user", "text", 1, HOSTILE)])
    session = make_session(title=HOSTILE, branch=HOSTILE, id=HOSTILE, parent_id=HOSTILE)
    turn = TurnView(HOSTILE, 1, MOMENT, "user", [BlockView("tool_use", HOSTILE, HOSTILE)])
    match = Match(TURN, 1, MOMENT, "user", "text", HOSTILE, 0, HOSTILE, HOSTILE, HOSTILE)
    for text in (
        shown(human.print_recall, RecallResult([hit]), "local"),
        shown(human.print_sessions, SessionList("local", [session])),
        shown(human.print_reading, Reading("local", session, [turn], 1)),
        shown(human.print_scan, ScanResult("local", session, HOSTILE, [match], 1)),
    ):
        assert "\x1b" not in text
        assert "\x9b" not in text
        assert "[bold]not markup[/bold] :smile:" in text


def test_the_highlight_is_marked_in_any_case():
    turn = TurnView(TURN, 1, MOMENT, "user", [BlockView("text", "The Parser and the parser")])
    text = shown(human.print_reading, Reading("local", make_session(), [turn], 1, target=TURN), "parser", terminal=True)
    assert text.count("\x1b[1;7m") == 2
    assert "▶ " in text


def test_ids_are_shortened_to_what_tells_them_apart():
    ids = ["20261016_083000", "20261016_091500", "1a2b3c4d-0000", "agent-1", "1a2b3c4d-0000"]
    assert human.shortest_prefixes(ids) == ["20261016_08", "20261016_09", "1a2b3c4d", "agent-1", "1a2b3c4d"]


@given(st.lists(st.text(alphabet="ab", min_size=1, max_size=12), min_size=1, unique=True))
def test_shortened_ids_are_unique_beginnings(ids):
    short = human.shortest_prefixes(ids, 2)
    for identifier, prefix in zip(ids, short, strict=True):
        assert identifier.startswith(prefix)
        assert prefix == identifier or sum(other.startswith(prefix) for other in ids) == 1
