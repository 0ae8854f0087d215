"""Tool calls of a Codex session: which are open, what they are called, and where their complete output is."""

from __future__ import annotations

from typing import Any

from funes.traces.codex_items import Call, Output, completed_output, mapping, output_length, string
from funes.traces.text import is_own_command, is_own_output, is_own_tool

_OPEN = 1000
_CLOSED = 64
_HELD = 32 * 2**20


class Calls:
    """Matches outputs with calls.

    The output that the model got may be cut. The complete one is in an event, which comes before it as a rule, and
    after it when the command went on in the background.
    """

    def __init__(self, state: dict[str, Any] | None = None) -> None:
        state = state or {}
        self._open: dict[str, list[Any]] = {
            ident: call
            for ident, call in mapping(state.get("open")).items()
            if isinstance(call, list) and len(call) == 3
        }
        self._closed: dict[str, list[Any]] = {
            ident: call
            for ident, call in mapping(state.get("closed")).items()
            if isinstance(call, list) and len(call) == 3 and isinstance(call[2], int)
        }
        self._processes = {key: string(value) for key, value in mapping(state.get("processes")).items()}
        self._given = dict.fromkeys(map(str, state.get("given") or ()))
        self._complete: dict[str, str] = {}
        self._held = 0

    def state(self) -> dict[str, Any]:
        """Return a JSON-able value from which a later reader continues."""
        return {
            "open": self._open,
            "closed": self._closed,
            "processes": self._processes,
            "given": list(self._given),
        }

    def opened(self, ident: str, call: Call) -> None:
        """Note a call."""
        fields = mapping(call.input)
        own = is_own_tool(call.name) or any(is_own_command(fields.get(key)) for key in ("command", "cmd", "script"))
        process = fields.get("session_id") if call.name == "write_stdin" else None
        self._open[ident] = [call.name, own, "" if process is None else str(process)]
        _shorten(self._open, _OPEN)

    def is_open(self, ident: str) -> bool:
        """Whether the call was seen and its output was not."""
        return ident in self._open

    def closed(self, ident: str, output: Output) -> tuple[str, str] | None:
        """Note a call's output.

        Returns:
            The tool's name and the output, the complete one when it is known; None when the output is funes's own.
        """
        name, own, process = self._open.pop(ident, ["", False, ""])
        text, complete = output.text, self._complete.pop(ident, "")
        self._held -= len(complete)
        length = output_length(text)
        text = completed_output(text, complete)
        self._closed[ident] = [name, own, max(length, len(complete))]
        _shorten(self._closed, _CLOSED)
        if process and (started := self._closed.get(self._processes.get(process, ""))):
            # Output that a poll brought is output of the command that was started before.
            started[2] += length
        if output.process:
            self._processes[output.process] = ident
            _shorten(self._processes, _CLOSED)
        return None if own or is_own_output(name, text) else (name, text)

    def take_given(self, ident: str) -> bool:
        """Close a call whose complete output was passed on before its output was recorded; False for another one."""
        if ident not in self._given:
            return False
        del self._given[ident]
        self._open.pop(ident, None)
        return True

    def completed(self, ident: str, text: str) -> tuple[str, str] | None:
        """Note the complete output of a command.

        Returns:
            The tool's name and the output when the output recorded before had only a part of it.
        """
        if closed := self._closed.get(ident):
            name, own, length = closed
            enough = len(text) <= length + length // 20 + 200
            closed[2] = max(length, len(text))
            return None if own or enough or is_own_output(name, text) else (name, text)
        if text:
            self._held += len(text) - len(self._complete.pop(ident, ""))
            self._complete[ident] = text
        while self._held > _HELD:
            self._held -= len(self._complete.pop(next(iter(self._complete))))
        return None

    def left_over(self) -> list[tuple[str, str, str]]:
        """Take the complete outputs, as `(id, name, text)`, of calls whose output is not (yet) recorded."""
        left = []
        for ident, text in self._complete.items():
            name, own, _ = self._open.get(ident, ["", False, ""])
            self._given[ident] = None
            if not own and not is_own_output(name, text):
                left.append((ident, name, text))
        self._complete, self._held = {}, 0
        _shorten(self._given, _OPEN)
        return left


def _shorten(entries: dict[str, Any], limit: int) -> None:
    while len(entries) > limit:
        del entries[next(iter(entries))]
