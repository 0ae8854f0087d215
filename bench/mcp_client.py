"""A `funes mcp` process and JSON lines to and from it, as an agent starts it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from measure import environment, funes

CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


class Server:
    """A context manager; the process has ended when it is left.

    Args:
        home: the `FUNES_HOME` that it serves.
        variables: further variables of its environment.

    Attributes:
        started: seconds that starting the process took.
        tools: definitions of the tools, once `handshake` has been called.
        instructions: what the server tells the model, from then on too.
        cpu: CPU time of the whole process, user and system, once it has ended.
    """

    def __init__(self, home: Path, **variables: str) -> None:
        self._last = 0
        self.cpu = 0.0
        self.tools: list[dict[str, Any]] = []
        self.instructions = ""
        began = time.perf_counter()
        self._process = subprocess.Popen(
            funes("mcp"),
            env=environment(home) | variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.started = time.perf_counter() - began

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        _, status, usage = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu = usage.ru_utime + usage.ru_stime

    @property
    def process(self) -> int:
        """Its process id."""
        return self._process.pid

    def handshake(self) -> None:
        """Do what a client does before it shows the tools to its model."""
        self.instructions = self.request("initialize", **CLIENT).get("instructions", "")
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.tools = self.request("tools/list")["tools"]

    def recall(self, question: str) -> str:
        """Call the tool recall; its text."""
        return self.call("recall", query=question)

    def call(self, tool: str, **arguments: Any) -> str:
        """Call a tool; its text."""
        text, failed = self.attempt(tool, **arguments)
        if failed:
            raise SystemExit(f"{tool} failed: {text}")
        return text

    def attempt(self, tool: str, **arguments: Any) -> tuple[str, bool]:
        """Call a tool; its text, and whether that is an error message."""
        result = self.request("tools/call", name=tool, arguments=arguments)
        return "".join(part["text"] for part in result["content"]), bool(result.get("isError"))

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and wait for its result."""
        self._last += 1
        self._send({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params})
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("funes mcp ended without an answer")
        answer: dict[str, Any] = json.loads(line)
        if "result" not in answer:
            raise SystemExit(f"{method} failed: {answer.get('error')}")
        result: dict[str, Any] = answer["result"]
        return result

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
