"""Claude Code as far as `funes add` and `remove` see it: which files its commands write, and how (2.1.332).

The environment of a test steers it: STAND_IN_FAILS names a command that fails after it has written, STAND_IN_VERSION is
what it says of itself.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

CONFIG_DIR = os.environ.get("CLAUDE_CONFIG_DIR")
HOME = Path(CONFIG_DIR) if CONFIG_DIR else Path.home() / ".claude"
EARLY = HOME / ".config.json"
CONFIG = EARLY if EARLY.is_file() else (Path(CONFIG_DIR) if CONFIG_DIR else Path.home()) / ".claude.json"
SETTINGS = HOME / "settings.json"
KNOWN = HOME / "plugins" / "known_marketplaces.json"
INSTALLED = HOME / "plugins" / "installed_plugins.json"


def load(path: Path) -> dict:
    return json.loads(path.read_text()) if path.is_file() else {}


def save(path: Path, value: dict, end: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + end)


def config() -> dict:
    value = load(CONFIG)
    if "firstStartTime" not in value:
        backups = HOME / "backups"
        backups.mkdir(parents=True, exist_ok=True)
        (backups / f"{CONFIG.name}.backup.1796027813460").write_text(json.dumps(value))
        value["firstStartTime"] = "2026-11-30T08:36:53.219Z"
    return value


def mcp(command: str, name: str, *rest: str) -> str:
    value = config()
    servers = value.setdefault("mcpServers", {})
    if command == "add-json":
        if name in servers:
            return f"MCP server {name} already exists in user config"
        servers[name] = json.loads(rest[0])
    elif name not in servers:
        return f'No MCP server named "{name}" in user scope'
    else:
        del servers[name]
    save(CONFIG, value)
    return ""


def marketplace(command: str, given: str) -> str:
    settings, known = load(SETTINGS), load(KNOWN)
    declared = settings.setdefault("extraKnownMarketplaces", {})
    if command == "add":
        name = json.loads((Path(given) / ".claude-plugin" / "marketplace.json").read_text())["name"]
        source = {"source": "directory", "path": given}
        declared[name] = {"source": source}
        known[name] = {"source": source, "installLocation": given, "lastUpdated": "2026-11-30T08:36:54.923Z"}
        (HOME / "plugins" / "marketplaces").mkdir(parents=True, exist_ok=True)
    elif given not in known:
        return f"Marketplace '{given}' not found"
    else:
        del known[given]
        declared.pop(given, None)
    save(SETTINGS, settings, "\n")
    save(KNOWN, known)
    return ""


def plugin(command: str, given: str) -> str:
    value, settings, installed = config(), load(SETTINGS), load(INSTALLED)
    name, _, market = given.partition("@")
    plugins = installed.setdefault("plugins", {})
    installed["version"] = 2
    enabled = settings.setdefault("enabledPlugins", {})
    declined = [entry for entry in value.pop("declinedPlugins", []) if entry != given]
    cache = HOME / "plugins" / "cache" / market / name
    if command == "install":
        source = Path(load(KNOWN)[market]["installLocation"]) / name
        version = json.loads((source / ".claude-plugin" / "plugin.json").read_text())["version"]
        shutil.copytree(source, cache / version, dirs_exist_ok=True)
        plugins[given] = [{"scope": "user", "installPath": str(cache / version), "version": version}]
        enabled[given] = True
    elif given not in plugins:
        return f'Plugin "{given}" not found in installed plugins'
    else:
        del plugins[given]
        enabled.pop(given, None)
        declined.append(given)
        for version in cache.iterdir():
            (version / ".orphaned_at").write_text("1796027818264")
    if declined:
        value["declinedPlugins"] = declined
    save(CONFIG, value)
    save(SETTINGS, settings, "\n")
    save(INSTALLED, installed)
    return ""


def main(arguments: list[str]) -> None:
    if arguments == ["--version"]:
        print(f"{os.environ.get('STAND_IN_VERSION', '2.1.332')} (Claude Code)")
        return
    with Path(os.environ["STAND_IN_LOG"]).open("a") as log:
        log.write(json.dumps([*arguments]) + "\n")
    if arguments[0] == "mcp":
        fault = mcp(*arguments[1:])
    elif arguments[1] == "marketplace":
        fault = marketplace(*arguments[2:])
    else:
        fault = plugin(*arguments[1:])
    if os.environ.get("STAND_IN_FAILS") == " ".join(arguments[:2]):
        fault = f"error: out of cheese {os.environ.get('STAND_IN_SAYS', '')}"
    if fault:
        sys.exit(fault)


main(sys.argv[1:])
