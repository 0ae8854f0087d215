"""HTTP for the test Hub: reading requests, answering them, going wrong as told."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.hub_faults import Fault, Served

if TYPE_CHECKING:
    from tests.support.hub_server import HubServer, User

Route = tuple[str, re.Pattern[str], Callable[..., None]]


class HubError(Exception):
    """An answer that is not a success, in the form of the Hub's own."""

    def __init__(self, status: int, message: str, code: str = "", headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.headers = dict(headers or {})


class CutError(Exception):
    """The connection is to be closed without a (whole) answer."""


class HubHandler(BaseHTTPRequestHandler):
    """One connection of a client. Subclasses bring the routes."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 65536
    owner: HubServer
    routes: ClassVar[list[Route]] = []

    def log_message(self, *_: object) -> None:
        """Nothing: stderr belongs to the test."""

    def handle_any(self) -> None:
        """Answer one request."""
        self._body: bytes | None = None
        parts = urlsplit(self.path)
        self.query = parse_qs(parts.query, keep_blank_values=True)
        self.served = Served(self.command, self.path, authorized=bool(self.headers.get("Authorization")))
        self.owner.traffic.served.append(self.served)
        self.fault = self.owner.fault(f"{self.command} {self.path}")
        try:
            self._before()
            self._dispatch(parts.path)
        except HubError as error:
            self._fail(error)
        except CutError:
            self._cut()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def do_GET(self) -> None:
        self.handle_any()

    def do_HEAD(self) -> None:
        self.handle_any()

    def do_POST(self) -> None:
        self.handle_any()

    def do_PUT(self) -> None:
        self.handle_any()

    def do_DELETE(self) -> None:
        self.handle_any()

    def body(self) -> bytes:
        """The request's body."""
        if self._body is None:
            self._body = self._read_body()
            self.served.received = len(self._body)
        return self._body

    def json_body(self) -> dict[str, Any]:
        """The request's body as an object; an empty one without a body."""
        return dict(json.loads(self.body() or b"{}"))

    def answer(
        self,
        value: Any = b"",
        headers: Mapping[str, str] | None = None,
        *,
        status: int = 200,
        kind: str = "application/json; charset=utf-8",
        length: int | None = None,
    ) -> None:
        """Send an answer.

        Args:
            value: bytes, or what to send as JSON.
            headers: further headers.
            status: HTTP status.
            kind: content type.
            length: announced length, when it is not that of the body (an answer to HEAD).
        """
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        if self.fault is not None and self.fault.kind == "lost":
            self.body()
            raise CutError
        data = self._spoiled(data)
        size = len(data) if length is None else length
        self.served.status = status
        self.send_response(status)
        standing = {
            "Content-Type": kind,
            "Content-Length": str(size),
            "X-Request-Id": f"local-{time.time_ns():x}",
        }
        for name, text in {**standing, **(headers or {})}.items():
            self.send_header(name, text)
        self.end_headers()
        if self.command == "HEAD" or not data:
            return
        if self.fault is not None and self.fault.kind == "cut":
            self._write(data[: len(data) // 2])
            self.wfile.flush()
            raise CutError
        self._write(data)

    def base(self) -> str:
        """The server's address as this client knows it."""
        return f"http://{self.headers['Host']}"

    def user(self) -> User | None:
        """Whose token came with the request, None without one."""
        given = self.headers.get("Authorization") or ""
        if not given:
            return None
        user = self.owner.users.get(given.removeprefix("Bearer ").strip())
        if user is None:
            raise HubError(401, "Invalid credentials in Authorization header")
        return user

    def need_user(self) -> User:
        """The same, where a token is needed."""
        user = self.user()
        if user is None:
            raise HubError(401, "Invalid username or password.")
        return user

    def _before(self) -> None:
        """Faults that show before anything is done."""
        fault = self.fault
        if fault is None:
            return
        if fault.kind == "slow":
            self.owner.closing.wait(fault.seconds)
        elif fault.kind == "status":
            self.body()
            raise HubError(fault.status, f"scripted {fault.status}", headers=fault.headers)
        elif fault.kind == "cut-upload":
            self.served.received = len(self.rfile.read(int(self.headers.get("Content-Length") or 0) // 2))
            raise CutError

    def _spoiled(self, data: bytes) -> bytes:
        if not _spoils(self.fault, self.command):
            return data
        assert self.fault is not None
        return data[: len(data) // 2] if self.fault.kind == "truncated" else bytes(byte ^ 0x55 for byte in data)

    def _dispatch(self, path: str) -> None:
        for methods, pattern, action in self.routes:
            match = pattern.fullmatch(path)
            if match and self.command in methods.split("|"):
                values = {name: None if text is None else unquote(text) for name, text in match.groupdict().items()}
                action(self, **values)
                return
        self.body()
        raise HubError(404, f"No route for {self.command} {path}")

    def _fail(self, error: HubError) -> None:
        self.close_connection = True  # the body may be unread
        headers = {"X-Error-Message": error.message, "Connection": "close", **error.headers}
        if error.code:
            headers["X-Error-Code"] = error.code
        try:
            self.answer({"error": error.message}, headers, status=error.status)
        except (CutError, BrokenPipeError, ConnectionResetError):
            self._cut()

    def _cut(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _write(self, data: bytes) -> None:
        # Counted first: a client may have it, and a test look, before this thread goes on.
        self.served.sent += len(data)
        self.wfile.write(data)

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        data = bytearray()
        while True:
            size = int(self.rfile.readline().split(b";")[0], 16)
            data += self.rfile.read(size)
            self.rfile.readline()
            if not size:
                return bytes(data)


def _spoils(fault: Fault | None, method: str) -> bool:
    return fault is not None and fault.kind in ("truncated", "garbled") and method == "GET"
