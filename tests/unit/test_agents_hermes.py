"""Adding funes to Hermes and taking it back: its config.yaml and its list of approved hooks."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from ruamel.yaml import YAML

from funes.agents.hermes import EVENTS, Hermes
from funes.agents.install import add_agent, remove_agent
from funes.errors import FunesError
from tests.support.agent_programs import BINDING, OTHER_BINDING, SERVER, AgentHome, without_rights

CONFIG = """\
# mine
model: {default: x, api_key: hunter2}   # best
hooks:
  post_llm_call:
  - command: "true"  # nothing
    timeout: 3
"""
APPROVALS = '{"approvals":[{"event":"post_llm_call","command":"true"}]}'


@pytest.fixture
def home(tmp_path, monkeypatch):
    return AgentHome(tmp_path, monkeypatch, ("hermes",))


def config(home):
    return YAML(typ="safe", pure=True).load(home.read(".hermes/config.yaml"))


def test_what_is_registered(home):
    home.write(".hermes/config.yaml", CONFIG)
    home.write(".hermes/shell-hooks-allowlist.json", APPROVALS)
    add_agent(Hermes(), BINDING, SERVER)
    text = home.read(".hermes/config.yaml")
    for line in CONFIG.splitlines():
        assert line in text
    value = config(home)
    assert value["mcp_servers"]["funes"] == {
        "command": "/opt/funes/bin/funes",
        "args": ["mcp"],
        "env": {"FUNES_HOME": "/data/funes"},
    }
    own = value["hooks"]["on_session_start"][0]
    assert "hook.py hermes" in own["command"]
    assert own["timeout"] == 10
    assert value["hooks"]["post_llm_call"] == [own, {"command": "true", "timeout": 3}]
    approvals = json.loads(home.read(".hermes/shell-hooks-allowlist.json"))["approvals"]
    assert approvals[0] == {"event": "post_llm_call", "command": "true"}
    assert approvals[1:] == [{"event": event, "command": own["command"]} for event in EVENTS]


def test_a_new_config_is_private(home):
    add_agent(Hermes(), BINDING, SERVER)
    assert (home.path / ".hermes/config.yaml").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("seeded", [False, True])
def test_remove_leaves_every_file_as_it_was(home, seeded):
    if seeded:
        home.write(".hermes/config.yaml", CONFIG).chmod(0o640)
        home.write(".hermes/shell-hooks-allowlist.json", APPROVALS)
    before = home.tree()
    add_agent(Hermes(), BINDING, SERVER)
    assert not add_agent(Hermes(), BINDING, SERVER).done
    assert add_agent(Hermes(), OTHER_BINDING, SERVER).done
    assert remove_agent(Hermes()).done
    assert home.tree() == before
    assert not remove_agent(Hermes()).done


@pytest.mark.parametrize("seeded", [False, True])
def test_files_that_changed_since_lose_only_what_is_of_funes(home, seeded):
    if seeded:
        home.write(".hermes/config.yaml", CONFIG)
        home.write(".hermes/shell-hooks-allowlist.json", APPROVALS)
    add_agent(Hermes(), BINDING, SERVER)
    home.write(".hermes/config.yaml", home.read(".hermes/config.yaml") + "late: 1 # mine\n")
    approvals = json.loads(home.read(".hermes/shell-hooks-allowlist.json"))
    approvals["approvals"].append({"event": "on_session_end", "command": "mine"})
    home.write(".hermes/shell-hooks-allowlist.json", json.dumps(approvals, indent=2, sort_keys=True))
    remove_agent(Hermes())
    assert home.read(".hermes/config.yaml") == (CONFIG if seeded else "") + "late: 1 # mine\n"
    left = json.loads(home.read(".hermes/shell-hooks-allowlist.json"))["approvals"]
    assert left[-1] == {"event": "on_session_end", "command": "mine"}
    assert len(left) == 1 + seeded


def test_a_config_that_hermes_laid_out_anew(home):
    home.write(".hermes/config.yaml", CONFIG)
    add_agent(Hermes(), BINDING, SERVER)
    stream = StringIO()
    YAML(pure=True).dump({**config(home), "version": 2}, stream)
    home.write(".hermes/config.yaml", stream.getvalue())
    remove_agent(Hermes())
    assert config(home) == {**YAML(typ="safe", pure=True).load(CONFIG), "version": 2}


def test_removing_without_the_receipt(home):
    home.write(".hermes/config.yaml", CONFIG)
    add_agent(Hermes(), BINDING, SERVER)
    (home.path / ".funes/agents/hermes.json").unlink()
    remove_agent(Hermes())
    value = config(home)
    assert value.pop("mcp_servers") is None
    assert [value["hooks"].pop(event) for event in ("on_session_start", "on_session_finalize")] == [None, None]
    assert value == YAML(typ="safe", pure=True).load(CONFIG)
    assert json.loads(home.read(".hermes/shell-hooks-allowlist.json")) == {"approvals": []}


FOREIGN = "mcp_servers:\n  funes: {command: mine}  # my own\n"


def test_a_server_of_somebody_else_is_not_replaced(home):
    home.write(".hermes/config.yaml", FOREIGN)
    before = home.tree()
    with pytest.raises(FunesError, match=r"config.yaml has an MCP server `funes` that runs something else \(`mine`\)"):
        add_agent(Hermes(), BINDING, SERVER)
    assert home.tree() == before


def test_a_server_of_somebody_else_stays(home):
    add_agent(Hermes(), BINDING, SERVER)
    text = home.read(".hermes/config.yaml")
    home.write(".hermes/config.yaml", FOREIGN + text[text.index("hooks:") :])
    for done in (True, False):
        outcome = remove_agent(Hermes())
        assert (outcome.done, outcome.notes) == (
            done,
            ["~/.hermes/config.yaml has an MCP server `funes` that runs something else (`mine`); it stays."],
        )
    assert home.read(".hermes/config.yaml") == FOREIGN


def test_a_server_of_that_name_comes_back(home):
    home.write(".hermes/config.yaml", "mcp_servers:\n  funes: {command: funes, args: [mcp]}  # my own\n")
    before = home.tree()
    add_agent(Hermes(), BINDING, SERVER)
    assert config(home)["mcp_servers"]["funes"]["command"] == "/opt/funes/bin/funes"
    remove_agent(Hermes())
    assert home.tree() == before
    add_agent(Hermes(), BINDING, SERVER)
    home.write(".hermes/config.yaml", home.read(".hermes/config.yaml") + "late: 1\n")
    remove_agent(Hermes())
    assert config(home) == {"mcp_servers": {"funes": {"command": "funes", "args": ["mcp"]}}, "late": 1}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("a: [1", r"is not valid YAML \(line 1\)"),
        ("- a\n", "is no YAML mapping"),
        ("mcp_servers: text\n", "has no mapping at `mcp_servers`"),
        ("hooks: [1]\n", "has no mapping at `hooks`"),
    ],
)
def test_a_config_that_cannot_be_edited_is_left_alone(home, content, why):
    home.write(".hermes/config.yaml", content)
    before = home.tree()
    with pytest.raises(FunesError, match=rf"~/\.hermes/config\.yaml {why}; mend it first, nothing was changed"):
        add_agent(Hermes(), BINDING, SERVER)
    assert home.tree() == before


@pytest.mark.parametrize("content", ["{bad", "[]", '{"approvals": 1}'])
def test_approvals_that_cannot_be_edited_are_left_alone(home, content):
    home.write(".hermes/shell-hooks-allowlist.json", content)
    before = home.tree()
    with pytest.raises(FunesError, match="mend it first, nothing was changed"):
        add_agent(Hermes(), BINDING, SERVER)
    assert home.tree() == before


def test_a_place_that_cannot_be_added_to_leaves_nothing_half_done(home):
    home.write(".hermes/config.yaml", "hooks:\n  post_llm_call: text\n")
    before = home.tree()
    with pytest.raises(FunesError, match="is laid out so that funes cannot add to it"):
        add_agent(Hermes(), BINDING, SERVER)
    assert home.tree() == before


def test_a_read_only_config_is_left_alone(home):
    path = home.write(".hermes/config.yaml", CONFIG)
    path.chmod(0o400)
    before = home.tree()
    with pytest.raises(FunesError, match=r"~/\.hermes/config\.yaml is read-only, so funes leaves it alone"):
        add_agent(Hermes(), BINDING, SERVER)
    assert home.tree() == before


def test_approvals_that_cannot_be_written_leave_nothing_half_done(home):
    home.write(".hermes/config.yaml", CONFIG)
    home.write(".hermes/shell-hooks-allowlist.json", APPROVALS).chmod(0o400)
    before = home.tree()
    with pytest.raises(FunesError, match=r"shell-hooks-allowlist\.json is read-only, so funes leaves it alone"):
        add_agent(Hermes(), BINDING, SERVER)
    assert home.tree() == before


def test_what_hermes_lacks_is_said(home):
    interpreter = home.programs.parent / "python3"
    (home.programs / "hermes").write_text(f"#!{interpreter}\n")
    for said, fault in (
        ("0.19.0 False True", r"has no MCP client; install it .*hermes-agent\[mcp\]"),
        ("0.9.0 True False", r"Hermes 0\.9\.0 has no shell hooks; update it"),
    ):
        interpreter.write_text(f"#!/bin/sh\necho {said}\n")
        interpreter.chmod(0o755)
        with pytest.raises(FunesError, match=fault):
            add_agent(Hermes(), BINDING, SERVER)
    interpreter.write_text("#!/bin/sh\necho 0.19.0 True True\n")
    assert add_agent(Hermes(), BINDING, SERVER).agent == "Hermes 0.19.0"


def test_no_program(home):
    (home.programs / "hermes").unlink()
    with pytest.raises(FunesError, match="Hermes is not on this machine"):
        add_agent(Hermes(), BINDING, SERVER)
    assert home.tree() == {}


def test_the_folder_can_be_elsewhere(home):
    home.set("HERMES_HOME", str(home.path / "elsewhere"))
    add_agent(Hermes(), BINDING, SERVER)
    assert "funes" in home.read("elsewhere/config.yaml")
    remove_agent(Hermes())
    assert home.tree() == {}


def test_a_folder_without_rights(home):
    with without_rights() as folder:
        (folder / ".hermes").mkdir()
        (folder / ".hermes").chmod(0o500)
        home.set("HOME", str(folder))
        home.set("PATH", str(folder))
        (folder / "hermes").write_text("#!/bin/sh\n")
        (folder / "hermes").chmod(0o755)
        with pytest.raises(FunesError, match=r"~/\.hermes/config\.yaml cannot be written: Permission denied"):
            add_agent(Hermes(), BINDING, SERVER)
        assert sorted(path.name for path in folder.iterdir()) == [".hermes", "hermes"]


def test_no_lock_stays_behind_and_one_that_was_there_does(home):
    add_agent(Hermes(), BINDING, SERVER)
    lock = home.path / ".hermes/shell-hooks-allowlist.json.lock"
    assert not lock.exists()
    lock.touch()
    remove_agent(Hermes())
    assert lock.exists()


def test_removing_when_hermes_is_gone_altogether(home):
    add_agent(Hermes(), BINDING, SERVER)
    for name in ("config.yaml", "shell-hooks-allowlist.json"):
        (home.path / ".hermes" / name).unlink()
    (home.path / ".hermes").rmdir()
    assert remove_agent(Hermes()).done
    assert home.tree() == {}
