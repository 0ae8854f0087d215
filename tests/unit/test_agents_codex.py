"""Adding funes to Codex and taking it back; the program is a stand-in that writes what the real one writes."""

from __future__ import annotations

import json
import tomllib

import pytest

from funes.agents.codex import PLUGIN, Codex
from funes.agents.install import add_agent, remove_agent
from funes.errors import FunesError
from tests.support.agent_programs import BINDING, OTHER_BINDING, SERVER, AgentHome

CONFIG = '# mine\nmodel = "x" # best\n\n[mcp_servers.other]\ncommand="x"   # spaced\nargs=[ "a","b" ]'
USERS_HOOK = '\n[hooks.state."/home/x/.codex/hooks.json:stop:0:0"]\ntrusted_hash = "sha256:1"\n'


@pytest.fixture
def home(tmp_path, monkeypatch):
    return AgentHome(tmp_path, monkeypatch, ("codex",))


def config(home):
    return tomllib.loads(home.read(".codex/config.toml"))


def test_what_is_registered(home):
    home.write(".codex/config.toml", CONFIG)
    outcome = add_agent(Codex(), BINDING, SERVER)
    assert home.read(".codex/config.toml").startswith(CONFIG)
    value = config(home)
    assert value["mcp_servers"]["funes"] == {
        "command": "/opt/funes/bin/funes",
        "args": ["mcp"],
        "env": {"FUNES_HOME": "/data/funes"},
    }
    assert value["plugins"][PLUGIN] == {"enabled": True}
    assert value["marketplaces"]["funes-local"]["source"] == str(home.path / ".funes/agents/codex")
    hooks = json.loads(home.read(".codex/plugins/cache/funes-local/funes/1.0.0/hooks/hooks.json"))["hooks"]
    assert {event: groups[0]["hooks"][0]["timeout"] for event, groups in hooks.items()} == {
        "SessionStart": 10,
        "Stop": 10,
        "SessionEnd": 3,
    }
    assert "hook.py codex" in hooks["Stop"][0]["hooks"][0]["command"]
    assert outcome.agent == "Codex 0.171.0"
    assert any("Hooks need review" in note and "--trust-hooks" in note for note in outcome.notes)


def test_hooks_are_not_trusted_unless_asked_for(home):
    add_agent(Codex(), BINDING, SERVER)
    assert "hooks" not in config(home)
    outcome = add_agent(Codex(), BINDING, SERVER, trust=True)
    assert sorted(config(home)["hooks"]["state"]) == [
        f"{PLUGIN}:hooks/hooks.json:{event}:0:0" for event in ("session_end", "session_start", "stop")
    ]
    assert not any("Hooks need review" in note for note in outcome.notes)
    assert not add_agent(Codex(), BINDING, SERVER).done


@pytest.mark.parametrize("trust", [False, True])
@pytest.mark.parametrize("seeded", [False, True])
def test_remove_leaves_every_file_as_it_was(home, seeded, trust):
    if seeded:
        home.write(".codex/config.toml", CONFIG).chmod(0o600)
        home.write(".codex/hooks.json", '{"hooks":{"Stop":[]}}')
    before = home.tree()
    add_agent(Codex(), BINDING, SERVER, trust=trust)
    assert remove_agent(Codex()).done
    assert home.tree() == before
    assert not remove_agent(Codex()).done


def test_a_file_that_changed_since_loses_only_what_is_of_funes(home):
    home.write(".codex/config.toml", CONFIG)
    add_agent(Codex(), BINDING, SERVER)
    # What Codex's own dialogs write: trust in a project, in the user's hook, in the hooks of funes.
    later = '\n[projects."/x"] # mine\ntrust_level = "trusted"\n' + USERS_HOOK
    own = f'\n[hooks.state."{PLUGIN}:hooks/hooks.json:stop:0:0"]\ntrusted_content_hash = "sha256:2"\n'
    home.write(".codex/config.toml", home.read(".codex/config.toml") + later + own)
    home.write(".codex/.hook-trust/aa", "sha256:2")
    home.write(".codex/.hook-trust/bb", "sha256:1")
    remove_agent(Codex())
    left = home.read(".codex/config.toml")
    assert left.startswith(CONFIG)
    assert '[projects."/x"] # mine' in left
    assert tomllib.loads(left) == tomllib.loads(CONFIG + "\n" + later)
    assert sorted(name for name in home.tree() if "hook-trust/" in name) == [".codex/.hook-trust/bb"]


def test_another_binding(home):
    home.write(".codex/config.toml", CONFIG)
    before = home.tree()
    add_agent(Codex(), BINDING, SERVER)
    assert not add_agent(Codex(), BINDING, SERVER).done
    assert add_agent(Codex(), OTHER_BINDING, SERVER).done
    assert config(home)["mcp_servers"]["funes"] == {
        "command": "/opt/funes/bin/funes",
        "args": ["mcp", "/data/team memory"],
    }
    remove_agent(Codex())
    assert home.tree() == before


@pytest.mark.parametrize("command", ["plugin marketplace", "plugin add", "mcp get"])
def test_a_failing_command_leaves_nothing_half_done(home, command):
    home.write(".codex/config.toml", CONFIG)
    before = home.tree()
    home.set("STAND_IN_FAILS", command)
    with pytest.raises(FunesError, match=f"`codex {command}` failed, so funes was not added: Error: out of cheese"):
        add_agent(Codex(), BINDING, SERVER)
    assert home.tree() == before


@pytest.mark.parametrize("method", ["initialize", "hooks/list", "config/batchWrite"])
def test_trust_that_is_not_taken_leaves_nothing_half_done(home, method):
    before = home.tree()
    home.set("STAND_IN_FAILS", method)
    with pytest.raises(FunesError, match=r"Codex did not take the trust.*unknown method.*answer its dialog instead"):
        add_agent(Codex(), BINDING, SERVER, trust=True)
    assert home.tree() == before


def test_removing_without_the_program_and_without_the_receipt(home):
    home.write(".codex/config.toml", CONFIG)
    add_agent(Codex(), BINDING, SERVER, trust=True)
    (home.programs / "codex").unlink()
    (home.path / ".funes/agents/codex.json").unlink()
    remove_agent(Codex())
    assert config(home) == tomllib.loads(CONFIG)
    assert home.read(".codex/config.toml").startswith(CONFIG)
    assert not [name for name in home.tree() if "funes" in name]


FOREIGN = '[mcp_servers.funes] # mine\nurl = "https://mcp.test/funes"\n'


def test_a_server_of_somebody_else_is_not_replaced(home):
    home.write(".codex/config.toml", FOREIGN)
    before = home.tree()
    with pytest.raises(FunesError, match=r"config.toml has an MCP server `funes` that runs something else; give it"):
        add_agent(Codex(), BINDING, SERVER)
    assert home.tree() == before


def test_a_server_of_somebody_else_stays(home):
    add_agent(Codex(), BINDING, SERVER)
    text = home.read(".codex/config.toml")
    home.write(".codex/config.toml", text[: text.index("[mcp_servers.funes]")] + FOREIGN)
    for done in (True, False):
        outcome = remove_agent(Codex())
        assert (outcome.done, outcome.notes) == (
            done,
            ["~/.codex/config.toml has an MCP server `funes` that runs something else; it stays."],
        )
        assert home.read(".codex/config.toml").endswith(FOREIGN)
    assert config(home) == tomllib.loads(FOREIGN)


def test_a_server_of_that_name_comes_back(home):
    home.write(".codex/config.toml", '[mcp_servers.funes] # mine\ncommand = "funes"\nargs = ["mcp"]\n')
    before = home.tree()
    add_agent(Codex(), BINDING, SERVER)
    assert config(home)["mcp_servers"]["funes"]["command"] == "/opt/funes/bin/funes"
    remove_agent(Codex())
    assert home.tree() == before
    add_agent(Codex(), BINDING, SERVER)
    home.write(".codex/config.toml", home.read(".codex/config.toml") + "\n[tui]\n")
    remove_agent(Codex())
    assert config(home) == {"mcp_servers": {"funes": {"command": "funes", "args": ["mcp"]}}, "tui": {}}


def test_a_file_that_cannot_be_parsed_is_left_alone(home):
    home.write(".codex/config.toml", "model = \n")
    before = home.tree()
    for action in (lambda: add_agent(Codex(), BINDING, SERVER), lambda: remove_agent(Codex())):
        with pytest.raises(FunesError, match=r"config\.toml is not valid TOML; mend it first, nothing was changed"):
            action()
    assert home.tree() == before


def test_a_read_only_file_is_left_alone(home):
    home.write(".codex/config.toml", CONFIG).chmod(0o400)
    before = home.tree()
    with pytest.raises(FunesError, match=r"~/\.codex/config\.toml is read-only, so funes leaves it alone"):
        add_agent(Codex(), BINDING, SERVER)
    assert home.tree() == before


def test_no_program_and_no_plugins(home):
    home.set("STAND_IN_FAILS", "plugin marketplace")
    program = home.programs / "codex"
    program.write_text("#!/bin/sh\ncase $1 in --version) echo codex-cli 0.20.0;; *) exit 2;; esac\n")
    with pytest.raises(FunesError, match=r"Codex 0\.20\.0 has no plugins from folders; update it"):
        add_agent(Codex(), BINDING, SERVER)
    program.unlink()
    with pytest.raises(FunesError, match="Codex is not on this machine"):
        add_agent(Codex(), BINDING, SERVER)
    assert home.tree() == {}


def test_the_folder_can_be_elsewhere(home):
    home.set("CODEX_HOME", str(home.path / "elsewhere"))
    home.write("elsewhere/config.toml", CONFIG)
    before = home.tree()
    add_agent(Codex(), BINDING, SERVER)
    assert "funes" in tomllib.loads(home.read("elsewhere/config.toml"))["mcp_servers"]
    remove_agent(Codex())
    assert home.tree() == before
