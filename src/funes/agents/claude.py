"""Claude Code: an MCP server of the user's, and a plugin with hooks from a folder that serves as its marketplace.

All of Claude's own files are changed by its own commands. Taking funes out again, what those leave behind (empty maps,
the cached copy of the plugin, the note that a plugin was declined) is cut out without touching another byte.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from funes.agents import files, json_text, programs
from funes.agents.assets import copy_assets, hooks_json, same_assets
from funes.agents.journal import note_known
from funes.agents.json_text import Key
from funes.agents.model import SERVER, Binding, Watch, base_around, base_in, foreign_server, is_own_server
from funes.errors import FunesError
from funes.paths import funes_home, shown

MARKETPLACE = "funes-local"
PLUGIN = f"funes@{MARKETPLACE}"
OLDEST = "2.0.12"
"""The first version with plugins; one before it would take the command for a prompt."""

HOOK_SECONDS = {"SessionStart": 10, "Stop": 10, "SessionEnd": 10}
RETENTION_DAYS = 30

# Claude sets the first ones for what it runs; the others keep a command for registering from doing anything else.
_NOT_PASSED_ON = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID")
_QUIET = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
_SERVER: tuple[Key, ...] = ("mcpServers", SERVER)
_MAPS: dict[str, tuple[tuple[Key, ...], ...]] = {
    "config": (("mcpServers",), ("declinedPlugins",), ()),
    "settings": (("enabledPlugins",), ("extraKnownMarketplaces",), ()),
    "marketplaces": ((),),
    "plugins": ((),),
}


class Claude:
    """See `funes.agents.model.Agent`."""

    name = "claude"
    title = "Claude Code"

    def __init__(self) -> None:
        override = os.environ.get("CLAUDE_CONFIG_DIR")
        self.home = Path(override).expanduser() if override else Path.home() / ".claude"
        early = self.home / ".config.json"  # where the first versions had it; Claude goes on using it
        self.config = early if early.is_file() else (self.home if override else Path.home()) / ".claude.json"
        self.settings = self.home / "settings.json"
        self.marketplaces = self.home / "plugins" / "known_marketplaces.json"
        self.plugins = self.home / "plugins" / "installed_plugins.json"
        self.cache = self.home / "plugins" / "cache" / MARKETPLACE
        self.data = self.home / "plugins" / "data" / f"funes-{MARKETPLACE}"
        self.backups = self.home / "backups"
        self.base = funes_home().absolute()

    @property
    def folder(self) -> Path:
        """Folder of the plugin."""
        return self.base / "agents" / self.name

    def program(self) -> Path | None:
        """The `claude` program."""
        local = Path.home() / ".local" / "bin" / "claude"
        return programs.find_program("claude", (self.home / "local" / "claude", local))

    def version(self) -> str:
        """What `claude --version` says."""
        return programs.version_of(self._run("--version").output) if self.program() else ""

    def check(self) -> None:
        """See the protocol."""
        if self.program() is None:
            raise FunesError(
                "Claude Code is not on this machine (there is no `claude` on PATH); install it, then run `funes add "
                "claude` again."
            )
        version = self.version()
        if not programs.at_least(version, OLDEST):
            raise FunesError(f"Claude Code {version} has no plugins; update it (`claude update`) to {OLDEST} or newer.")
        for path in (self.config, self.settings, self.marketplaces, self.plugins):
            _, value = json_text.load(path)
            if value is not None and not isinstance(value, dict):
                raise files.unfit(path, "is no JSON object")
            files.check_writable(path)
        programs.refuse_foreign(self.foreign(), self.name)

    def watch(self) -> Watch:
        """See the protocol."""
        return Watch(
            files=(self.config, self.settings, self.marketplaces, self.plugins),
            trees=(self.folder, self.cache, self.data),
            folders=(self.home / "plugins" / "marketplaces", self.backups),
        )

    def named_base(self) -> Path | None:
        """See the protocol."""
        source = _map(_map(_object(self.marketplaces), MARKETPLACE), "source").get("path")
        return base_around(source, self.name) or base_in(self._server())

    def parts(self) -> list[Path]:
        """See the protocol."""
        found = dict.fromkeys(path for path, entry in self._own() if entry != _SERVER)
        return [*found, *(folder for folder in (self.folder, self.cache) if folder.exists())]

    def has_server(self) -> bool:
        """See the protocol."""
        return is_own_server(self._server())

    def foreign(self) -> str:
        """See the protocol."""
        return foreign_server(self._server(), self.config)

    def registered(self, binding: Binding, server: Mapping[str, Any]) -> bool:
        """See the protocol."""
        settings, config = _object(self.settings), _object(self.config)
        source = _map(_map(_object(self.marketplaces), MARKETPLACE), "source")
        hooks = self._hooks(binding)
        copies = [path for path in self.cache.glob("*/*/hooks/hooks.json") if path.is_file()]
        return (
            # A version that does not know `alwaysLoad` leaves it out.
            _map(config, "mcpServers").get(SERVER, {}) | {"alwaysLoad": True} == _entry(binding)
            and _map(settings, "enabledPlugins").get(PLUGIN) is True
            and source.get("path") == os.fspath(self.folder)
            and PLUGIN in _map(_object(self.plugins), "plugins")
            and same_assets(self.name, self.folder, hooks)
            and all(files.read(path) in hooks.values() for path in copies)  # versions before 2.1 run the copy
        )

    def register(self, binding: Binding, server: Mapping[str, Any], *, trust: bool) -> tuple[dict[str, Any], list[str]]:
        """See the protocol."""
        absent = {
            name: [list(path) for path in maps if _missing(getattr(self, name), path)] for name, maps in _MAPS.items()
        }
        servers = _map(_object(self.config), "mcpServers")
        known: dict[str, Any] = {"absent": absent, "data": self.data.parent.is_dir()}
        backups = set(_names(self.backups))
        note_known(known | {"had": sorted(backups)})
        if SERVER in servers:
            known["server"] = servers[SERVER]
            self._demand("mcp", "remove", SERVER, "-s", "user")
        copy_assets(self.name, self.folder, self._hooks(binding))
        self._demand("mcp", "add-json", SERVER, json.dumps(_entry(binding)), "-s", "user")
        self._demand("plugin", "marketplace", "add", os.fspath(self.folder))
        self._demand("plugin", "install", PLUGIN)
        if not self.registered(binding, server):
            done = f"Claude Code {self.version()} took the commands but did not store what they say"
            raise FunesError(f"{done}, so funes was not added; update it, then try again.")
        # Claude backs its configuration up when it first writes into it, which is here.
        known["backups"] = sorted(set(_names(self.backups)) - backups)
        known["config"] = files.digest(files.read(self.config) or b"")
        return known, ["Sessions of Claude Code that are open now get the tools when they are started again."]

    def advice(self) -> list[str]:
        """See the protocol: Claude does not keep its sessions."""
        days = _object(self.settings).get("cleanupPeriodDays")
        if isinstance(days, (int, float)):
            return [f"Claude Code deletes its sessions after {days:g} days (cleanupPeriodDays); the memory keeps them."]
        unless = f"unless `cleanupPeriodDays` in {shown(self.settings)} says otherwise"
        return [f"Claude Code deletes its sessions after {RETENTION_DAYS} days {unless}; the memory keeps them."]

    def unregister(self, known: Mapping[str, Any]) -> None:
        """See the protocol."""
        self._check_json()
        present = {path for path, _ in self._own()}
        others = set(_names(self.backups)) - set(known.get("backups", ()))
        if "had" in known:
            others = set(known["had"])  # `add` was killed
        unused = files.digest(files.read(self.config) or b"") == known.get("config")
        unused = unused or os.fspath(self.config) in known.get("untouched", ())
        if self.program() is not None:
            # Claude's own commands first; what they cannot do is done below.
            if self.plugins in present:
                self._run("plugin", "uninstall", PLUGIN)
            if self.marketplaces in present:
                self._run("plugin", "marketplace", "remove", MARKETPLACE)
            if self.has_server():
                self._run("mcp", "remove", SERVER, "-s", "user")
            if (earlier := known.get("server")) and self._server() is None:
                self._run("mcp", "add-json", SERVER, json.dumps(earlier), "-s", "user")
        kept = _SERVER if known.get("server") else ()
        absent = known.get("absent", {})
        for name in _MAPS:
            path: Path = getattr(self, name)
            own = [entry for file, entry in self._own() if file == path and tuple(entry) != kept]
            json_text.strip(path, own, absent.get(name, ()))
            _empty_plugins(path, absent.get(name, ()))
        for folder in (self.cache, self.data, self.folder):
            files.delete_tree(folder)
        if not known.get("data", True):
            files.delete_empty((self.data.parent,))  # Claude makes it for the first plugin that runs
        if unused:
            # As it was before: nothing has happened since that the backups, of then and of now, could be wanted for.
            for backup in set(_names(self.backups)) - others:
                files.delete(self.backups / backup)

    def describe(self, path: Path) -> str:
        """See the protocol."""
        said = {
            self.config: f'MCP server "{SERVER}", for all projects',
            self.settings: f"plugin {PLUGIN}",
            self.marketplaces: "Claude's list of marketplaces",
            self.plugins: "Claude's list of plugins",
        }
        if path.is_relative_to(self.folder):
            return "the plugin: its hooks index after each turn"
        if path.is_relative_to(self.cache):
            return "Claude's copy of the plugin"
        return said.get(path, "written by Claude Code itself")

    def _server(self) -> Any:
        """The MCP server with the name of ours, None for none."""
        return _map(_object(self.config), "mcpServers").get(SERVER)

    def _check_json(self) -> None:
        for name in _MAPS:
            json_text.load(getattr(self, name))

    def _own(self) -> Iterator[tuple[Path, Sequence[Key]]]:
        """Every entry of funes in Claude's files: the file, and names and numbers that lead there."""
        config, settings = _object(self.config), _object(self.settings)
        if is_own_server(_map(config, "mcpServers").get(SERVER)):
            yield self.config, _SERVER
        for number in json_text.positions(config.get("declinedPlugins"), lambda item: item == PLUGIN):
            yield self.config, ("declinedPlugins", number)
        for name, key in (("enabledPlugins", PLUGIN), ("extraKnownMarketplaces", MARKETPLACE)):
            if key in _map(settings, name):
                yield self.settings, (name, key)
        if MARKETPLACE in _object(self.marketplaces):
            yield self.marketplaces, (MARKETPLACE,)
        if PLUGIN in _map(_object(self.plugins), "plugins"):
            yield self.plugins, ("plugins", PLUGIN)

    def _hooks(self, binding: Binding) -> dict[str, bytes]:
        line = binding.hook_line(self.name)
        return {"funes/hooks/hooks.json": hooks_json({event: (line, limit) for event, limit in HOOK_SECONDS.items()})}

    def _run(self, *arguments: str) -> programs.Done:
        program = self.program()
        assert program is not None
        return programs.run(program, arguments, remove=_NOT_PASSED_ON, add=_QUIET)

    def _demand(self, *arguments: str) -> None:
        done = self._run(*arguments)
        if done.code:
            command = " ".join(arguments[:2])
            raise FunesError(f"`claude {command}` failed, so funes was not added: {done.reason()}")


def _entry(binding: Binding) -> dict[str, Any]:
    """The MCP server for Claude. `alwaysLoad` makes its first turn wait for the tools."""
    return {
        "type": "stdio",
        "command": binding.program[0],
        "args": binding.arguments,
        "env": dict(binding.env),
        "alwaysLoad": True,
    }


def _object(path: Path) -> dict[str, Any]:
    value = json_text.load(path)[1]
    return value if isinstance(value, dict) else {}


def _map(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    inner = value.get(name)
    return inner if isinstance(inner, dict) else {}


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _missing(path: Path, keys: Sequence[Key]) -> bool:
    """Whether a file has no entry there; without keys, whether there is no file."""
    text, value = json_text.load(path)
    return value is None if not keys else value is None or json_text.find(json_text.parse(text), keys) is None


def _empty_plugins(path: Path, absent: Sequence[Sequence[Key]]) -> None:
    """Delete Claude's list of plugins when it is empty and Claude had made it for funes: it keeps a version number."""
    if [] in absent and path.name == "installed_plugins.json" and _object(path).get("plugins") == {}:
        files.delete(path)
