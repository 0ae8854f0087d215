"""Adding funes to Claude Code and taking it back; the program is a stand-in that writes what the real one writes."""

from __future__ import annotations

import json

import pytest

from funes.agents.claude import PLUGIN, Claude
from funes.agents.install import add_agent, remove_agent
from funes.errors import FunesError
from tests.support.agent_programs import BINDING, OTHER_BINDING, SERVER, AgentHome
from tests.support.secret_samples import NAMED_SHAPES, positives

SETTINGS = '{\n\t"model": "opus",\n\t"permissions": {"allow": ["Bash(ls:*)"]}\n}'
CONFIG = '{"hasCompletedOnboarding":true,"x":0.0000123,"mcpServers":{"other":{"command":"x"}}}'


@pytest.fixture
def home(tmp_path, monkeypatch):
    return AgentHome(tmp_path, monkeypatch, ("claude",))


def commands(home):
    return [json.loads(line) for line in home.log.read_text().splitlines()]


def test_what_is_registered(home):
    outcome = add_agent(Claude(), BINDING, SERVER)
    assert outcome.agent == "Claude Code 2.1.332"
    assert json.loads(home.read(".claude.json"))["mcpServers"]["funes"] == {
        "type": "stdio",
        "command": "/opt/funes/bin/funes",
        "args": ["mcp"],
        "env": {"FUNES_HOME": "/data/funes"},
        "alwaysLoad": True,
    }
    settings = json.loads(home.read(".claude/settings.json"))
    assert settings["enabledPlugins"] == {PLUGIN: True}
    folder = settings["extraKnownMarketplaces"]["funes-local"]["source"]["path"]
    assert folder == str(home.path / ".funes" / "agents" / "claude")
    hooks = json.loads(home.read(".funes/agents/claude/funes/hooks/hooks.json"))["hooks"]
    assert sorted(hooks) == ["SessionEnd", "SessionStart", "Stop"]
    (hook,) = hooks["Stop"][0]["hooks"]
    assert hook["command"].startswith("/bin/sh -c '{ /")
    assert "hook.py claude" in hook["command"]
    assert {str(change.path.relative_to(home.path)): change.kind for change in outcome.changes} == {
        ".claude.json": "created",
        ".claude/plugins/cache/funes-local": "created",
        ".claude/plugins/installed_plugins.json": "created",
        ".claude/plugins/known_marketplaces.json": "created",
        ".claude/settings.json": "created",
        ".funes/agents/claude": "created",
    }
    assert (home.path / ".funes/agents/claude.json").stat().st_mode & 0o777 == 0o600


def test_settings_are_never_written_by_hand(home):
    add_agent(Claude(), BINDING, SERVER)
    assert [command[:2] for command in commands(home)] == [
        ["mcp", "add-json"],
        ["plugin", "marketplace"],
        ["plugin", "install"],
    ]


@pytest.mark.parametrize("seeded", [False, True])
def test_remove_leaves_every_file_as_it_was(home, seeded):
    if seeded:
        home.write(".claude/settings.json", SETTINGS)
        home.write(".claude.json", CONFIG).chmod(0o600)
        home.write(".claude/plugins/known_marketplaces.json", '{"mine": {"source": {}}}')
        home.write(".claude/backups/.claude.json.backup.1", "{}")
    before = home.tree()
    add_agent(Claude(), BINDING, SERVER)
    assert home.tree() != before
    outcome = remove_agent(Claude())
    assert outcome.done
    assert home.tree() == before
    again = remove_agent(Claude())
    assert not again.done
    assert home.tree() == before


@pytest.mark.parametrize("seeded", [False, True])
def test_files_that_changed_since_lose_only_what_is_of_funes(home, seeded):
    if seeded:
        home.write(".claude/settings.json", SETTINGS)
        home.write(".claude.json", CONFIG)
    add_agent(Claude(), BINDING, SERVER)
    for name in (".claude.json", ".claude/settings.json"):
        value = json.loads(home.read(name))
        home.write(name, json.dumps(value | {"later": 1}, indent=2))
    home.write(".claude/plugins/data/funes-funes-local/x", "")
    remove_agent(Claude())
    assert json.loads(home.read(".claude/settings.json")) == (json.loads(SETTINGS) if seeded else {}) | {"later": 1}
    config = json.loads(home.read(".claude.json"))
    del config["firstStartTime"]
    assert config == (json.loads(CONFIG) if seeded else {}) | {"later": 1}
    assert sorted(name for name in home.tree() if "funes" in name) == []
    assert not (home.path / ".claude/plugins").exists()
    # Claude's own copy of the configuration from before, which has not come back as it was.
    assert list((home.path / ".claude/backups").iterdir())


def test_maps_that_were_empty_before_stay(home):
    home.write(".claude/settings.json", '{"enabledPlugins": {}, "extraKnownMarketplaces": {}}')
    home.write(".claude.json", '{"mcpServers": {}}')
    add_agent(Claude(), BINDING, SERVER)
    for name in (".claude.json", ".claude/settings.json"):
        home.write(name, json.dumps(json.loads(home.read(name)) | {"later": 1}))
    remove_agent(Claude())
    settings = {"enabledPlugins": {}, "extraKnownMarketplaces": {}, "later": 1}
    assert json.loads(home.read(".claude/settings.json")) == settings
    assert json.loads(home.read(".claude.json"))["mcpServers"] == {}


def test_adding_twice_changes_nothing_and_another_binding_everything(home):
    home.write(".claude/settings.json", SETTINGS)
    before = home.tree()
    add_agent(Claude(), BINDING, SERVER)
    added = home.tree()
    assert not add_agent(Claude(), BINDING, SERVER).done
    assert home.tree() == added
    outcome = add_agent(Claude(), OTHER_BINDING, SERVER)
    assert outcome.done
    server = json.loads(home.read(".claude.json"))["mcpServers"]["funes"]
    assert (server["args"], server["env"]) == (["mcp", "/data/team memory"], {})
    hooks = home.read(".funes/agents/claude/funes/hooks/hooks.json")
    assert "/data/team memory" in hooks
    remove_agent(Claude())
    assert home.tree() == before


def test_retention_is_told_once(home):
    home.write(".claude/settings.json", '{"cleanupPeriodDays": 365}')
    told = [add_agent(Claude(), binding, SERVER).notes for binding in (BINDING, OTHER_BINDING)]
    assert any("after 365 days" in note and "the memory keeps them" in note for note in told[0])
    assert not any("deletes" in note for note in told[1])


def test_the_default_retention(home):
    (advice,) = Claude().advice()
    assert advice.startswith("Claude Code deletes its sessions after 30 days unless `cleanupPeriodDays` in ~/.claude/")


@pytest.mark.parametrize("command", ["mcp add-json", "plugin marketplace", "plugin install"])
@pytest.mark.parametrize("seeded", [False, True])
def test_a_failing_command_leaves_nothing_half_done(home, command, seeded):
    if seeded:
        home.write(".claude/settings.json", SETTINGS)
        home.write(".claude.json", CONFIG)
    before = home.tree()
    home.set("STAND_IN_FAILS", command)
    with pytest.raises(FunesError, match=f"`claude {command}` failed, so funes was not added: error: out of cheese"):
        add_agent(Claude(), BINDING, SERVER)
    left = {name for name in home.tree() if not name.startswith(".claude/backups") and name != ".claude"}
    assert left == {name for name in before if name != ".claude"}
    assert {name: home.tree()[name] for name in before} == before


def test_what_a_failing_command_says_is_told_without_credentials(home):
    sample = next(iter(positives(seed=3)))
    home.set("STAND_IN_FAILS", "mcp add-json")
    home.set("STAND_IN_SAYS", " ".join(NAMED_SHAPES["docker"]("API_KEY", sample.secrets[0]).split()))
    with pytest.raises(FunesError) as fault:
        add_agent(Claude(), BINDING, SERVER)
    assert "[REDACTED]" in fault.value.message
    assert not any(secret in fault.value.message for secret in sample.secrets)


def test_a_failing_command_leaves_the_binding_before(home):
    add_agent(Claude(), BINDING, SERVER)
    before = home.tree()
    home.set("STAND_IN_FAILS", "plugin install")
    with pytest.raises(FunesError):
        add_agent(Claude(), OTHER_BINDING, SERVER)
    assert home.tree() == before


def test_failing_commands_do_not_keep_funes_from_being_removed(home):
    add_agent(Claude(), BINDING, SERVER)
    home.write(".claude/settings.json", json.dumps(json.loads(home.read(".claude/settings.json")) | {"later": 1}))
    for name in ("mcp remove", "plugin uninstall", "plugin marketplace"):
        home.set("STAND_IN_FAILS", name)
    remove_agent(Claude())
    assert json.loads(home.read(".claude/settings.json")) == {"later": 1}


def test_removing_without_the_program_and_without_the_receipt(home):
    home.write(".claude/settings.json", SETTINGS)
    add_agent(Claude(), BINDING, SERVER)
    (home.programs / "claude").unlink()
    (home.path / ".funes/agents/claude.json").write_text("not a receipt")
    remove_agent(Claude())
    settings = json.loads(home.read(".claude/settings.json"))
    assert settings == {**json.loads(SETTINGS), "enabledPlugins": {}, "extraKnownMarketplaces": {}}
    assert json.loads(home.read(".claude.json"))["mcpServers"] == {}
    assert not [name for name in home.tree() if "funes-local" in name or ".funes/" in name]


FOREIGN = {"mcpServers": {"funes": {"type": "stdio", "command": "/opt/bin/mine", "args": ["--key", "hunter2"]}}}


def test_a_server_of_somebody_else_is_not_replaced(home):
    home.write(".claude.json", json.dumps(FOREIGN))
    before = home.tree()
    with pytest.raises(FunesError) as raised:
        add_agent(Claude(), BINDING, SERVER)
    assert raised.value.message == (
        "~/.claude.json has an MCP server `funes` that runs something else (`mine`); give it another name or take it "
        "out, then run `funes add claude` again."
    )
    assert home.tree() == before


def test_a_server_of_somebody_else_stays(home):
    home.write(".claude.json", json.dumps(FOREIGN))
    before = home.tree()
    outcome = remove_agent(Claude())
    assert (outcome.done, len(outcome.notes)) == (False, 1)
    assert home.tree() == before
    (home.path / ".claude.json").unlink()
    add_agent(Claude(), BINDING, SERVER)
    home.write(".claude.json", json.dumps(FOREIGN))
    for done in (True, False):
        outcome = remove_agent(Claude())
        assert (outcome.done, outcome.notes) == (
            done,
            ["~/.claude.json has an MCP server `funes` that runs something else (`mine`); it stays."],
        )
        assert json.loads(home.read(".claude.json"))["mcpServers"] == FOREIGN["mcpServers"]


def test_a_server_of_that_name_comes_back(home):
    config = {"mcpServers": {"funes": {"command": "funes", "args": ["mcp", "team"]}}}
    home.write(".claude.json", json.dumps(config))
    before = home.tree()
    add_agent(Claude(), BINDING, SERVER)
    remove_agent(Claude())
    assert home.tree() == before
    add_agent(Claude(), BINDING, SERVER)
    home.write(".claude.json", json.dumps(json.loads(home.read(".claude.json")) | {"later": 1}))
    remove_agent(Claude())
    assert json.loads(home.read(".claude.json"))["mcpServers"] == config["mcpServers"]


@pytest.mark.parametrize("name", [".claude.json", ".claude/settings.json", ".claude/plugins/known_marketplaces.json"])
@pytest.mark.parametrize("content", ["{bad", "[]", '{"a": 1,}'])
def test_a_file_that_cannot_be_parsed_is_left_alone(home, name, content):
    home.write(name, content)
    before = home.tree()
    with pytest.raises(FunesError, match=r"is (not valid|no) JSON.*; mend it first, nothing was changed"):
        add_agent(Claude(), BINDING, SERVER)
    assert home.tree() == before
    assert not home.log.exists()


@pytest.mark.parametrize("name", [".claude.json", ".claude/settings.json"])
def test_a_read_only_file_is_left_alone(home, name):
    home.write(name, "{}").chmod(0o400)
    before = home.tree()
    with pytest.raises(FunesError, match="is read-only, so funes leaves it alone"):
        add_agent(Claude(), BINDING, SERVER)
    assert home.tree() == before
    assert not home.log.exists()


def test_a_file_that_cannot_be_parsed_when_removing(home):
    add_agent(Claude(), BINDING, SERVER)
    home.write(".claude/settings.json", "{bad")
    before = home.tree()
    with pytest.raises(FunesError, match=r"settings\.json is not valid JSON"):
        remove_agent(Claude())
    assert home.tree() == before


def test_no_program(home):
    (home.programs / "claude").unlink()
    with pytest.raises(FunesError, match="Claude Code is not on this machine"):
        add_agent(Claude(), BINDING, SERVER)
    assert home.tree() == {}


def test_an_old_version_is_not_asked_for_plugins(home):
    home.set("STAND_IN_VERSION", "1.0.128")
    with pytest.raises(FunesError, match=r"Claude Code 1\.0\.128 has no plugins; update it"):
        add_agent(Claude(), BINDING, SERVER)
    assert home.tree() == {}
    assert not home.log.exists()


def test_the_folder_of_the_configuration_can_be_elsewhere(home):
    home.set("CLAUDE_CONFIG_DIR", str(home.path / "elsewhere"))
    (home.path / "elsewhere").mkdir()
    before = home.tree()
    add_agent(Claude(), BINDING, SERVER)
    assert "funes" in json.loads(home.read("elsewhere/.claude.json"))["mcpServers"]
    assert not (home.path / ".claude").exists()
    remove_agent(Claude())
    assert home.tree() == before


def test_the_early_configuration_file_is_found(home):
    home.write(".claude/.config.json", "{}")
    add_agent(Claude(), BINDING, SERVER)
    assert "funes" in json.loads(home.read(".claude/.config.json"))["mcpServers"]
    assert not (home.path / ".claude.json").exists()
