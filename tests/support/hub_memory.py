"""Memories on the test Hub."""

from __future__ import annotations

from pathlib import Path

from tests.support.hub_server import HubServer


def memory_files(folder: Path) -> dict[str, bytes | Path]:
    """Everything in a memory's folder but its locks, by path."""
    files: dict[str, bytes | Path] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix != ".lock":
            files[path.relative_to(folder).as_posix()] = path
    return files


def publish_memory(hub: HubServer, repo: str, folder: Path, *, private: bool = True) -> str:
    """Put a memory on the Hub as it lies there, old versions and all; gives the commit."""
    card = {"README.md": b"# a memory\n", "notes/other.txt": b"not part of it\n"}
    return hub.publish(repo, {**memory_files(folder), **card}, private=private)
