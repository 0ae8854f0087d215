"""The entries of a pi session file, of any version, and of the files that share their shape, as turns."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from funes.traces.model import Block, BlockType, Origin, ReadReport, Role, Session, Turn
from funes.traces.openai import Call, read_calls, read_content
from funes.traces.pi_text import is_summary, session_of_file, split_prompt
from funes.traces.text import is_own_command, is_own_output, is_own_tool, parse_time

HARNESS = "harness text"
METADATA = "metadata"
_EMPTY = "empty message"
_OWN = "own recall output"
_IMAGES = "image data"
_HIDDEN = "command that the user kept from the agent"

_METADATA_TYPES = frozenset(
    ("model_change", "thinking_level_change", "mode_change", "label", "usage", "context_edit", "custom")
)
_HARNESSES = {
    "claude": "claude_code",
    "claude_code": "claude_code",
    "codex": "codex",
    "codex_cli": "codex",
    "hermes": "hermes",
    "hermes_agent": "hermes",
}
_OPEN = 1000


class Entries:
    """Turns a session's entries into turns, one entry at a time.

    Args:
        session: the session; filled in while its entries pass.
        report: where entries that are left out are counted.
        state: what an earlier reader's `state()` returned.
    """

    def __init__(self, session: Session, report: ReadReport, state: object = None) -> None:
        state = _mapping(state)
        self.session = session
        self._report = report
        self._headed = bool(state.get("headed"))
        self._time = parse_time(state.get("time"))
        self._last = _string(state.get("last"))
        self._number = state["number"] if isinstance(state.get("number"), int) else 0
        self._skipped = {key: _string(value) for key, value in _mapping(state.get("skipped")).items()}
        self._open = {
            key: call for key, call in _mapping(state.get("open")).items() if isinstance(call, list) and len(call) == 2
        }
        self._times = _string(state.get("times"))
        self._seen = {key: count for key, count in _mapping(state.get("seen")).items() if isinstance(count, int)}
        self._anchor = ""

    def state(self) -> dict[str, Any]:
        """Return a JSON-able value from which a later reader continues."""
        return {
            "headed": self._headed,
            "time": self._time.isoformat() if self._time else "",
            "last": self._last,
            "number": self._number,
            "skipped": self._skipped,
            "open": self._open,
            "times": self._times,
            "seen": self._seen,
        }

    def feed(self, entry: dict[str, Any]) -> Iterator[Turn]:
        """Return the turns of an entry."""
        kind = _string(entry.get("type"))
        self._number += 1
        message = _mapping(entry.get("message"))
        self._time = parse_time(entry.get("timestamp")) or parse_time(message.get("timestamp")) or self._time
        self._anchor = self._entry_anchor(entry, message)
        count = self._report.turns
        for turn in self._entry(kind, entry, message):
            self._report.turns += 1
            yield turn
        ident = _string(entry.get("id"))
        if ident and kind != "session" and self._report.turns == count:
            # The tree runs through entries without content; what follows one hangs on the turn before it.
            self._skipped[ident] = self._parent(entry)
            _shorten(self._skipped)

    def _entry(self, kind: str, entry: dict[str, Any], message: dict[str, Any]) -> Iterator[Turn]:
        if kind == "session":
            self._header(entry)
        elif kind == "message":
            yield from self._message(entry, message)
        elif kind in ("compaction", "branch_summary"):
            yield from self._summary(entry, _string(entry.get("summary")))
        elif kind in ("session_info", "title", "title_change"):
            name = entry.get("name") if kind == "session_info" else entry.get("title")
            self.session.title = _string(name).strip()
            self._skip(METADATA)
        elif kind == "custom_message":
            self._skip(HARNESS)
        elif kind in _METADATA_TYPES:
            self._skip(METADATA)
        else:
            self._skip(f"unknown type {kind[:60] or '(none)'}")

    def _header(self, entry: dict[str, Any]) -> None:
        self._skip(METADATA)
        if self._headed:
            return
        self._headed = True
        session = self.session
        session.id = _string(entry.get("id")) or session.id
        session.workdir = _string(entry.get("cwd"))
        session.title = (_string(entry.get("name")) or _string(entry.get("title"))).strip()
        harness = _string(entry.get("harness")).lower().replace("-", "_").replace(" ", "_")
        session.harness = _HARNESSES.get(harness, session.harness)
        if parent := _string(entry.get("parentSession")) or _string(entry.get("branchedFrom")):
            session.parent_id, session.kind = session_of_file(parent), "fork"

    def _message(self, entry: dict[str, Any], message: dict[str, Any]) -> Iterator[Turn]:
        role = _string(message.get("role"))
        if role == "user":
            yield from self._user(entry, message)
        elif role == "assistant":
            yield from self._assistant(entry, message)
        elif role in ("toolResult", "tool"):
            yield from self._result(entry, message)
        elif role == "bashExecution":
            yield from self._command(entry, message)
        elif role in ("branchSummary", "compactionSummary"):
            yield from self._summary(
                entry, _string(message.get("summary")) or read_content(message.get("content")).text
            )
        elif role in ("system", "developer", "custom", "hookMessage"):
            self._skip(HARNESS)
        else:
            self._skip(f"unknown role {role[:40]}" if role else "message without a role")

    def _user(self, entry: dict[str, Any], message: dict[str, Any]) -> Iterator[Turn]:
        content = read_content(message.get("content"))
        self._skip(_IMAGES, content.media + len(_sequence(message.get("attachments"))))
        if is_summary(content.text):
            yield from self._summary(entry, content.text)
            return
        files, prompt = split_prompt(content.text)
        if files:
            blocks = [self._block("tool_result", text, "file", n) for n, text in enumerate(files)]
            yield self._turn(entry, "tool", "tool", blocks, "file")
        if prompt.strip():
            yield self._turn(entry, "user", "human", [self._block("text", prompt)])
        elif not files:
            self._skip(HARNESS if content.text.strip() else _EMPTY)

    def _assistant(self, entry: dict[str, Any], message: dict[str, Any]) -> Iterator[Turn]:
        blocks: list[Block] = []

        def add(kind: BlockType, text: str, tool: str = "") -> None:
            if text.strip():
                blocks.append(self._block(kind, text, tool, len(blocks)))

        add("thinking", _string(message.get("reasoningContent")))
        content = message.get("content")
        for part in content if isinstance(content, list) else [content]:
            fields = _mapping(part)
            kind = fields.get("type")
            if kind == "toolCall":
                for call in read_calls([fields]):
                    self._opened(call)
                    add("tool_use", call.text or call.name, call.name)
            elif kind == "thinking":
                add("thinking", _string(fields.get("thinking")))
            else:
                found = read_content(part)
                self._skip(_IMAGES, found.media)
                add("text", found.text)
        for call in self._foreign_calls(message):
            self._opened(call)
            add("tool_use", call.text or call.name, call.name)
        if blocks:
            yield self._turn(entry, "assistant", "agent", blocks)
        else:
            self._skip(_EMPTY)

    def _foreign_calls(self, message: dict[str, Any]) -> list[Call]:
        """Read calls that stand beside the content, as in the trace format of Hugging Face."""
        try:
            return read_calls(message.get("toolCalls") or message.get("tool_calls"))
        except ValueError as error:
            self._report.damage(f"entry {self._number}: tool calls that cannot be read ({error})")
            return []

    def _opened(self, call: Call) -> None:
        fields = _mapping(call.input)
        own = is_own_tool(call.name) or any(is_own_command(fields.get(key)) for key in ("command", "cmd", "script"))
        self._open[call.id] = [call.name, own]
        _shorten(self._open)

    def _result(self, entry: dict[str, Any], message: dict[str, Any]) -> Iterator[Turn]:
        content = read_content(message.get("content"))
        self._skip(_IMAGES, content.media)
        ident = _string(message.get("toolCallId")) or _string(message.get("tool_call_id"))
        name, own = self._open.pop(ident, ["", False])
        name = _string(message.get("toolName")) or _string(message.get("name")) or _string(name)
        if own or is_own_output(name, content.text):
            self._skip(_OWN)
        elif content.text.strip():
            yield self._turn(entry, "tool", "tool", [self._block("tool_result", content.text, name)])
        else:
            self._skip(_EMPTY)

    def _command(self, entry: dict[str, Any], message: dict[str, Any]) -> Iterator[Turn]:
        """Make turns of a command that a person ran with `!`: theirs, but a command with its output, not a prompt."""
        command, output = _string(message.get("command")), _string(message.get("output"))
        if message.get("excludeFromContext") is True:
            # `!!`: what the agent was not to see, it must not find here either.
            self._skip(_HIDDEN)
            return
        if command.strip():
            yield self._turn(entry, "user", "human", [self._block("tool_use", command, "bash")])
        if is_own_command(command):
            self._skip(_OWN)
        elif output.strip():
            yield self._turn(entry, "tool", "tool", [self._block("tool_result", output, "bash")], "output")

    def _summary(self, entry: dict[str, Any], text: str) -> Iterator[Turn]:
        if text.strip():
            yield self._turn(entry, "user", "compaction", [self._block("summary", text)])
        else:
            self._skip(_EMPTY)

    def _block(self, kind: BlockType, text: str, tool: str = "", index: int = 0) -> Block:
        return Block(kind, text, tool, f"{self._anchor}.{index}" if self._anchor else "")

    def _entry_anchor(self, entry: dict[str, Any], message: dict[str, Any]) -> str:
        """Return what an entry has in common with its copies; empty without a time.

        A fork copies entries with their ids and times. A file of version 1 or 2 is rewritten when it is opened, and its
        entries get new ids, so that ids do not count. Entries that are alike in all that counts are numbered.
        """
        times = "\x1f".join(repr(value) for value in (entry.get("timestamp"), message.get("timestamp")) if value)
        if not times:
            return ""
        if times != self._times:
            self._times = times
            self._seen.clear()
        call = _string(message.get("toolCallId"))
        text = "\x1f".join((times, str(entry.get("type")), _string(message.get("role")), call))
        key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
        count = self._seen[key] = self._seen.get(key, 0) + 1
        _shorten(self._seen)
        return key if count == 1 else f"{key}-{count}"

    def _turn(self, entry: dict[str, Any], role: Role, origin: Origin, blocks: list[Block], suffix: str = "") -> Turn:
        uuid = _string(entry.get("id")) or str(self._number)
        parent = self._parent(entry)
        if suffix == "output" and self._last == uuid:
            parent = uuid
        uuid = f"{uuid}-{suffix}" if suffix else uuid
        turn = Turn(uuid, role, origin, self._time, blocks, parent_uuid=parent)
        self._last = uuid
        return turn

    def _parent(self, entry: dict[str, Any]) -> str:
        """Find the turn before an entry in the tree; in a file without a tree, before it in the file."""
        if "parentId" not in entry:
            return self._last
        ident = _string(entry["parentId"])
        return self._skipped.get(ident, ident)

    def _skip(self, reason: str, count: int = 1) -> None:
        if count:
            self._report.skipped[reason] += count


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _sequence(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _shorten(entries: dict[str, Any]) -> None:
    while len(entries) > _OPEN:
        del entries[next(iter(entries))]
