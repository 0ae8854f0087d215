"""Repositories on disk for the test Hub: refs, immutable commits, files by content.

A repository is a folder with `repo.json` (visibility, branches, tags) and `commits/<oid>.json`, each of which lists
every file of that commit. Contents lie in `blobs/`, under the git id of a regular file and the sha256 of an LFS file.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
import shutil
import tempfile
import threading
import time
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

LFS_PATTERNS = (
    "*.lance",
    "*.manifest",
    "*.txn",
    "*.idx",
    "*.arrow",
    "*.bin",
    "*.onnx",
    "*.parquet",
    "*.safetensors",
    "*.npy",
)
LFS_MIN = 10 * 1024 * 1024
"""Text files below this size are stored in git itself, as on the Hub."""

Entry = dict[str, Any]
Tree = dict[str, Entry]


def git_oid(data: bytes) -> str:
    """Name of a file in git."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def pointer(sha256: str, size: int) -> bytes:
    """What git holds in the place of an LFS file."""
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n".encode()


def uses_lfs(path: str, size: int, sample: bytes) -> bool:
    """Whether the Hub would ask for a file to be uploaded through LFS."""
    name = PurePosixPath(path).name
    return size >= LFS_MIN or b"\0" in sample or any(fnmatch.fnmatch(name, pattern) for pattern in LFS_PATTERNS)


def now() -> str:
    """The time as the Hub writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


class Store:
    """All repositories of a server.

    Args:
        root: folder to keep them in; what is there already is served.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.lock = threading.RLock()
        (root / "blobs").mkdir(parents=True, exist_ok=True)

    def blob(self, key: str) -> Path:
        """Path of a file's content."""
        return self.root / "blobs" / key

    def folder(self, kind: str, repo: str) -> Path:
        """Folder of a repository; `kind` is `model`, `dataset` or `space`."""
        return self.root / f"{kind}s" / repo

    def write(self, path: Path, data: bytes) -> None:
        """Write a file atomically."""
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
        os.replace(temporary, path)

    def put(self, data: bytes, *, lfs: bool) -> Entry:
        """Store a content; gives its entry in a tree."""
        if not lfs:
            self.write(self.blob(git_oid(data)), data)
            return {"oid": git_oid(data), "size": len(data)}
        key = hashlib.sha256(data).hexdigest()
        self.write(self.blob(key), data)
        return {"oid": git_oid(pointer(key, len(data))), "size": len(data), "lfs": key}

    def meta(self, kind: str, repo: str) -> dict[str, Any] | None:
        """A repository's visibility, refs and tags; None when there is no such repository."""
        return _json(self.folder(kind, repo) / "repo.json")

    def put_meta(self, kind: str, repo: str, meta: dict[str, Any]) -> None:
        """Store what `meta` gives."""
        self.write(self.folder(kind, repo) / "repo.json", json.dumps(meta).encode())

    def commit(self, kind: str, repo: str, oid: str) -> dict[str, Any] | None:
        """A commit with its whole tree; None when there is none of that name."""
        return _json(self.folder(kind, repo) / "commits" / f"{oid}.json")

    def add_commit(
        self, kind: str, repo: str, branch: str, tree: Tree, parent: str | None, title: str, message: str, author: str
    ) -> str:
        """Store a commit and move the branch to it; gives the commit's name."""
        body = {
            "parent": parent,
            "date": now(),
            "title": title,
            "message": message,
            "author": author,
            "tree": tree,
            "n": time.time_ns(),
        }
        oid = hashlib.sha1(json.dumps(body, sort_keys=True).encode()).hexdigest()
        self.write(self.folder(kind, repo) / "commits" / f"{oid}.json", json.dumps(body).encode())
        meta = self.meta(kind, repo)
        assert meta is not None
        meta["refs"][branch] = oid
        meta["lastModified"] = body["date"]
        self.put_meta(kind, repo, meta)
        return oid

    def create(self, kind: str, repo: str, *, private: bool, author: str) -> str:
        """Make a repository with its first commit, which holds `.gitattributes` alone, as on the Hub."""
        meta = {
            "id": repo,
            "private": private,
            "createdAt": now(),
            "lastModified": now(),
            "gated": False,
            "refs": {},
            "tags": {},
        }
        self.put_meta(kind, repo, meta)
        attributes = "".join(f"{pattern} filter=lfs diff=lfs merge=lfs -text\n" for pattern in LFS_PATTERNS).encode()
        tree = {".gitattributes": self.put(attributes, lfs=False)}
        return self.add_commit(kind, repo, "main", tree, None, "initial commit", "", author)

    def delete(self, kind: str, repo: str) -> None:
        """Remove a repository."""
        shutil.rmtree(self.folder(kind, repo))

    def rename(self, kind: str, old: str, new: str) -> None:
        """Give a repository another name; the old one leads there from now on."""
        self.folder(kind, new).parent.mkdir(parents=True, exist_ok=True)
        self.folder(kind, old).rename(self.folder(kind, new))
        meta = self.meta(kind, new)
        assert meta is not None
        meta["id"] = new
        self.put_meta(kind, new, meta)
        self.put_meta(kind, old, {"moved": new})

    def names(self, kind: str) -> list[str]:
        """Names of all repositories of a kind."""
        folder = self.root / f"{kind}s"
        found = {f"{path.parent.parent.name}/{path.parent.name}": _json(path) for path in folder.glob("*/*/repo.json")}
        return sorted(name for name, meta in found.items() if meta and "moved" not in meta)


def _json(path: Path) -> dict[str, Any] | None:
    try:
        return dict(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
