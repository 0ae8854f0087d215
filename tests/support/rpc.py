"""A `funes mcp` process and lines of JSON to and from it, sound or not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[2] / "src"


def environment(home: Path, **extra: str) -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path, "FUNES_HOME": str(home), "FUNES_MODELS": str(home / "no-models"), **extra}


class RpcProcess:
    """A context manager; the process has ended when it is left."""

    def __init__(self, home: Path, *arguments: str, code: str = "", **extra: str) -> None:
        command = [sys.executable, "-c", code] if code else [sys.executable, "-m", "funes", "mcp", *arguments]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(home, **extra),
        )

    def __enter__(self) -> RpcProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send_line(self, line: bytes) -> None:
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def send(self, message: Any) -> None:
        self.send_line(json.dumps(message).encode())

    def receive(self) -> Any:
        line = self.process.stdout.readline()
        assert line, f"the server closed: {self.process.stderr.read().decode()}"
        return json.loads(line)

    def request(self, method: str, identifier: Any = 1, **params: Any) -> Any:
        self.send({"jsonrpc": "2.0", "id": identifier, "method": method, "params": params})
        return self.receive()

    def call(self, tool: str, **arguments: Any) -> tuple[str, bool]:
        """Text of a tool call, and whether it is an error."""
        result = self.request("tools/call", name=tool, arguments=arguments)["result"]
        return "".join(part["text"] for part in result["content"]), result.get("isError", False)

    def close(self) -> tuple[int, bytes, bytes]:
        """End of input; exit code and what was left on stdout and stderr."""
        if not self.process.stdin.closed:
            self.process.stdin.close()
        try:
            code = self.process.wait(600)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        left = self.process.stdout.read() if not self.process.stdout.closed else b""
        errors = self.process.stderr.read() if not self.process.stderr.closed else b""
        self.process.stdout.close()
        self.process.stderr.close()
        return code, left, errors
