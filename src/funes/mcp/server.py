"""`funes mcp`: an MCP server over stdin and stdout.

An agent that does not get `initialize` and `tools/list` answered within about half a second from the start of the
process goes on without the tools and says nothing. So the loop is our own (the official library alone takes longer to
import), `funes.__main__` calls it without loading click, and memory and model are opened by the first call of a tool.

The main thread reads and answers everything but tool calls at once; one worker thread runs tool calls in the order in
which they came. File descriptor 1 is kept for the protocol alone: whatever else prints goes to stderr.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
from typing import IO, Any

from funes import __version__
from funes.errors import FunesError
from funes.mcp import protocol
from funes.mcp.protocol import Message, RpcError
from funes.mcp.tools import TOOLS, Tools, instructions

SERVER = {"name": "funes", "title": "funes memory", "version": __version__}
LONGEST_LINE = 16 * 1024 * 1024


def serve(location: str | None = None) -> int:
    """Serve one memory until stdin ends or a signal asks to stop.

    Args:
        location: the memory, as for `--memory`, but `<org>/<name>` is never a folder; see `uri.from_anywhere`.
    """
    if sys.stdin is not None and sys.stdin.isatty():
        sys.stderr.write("funes mcp waits for an agent's messages on stdin; Ctrl-D ends it.\n")
    requests, answers = _claim_stdio()
    _end_on_signals()
    Server(location, answers).run(requests)
    # What was read before the end has been answered; see `_end_on_signals` for why not `return`.
    os._exit(0)


def _end_on_signals() -> None:
    """Have SIGTERM and SIGINT end the process at once.

    Nothing is ever half written here, and threads of native libraries would delay an orderly exit. The signal's handler
    would run when the main thread next runs Python, so never when the signal comes just before it begins to wait for
    input. The byte that the interpreter writes then wakes a thread that has nothing else to do.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)

    def end() -> None:
        os.read(reading, 1)
        os._exit(0)

    threading.Thread(target=end, name="funes-signals", daemon=True).start()


def _claim_stdio() -> tuple[IO[bytes], IO[bytes]]:
    """Take stdin and stdout for the protocol and leave harmless ones in their places.

    Raises:
        FunesError: when one of them is closed.
    """
    try:
        requests = os.fdopen(os.dup(0), "rb")
        answers = os.fdopen(os.dup(1), "wb", buffering=0)
    except OSError as error:
        raise FunesError("`funes mcp` talks to an agent over stdin and stdout, and one of them is closed.") from error
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # stderr is closed
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
    os.close(nowhere)
    sys.stdout = sys.stderr
    return requests, answers


class Server:
    """The state of one connection.

    Args:
        location: the memory to serve.
        answers: where responses go, unbuffered.
    """

    def __init__(self, location: str | None, answers: IO[bytes]) -> None:
        self._answers = answers
        self._writing = threading.Lock()
        self._tools = Tools(location)
        self._instructions = instructions(location)
        self._version: str | None = None
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._open: dict[Any, _Call] = {}

    def run(self, requests: IO[bytes]) -> None:
        """Read messages until the stream ends, then finish the calls that came before."""
        worker = threading.Thread(target=self._work, name="funes-tools", daemon=True)
        worker.start()
        while line := requests.readline(LONGEST_LINE):
            if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                _skip_line(requests)
                self._send(protocol.failure(None, RpcError(protocol.PARSE_ERROR, "The line is too long.")))
            elif line.strip():
                self._receive(line)
        self._calls.put(None)
        worker.join()

    def _receive(self, line: bytes) -> None:
        """Handle one line: a message, or a batch of them."""
        try:
            message = protocol.parse(line)
        except RpcError as error:
            self._send(protocol.failure(None, error))
            return
        if not isinstance(message, list):
            self._handle(message, None)
        elif not message or self._version not in (None, *protocol.BATCH_VERSIONS):
            self._send(protocol.failure(None, RpcError(protocol.INVALID_REQUEST, "A batch cannot be used here.")))
        else:
            batch = _Batch(sum(protocol.wants_answer(entry) for entry in message))
            for entry in message:
                self._handle(entry, batch)

    def _handle(self, message: Any, batch: _Batch | None) -> None:
        """Answer a message, or queue it when it is a tool call."""
        if not protocol.wants_answer(message):
            self._notice(message)
            return
        identifier = protocol.identifier_of(message)
        try:
            method, params = protocol.check_request(message)
            version = protocol.envelope_version(params)
            if method == "tools/call":
                call = _Call(identifier, params, version, batch)
                self._open[identifier] = call
                self._calls.put(call)
                return
            result = self._answer(method, params, version)
        except RpcError as error:
            self._send(protocol.failure(identifier, error), batch)
            return
        self._send(protocol.reply(identifier, result), batch)

    def _notice(self, message: Message) -> None:
        """Heed a notification; all but a cancellation can be ignored."""
        params = message.get("params")
        if message.get("method") == "notifications/cancelled" and isinstance(params, dict):
            identifier = params.get("requestId")
            if isinstance(identifier, (str, int)) and (call := self._open.get(identifier)):
                call.cancelled = True

    def _answer(self, method: str, params: Message, version: str | None) -> Message:
        if method == "initialize":
            self._version = protocol.negotiate(params.get("protocolVersion"))
            return protocol.initialize_result(self._version, SERVER, self._instructions)
        if method == "server/discover":
            return protocol.completed(protocol.discover_result(SERVER, self._instructions), cacheable=True)
        if method == "ping":
            return protocol.completed({}) if version else {}
        if method == "tools/list":
            result: Message = {"tools": TOOLS}
            return protocol.completed(result, cacheable=True) if version else result
        raise RpcError(protocol.METHOD_NOT_FOUND, f"There is no method {method[:80]!r}.")

    def _work(self) -> None:
        """Run tool calls, one after the other."""
        while (call := self._calls.get()) is not None:
            answer = None if call.cancelled else self._run(call)
            self._open.pop(call.identifier, None)
            if answer is not None and not call.cancelled:
                self._send(answer, call.batch)
            elif call.batch:
                self._send(None, call.batch)

    def _run(self, call: _Call) -> Message:
        try:
            result = self._tools.call(call.params)
        except RpcError as error:
            return protocol.failure(call.identifier, error)
        return protocol.reply(call.identifier, protocol.completed(result) if call.version else result)

    def _send(self, message: Message | None, batch: _Batch | None = None) -> None:
        """Write one answer; those of a batch leave together. None stands for an answer that is not wanted any more."""
        with self._writing:
            payload: Any = message
            if batch is not None:
                payload = batch.add(message)
            if not payload:
                return
            try:
                _write(self._answers, protocol.encode(payload))
            except OSError:
                os._exit(0)  # the agent has gone


class _Call:
    """A tool call that waits or runs."""

    __slots__ = ("batch", "cancelled", "identifier", "params", "version")

    def __init__(self, identifier: Any, params: Message, version: str | None, batch: _Batch | None) -> None:
        self.identifier = identifier
        self.params = params
        self.version = version
        self.batch = batch
        self.cancelled = False


class _Batch:
    """Collects the answers to the messages of one line."""

    def __init__(self, expected: int) -> None:
        self._missing = expected
        self._answers: list[Message] = []

    def add(self, message: Message | None) -> list[Message]:
        """Add an answer; returns all of them with the last one, nothing before."""
        self._missing -= 1
        if message is not None:
            self._answers.append(message)
        return [] if self._missing else self._answers


def _skip_line(requests: IO[bytes]) -> None:
    """Read to the end of a line without keeping it."""
    while (part := requests.readline(LONGEST_LINE)) and not part.endswith(b"\n"):
        pass


def _write(stream: IO[bytes], data: bytes) -> None:
    """Write all of it: one `write` to a pipe may take less."""
    view = memoryview(data)
    while view:
        view = view[stream.write(view) or 0 :]
