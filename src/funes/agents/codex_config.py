"""Codex's config.toml: one table put in and taken out, every other byte as it was.

`codex mcp add` and `codex mcp remove` write the tables of all servers anew and lose the comments in them, so they are
not used.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from funes.agents import files
from funes.agents.model import SERVER

SERVERS = "mcp_servers"
_MARK = "\ufeff"


def load(path: Path) -> tuple[str, dict[str, Any]]:
    """Text and value of the file; a missing one is an empty text.

    Raises:
        FunesError: when it cannot be read or is not TOML.
    """
    data = files.read(path) or b""
    try:
        text = data.decode("utf-8")
        return text, _parse(text)
    except ValueError as error:
        # The message of the parser may quote the line, which may hold a key.
        raise files.unfit(path, "is not valid TOML") from error


def add_server(path: Path, server: Mapping[str, Any]) -> str:
    """Add the table of the MCP server.

    Args:
        path: the file.
        server: keys and values of the table; there must not be one yet.

    Returns:
        The text that was put in, for `remove_server`.

    Raises:
        FunesError: when the file cannot be written.
    """
    text, value = load(path)
    wanted = {**value, SERVERS: {**value.get(SERVERS, {}), SERVER: dict(server)}}
    added = _table(server)
    if text:
        added = ("" if text.endswith("\n") else "\n") + "\n" + added
    if "\r\n" in text:
        added = added.replace("\n", "\r\n")
    if _means(text + added, wanted):
        files.write(path, (text + added).encode())
        return added
    # The servers are written as one inline table, which no other table can extend.
    import tomlkit

    document = tomlkit.parse(text.removeprefix(_MARK))
    inline = tomlkit.inline_table()
    inline.update(dict(server))
    document[SERVERS][SERVER] = inline
    files.write(path, tomlkit.dumps(document).encode())
    return ""


def remove_server(path: Path, added: str, earlier: Mapping[str, Any] | None) -> None:
    """Take the table out, and put an earlier one back.

    Args:
        path: the file.
        added: what `add_server` returned, empty when nobody knows.
        earlier: the table that had been there before, None for none.

    Raises:
        FunesError: when the file is not TOML or cannot be written.
    """
    text, value = load(path)
    servers = value.get(SERVERS)
    if not isinstance(servers, dict) or SERVER not in servers:
        return
    others = {name: table for name, table in servers.items() if name != SERVER}
    wanted = {name: part for name, part in value.items() if name != SERVERS or others}
    if others:
        wanted[SERVERS] = others
    cut = text.replace(added, "", 1) if added and text.count(added) == 1 else ""
    if cut and _means(cut, wanted):
        files.write(path, cut.encode())
    else:
        edit(path, lambda document: _drop(document, SERVERS, SERVER))
    if earlier is not None:
        add_server(path, earlier)


def edit(path: Path, change: Any) -> None:
    """Change the file through tomlkit, which keeps what is not changed.

    Args:
        path: the file.
        change: called with the document.

    Raises:
        FunesError: when the file is not TOML or cannot be written.
    """
    import tomlkit

    before, _ = load(path)
    document = tomlkit.parse(before.removeprefix(_MARK))
    change(document)
    text = tomlkit.dumps(document)
    if before.startswith(_MARK):
        text = _MARK + text
    if text != before:
        files.write(path, text.encode())


def drop(*keys: str) -> Any:
    """A change for `edit`: remove an entry, and the tables around it that are empty then."""
    return lambda document: _drop(document, *keys)


def _drop(document: Any, *keys: str) -> None:
    holders = [document]
    for key in keys[:-1]:
        inner = holders[-1].get(key)
        if not hasattr(inner, "get"):
            return
        holders.append(inner)
    for holder, key in zip(reversed(holders), reversed(keys), strict=True):
        if key in holder:
            del holder[key]
        if len(holder):
            return


def _table(server: Mapping[str, Any]) -> str:
    lines = [f"[{SERVERS}.{SERVER}]"]
    lines += [f"{key} = {_value(value)}" for key, value in server.items()]
    return "".join(f"{line}\n" for line in lines)


def _value(value: Any) -> str:
    """A value in TOML, on one line."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_text(key)} = {_value(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_value(inner) for inner in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return _text(value) if isinstance(value, str) else repr(value)


def _text(text: str) -> str:
    # JSON's escapes are TOML's, except that TOML wants this one escaped and has no surrogates.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _parse(text: str) -> dict[str, Any]:
    return tomllib.loads(text.removeprefix(_MARK))


def _means(text: str, wanted: Mapping[str, Any]) -> bool:
    try:
        return _parse(text) == wanted
    except ValueError:
        return False
