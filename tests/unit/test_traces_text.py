from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funes.traces.text import is_own_command, is_own_output, is_own_tool, parse_time, tool_input_text

NOON = datetime(2026, 6, 17, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "value",
    [
        "2026-06-17T12:00:00Z",
        "2026-06-17T12:00:00.000Z",
        "2026-06-17 12:00:00",
        "2026-06-17T14:00:00+02:00",
        " 2026-06-17T12:00:00Z ",
        1781697600,
        1781697600.0,
        1781697600000,
        1781697600000000,
        1781697600000000000,
        "1781697600",
        "1781697600000",
    ],
)
def test_times(value: Any):
    assert parse_time(value) == NOON


@pytest.mark.parametrize(
    "value", [None, True, "", "soon", "2026-13-45T00:00:00Z", 0, -1, 42, float("nan"), 1e400, [], {}]
)
def test_what_is_no_time(value: Any):
    assert parse_time(value) is None


@given(st.text() | st.integers() | st.floats() | st.none() | st.from_regex(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[Z+].{0,6}"))
def test_any_value_may_be_asked_for_its_time(value: Any):
    time = parse_time(value)
    assert time is None or time.tzinfo is UTC


def test_tool_inputs():
    assert tool_input_text("raw\ninput") == "raw\ninput"
    assert tool_input_text(None) == tool_input_text({}) == ""
    given_input = {"code": 'a = "x"\n\tb = "\\n"', "naïve": ["日本語", 1, None]}
    text = tool_input_text(given_input)
    assert text == '{"code": "a = \\"x\\"\n\tb = \\"\\\\n\\"", "naïve": ["日本語", 1, null]}'
    assert json.loads(text, strict=False) == given_input


@given(st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_tool_inputs_read_back(value: Any):
    if not isinstance(value, str) and value != {}:
        assert json.loads(tool_input_text(value), strict=False) == value


@pytest.mark.parametrize(
    "name",
    [
        "mcp__funes__recall",
        "mcp__funes__get",
        "mcp_funes_sessions",
        "funes__scan",
        "funes_status",
        "funes.recall",
        "funes/get",
        "mcp__plugin_funes_funes__recall",
    ],
)
def test_own_tools(name: str):
    assert is_own_tool(name)


@pytest.mark.parametrize(
    "name", ["", "recall", "get", "Bash", "mcp__other__funes", "refunes_x", "funes", "mcp__funesx__y"]
)
def test_other_tools(name: str):
    assert not is_own_tool(name)


def test_own_tools_in_a_namespace():
    assert is_own_tool("recall", "mcp__funes__")
    assert is_own_tool("recall", "mcp__funes")
    assert not is_own_tool("recall", "mcp__other")


@pytest.mark.parametrize(
    "command",
    [
        "funes recall 'why lance'",
        "cd /x && funes get abc def",
        "/opt/bin/funes recall x",
        "FUNES_HOME=/y funes sessions",
        "uvx funes-memory recall x",
        "python -m funes recall x",
        "bash -lc 'funes recall x'",
        ["bash", "-lc", "funes recall x"],
        "funes --memory local recall x",
        "funes --json -v get x y",
        "out=$(funes recall x); echo $out",
        "true\nfunes status",
    ],
)
def test_own_commands(command: Any):
    assert is_own_command(command)


@pytest.mark.parametrize(
    "command",
    [
        "grep funes README.md",
        "git commit -m 'funes recall'",
        "cd funes && ls",
        "funes index",
        "pip install funes",
        None,
        3,
        [1],
    ],
)
def test_other_commands(command: Any):
    assert not is_own_command(command)


def test_own_outputs():
    hit = "[t] pi /w/abc text  score=0.9\n  → get abc def --memory local\nold"
    assert is_own_output("mcp__funes__recall", "anything")
    assert is_own_output("recall", hit)
    assert not is_own_output("recall", "the product recall of 1999")
    assert not is_own_output("Bash", hit)
    assert is_own_output("exec", "x", {"cmd": "funes recall x"})
    assert is_own_output("", '<untrusted_tool_result source="mcp__funes__recall">x')
    assert not is_own_output("", '<untrusted_tool_result source="mcp__web__fetch">funes')
