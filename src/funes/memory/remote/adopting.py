"""Keeping what was just published in the cache, so that the machine that published it does not fetch it again."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from funes.memory.remote.cache import RepoCache
from funes.memory.remote.pruning import prune

if TYPE_CHECKING:
    from funes.memory.remote.hub import HubClient, RemoteFile

_PIECE = 1 << 20


def adopt(client: HubClient, repo: str, commit: str, files: Mapping[str, Path]) -> bool:
    """Put the files of a commit into the cache, from the folder that they were sent from.

    Args:
        client: the Hub.
        repo: `<org>/<name>`.
        commit: the commit, which is taken for the newest of the main branch.
        files: everything that a reader of the memory needs, by path in the repository.

    Returns:
        Whether they are there; not if the commit holds something else.

    Raises:
        RemoteError: when the commit cannot be listed.
        FunesError: when the cache cannot be written.
        OSError: the same.
    """
    cache, tree = RepoCache(repo), client.tree(repo, commit)
    for path, file in files.items():
        there = tree.get(path)
        if there is None:
            return False
        if not cache.has_blob(there.key, there.size):
            if not _is(file, there):
                return False
            temporary = cache.temporary(there.key)
            temporary.parent.mkdir(parents=True, exist_ok=True)
            _link(file, temporary)
            os.replace(temporary, cache.blob(there.key))
        cache.link(commit, path, there.key)
    client.keep(repo, commit, "", list(files))
    prune(cache)
    return True


def _is(path: Path, there: RemoteFile) -> bool:
    """Whether a file has the content that the commit names."""
    size = path.stat().st_size
    if size != there.size:
        return False
    of_git = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    digest = hashlib.sha256() if len(there.key) == 64 else of_git
    with path.open("rb") as stream:
        while piece := stream.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest() == there.key


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        shutil.copyfile(source, target)
