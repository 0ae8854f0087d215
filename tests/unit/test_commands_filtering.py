from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

import pytest

from funes.commands.filtering import harness_facet, make_filter
from funes.errors import FunesError
from funes.memory.filters import Filter

NOW = datetime(2026, 5, 20, 12, tzinfo=UTC)


def test_nothing_asked_is_no_condition():
    assert make_filter() == Filter()
    assert make_filter(repo="", branch="", workdir="", session="", since="", until="") == Filter()


@pytest.mark.parametrize("name", ["claude", "claude_code", "claude-code", "Claude", " CLAUDE_CODE "])
def test_every_spelling_of_claude(name):
    assert harness_facet(name) == "claude_code"


def test_a_harness_that_is_not_installed_can_still_be_asked_for():
    assert harness_facet("another") == "another"
    assert make_filter(harnesses=["claude", "claude_code", "codex"]).harnesses == ("claude_code", "codex")


def test_a_folder_is_made_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/dev")
    assert make_filter(workdir=".").workdir == os.getcwd()
    assert make_filter(workdir="sub/..").workdir == os.getcwd()
    assert make_filter(workdir="~/api").workdir == "/home/dev/api"
    assert make_filter(workdir="/elsewhere/").workdir == "/elsewhere"


def test_times_and_lists():
    where = make_filter(types=["text", "text", "thinking"], roles=["user"], since="2d", until="1d", now=NOW)
    assert where.types == ("text", "thinking")
    assert where.roles == ("user",)
    assert (where.since, where.until) == (NOW - timedelta(days=2), NOW - timedelta(days=1))


@pytest.mark.parametrize("wrong", [{"types": ["prose"]}, {"roles": ["bot"]}])
def test_unknown_values_are_named_with_the_known_ones(wrong):
    with pytest.raises(FunesError, match="it is one of"):
        make_filter(**wrong)
