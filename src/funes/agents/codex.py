"""Codex: an MCP server in config.toml, and a plugin with hooks from a folder that serves as its marketplace.

A plugin's hooks have places of their own. In hooks.json they would stand among the user's, whose trust depends on where
each of them stands.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from funes.agents import codex_config, files, programs
from funes.agents.assets import copy_assets, hooks_json, same_assets
from funes.agents.journal import noting_command
from funes.agents.model import SERVER, Binding, Watch, base_around, base_in, foreign_server, is_own_server
from funes.errors import FunesError
from funes.paths import funes_home, shown

MARKETPLACE = "funes-local"
PLUGIN = f"funes@{MARKETPLACE}"
HOOK_SECONDS = {"SessionStart": 10, "Stop": 10, "SessionEnd": 3}
"""Codex gives the end of a session no more than 3."""

DIALOG = (
    'Codex asks whether to trust new hooks when it starts next ("Hooks need review"): choose to trust those of funes. '
    "Until then, and in `codex exec`, it skips them silently, and sessions are not indexed on their own. "
    "`funes add codex --trust-hooks` trusts them without the dialog."
)


class Codex:
    """See `funes.agents.model.Agent`."""

    name = "codex"
    title = "Codex"

    def __init__(self) -> None:
        override = os.environ.get("CODEX_HOME")
        self.home = Path(override).expanduser() if override else Path.home() / ".codex"
        self.config = self.home / "config.toml"
        self.cache = self.home / "plugins" / "cache" / MARKETPLACE
        self.trusted = self.home / ".hook-trust"
        self.base = funes_home().absolute()

    @property
    def folder(self) -> Path:
        """Folder of the plugin."""
        return self.base / "agents" / self.name

    def program(self) -> Path | None:
        """The `codex` program."""
        return programs.find_program("codex", (Path.home() / ".local" / "bin" / "codex",))

    def version(self) -> str:
        """What `codex --version` says."""
        return programs.version_of(self._run("--version").output) if self.program() else ""

    def check(self) -> None:
        """See the protocol."""
        if self.program() is None:
            raise FunesError(
                "Codex is not on this machine (there is no `codex` on PATH); install it, then run `funes add codex` "
                "again."
            )
        programs.refuse_foreign(self.foreign(), self.name)
        files.check_writable(self.config)
        if self.home.exists() and not self.home.is_dir():
            raise FunesError(f"{shown(self.home)} is not a folder, so Codex cannot keep anything there.")
        if self._run("plugin", "marketplace", "add", "--help").code:
            raise FunesError(f"Codex {self.version()} has no plugins from folders; update it, then try again.")

    def watch(self) -> Watch:
        """See the protocol."""
        return Watch(
            files=(self.config,),
            trees=(self.folder, self.cache, self.trusted),
            folders=(self.home / ".tmp" / "marketplaces",),
        )

    def named_base(self) -> Path | None:
        """See the protocol."""
        value = codex_config.load(self.config)[1]
        source = _table(_table(value, "marketplaces"), MARKETPLACE).get("source")
        return base_around(source, self.name) or base_in(_table(value, codex_config.SERVERS).get(SERVER))

    def parts(self) -> list[Path]:
        """See the protocol."""
        value = codex_config.load(self.config)[1]
        own = PLUGIN in _table(value, "plugins") or MARKETPLACE in _table(value, "marketplaces") or self._trust(value)
        found = [self.config] if own else []
        return found + [folder for folder in (self.folder, self.cache) if folder.exists()]

    def has_server(self) -> bool:
        """See the protocol."""
        return is_own_server(self._server())

    def foreign(self) -> str:
        """See the protocol."""
        return foreign_server(self._server(), self.config)

    def registered(self, binding: Binding, server: Mapping[str, Any]) -> bool:
        """See the protocol."""
        value = codex_config.load(self.config)[1]
        hooks = self._hooks(binding)
        copies = [path for path in self.cache.glob("*/*/hooks/hooks.json") if path.is_file()]
        return (
            _table(value, codex_config.SERVERS).get(SERVER) == _entry(binding)
            and _table(_table(value, "marketplaces"), MARKETPLACE).get("source") == os.fspath(self.folder)
            and _table(_table(value, "plugins"), PLUGIN).get("enabled") is True
            and same_assets(self.name, self.folder, hooks)
            and [files.read(path) for path in copies] == list(hooks.values())
        )

    def register(self, binding: Binding, server: Mapping[str, Any], *, trust: bool) -> tuple[dict[str, Any], list[str]]:
        """See the protocol."""
        known: dict[str, Any] = {}
        earlier = _table(codex_config.load(self.config)[1], codex_config.SERVERS).get(SERVER)
        if earlier is not None:
            known["server"] = earlier
            codex_config.remove_server(self.config, "", None)
        copy_assets(self.name, self.folder, self._hooks(binding))
        # The marketplace first: what is put in after it stays in one piece.
        self._demand("plugin", "marketplace", "add", os.fspath(self.folder))
        self._demand("plugin", "add", PLUGIN)
        known["added"] = codex_config.add_server(self.config, _entry(binding))
        self._demand("mcp", "get", SERVER, "--json")
        if not self.registered(binding, server):
            done = f"Codex {self.version()} took the commands but did not store what they say"
            raise FunesError(f"{done}, so funes was not added; update it, then try again.")
        if not trust:
            return known, [DIALOG]
        from funes.agents.codex_trust import trust_hooks

        program = self.program()
        assert program is not None
        with noting_command():
            trust_hooks(program, f"{PLUGIN}:", len(HOOK_SECONDS))
        return known, ["The hooks are trusted, as you asked: Codex runs them without its own question."]

    def advice(self) -> list[str]:
        """See the protocol."""
        return []

    def unregister(self, known: Mapping[str, Any]) -> None:
        """See the protocol."""
        value = codex_config.load(self.config)[1]
        hashes = {str(entry.get("trusted_content_hash")) for entry in self._trust(value).values()}
        if self.program() is not None:
            if PLUGIN in _table(value, "plugins"):
                self._run("plugin", "remove", PLUGIN)
            if MARKETPLACE in _table(value, "marketplaces"):
                self._run("plugin", "marketplace", "remove", MARKETPLACE)
        if self.has_server():
            codex_config.remove_server(self.config, known.get("added", ""), known.get("server"))
        value = codex_config.load(self.config)[1]
        for key in self._trust(value):
            codex_config.edit(self.config, codex_config.drop("hooks", "state", key))
        if PLUGIN in _table(value, "plugins"):
            codex_config.edit(self.config, codex_config.drop("plugins", PLUGIN))
        if MARKETPLACE in _table(value, "marketplaces"):
            codex_config.edit(self.config, codex_config.drop("marketplaces", MARKETPLACE))
        if self.trusted.is_dir():
            for path in self.trusted.iterdir():
                if path.is_file() and (files.read(path) or b"").decode("utf-8", "replace").strip() in hashes:
                    files.delete(path)
        for folder in (self.cache, self.folder):
            files.delete_tree(folder)

    def describe(self, path: Path) -> str:
        """See the protocol."""
        if path == self.config:
            return f'MCP server "{SERVER}", plugin {PLUGIN}'
        if path.is_relative_to(self.folder):
            return "the plugin: its hooks index after each turn"
        if path.is_relative_to(self.cache):
            return "Codex's copy of the plugin"
        if path.is_relative_to(self.trusted):
            return "Codex's note that the hooks are trusted"
        return "written by Codex itself"

    def _server(self) -> Any:
        """The MCP server with the name of ours, None for none."""
        return _table(codex_config.load(self.config)[1], codex_config.SERVERS).get(SERVER)

    def _trust(self, value: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """What config.toml says about whether hooks of funes are trusted."""
        state = _table(_table(value, "hooks"), "state")
        return {key: dict(entry) for key, entry in state.items() if key.startswith(f"{PLUGIN}:")}

    def _hooks(self, binding: Binding) -> dict[str, bytes]:
        line = binding.hook_line(self.name)
        hooks = hooks_json({event: (line, limit) for event, limit in HOOK_SECONDS.items()})
        return {"plugins/funes/hooks/hooks.json": hooks}

    def _run(self, *arguments: str) -> programs.Done:
        program = self.program()
        assert program is not None
        return programs.run(program, arguments)

    def _demand(self, *arguments: str) -> None:
        done = self._run(*arguments)
        if done.code:
            command = " ".join(arguments[:2])
            raise FunesError(f"`codex {command}` failed, so funes was not added: {done.reason()}")


def _entry(binding: Binding) -> dict[str, Any]:
    """The MCP server for Codex, which passes on next to no environment of its own."""
    entry: dict[str, Any] = {"command": binding.program[0], "args": binding.arguments}
    return entry | ({"env": dict(binding.env)} if binding.env else {})


def _table(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    inner = value.get(name)
    return inner if isinstance(inner, dict) else {}
