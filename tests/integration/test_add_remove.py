"""`funes add` and `funes remove` through the real command line: what they say, ask and index."""

from __future__ import annotations

import sys

import click
import pytest

from funes.commands.add import CROSS_ENCODER_OFFER
from funes.commands.opened import OpenMemory
from funes.memory.filters import Filter
from funes.paths import cache_folder
from tests.support.agent_programs import AgentHome
from tests.support.claude_sessions import ClaudeSession, talk
from tests.support.small_memory import make_memory


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A HOME with pi and Claude Code, in which the server answers without being started and no model is fetched."""
    cache = cache_folder().parent  # it takes half a minute to make what is in there
    home = AgentHome(tmp_path, monkeypatch, ("claude", "pi"))
    home.set("XDG_CACHE_HOME", str(cache))
    home.set("FUNES_MODELS", str(tmp_path / "no-models"))
    home.set("HF_HUB_CACHE", str(tmp_path / "no-models"))
    home.set("PYTHONPATH", str(next(path for path in map(str, sys.path) if path.endswith("src"))))
    monkeypatch.setattr("funes.commands.index.DEFAULT_BUDGET", 0.0)
    return home


@pytest.fixture
def run(home, run):
    return run


@pytest.fixture
def asked(monkeypatch):
    """A person at the terminal, and what they are asked; `answers` is what they say."""
    questions: list[str] = []
    answers: list[bool] = []
    monkeypatch.setattr("funes.cli.agents._at_terminal", lambda: True)

    def confirm(text, **options):
        questions.append(text)
        return answers.pop(0)

    monkeypatch.setattr(click, "confirm", confirm)
    return questions, answers


def a_session(home):
    session = ClaudeSession(home.path / ".claude" / "projects", "5e551041")
    talk(session, 2, "the tide gauge")


def sessions_in(home):
    return len(OpenMemory(str(home.path / ".funes")).reader().sessions(Filter(), 10))


def test_what_is_said_when_one_agent_is_added(run, home):
    code, out, err = run("add", "pi")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "pi: funes is added",
        "  created  ~/.pi/agent/extensions/funes  the extension: tools, and hooks that index after each turn",
        "undo all of it: funes remove pi",
        "Sessions of pi that are open now get the tools after `/reload`.",
        CROSS_ENCODER_OFFER,
    ]
    assert run("add", "pi") == (0, "pi: funes is added already, nothing was changed\n", "")
    code, out, _ = run("remove", "pi")
    assert code == 0
    assert out.splitlines() == [
        "pi: funes is removed; the memory stays",
        "  removed  ~/.pi/agent/extensions/funes  the extension: tools, and hooks that index after each turn",
    ]
    assert run("remove", "pi") == (0, "pi: funes was not added, so nothing was changed\n", "")


def test_without_a_terminal_nothing_is_indexed_without_consent(run, home):
    a_session(home)
    code, out, err = run("add", "claude")
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == "1 earlier trace is not indexed; `funes index --harness claude` does that."
    assert not (home.path / ".funes" / "memory").exists()


def test_yes_indexes_and_only_the_first_time(run, home):
    a_session(home)
    code, out, _ = run("add", "claude", "--yes")
    assert code == 0
    assert "1 trace: 1 read, 0 unchanged; 1 session, 1 of them new" in out
    assert sessions_in(home) == 1
    assert "trace" not in run("add", "claude", "--yes")[1]


def test_no_index_registers_only(run, home):
    a_session(home)
    code, out, _ = run("add", "claude", "--yes", "--no-index")
    assert code == 0
    assert "trace" not in out
    assert not (home.path / ".funes" / "memory").exists()


def test_a_person_is_asked_before_anything_is_indexed(run, home, asked):
    questions, answers = asked
    a_session(home)
    answers.append(False)
    code, out, err = run("add", "claude")
    assert code == 0
    assert questions == ["Index them now?"]
    assert "claude: 1 traces" in err
    assert "`funes index --harness claude` does that" in out
    answers.append(True)
    assert "1 session, 1 of them new" in run("add", "claude")[1]


def test_without_an_agent_all_are_listed(run, home):
    assert run("add") == (
        0,
        "",
        "Claude Code\npi\nTo add funes to one or all:\n  funes add claude\n  funes add pi\n  funes add --yes\n",
    )
    assert not [name for name in home.tree() if "funes" in name]
    run("add", "pi")
    assert "pi (funes is added)\n" in run("add")[2]


def test_all_are_offered_to_a_person(run, home, asked):
    questions, answers = asked
    answers.append(False)
    assert run("add")[0] == 0
    assert questions == ["Add funes to all of them?"]
    answers.append(True)
    _, out, _ = run("add")
    assert "Claude Code 2.1.332: funes is added\n" in out
    assert "pi: funes is added\n" in out


def test_one_agent_that_cannot_be_added_does_not_stop_the_others(run, home):
    home.write(".claude/settings.json", "{bad")
    code, out, err = run("add", "--yes")
    assert code == 1
    assert "pi: funes is added\n" in out
    assert err.splitlines()[-1].startswith("funes: ~/.claude/settings.json is not valid JSON")


def test_no_agent_on_the_machine(run, home):
    for name in ("claude", "pi"):
        (home.programs / name).unlink()
    code, out, err = run("add")
    assert code == 1
    assert (out + err).startswith("No agent was found on this machine")


def test_another_memory_is_baked_in_as_an_absolute_path(run, home, monkeypatch):
    make_memory(home.path / "team" / "memory")
    monkeypatch.chdir(home.path)
    assert run("add", "pi", "team")[0] == 0
    settings = home.read(".pi/agent/extensions/funes/funes.json")
    assert f'"mcp",\n    "{home.path / "team"}"' in settings
    assert f"--memory {home.path / 'team'}" in settings
    assert run("add", "pi", "local")[0] == 0
    assert "team" not in home.read(".pi/agent/extensions/funes/funes.json")


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("add", "gemini"), "There is no agent 'gemini'; funes knows claude, codex, pi, hermes."),
        (("add", "codex"), "Codex is not on this machine"),
        (("add", "pi", "/nowhere"), "There is no memory at /nowhere; leave it out for the local one."),
        (("add", "pi", "ftp://host/x"), "ftp://host/x is no place that funes reads"),
        (("add", "pi", "--trust-hooks"), "--trust-hooks is for Codex"),
        (("remove", "gemini"), "There is no agent 'gemini'"),
        (("remove",), "Missing argument 'AGENT'"),
    ],
)
def test_faults_are_one_sentence_and_change_nothing(run, home, arguments, fault):
    code, out, err = run(*arguments)
    assert (code, out) == (1, "")
    assert err.startswith(f"funes: {fault}")
    assert len(err.splitlines()) == 1
    assert not home.tree()


def test_the_memory_stays_when_the_agent_goes(run, home):
    a_session(home)
    run("add", "claude", "--yes")
    run("remove", "claude")
    assert sessions_in(home) == 1
    assert not (home.path / ".funes" / "agents").exists()
