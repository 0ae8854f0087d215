"""Adding and removing with another FUNES_HOME than before: nothing of the first one is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from funes.agents.detect import KINDS
from funes.agents.install import add_agent, remove_agent
from funes.agents.model import Agent, Binding, Outcome, base_around, base_in, is_own_server
from funes.errors import FunesError
from tests.support.agent_programs import SERVER, AgentHome

FILES = {
    "claude": {".claude.json": '{"mcpServers":{"funes":{"command":"funes","args":["mcp","mine"]}},"x":1.50}'},
    "codex": {".codex/config.toml": "# mine\nmodel = 'x'\n\n[mcp_servers.funes]\ncommand = 'funes'\nargs = ['mcp']\n"},
    "pi": {},
    "hermes": {".hermes/config.yaml": "# mine\nmodel: x\nmcp_servers:\n  other: {command: y}\n"},
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AgentHome:
    return AgentHome(tmp_path, monkeypatch, ("claude", "codex", "pi"))


@pytest.fixture(params=list(KINDS))
def name(request: pytest.FixtureRequest, home: AgentHome, monkeypatch: pytest.MonkeyPatch) -> str:
    name = str(request.param)
    monkeypatch.setattr("funes.agents.hermes.Hermes.check", lambda self: None)
    monkeypatch.setattr("funes.agents.hermes.Hermes.version", lambda self: "0.19.0")
    for path, content in FILES[name].items():
        home.write(path, content)
    (home.path / f".{name}").mkdir(exist_ok=True)
    return name


def binding(home: AgentHome, folder: str) -> Binding:
    """Look at a FUNES_HOME from now on, and make what `funes add` would write then."""
    base = home.path / folder
    home.set("FUNES_HOME", str(base))
    env = {} if folder == ".funes" else {"FUNES_HOME": str(base)}
    return Binding("", ("/opt/funes/bin/funes",), env)


def agent(name: str) -> Agent:
    return KINDS[name]()


def add(home: AgentHome, name: str, folder: str) -> Outcome:
    written = binding(home, folder)
    return add_agent(agent(name), written, SERVER)


@pytest.mark.parametrize(("first", "second"), [("a", "b"), (".funes", "b"), ("a", ".funes")])
def test_remove_finds_what_was_added_from_elsewhere(home: AgentHome, name: str, first: str, second: str) -> None:
    before = home.tree()
    add(home, name, first)
    binding(home, second)
    outcome = remove_agent(agent(name))
    assert outcome.done
    assert home.tree() == before
    if name in ("claude", "codex"):
        (plugin,) = [change for change in outcome.changes if change.path == home.path / first / "agents" / name]
        assert (plugin.kind, plugin.what) == ("removed", "the plugin: its hooks index after each turn")


@pytest.mark.parametrize(("first", "second"), [("a", "b"), (".funes", "b"), ("a", ".funes")])
def test_add_moves_over_from_elsewhere(home: AgentHome, name: str, first: str, second: str) -> None:
    before = home.tree()
    add(home, name, first)
    assert add(home, name, second).done
    assert not (home.path / first).exists()
    assert agent(name).named_base() == home.path / second
    assert not add(home, name, second).done
    assert remove_agent(agent(name)).done
    assert home.tree() == before


def test_when_it_cannot_be_moved_over_everything_stays(
    home: AgentHome, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(home, name, "a")
    before = home.tree()

    def fail(*arguments: object, **options: object) -> None:
        raise FunesError("The disk is full.")

    monkeypatch.setattr(KINDS[name], "register", fail)
    with pytest.raises(FunesError, match="The disk is full"):
        add(home, name, "b")
    now = home.tree()
    assert {path: now.get(path) for path in before if "/backups/" not in path} == {
        path: content for path, content in before.items() if "/backups/" not in path
    }
    assert now.keys() <= before.keys()


def test_a_folder_that_is_named_but_not_of_funes_is_left_alone(home: AgentHome) -> None:
    other = home.write("work/notes.txt", "mine").parent
    home.write(
        ".claude.json",
        f'{{"mcpServers":{{"funes":{{"command":"funes","args":["mcp"],"env":{{"FUNES_HOME":"{other}"}}}}}}}}',
    )
    add(home, "claude", "b")
    remove_agent(agent("claude"))
    assert (other / "notes.txt").read_text() == "mine"
    assert str(other) in home.read(".claude.json")


@pytest.mark.parametrize(
    ("entry", "own"),
    [
        ({"command": "/opt/venv/bin/funes", "args": ["mcp"]}, True),
        ({"command": "funes", "args": ["mcp", "s3://team/memory"], "env": {}}, True),
        ({"command": "C:\\\\tools\\\\funes.exe", "args": ["mcp"]}, True),
        ({"command": "/usr/bin/python3", "args": ["-m", "funes", "mcp"]}, True),
        ({"command": "uvx", "args": ["--from", "funes", "funes", "mcp"]}, True),
        ({"command": "env", "args": ["FUNES_HOME=/data", "/opt/funes", "mcp", "team"]}, True),
        ({"command": "funes", "args": ["serve"]}, False),
        ({"command": "funes"}, False),
        ({"command": "node", "args": ["funes.js", "mcp"]}, False),
        ({"command": "other", "args": ["mcp", "funes"]}, False),
        ({"url": "https://mcp.test/funes/mcp"}, False),
        ({"command": 7, "args": "mcp"}, False),
        ("funes mcp", False),
        (None, False),
    ],
)
def test_a_server_is_known_by_what_it_runs(entry: object, own: bool) -> None:
    assert is_own_server(entry) is own


def test_what_an_entry_names(home: AgentHome) -> None:
    default = home.path / ".funes"
    assert base_in(None) is None
    assert base_in("text") is None
    assert base_in({"command": "x"}) == default
    assert base_in({"env": {"FUNES_HOME": 5}}) == default
    assert base_in({"env": {"FUNES_HOME": "relative"}}) == default
    assert base_in({"env": {"FUNES_HOME": "/data/funes"}}) == Path("/data/funes")
    assert base_around("/data/funes/agents/claude", "claude") == Path("/data/funes")
    assert base_around("/data/funes/agents/codex", "claude") is None
    assert base_around("agents/claude", "claude") is None
    assert base_around(None, "claude") is None
