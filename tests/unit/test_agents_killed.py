"""`funes add` and `funes remove` may die at any step: the next `funes remove` gives back every byte."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from funes.agents import journal
from funes.agents.claude import Claude
from funes.agents.codex import Codex
from funes.agents.install import add_agent, remove_agent
from funes.agents.journal import Journal
from tests.support.agent_programs import BINDING, SERVER, AgentHome

ROOT = Path(__file__).parents[2]
SEEDS = {
    "claude": {
        ".claude.json": b'{"numStartups": 3,\r\n "mcpServers": {"other": {"command": "x"}}}',
        ".claude/settings.json": b'{"model":"opus"}\n',
    },
    "codex": {".codex/config.toml": b'# mine\r\nmodel = "x" # best\r\n\r\n[mcp_servers.other]\r\ncommand="x"\r\n'},
    "pi": {".pi/agent/settings.json": b"{}"},
    "hermes": {
        ".hermes/config.yaml": b"# mine\r\nmodel: x   # best\r\nhooks:\r\n  on_session_start: []\r\n",
        ".hermes/shell-hooks-allowlist.json": b'{"approvals": [ ]}',
    },
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AgentHome:
    monkeypatch.setattr(journal, "COMMAND_SECONDS", 3000)  # so that nothing depends on how fast this machine is
    return AgentHome(tmp_path, monkeypatch, tuple(SEEDS))


def seed(home: AgentHome, name: str) -> None:
    for path, data in SEEDS[name].items():
        (home.path / path).parent.mkdir(parents=True, exist_ok=True)
        (home.path / path).write_bytes(data)
        (home.path / path).chmod(0o600)


@pytest.mark.parametrize(("seeded", "what"), [(False, "add"), (True, "again")])
@pytest.mark.parametrize("name", SEEDS)
def test_every_byte_comes_back_after_a_kill_at_any_step(name: str, seeded: bool, what: str, home: AgentHome) -> None:
    if seeded:
        seed(home, name)
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.killed_adds", name, what, str(home.path)],
        env=os.environ | {"PYTHONPATH": path},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = re.fullmatch(r"(\d+) steps\n", done.stdout)
    assert found, done.stdout
    assert int(found[1]) > 5


def killed(home: AgentHome, command: str) -> None:
    """Add funes to an agent in another process, which is killed when it runs a command of the agent's."""
    name = command.split()[0]
    program = home.programs / name
    own = program.read_text()
    code = "import sys; from funes.agents.detect import agent_named; from funes.agents.install import add_agent; "
    code += (
        "from tests.support.agent_programs import BINDING, SERVER; add_agent(agent_named(sys.argv[1]), BINDING, SERVER)"
    )
    kill = f'case "$*" in "{command.partition(" ")[2]}"*) kill -9 $PPID;; esac\n'
    program.write_text(own.replace("#!/bin/sh\nexec ", "#!/bin/sh\n").rstrip() + f"\ncode=$?\n{kill}exit $code\n")
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    done = subprocess.run(
        [sys.executable, "-c", code, name], env=os.environ | {"PYTHONPATH": path}, capture_output=True
    )
    assert done.returncode == -9, done.stderr
    program.write_text(own)


@pytest.mark.parametrize("command", ["claude plugin install", "codex plugin add"])
def test_a_process_that_is_really_killed(command: str, home: AgentHome) -> None:
    name = command.split()[0]
    seed(home, name)
    before = home.tree()
    killed(home, command)
    assert home.tree() != before
    kept = home.path / f".funes/agents/{name}.undo.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    agent = Claude() if name == "claude" else Codex()
    assert remove_agent(agent).done
    assert home.tree() == before
    assert not remove_agent(agent).done


@pytest.mark.parametrize("command", ["claude plugin install", "codex plugin add"])
def test_adding_again_completes_what_was_killed(command: str, home: AgentHome) -> None:
    name = command.split()[0]
    seed(home, name)
    before = home.tree()
    killed(home, command)
    agent = Claude() if name == "claude" else Codex()
    assert add_agent(agent, BINDING, SERVER).done
    assert not (home.path / f".funes/agents/{name}.undo.json").exists()
    assert not add_agent(agent, BINDING, SERVER).done
    assert remove_agent(agent).done
    assert home.tree() == before


def test_what_somebody_else_wrote_after_the_kill_stays(home: AgentHome) -> None:
    seed(home, "claude")
    settings = home.path / ".claude/settings.json"
    killed(home, "claude plugin install")
    value = json.loads(settings.read_bytes()) | {"theme": "dark"}
    settings.write_text(json.dumps(value))
    later = settings.stat().st_mtime + 3600  # not within the time in which the killed command may have written it
    os.utime(settings, (later, later))
    remove_agent(Claude())
    assert json.loads(settings.read_bytes()) == {"model": "opus", "theme": "dark"}
    assert (home.path / ".claude.json").read_bytes() == SEEDS["claude"][".claude.json"]


def test_a_command_that_was_killed_too_may_leave_half_a_file(home: AgentHome) -> None:
    seed(home, "claude")
    before = home.tree()
    killed(home, "claude plugin install")
    (home.path / ".claude/settings.json").write_bytes(b'{"model":')
    remove_agent(Claude())
    assert home.tree() == before


def test_a_journal_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    path = tmp_path / "x.undo.json"
    for text in ("", "[]", "{", '{"format": 2}', '{"format": 1}', '{"format": 1, "files": [["a"]]}'):
        path.write_text(text)
        assert Journal.load(path) is None
