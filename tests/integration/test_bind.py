"""`funes bind` and `funes add AGENT MEMORY`: agents recall from a shared memory, and hooks publish to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from funes.commands.opened import OpenMemory
from funes.commands.publishing import quiet
from funes.commands.publishing.ledger import Ledger
from funes.commands.status import status
from funes.memory.remote.hub import HubClient
from funes.memory.remote.snapshot import open_snapshot
from funes.memory.uri import resolve
from funes.paths import cache_folder
from funes.ui.status_text import status_text
from tests.support.agent_programs import AgentHome
from tests.support.claude_sessions import ClaudeSession, talk
from tests.support.hooks import PATIENT, until
from tests.support.hub_server import HubServer
from tests.support.sharing import TOKEN, Machine, rows_in

REPO = "acme/decisions"
PI = ".pi/agent/extensions/funes/funes.json"
CLAUDE = ".funes/agents/claude/funes/hooks/hooks.json"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    with HubServer(tmp_path / "hub") as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("HF_TOKEN", server.token)
        yield server


@pytest.fixture
def home(tmp_path, monkeypatch, hub):
    """A HOME with pi and Claude Code, and a memory that is `machine(home)`."""
    cache = cache_folder().parent
    home = AgentHome(tmp_path, monkeypatch, ("claude", "pi"))
    home.set("XDG_CACHE_HOME", str(cache))
    home.set("FUNES_MODELS", str(tmp_path / "no-models"))
    home.set("HF_HOME", str(tmp_path / "hf"))
    home.set("HF_HUB_CACHE", str(tmp_path / "hf" / "hub"))
    home.set("PYTHONPATH", str(next(path for path in map(str, sys.path) if path.endswith("src"))))
    return home


@pytest.fixture
def run(home, run):
    return run


@pytest.fixture
def answers(monkeypatch):
    """A person at the terminal; what they say to what they are asked."""
    said: dict[str, bool] = {}
    asked: list[str] = []

    def confirm(question):
        asked.append(question)
        return said.get("answer", True)

    monkeypatch.setattr("funes.cli.sharing.confirmation", lambda: confirm)
    return said, asked


def machine(home):
    return Machine(home.path, ".funes")


def published():
    return [row.text for row in rows_in(open_snapshot(resolve(REPO), HubClient()).folder)]


def test_binding_publishes_and_tells_the_agents(run, home, hub, answers):
    machine(home).remember("a", ["We moved off the streaming parser."])
    assert run("add", "pi")[0] == 0
    assert run("add", "claude")[0] == 0
    before = home.tree()
    code, out, err = run("bind", REPO)
    assert (code, err) == (0, "")
    assert answers[1] == [f"Publish 1 passage of 1 session to {REPO}?"]
    assert f"{REPO}: 1 passage of 1 session published" in out
    assert "what is new is published to it whenever a session begins or ends; undo: funes bind local" in out
    assert "The token comes from HF_TOKEN" in out
    assert published() == ["We moved off the streaming parser."]
    for name in (PI, CLAUDE):
        text = home.read(name)
        assert f"--memory {REPO}" in text
        assert f"HF_ENDPOINT={hub.url}" in text
        assert f"HF_HOME={os.environ['HF_HOME']}" in text
        assert hub.token not in text
    assert f'"mcp",\n    "{REPO}"' in home.read(PI)
    code, out, _ = run("bind", REPO)
    assert code == 0
    assert len(answers[1]) == 1  # asked once
    assert out.count("nothing was changed") == 2
    code, out, _ = run("bind", "local")
    assert code == 0
    assert "The agents recall from the local memory, and nothing is published for them." in out
    after = home.tree()
    for name in (PI, CLAUDE):
        assert after[name] == before[name]


def test_nobody_is_bound_without_agreement(run, home, hub):
    machine(home).remember("a", ["words"])
    run("add", "pi")
    before = home.tree()
    code, out, err = run("bind", REPO)
    assert (code, out) == (1, "")
    assert err == f"funes: Binding publishes this machine's sessions to {REPO}; add --yes to agree to that.\n"
    assert home.tree() == before
    assert hub.store.meta("dataset", REPO) is None
    code, out, _ = run("bind", REPO, "--yes")
    assert code == 0
    assert published() == ["words"]


def test_whoever_does_not_agree_only_reads(run, home, hub, answers, monkeypatch):
    other = Machine(home.path, "other").use(monkeypatch)
    other.remember("z", ["theirs"])
    assert run("push", REPO)[0] == 0
    for name in other.variables:
        monkeypatch.delenv(name)
    home.set("HF_HOME", str(home.path / "hf2"))
    machine(home).remember("a", ["mine"])
    run("add", "pi")
    answers[0]["answer"] = False
    code, out, _ = run("bind", REPO)
    assert code == 0
    assert f"Nothing is published to {REPO}; it is only read." in out
    assert f"--memory {REPO}" in home.read(PI)
    assert published() == ["theirs"]
    quiet.main(REPO)
    assert published() == ["theirs"]
    (entry,) = log(home)
    assert entry["note"] == f"nobody has agreed yet to publish this machine's sessions there; `funes bind {REPO}` asks"


def test_a_second_machine_follows_and_takes_nothing_over(run, home, hub, answers, monkeypatch):
    other = Machine(home.path, "other").use(monkeypatch)
    other.remember("z", ["from the first machine"])
    run("push", REPO)
    for name in other.variables:
        monkeypatch.delenv(name)
    home.set("HF_HOME", str(home.path / "hf2"))
    run("add", "pi")
    code, _, err = run("bind", REPO)  # it has no memory of its own yet
    assert (code, err) == (0, "")
    assert answers[1] == [f"Publish the sessions of this machine to {REPO} from now on?"]
    assert not machine(home).memory.exists()
    assert "from the first machine" in run("recall", "first machine", "--memory", REPO)[1]
    machine(home).remember("a", ["from the second machine"])
    quiet.main(REPO)
    assert published() == ["from the first machine", "from the second machine"]
    assert [row.text for row in rows_in(machine(home).memory)] == ["from the second machine"]


def test_binding_to_what_is_not_there(run, home, hub, answers):
    code, _, err = run("bind", REPO)
    assert code == 1
    assert err.startswith("funes: funes is added to no agent on this machine; `funes add AGENT acme/decisions` adds it")
    run("add", "pi")
    before = home.tree()
    code, _, err = run("bind", REPO)
    assert code == 1
    assert f"There is no dataset {REPO}" in err
    code, _, err = run("bind", "/nowhere")
    assert code == 1
    assert "There is no memory at /nowhere" in err
    after = home.tree()
    assert {name for name in before if before[name] != after[name]} == set()


def test_adding_an_agent_can_bind_it(run, home, hub):
    session = ClaudeSession(home.path / ".claude" / "projects", "5e551041")
    talk(session, 2, "the tide gauge")
    code, out, err = run("add", "claude", REPO)
    assert (code, err) == (0, "")
    assert f"Nothing is published to {REPO} until somebody agrees: `funes bind {REPO}` asks." in out
    assert hub.store.meta("dataset", REPO) is None
    machine(home).remember("a", ["words"])
    code, out, _ = run("add", "claude", REPO, "--yes", "--no-index")
    assert code == 0
    assert f"{REPO}: 1 passage of 1 session published" in out
    assert published() == ["words"]
    assert Ledger(REPO).state().approved


def test_a_push_in_the_background_is_logged_and_a_failure_shown(run, home, hub):
    one = machine(home)
    one.remember("a", ["words"])
    run("add", "pi")
    run("bind", REPO, "--yes")
    one.remember("b", ["more", f"token {TOKEN}"])
    quiet.main(REPO)
    (entry,) = log(home)
    assert (entry["memory"], entry["passages"], entry["held_back"]) == (REPO, 1, 1)
    assert TOKEN not in json.dumps(entry)
    shown = status_text(status(OpenMemory(REPO), ahead=False))  # what a bound agent's tool says
    assert f"publishes to: {REPO}: 2 passages of this machine" in shown
    assert "held back: 1 block" in shown
    hub.traffic.served.clear()
    quiet.main(REPO)
    assert (len(log(home)), hub.traffic.requests) == (1, 0)  # nothing has happened since
    hub.stop()
    one.remember("c", ["even more"])
    quiet.main(REPO)
    assert "cannot be reached" in log(home)[-1]["error"]
    code, out, _ = run("status")
    assert code == 0
    assert f"publishes to: {REPO}: 2 passages of this machine; last push " in out
    assert f" {REPO}: The Hub at 127.0.0.1" in out.partition("push failed: ")[2]
    assert "held back: 1 block with credentials: github-token 1" in out


def test_a_session_that_ends_is_published_by_its_hook(run, home, hub):
    run("add", "claude", REPO, "--yes", "--no-index")
    session = ClaudeSession(home.path / ".claude" / "projects", "5e551041")
    talk(session, 2, "the tide gauge")
    Ledger(REPO).agree(True, True)
    command = json.loads(home.read(CLAUDE))["hooks"]["SessionEnd"][0]["hooks"][0]["command"]
    payload = {"hook_event_name": "SessionEnd", "session_id": session.id, "transcript_path": str(session.path)}
    done = subprocess.run(command, shell=True, input=json.dumps(payload).encode(), capture_output=True, timeout=PATIENT)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    until(lambda: bool(log(home)))
    (entry,) = log(home)
    assert "error" not in entry
    assert entry["passages"] > 0
    assert any("tide gauge" in (text or "") for text in published())


def log(home) -> list[dict[str, object]]:
    path = Path(home.path, ".funes", "logs", quiet.LOG)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
