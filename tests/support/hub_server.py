"""A server on 127.0.0.1 that speaks the Hugging Face Hub's protocol to its real client.

In a test it is a context manager:

    with HubServer(tmp_path / "hub") as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setenv("HF_TOKEN", hub.token)          # alice, who belongs to acme
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
        hub.faults.append(Fault("GET /datasets/.*/resolve/", "cut", times=1))
        …
        assert hub.traffic.requests == 1

By hand, and in benchmarks, it is a program that prints its address and then serves until it is ended:

    python -m tests.support.hub_server FOLDER [--port N] [--token hf_alice=alice:acme …]

`GET /_traffic` gives what it was asked since the last `DELETE /_traffic`. Clients need `HF_HUB_DISABLE_XET=1`.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.support.hub_faults import Fault, Traffic
from tests.support.hub_routes import Hub
from tests.support.hub_store import Store, uses_lfs


@dataclass(frozen=True, slots=True)
class User:
    """Who a token belongs to."""

    name: str
    organizations: tuple[str, ...] = ()

    @property
    def namespaces(self) -> list[str]:
        """Where this user may read private repositories, and write."""
        return [self.name, *self.organizations]


ALICE, BOB = "-".join(("test", "alice")), "-".join(("test", "bob"))
USERS: Mapping[str, User] = {ALICE: User("alice", ("acme",)), BOB: User("bob")}
"""Tokens and users of a server that is not given any."""


class HubServer:
    """The server, listening while the context is open.

    Args:
        root: folder of its repositories; what lies there is served again.
        users: whose token is which.
        port: 0 for any that is free.
        storage_host: when set, LFS files are answered with a redirect to this name of the same machine, as the Hub
            redirects to its storage: `localhost` is another host than 127.0.0.1 to a client.

    Attributes:
        traffic: what was asked so far.
        faults: what goes wrong; the first fault that fits a request happens to it.
        token: the first user's token.
    """

    def __init__(self, root: Path, users: Mapping[str, User] = USERS, *, port: int = 0, storage_host: str = "") -> None:
        self.users = users
        self.token = next(iter(users))
        self.store = Store(root)
        self.traffic = Traffic()
        self.faults: list[Fault] = []
        self.closing = threading.Event()
        self.storage_host = storage_host
        self._faults_lock = threading.Lock()
        self._server = _Server(("127.0.0.1", port), type("Handler", (Hub,), {"owner": self}))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """Address for `HF_ENDPOINT`."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> HubServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop listening: from now on the Hub is unreachable."""
        if not self.closing.is_set():
            self.closing.set()
            self._server.shutdown()
            self._server.server_close()

    def fault(self, request: str) -> Fault | None:
        """The fault that a request, `METHOD path`, meets."""
        with self._faults_lock:
            return next((fault for fault in self.faults if fault.hits(request)), None)

    def publish(
        self, repo: str, files: Mapping[str, bytes | Path], *, private: bool = True, kind: str = "dataset"
    ) -> str:
        """Put files into a repository without the client: one commit with exactly these; gives its name."""
        store = self.store
        with store.lock:
            if store.meta(kind, repo) is None:
                store.create(kind, repo, private=private, author=repo.split("/")[0])
            meta = store.meta(kind, repo)
            assert meta is not None
            tree = {}
            for path, content in files.items():
                data = content if isinstance(content, bytes) else content.read_bytes()
                tree[path] = store.put(data, lfs=uses_lfs(path, len(data), data[:512]))
            return store.add_commit(kind, repo, "main", tree, meta["refs"]["main"], "published", "", "alice")

    def files(self, repo: str, *, kind: str = "dataset", rev: str = "main") -> dict[str, bytes]:
        """Every file of a repository's branch."""
        meta = self.store.meta(kind, repo)
        assert meta is not None
        commit = self.store.commit(kind, repo, meta["refs"].get(rev, rev))
        assert commit is not None
        tree = commit["tree"].items()
        return {path: self.store.blob(entry.get("lfs") or entry["oid"]).read_bytes() for path, entry in tree}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away in the middle of an answer is no fault of the server."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def _user(text: str) -> tuple[str, User]:
    token, _, rest = text.partition("=")
    name, _, organizations = rest.partition(":")
    return token, User(name, tuple(filter(None, organizations.split(","))))


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="Serve the Hugging Face Hub's protocol from a folder.")
    parser.add_argument("root", type=Path, help="folder of the repositories")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--token", action="append", type=_user, default=[], metavar="TOKEN=USER:ORG,ORG")
    given = parser.parse_args(arguments)
    with HubServer(given.root, dict(given.token) or USERS, port=given.port) as server:
        print(server.url, flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
