"""Trusting hooks in Codex through its own app server, as its dialog does. Only when the user asked for it.

The hashes are Codex's: it lists each hook with its current one, and that is what is written back.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from funes import __version__
from funes.errors import FunesError

SECONDS = 30.0
_FAILED = "Codex did not take the trust in the hooks: {}; leave `--trust-hooks` out and answer its dialog instead."


def trust_hooks(program: Path, prefix: str, count: int) -> None:
    """Trust the hooks whose keys begin with a prefix.

    Args:
        program: the `codex` program.
        prefix: beginning of their keys.
        count: how many there have to be.

    Raises:
        FunesError: when Codex does not list them or does not take the trust.
    """
    try:
        process = subprocess.Popen(
            [program, "app-server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=os.sep,
        )
    except OSError as error:
        raise FunesError(_FAILED.format(error.strerror or error)) from error
    deadline = threading.Timer(SECONDS, process.kill)
    deadline.start()
    try:
        _trust(_Connection(process), prefix, count)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FunesError(_FAILED.format("its app server answered something unexpected")) from error
    finally:
        deadline.cancel()
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _trust(connection: _Connection, prefix: str, count: int) -> None:
    connection.call("initialize", {"clientInfo": {"name": "funes", "title": "funes", "version": __version__}})
    connection.tell("initialized")
    hooks = _listed(connection, prefix)
    if len(hooks) != count:
        raise FunesError(_FAILED.format(f"it lists {len(hooks)} of {count} hooks"))
    trusted = {hook["key"]: {"trusted_hash": hook["currentHash"]} for hook in hooks}
    edit = {"keyPath": "hooks.state", "value": trusted, "mergeStrategy": "upsert"}
    connection.call("config/batchWrite", {"edits": [edit], "reloadUserConfig": True})
    for hook in _listed(connection, prefix):
        if hook["trustStatus"] != "trusted":
            raise FunesError(_FAILED.format(f"it calls them {hook['trustStatus']}"))


def _listed(connection: _Connection, prefix: str) -> list[dict[str, Any]]:
    answer = connection.call("hooks/list", {"cwds": [os.sep]})
    hooks = {hook["key"]: hook for folder in answer["data"] for hook in folder["hooks"]}
    return [hook for key, hook in hooks.items() if key.startswith(prefix)]


class _Connection:
    """Requests to an app server, one after the other."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._id = 0

    def call(self, method: str, params: Mapping[str, Any]) -> Any:
        """Send a request and wait for its answer."""
        self._id += 1
        self._send({"id": self._id, "method": method, "params": dict(params)})
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            if message.get("id") == self._id and "method" not in message:
                if "error" in message:
                    raise FunesError(_FAILED.format(str(message["error"].get("message", ""))[:200]))
                return message["result"]
        raise FunesError(_FAILED.format("its app server ended early"))

    def tell(self, method: str) -> None:
        """Send a notification."""
        self._send({"method": method})

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
