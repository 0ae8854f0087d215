"""Codex as far as `funes add` and `remove` see it: which files its commands write, and how (0.171.0).

STAND_IN_FAILS names a command that fails after it has written.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tomllib
from pathlib import Path

import tomlkit

HOME = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")
CONFIG = HOME / "config.toml"
CACHE = HOME / "plugins" / "cache"


def load() -> tomlkit.TOMLDocument:
    return tomlkit.parse(CONFIG.read_text()) if CONFIG.is_file() else tomlkit.document()


def save(document: tomlkit.TOMLDocument) -> None:
    HOME.mkdir(exist_ok=True)
    CONFIG.write_text(tomlkit.dumps(document))


def append(text: str) -> None:
    HOME.mkdir(exist_ok=True)
    before = CONFIG.read_text() if CONFIG.is_file() else ""
    gap = ("" if before.endswith("\n") else "\n") + "\n" if before else ""
    CONFIG.write_text(before + gap + text)


def marketplace(command: str, given: str) -> str:
    document = load()
    if command == "add":
        name = json.loads((Path(given) / ".agents" / "plugins" / "marketplace.json").read_text())["name"]
        (HOME / ".tmp" / "marketplaces").mkdir(parents=True, exist_ok=True)
        append(f'[marketplaces.{name}]\nsource_type = "local"\nsource = {json.dumps(given)}\n')
        return ""
    if given not in document.get("marketplaces", {}):
        return f"Error: marketplace `{given}` is not configured or installed"
    del document["marketplaces"][given]
    if not document["marketplaces"]:
        del document["marketplaces"]
    save(document)
    return ""


def plugin(command: str, given: str) -> str:
    document = load()
    name, _, market = given.partition("@")
    if command == "add":
        source = Path(document["marketplaces"][market]["source"]) / "plugins" / name
        version = json.loads((source / ".codex-plugin" / "plugin.json").read_text())["version"]
        shutil.copytree(source, CACHE / market / name / version, dirs_exist_ok=True)
        append(f"[plugins.{json.dumps(given)}]\nenabled = true\n")
        return ""
    if given in document.get("plugins", {}):
        del document["plugins"][given]
        if not document["plugins"]:
            del document["plugins"]
        save(document)
    shutil.rmtree(CACHE / market / name, ignore_errors=True)
    return ""


def hooks() -> list[dict]:
    state = load().get("hooks", {}).get("state", {})
    found = []
    for file in sorted(CACHE.glob("*/*/*/hooks/hooks.json")):
        market, name = file.parts[-5], file.parts[-4]
        for event, groups in json.loads(file.read_text())["hooks"].items():
            snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in event).strip("_")
            key = f"{name}@{market}:hooks/hooks.json:{snake}:0:0"
            digest = f"sha256:{hashlib.sha256(json.dumps(groups).encode()).hexdigest()}"
            content = f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"
            status = "trusted" if key in state else "untrusted"
            found.append({"key": key, "currentHash": f"{digest}/{content}", "trustStatus": status})
    return found


def write_trust(edits: list[dict]) -> dict:
    document = load()
    for edit in edits:
        for key, entry in edit["value"].items():
            digest, _, content = entry["trusted_hash"].partition("/")
            state = document.setdefault("hooks", tomlkit.table(True)).setdefault("state", tomlkit.table())
            state[key] = {"trusted_hash": digest, "trusted_content_hash": content}
            folder = HOME / ".hook-trust"
            folder.mkdir(exist_ok=True)
            (folder / hashlib.sha256(content.encode()).hexdigest()).write_text(content)
    save(document)
    return {"status": "ok"}


def app_server() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        if os.environ.get("STAND_IN_FAILS") == message["method"]:
            answer = {"error": {"code": -32601, "message": "unknown method"}}
        elif message["method"] == "hooks/list":
            answer = {"result": {"data": [{"cwd": "/", "hooks": hooks()}]}}
        elif message["method"] == "config/batchWrite":
            answer = {"result": write_trust(message["params"]["edits"])}
        else:
            answer = {"result": {}}
        print(json.dumps({"id": message["id"], **answer}), flush=True)


def main(arguments: list[str]) -> None:
    if arguments == ["--version"]:
        print("codex-cli 0.171.0")
        return
    if arguments == ["app-server"]:
        app_server()
        return
    fault = ""
    if os.environ.get("STAND_IN_FAILS") == " ".join(arguments[:2]):
        fault = "Error: out of cheese"
    if arguments[-1] == "--help":
        fault = ""
    elif arguments[:2] == ["mcp", "get"]:
        if arguments[2] not in tomllib.loads(CONFIG.read_text()).get("mcp_servers", {}):
            fault = "No such server"
    elif arguments[1] == "marketplace":
        fault = marketplace(*arguments[2:]) or fault
    else:
        fault = plugin(*arguments[1:]) or fault
    if fault:
        print("WARNING: proceeding, even though we could not create PATH aliases", file=sys.stderr)
        sys.exit(fault)


main(sys.argv[1:])
