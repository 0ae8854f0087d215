"""Finding funes and the agents' programs, and what a binding holds."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from funes.agents import programs
from funes.agents.detect import agent_named, agents_here
from funes.agents.model import Binding
from funes.agents.programs import Done
from funes.errors import FunesError
from tests.support.agent_programs import AgentHome

SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture
def home(tmp_path, monkeypatch):
    return AgentHome(tmp_path, monkeypatch, ())


@pytest.mark.parametrize(
    ("said", "version"),
    [("2.1.332 (Claude Code)", "2.1.332"), ("codex-cli 0.171.0", "0.171.0"), ("v1.6.0-beta", "1.6.0"), ("none", "")],
)
def test_versions(said, version):
    assert programs.version_of(said) == version


def test_versions_are_compared_by_number():
    assert programs.at_least("0.100.0", "0.73")
    assert programs.at_least("2.0.12", "2.0.12")
    assert not programs.at_least("1.9.99", "2.0.12")
    assert programs.at_least("", "9")


def test_the_program_is_the_script_that_was_started(home, monkeypatch):
    script = home.program("funes")
    monkeypatch.setattr(sys, "argv", [str(script), "add"])
    assert programs.make_binding("").program == (str(script),)
    link = home.programs / "link"
    link.mkdir()
    (link / "funes").symlink_to(script)
    monkeypatch.setattr(sys, "argv", [str(link / "funes"), "add"])
    assert programs.make_binding("").server == [str(link / "funes"), "mcp"]


def test_without_a_script_the_module_is_run(home, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/x/funes/__main__.py"])
    monkeypatch.setattr(sys, "executable", str(home.programs / "python3"))
    home.set("PYTHONPATH", str(SOURCE))
    binding = programs.make_binding("/m")
    assert binding.server == [str(home.programs / "python3"), "-m", "funes", "mcp", "/m"]
    assert binding.env == {"PYTHONPATH": str(SOURCE)}


def test_folders_of_funes_are_baked_in_unless_they_are_the_usual_ones(home, monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(home.program("funes"))])
    home.set("FUNES_HOME", str(home.path / ".funes"))
    assert programs.make_binding("").env == {}
    home.set("FUNES_HOME", "~/elsewhere")
    home.set("FUNES_MODELS", "/models")
    assert programs.make_binding("").env == {"FUNES_HOME": str(home.path / "elsewhere"), "FUNES_MODELS": "/models"}


def test_a_temporary_installation_is_warned_of(home):
    cache = home.path / ".cache" / "uv" / "archive-v0" / "x" / "bin" / "funes"
    assert "install it" in programs.passing_note(Binding("", (str(cache),)))
    assert programs.passing_note(Binding("", (str(home.programs / "funes"),))) == ""


def test_the_server_is_asked_with_next_to_no_environment(home):
    binding = Binding("", (sys.executable, "-m", "funes"), {"PYTHONPATH": str(SOURCE)})
    home.set("FUNES_DEBUG", "1")
    server = programs.ask_server(binding)
    assert [tool["name"] for tool in server["tools"]] == ["recall", "get", "sessions", "scan", "status"]
    assert "recall" in server["instructions"]


def test_a_server_that_does_not_answer_is_a_fault(home):
    program = home.program("funes")
    for script, fault in (
        ("echo Error: no such module >&2; exit 1", "does not answer as a memory server: Error: no such module"),
        ("echo hello", "does not answer as a memory server: exit code 0"),
        ('echo \'{"id": 1, "result": {}}\'', "does not answer as a memory server"),
    ):
        program.write_text(f"#!/bin/sh\n{script}\n")
        with pytest.raises(FunesError, match=fault):
            programs.ask_server(Binding("", (str(program),)))
    with pytest.raises(FunesError, match="cannot be run: No such file"):
        programs.ask_server(Binding("", (str(home.programs / "none"),)))


def test_a_command_that_does_not_end_is_a_fault(home, monkeypatch):
    monkeypatch.setattr(programs, "COMMAND_SECONDS", 0.2)
    program = home.program("claude")
    program.write_text("#!/bin/sh\nexec sleep 20\n")
    with pytest.raises(FunesError, match=r"`claude mcp list` did not end within 0\.2 s"):
        programs.run(program, ["mcp", "list"])
    program.write_text("not a program")
    with pytest.raises(FunesError, match="`claude ''` cannot be run"):
        programs.run(program, [""])


def test_commands_run_outside_projects_without_what_is_left_out(home):
    home.set("CLAUDECODE", "1")
    program = home.program("claude")
    program.write_text('#!/bin/sh\npwd; echo "$CLAUDECODE$EXTRA"; cat\n')
    assert programs.run(program, [], remove=["CLAUDECODE"], add={"EXTRA": "2"}).output == "/\n2\n"


def test_the_reason_is_the_line_that_says_what_failed():
    done = Done(1, "Adding marketplace…\n", "WARNING: x\n\x1b[31m✘ Failed to add\x1b[0m: no such folder\nhint: retry\n")
    assert done.reason() == "✘ Failed to add: no such folder"
    assert Done(3, "", "").reason() == "exit code 3"
    assert Done(3, "one\ntwo\n", "").reason() == "two"


def test_agents_are_found_on_path_and_where_installers_put_them(home):
    assert agents_here() == []
    home.program("pi")
    local = home.write(".claude/local/claude", "#!/bin/sh\n")
    assert [agent.name for agent in agents_here()] == ["pi"]
    local.chmod(0o755)
    assert [agent.name for agent in agents_here()] == ["claude", "pi"]


def test_names_of_agents(home):
    assert agent_named("Claude_Code").name == "claude"
    with pytest.raises(FunesError, match="There is no agent 'gemini'; funes knows claude, codex, pi, hermes"):
        agent_named("gemini")
