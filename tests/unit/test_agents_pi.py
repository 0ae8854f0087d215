"""Adding funes to pi and taking it back: one folder."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

from funes.agents import assets
from funes.agents.install import add_agent, remove_agent
from funes.agents.pi import Pi
from funes.errors import FunesError
from tests.support.agent_programs import BINDING, OTHER_BINDING, SERVER, AgentHome, without_rights


@pytest.fixture
def home(tmp_path, monkeypatch):
    return AgentHome(tmp_path, monkeypatch, ("pi",))


def package(home, version):
    """pi as npm installs it: a link to a script inside a package."""
    folder = home.programs.parent / "node_modules" / "@earendil-works" / "pi-coding-agent"
    (folder / "dist").mkdir(parents=True)
    (folder / "package.json").write_text(json.dumps({"name": "@earendil-works/pi-coding-agent", "version": version}))
    script = folder / "dist" / "cli.js"
    script.write_text("#!/usr/bin/env node\n")
    script.chmod(0o755)
    (home.programs / "pi").unlink()
    (home.programs / "pi").symlink_to(script)


def test_what_is_registered(home):
    package(home, "1.6.0")
    outcome = add_agent(Pi(), OTHER_BINDING, SERVER)
    settings = json.loads(home.read(".pi/agent/extensions/funes/funes.json"))
    assert settings["command"] == ["/opt/funes/bin/funes", "mcp", "/data/team memory"]
    assert settings["hook"][:2] == ["/bin/sh", "-c"]
    assert "hook.py pi --memory" in settings["hook"][2]
    assert settings["tools"] == SERVER["tools"]
    assert set(settings["prompts"]) == {"recall", "get"}
    assert "./index.ts" in home.read(".pi/agent/extensions/funes/package.json")
    assert "registerTool" in home.read(".pi/agent/extensions/funes/index.ts")
    assert outcome.agent == "pi 1.6.0"
    assert [(change.kind, change.path) for change in outcome.changes] == [
        ("created", home.path / ".pi/agent/extensions/funes")
    ]


@pytest.mark.parametrize("seeded", [False, True])
def test_remove_leaves_every_file_as_it_was(home, seeded):
    if seeded:
        home.write(".pi/agent/extensions/mine/index.ts", "// mine")
        home.write(".pi/agent/settings.json", "{}")
    before = home.tree()
    add_agent(Pi(), BINDING, SERVER)
    assert not add_agent(Pi(), BINDING, SERVER).done
    assert add_agent(Pi(), OTHER_BINDING, SERVER).done
    home.write(".pi/agent/extensions/funes/index.ts", "// edited")
    assert remove_agent(Pi()).done
    assert home.tree() == before
    assert not remove_agent(Pi()).done


def test_other_tools_of_a_newer_server_are_taken_over(home):
    add_agent(Pi(), BINDING, SERVER)
    newer = {**SERVER, "tools": [*SERVER["tools"], {**SERVER["tools"][0], "name": "get"}]}
    assert add_agent(Pi(), BINDING, newer).done
    assert len(json.loads(home.read(".pi/agent/extensions/funes/funes.json"))["tools"]) == 2


def test_a_foreign_extension_of_that_name_is_left_alone(home):
    home.write(".pi/agent/extensions/funes/index.ts", "// mine")
    before = home.tree()
    with pytest.raises(FunesError, match=r"~/\.pi/agent/extensions/funes is an extension that is not of funes"):
        add_agent(Pi(), BINDING, SERVER)
    outcome = remove_agent(Pi())
    assert not outcome.done
    assert outcome.notes == ["~/.pi/agent/extensions/funes is an extension that is not of funes; it stays."]
    assert home.tree() == before


def test_no_program_and_an_old_one(home):
    package(home, "0.52.1")
    with pytest.raises(FunesError, match=r"pi 0\.52\.1 is older than 0\.73"):
        add_agent(Pi(), BINDING, SERVER)
    (home.programs / "pi").unlink()
    with pytest.raises(FunesError, match="pi is not on this machine"):
        add_agent(Pi(), BINDING, SERVER)
    assert home.tree() == {}


def test_the_folder_can_be_elsewhere(home):
    home.set("PI_CODING_AGENT_DIR", str(home.path / "elsewhere"))
    add_agent(Pi(), BINDING, SERVER)
    assert (home.path / "elsewhere/extensions/funes/index.ts").is_file()
    remove_agent(Pi())
    assert home.tree() == {}


def test_a_folder_that_cannot_be_written(home):
    files(assets)  # imports what an ordinary user may not be allowed to read
    with without_rights() as folder:
        (folder / "agent").mkdir()
        (folder / "agent").chmod(0o500)
        (folder / "home").mkdir()
        home.set("PI_CODING_AGENT_DIR", str(folder / "agent"))
        home.set("HOME", str(folder / "home"))
        home.set("PATH", str(folder))
        (folder / "pi").write_text("#!/bin/sh\n")
        (folder / "pi").chmod(0o755)
        with pytest.raises(FunesError, match=r"extensions/funes/.* cannot be written: Permission denied"):
            add_agent(Pi(), BINDING, SERVER)
        assert list((folder / "home").iterdir()) == []
        (folder / "agent").chmod(0o700)
        assert list((folder / "agent").iterdir()) == []
