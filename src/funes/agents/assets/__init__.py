"""The files that are installed for agents, and writing them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib.resources import files as resource_files
from importlib.resources.abc import Traversable
from pathlib import Path

from funes.agents import files


def copy_assets(agent: str, folder: Path, made: Mapping[str, bytes]) -> None:
    """Write an agent's files into a folder, which holds nothing else afterwards.

    Args:
        agent: whose files.
        folder: where to.
        made: further files: relative paths and contents.

    Raises:
        FunesError: when one cannot be written.
    """
    files.delete_tree(folder)
    for name, data in _all(agent, made).items():
        files.write(folder / name, data)


def same_assets(agent: str, folder: Path, made: Mapping[str, bytes]) -> bool:
    """Whether a folder holds exactly what `copy_assets` would write."""
    there = {
        path.relative_to(folder).as_posix(): files.read(path)
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }
    return there == _all(agent, made)


def hooks_json(hooks: Mapping[str, tuple[str, int]]) -> bytes:
    """The hooks of a plugin, in the form that Claude Code and Codex share.

    Args:
        hooks: for each event, the command line and the seconds after which the agent ends it.
    """
    groups = {
        event: [{"hooks": [{"type": "command", "command": line, "timeout": limit}]}]
        for event, (line, limit) in hooks.items()
    }
    return json_bytes({"hooks": groups})


def json_bytes(value: object) -> bytes:
    """A JSON file that people can read."""
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()


def _all(agent: str, made: Mapping[str, bytes]) -> dict[str, bytes]:
    return dict(_contents(resource_files(__name__) / agent, "")) | dict(made)


def _contents(folder: Traversable, above: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _contents(entry, f"{above}{entry.name}/")
        else:
            yield f"{above}{entry.name}", entry.read_bytes()
