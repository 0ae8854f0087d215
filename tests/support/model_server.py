"""A model server on 127.0.0.1 that follows a script, for tests with the real agent programs.

In a test it is a context manager:

    with ModelServer([Call("recall", {"query": "$PROMPT"}), Say("Done: $RESULT")]) as server:
        run_agent(base_url=server.url)
        assert server.requests[0].find_tool("recall")

By hand, `python -m tests.support.model_server` prints its address and ends after ten minutes.
"""

from __future__ import annotations

import gzip
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from tests.support import model_protocols as protocols
from tests.support.model_script import Call, Request, Say, Stall, Step, ToolCall, decide

MODEL = "scripted-model"
DEFAULT_SCRIPT: tuple[Step, ...] = (
    Call("recall", {"query": "$PROMPT"}),
    Call("get", {"session": "$SESSION", "turn": "$TURN"}),
    Say("The scripted model read: $RESULT"),
)


class _Protocol(NamedTuple):
    read: Callable[[dict[str, Any]], Request]
    whole: Callable[[ToolCall | Say, str], dict[str, Any]]
    events: Callable[[ToolCall | Say, str], Iterator[protocols.Event]]


_PROTOCOLS = {
    "/messages": _Protocol(protocols.read_messages, protocols.messages_whole, protocols.messages_events),
    "/responses": _Protocol(protocols.read_responses, protocols.responses_whole, protocols.responses_events),
    "/chat/completions": _Protocol(protocols.read_chat, protocols.chat_whole, protocols.chat_events),
}


class ModelServer:
    """The server, listening while the context is open.

    Attributes:
        script: the steps; a test may replace it between two runs.
        requests: what was asked so far, with the replies given.
        status: HTTP status of every answer; anything but 200 is an outage.
        last_answer: when the last text was sent whole, in seconds of the wall clock.
    """

    def __init__(self, script: Sequence[Step] = DEFAULT_SCRIPT) -> None:
        self.script = list(script)
        self.requests: list[Request] = []
        self.status = 200
        self.last_answer = 0.0
        self._closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"owner": self}))
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """Address without a path: `http://127.0.0.1:port`."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    def answer(self, request: Request) -> ToolCall | Say:
        """Note a request and choose its reply; a stalled one comes back when the server closes."""
        reply = decide(request, self.script)
        request.reply = reply
        self.requests.append(request)
        if isinstance(reply, Stall):
            self._closing.wait()
            return Say("")
        return reply


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """An agent that was ended in the middle of an answer is no fault of the server."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: ModelServer

    def log_message(self, *_: object) -> None:
        """Nothing: stderr belongs to the test."""

    def do_HEAD(self) -> None:
        self._send({})

    def do_GET(self) -> None:
        if self._path().endswith("/models"):
            model = {"id": MODEL, "object": "model", "created": 1, "owned_by": "test", "context_length": 200_000}
            self._send({"object": "list", "data": [model], "models": []})
        else:
            self._send({"error": {"message": "not found"}}, 404)

    def do_POST(self) -> None:
        body = self._body()
        path = self._path()
        if path.endswith("/count_tokens"):
            self._send({"input_tokens": 10})
            return
        protocol = next((found for end, found in _PROTOCOLS.items() if path.endswith(end)), None)
        if protocol is None or self.owner.status != 200:
            self._send({"error": {"message": "not found" if protocol is None else "scripted outage"}}, self._fault())
            return
        reply = self.owner.answer(protocol.read(body))
        model = body.get("model", MODEL)
        if body.get("stream"):
            self._stream(protocol.events(reply, model))
        else:
            self._send(protocol.whole(reply, model))
        if isinstance(reply, Say):
            self.owner.last_answer = time.time()

    def _fault(self) -> int:
        return 404 if self.owner.status == 200 else self.owner.status

    def _path(self) -> str:
        return self.path.split("?")[0]

    def _body(self) -> dict[str, Any]:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        encoding = (self.headers.get("content-encoding") or "").lower()
        if encoding == "gzip":
            raw = gzip.decompress(raw)
        elif encoding == "zstd":
            import zstandard

            raw = zstandard.ZstdDecompressor().decompressobj().decompress(raw)
        return dict(json.loads(raw or b"{}"))

    def _send(self, value: Any, status: int = 200) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _stream(self, events: Iterator[protocols.Event]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("cache-control", "no-cache")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for name, data in events:
            head = f"event: {name}\n" if name else ""
            text = data if isinstance(data, str) else json.dumps(data)
            self.wfile.write(f"{head}data: {text}\n\n".encode())
            self.wfile.flush()


def main() -> None:
    """Serve the default script for a while."""
    with ModelServer() as server:
        print(server.url, flush=True)
        time.sleep(float(sys.argv[1]) if len(sys.argv) > 1 else 600)


if __name__ == "__main__":
    main()
