"""The part of the Hub's HTTP interface that its client uses for datasets and models."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from typing import Any

from tests.support.hub_files import Files, Meta, url_prefix
from tests.support.hub_http import HubError
from tests.support.hub_store import Entry, Tree, pointer


class Hub(Files):
    """Accounts, repositories, and where each request goes."""

    def whoami(self) -> None:
        user = self.need_user()
        organizations = [
            {"type": "org", "id": name, "name": name, "fullname": name, "roleInOrg": "admin"}
            for name in user.organizations
        ]
        token = {"type": "access_token", "accessToken": {"displayName": "local", "role": "write"}}
        about = {"type": "user", "id": user.name, "name": user.name, "fullname": user.name, "email": None}
        self.answer({**about, "canPay": False, "isPro": False, "orgs": organizations, "auth": token})

    def create_repo(self) -> None:
        user, wanted = self.need_user(), self.json_body()
        kind, owner = wanted.get("type") or "model", wanted.get("organization") or user.name
        if owner not in user.namespaces:
            raise HubError(403, f'You don\'t have the rights to create a {kind} under the namespace "{owner}"')
        repo = f"{owner}/{wanted['name']}"
        url = f"{self.base()}/{url_prefix(kind)}{repo}"
        store = self.owner.store
        with store.lock:
            if store.meta(kind, repo):
                self.answer({"error": f"You already created this {kind} repo", "url": url}, status=409)
                return
            private = wanted.get("visibility") == "private" or bool(wanted.get("private"))
            store.create(kind, repo, private=private, author=user.name)
        self.answer({"url": url, "name": repo, "id": repo})

    def delete_repo(self) -> None:
        user, wanted = self.need_user(), self.json_body()
        kind, repo = wanted.get("type") or "model", f"{wanted.get('organization') or user.name}/{wanted['name']}"
        self.repository(kind, repo, write=True)
        self.owner.store.delete(kind, repo)
        self.answer({})

    def move_repo(self) -> None:
        wanted = self.json_body()
        kind, store = wanted.get("type") or "model", self.owner.store
        self.repository(kind, wanted["fromRepo"], write=True)
        with store.lock:
            if store.meta(kind, wanted["toRepo"]):
                raise HubError(409, "repo exists")
            store.rename(kind, wanted["fromRepo"], wanted["toRepo"])
        self.answer({})

    def settings(self, kind: str, repo: str) -> None:
        wanted, meta = self.json_body(), self.repository(kind, repo, write=True)
        if "visibility" in wanted:
            meta["private"] = wanted["visibility"] == "private"
        if "gated" in wanted:
            meta["gated"] = wanted["gated"]
        self.owner.store.put_meta(kind, repo, meta)
        self.answer({"private": meta["private"]})

    def list_repos(self, kind: str) -> None:
        user = self.user()
        mine = user.namespaces if user else []
        author, search = self.query.get("author", [""])[0], self.query.get("search", [""])[0]
        found = []
        for repo in self.owner.store.names(kind):
            meta, owner = self.owner.store.meta(kind, repo), repo.split("/")[0]
            if meta and (not meta["private"] or owner in mine) and author in ("", owner) and search in repo:
                found.append(self._info(kind, repo, meta, meta["refs"]["main"]))
        self.answer(found)

    def repo_info(self, kind: str, repo: str, rev: str | None = None) -> None:
        meta = self.repository(kind, repo)
        oid, commit = self.revision(kind, repo, rev or "main", meta)
        if "expand" in self.query or "expand[]" in self.query:
            wanted = [*self.query.get("expand", []), *self.query.get("expand[]", [])]
            info = self._info(kind, repo, meta, oid)
            self.answer({"_id": repo, "id": repo, **{name: info[name] for name in wanted if name in info}})
            return
        self.answer(self._info(kind, repo, meta, oid, commit["tree"], blobs="blobs" in self.query))

    def refs(self, kind: str, repo: str) -> None:
        meta = self.repository(kind, repo)

        def listed(names: dict[str, str], folder: str) -> list[dict[str, str]]:
            return [{"name": name, "ref": f"refs/{folder}/{name}", "targetCommit": oid} for name, oid in names.items()]

        self.answer({"branches": listed(meta["refs"], "heads"), "tags": listed(meta["tags"], "tags"), "converts": []})

    def commits(self, kind: str, repo: str, rev: str) -> None:
        oid: str | None = self.revision(kind, repo, rev, self.repository(kind, repo))[0]
        found = []
        while oid:
            commit = self.owner.store.commit(kind, repo, oid)
            assert commit is not None
            about = {name: commit[name] for name in ("title", "message", "date")}
            found.append({"id": oid, **about, "authors": [{"user": commit["author"]}]})
            oid = commit["parent"]
        self.answer(found)

    def branch(self, kind: str, repo: str, name: str) -> None:
        wanted, meta = self.json_body(), self.repository(kind, repo, write=True)
        if self.command == "DELETE":
            meta["refs"].pop(name, None)
        elif name in meta["refs"]:
            raise HubError(409, f"Reference {name} already exists")
        else:
            meta["refs"][name] = self.revision(kind, repo, wanted.get("startingPoint") or "main", meta)[0]
        self.owner.store.put_meta(kind, repo, meta)
        self.answer({})

    def tag(self, kind: str, repo: str, name: str) -> None:
        """Delete the tag `name`, or give the revision `name` a tag."""
        wanted, meta = self.json_body(), self.repository(kind, repo, write=True)
        if self.command == "DELETE":
            meta["tags"].pop(name, None)
        elif wanted["tag"] in meta["tags"]:
            raise HubError(409, f"Tag {wanted['tag']} already exists")
        else:
            meta["tags"][wanted["tag"]] = self.revision(kind, repo, name, meta)[0]
        self.owner.store.put_meta(kind, repo, meta)
        self.answer({})

    def validate_yaml(self) -> None:
        self.body()
        self.answer({"errors": [], "warnings": []})

    def auth_check(self, kind: str, repo: str) -> None:
        self.repository(kind, repo)
        self.answer({})

    def no_xet(self, **_: str) -> None:
        raise HubError(501, "no Xet storage here: set HF_HUB_DISABLE_XET=1")

    def _info(
        self, kind: str, repo: str, meta: Meta, oid: str, tree: Tree | None = None, *, blobs: bool = False
    ) -> dict[str, Any]:
        info = {
            "_id": repo,
            "id": repo,
            "author": repo.split("/")[0],
            "sha": oid,
            "private": meta["private"],
            "gated": meta["gated"],
            "disabled": False,
            "downloads": 0,
            "likes": 0,
            "tags": [],
            "createdAt": meta["createdAt"],
            "lastModified": meta["lastModified"],
        }
        if kind == "model":
            info["modelId"] = repo
        if tree is not None:
            info["siblings"] = [{"rfilename": path, **(_blob(tree[path]) if blobs else {})} for path in sorted(tree)]
            info["usedStorage"] = sum(entry["size"] for entry in tree.values())
        return info

    def traffic(self) -> None:
        """What was asked, or with DELETE nothing any more; not counted itself."""
        traffic = self.owner.traffic
        traffic.served.remove(self.served)
        if self.command == "DELETE":
            traffic.clear()
        about = {"requests": traffic.requests, "sent": traffic.sent, "received": traffic.received}
        self.answer({**about, "served": [asdict(one) for one in traffic.served]})


def _blob(entry: Entry) -> dict[str, Any]:
    found = {"size": entry["size"], "blobId": entry["oid"]}
    if sha := entry.get("lfs"):
        found["lfs"] = {"sha256": sha, "size": entry["size"], "pointerSize": len(pointer(sha, entry["size"]))}
    return found


def _routes() -> Iterator[tuple[str, str, Callable[..., None]]]:
    kind, repo, rev = r"/api/(?P<kind>model|dataset|space)s", r"(?P<repo>[^/]+/[^/]+?)", r"(?P<rev>[^/]+)"
    yield "GET", "/api/whoami-v2", Hub.whoami
    yield "POST", "/api/repos/create", Hub.create_repo
    yield "DELETE", "/api/repos/delete", Hub.delete_repo
    yield "POST", "/api/repos/move", Hub.move_repo
    yield "POST", "/api/validate-yaml", Hub.validate_yaml
    yield "GET", kind, Hub.list_repos
    yield "GET|HEAD", f"{kind}/{repo}", Hub.repo_info
    yield "GET", f"{kind}/{repo}/revision/{rev}", Hub.repo_info
    yield "GET", f"{kind}/{repo}/auth-check", Hub.auth_check
    yield "PUT", f"{kind}/{repo}/settings", Hub.settings
    yield "GET", f"{kind}/{repo}/refs", Hub.refs
    yield "GET", f"{kind}/{repo}/commits/{rev}", Hub.commits
    yield "GET", f"{kind}/{repo}/tree/{rev}(?:/(?P<path>.+))?", Hub.tree
    yield "POST", f"{kind}/{repo}/paths-info/{rev}", Hub.paths_info
    yield "POST", f"{kind}/{repo}/preupload/{rev}", Hub.preupload
    yield "POST", f"{kind}/{repo}/commit/{rev}", Hub.make_commit
    yield "POST|DELETE", f"{kind}/{repo}/branch/(?P<name>.+)", Hub.branch
    yield "POST|DELETE", f"{kind}/{repo}/tag/(?P<name>.+)", Hub.tag
    yield "GET", f"{kind}/{repo}/xet-(?:read|write)-token/{rev}", Hub.no_xet
    yield "GET|DELETE", "/_traffic", Hub.traffic
    yield "GET|HEAD", "/_storage/(?P<key>[0-9a-f]{64})", Hub.storage
    yield "PUT", "/_lfs/(?P<sha>[0-9a-f]{64})", Hub.lfs_put
    yield "POST", "/_lfs/verify", Hub.lfs_verify
    for name, prefix in (("dataset", "/datasets"), ("space", "/spaces"), ("model", "")):
        batch = f"{prefix}/{repo}\\.git/info/lfs/objects/batch"
        yield "POST", batch, partial(Hub.lfs_batch, kind=name)
        yield "GET|HEAD", f"{prefix}/{repo}/resolve/{rev}/(?P<path>.+)", partial(Hub.resolve, kind=name)


Hub.routes = [(methods, re.compile(pattern), action) for methods, pattern, action in _routes()]
