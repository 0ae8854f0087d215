"""Memories on the test Hub."""

from __future__ import annotations

from pathlib import Path

from funes.memory.remote.hub import HubClient
from funes.memory.remote.snapshot import open_snapshot
from funes.memory.uri import resolve
from tests.support.hub_server import HubServer

REPO = "acme/decisions"
"""The repository that the tests of sharing publish to."""


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


def files(hub: HubServer) -> dict[str, bytes]:
    """Every file of the main branch of `REPO`."""
    return hub.files(REPO)


def commits(hub: HubServer) -> int:
    """Number of commits of its main branch."""
    meta = hub.store.meta("dataset", REPO)
    assert meta is not None
    count, name = 0, meta["refs"]["main"]
    while name:
        commit = hub.store.commit("dataset", REPO, name)
        assert commit is not None
        count, name = count + 1, commit["parent"]
    return count


def snapshot() -> Path:
    """Its newest version, in the cache."""
    return open_snapshot(resolve(REPO), HubClient()).folder
