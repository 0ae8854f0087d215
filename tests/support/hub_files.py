"""Files of the test Hub's repositories: listing, reading, uploading, committing."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from tests.support.hub_http import HubError, HubHandler
from tests.support.hub_store import Entry, Tree, pointer, uses_lfs

Meta = dict[str, Any]


class Files(HubHandler):
    """What a client asks about the files of one repository."""

    def tree(self, kind: str, repo: str, rev: str, path: str | None = None) -> None:
        _, commit = self.revision(kind, repo, rev, self.repository(kind, repo))
        recursive = self.query.get("recursive", ["false"])[0].lower() in ("true", "1")
        entries = list(_entries(commit["tree"], f"{path.strip('/')}/" if path else "", recursive))
        if path and not entries:
            raise HubError(404, f'{path} does not exist on "{rev}"', "EntryNotFound")
        limit, start = int(self.query.get("limit", ["1000"])[0]), int(self.query.get("cursor", ["0"])[0])
        headers = {}
        if start + limit < len(entries):
            kept = [f"{name}={quote(values[0])}" for name, values in self.query.items() if name != "cursor"]
            query = "&".join([*kept, f"cursor={start + limit}"])
            headers["Link"] = f'<{self.base()}{urlsplit(self.path).path}?{query}>; rel="next"'
        self.answer(entries[start : start + limit], headers)

    def paths_info(self, kind: str, repo: str, rev: str) -> None:
        raw = self.body()
        wanted = json.loads(raw)["paths"] if raw[:1] == b"{" else parse_qs(raw.decode())["paths"]
        tree = self.revision(kind, repo, rev, self.repository(kind, repo))[1]["tree"]
        found = []
        for path in [wanted] if isinstance(wanted, str) else wanted:
            if path in tree:
                found.append(_file(path, tree[path]))
            elif any(name.startswith(f"{path.rstrip('/')}/") for name in tree):
                found.append(_directory(path))
        self.answer(found)

    def resolve(self, repo: str, rev: str, path: str, kind: str) -> None:
        oid, commit = self.revision(kind, repo, rev, self.repository(kind, repo))
        entry = commit["tree"].get(path)
        if entry is None:
            raise HubError(404, "Entry not found", "EntryNotFound", {"X-Repo-Commit": oid})
        key, size = entry.get("lfs") or entry["oid"], entry["size"]
        linked = {"X-Repo-Commit": oid, "X-Linked-Size": str(size), "X-Linked-Etag": f'"{key}"'}
        if "lfs" in entry and self.owner.storage_host:
            place = f"http://{self.owner.storage_host}:{self.owner.port}/_storage/{key}"
            self.answer(b"", {**linked, "Location": place}, status=302)
        else:
            self._content(key, size, linked)

    def storage(self, key: str) -> None:
        """What a signed storage address gives, on another host and without a token."""
        self._content(key, self.owner.store.blob(key).stat().st_size, {})

    def preupload(self, kind: str, repo: str, rev: str) -> None:
        wanted = self.json_body()
        tree = self.revision(kind, repo, rev, self.repository(kind, repo, write=True))[1]["tree"]
        files = []
        for one in wanted["files"]:
            lfs = uses_lfs(one["path"], one["size"], base64.b64decode(one.get("sample") or ""))
            there = tree.get(one["path"])
            known = {"oid": there.get("lfs") or there["oid"]} if there else {}
            mode = "lfs" if lfs else "regular"
            files.append({"path": one["path"], "uploadMode": mode, "shouldIgnore": False, **known})
        self.answer({"files": files})

    def lfs_batch(self, repo: str, kind: str) -> None:
        wanted = self.json_body()
        upload = wanted["operation"] == "upload"
        self.repository(kind, repo, write=upload)
        objects = []
        for one in wanted["objects"]:
            entry: dict[str, Any] = {"oid": one["oid"], "size": one["size"], "authenticated": True}
            if upload and not self.owner.store.blob(one["oid"]).exists():
                place = f"{self.base()}/_lfs"
                entry["actions"] = {"upload": {"href": f"{place}/{one['oid']}"}, "verify": {"href": f"{place}/verify"}}
            objects.append(entry)
        self.answer({"transfer": "basic", "objects": objects}, kind="application/vnd.git-lfs+json")

    def lfs_put(self, sha: str) -> None:
        """Store an LFS file. Stands for a signed storage address: no token, the name guards the content."""
        data = self.body()
        if hashlib.sha256(data).hexdigest() != sha:
            raise HubError(400, "sha256 mismatch")
        self.owner.store.write(self.owner.store.blob(sha), data)
        self.answer(b"", {"ETag": f'"{sha}"'})

    def lfs_verify(self) -> None:
        if not self.owner.store.blob(self.json_body()["oid"]).exists():
            raise HubError(404, "missing object")
        self.answer({})

    def make_commit(self, kind: str, repo: str, rev: str) -> None:
        lines = [json.loads(line) for line in self.body().splitlines() if line.strip()]
        self.repository(kind, repo, write=True)
        user, store = self.need_user(), self.owner.store
        with store.lock:
            meta = store.meta(kind, repo)
            if meta is None or rev not in meta["refs"]:
                raise HubError(404, f"Invalid rev id: {rev}", "RevisionNotFound")
            head = meta["refs"][rev]
            before = store.commit(kind, repo, head)
            assert before is not None
            tree, header = dict(before["tree"]), {"summary": "", "description": ""}
            for line in lines:
                if line["key"] == "header":
                    header |= line["value"]
                    if not head.startswith(header.get("parentCommit", "").lower()):
                        raise HubError(412, "A commit has happened since. Please refresh and try again.")
                else:
                    self._apply(tree, line["key"], line["value"])
            oid = store.add_commit(kind, repo, rev, tree, head, header["summary"], header["description"], user.name)
        url = f"{self.base()}/{url_prefix(kind)}{repo}/commit/{oid}"
        self.answer({"success": True, "commitOid": oid, "commitUrl": url, "hookOutput": ""})

    def repository(self, kind: str, repo: str, *, write: bool = False) -> Meta:
        """Find a repository; private and missing look the same, as on the Hub."""
        user, meta = self.user(), self.owner.store.meta(kind, repo)
        mine = user is not None and repo.split("/")[0] in user.namespaces
        if meta is not None and "moved" in meta:
            place = self.path.replace(repo, meta["moved"], 1)
            raise HubError(307, "moved", headers={"Location": f"{self.base()}{place}"})
        if meta is None or (meta["private"] and not mine):
            raise HubError(404 if user else 401, "Repository not found", "RepoNotFound")
        if meta["gated"] and not mine:
            raise HubError(403 if user else 401, f"Access to dataset {repo} is restricted.", "GatedRepo")
        if write and not mine:
            raise HubError(403 if user else 401, "You don't have the rights to write to this repo", "Forbidden")
        return meta

    def revision(self, kind: str, repo: str, rev: str, meta: Meta) -> tuple[str, dict[str, Any]]:
        oid = meta["refs"].get(rev) or meta["tags"].get(rev) or (rev if re.fullmatch(r"[0-9a-f]{40}", rev) else None)
        commit = self.owner.store.commit(kind, repo, oid) if oid else None
        if commit is None:
            raise HubError(404, f"Invalid rev id: {rev}", "RevisionNotFound")
        return oid, commit

    def _content(self, key: str, size: int, linked: dict[str, str]) -> None:
        headers = {"ETag": f'"{key}"', "Accept-Ranges": "bytes", **linked}
        start, stop, status = 0, size, 200
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if wanted:
            start, status = int(wanted[1]), 206
            stop = min(int(wanted[2]) + 1, size) if wanted[2] else size
            if start >= size:
                raise HubError(416, "Range Not Satisfiable")
            headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
        if self.command == "HEAD":
            self.answer(b"", headers, status=status, kind="application/octet-stream", length=stop - start)
            return
        with self.owner.store.blob(key).open("rb") as stream:
            stream.seek(start)
            self.answer(stream.read(stop - start), headers, status=status, kind="application/octet-stream")

    def _apply(self, tree: Tree, key: str, value: dict[str, Any]) -> None:
        """Do one operation of a commit."""
        path, store = value["path"], self.owner.store
        if key == "file":
            tree[path] = store.put(base64.b64decode(value["content"]), lfs=False)
        elif key == "lfsFile":
            blob = store.blob(value["oid"])
            if not blob.exists():
                raise HubError(400, f"LFS object {value['oid']} was not uploaded")
            size = blob.stat().st_size
            oid = hashlib.sha1(pointer(value["oid"], size)).hexdigest()
            tree[path] = {"oid": oid, "size": size, "lfs": value["oid"]}
        else:
            folder = f"{path.rstrip('/')}/"
            gone = [name for name in tree if (name == path if key == "deletedFile" else name.startswith(folder))]
            if not gone:
                raise HubError(404, f"A file with this name doesn't exist: {path}", "EntryNotFound")
            for name in gone:
                del tree[name]


def url_prefix(kind: str) -> str:
    return "" if kind == "model" else f"{kind}s/"


def _file(path: str, entry: Entry) -> dict[str, Any]:
    found = {"type": "file", "oid": entry["oid"], "size": entry["size"], "path": path}
    if sha := entry.get("lfs"):
        found["lfs"] = {"oid": sha, "size": entry["size"], "pointerSize": len(pointer(sha, entry["size"]))}
    return found


def _directory(path: str) -> dict[str, Any]:
    return {"type": "directory", "oid": hashlib.sha1(path.encode()).hexdigest(), "size": 0, "path": path}


def _entries(tree: Tree, prefix: str, recursive: bool) -> Iterator[dict[str, Any]]:
    """Files under a prefix and the folders that they lie in, each once."""
    seen = set()
    for path in sorted(name for name in tree if name.startswith(prefix)):
        parts = path[len(prefix) :].split("/")
        for depth in range(1, len(parts) if recursive else min(2, len(parts))):
            folder = prefix + "/".join(parts[:depth])
            if folder not in seen:
                seen.add(folder)
                yield _directory(folder)
        if recursive or len(parts) == 1:
            yield _file(path, tree[path])
