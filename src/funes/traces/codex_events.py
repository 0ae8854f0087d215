"""Codex's `event_msg` records: what the interface was told.

They repeat the conversation's items. Their text is used where a file has no items of that kind (imported and editor
sessions), and a command's closing event holds the complete output, of which the item may have only a part.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from funes.traces.codex_items import (
    Call,
    Output,
    command_output,
    mapping,
    message_parts,
    output_of,
    string,
    thinking_texts,
)
from funes.traces.codex_lineage import digest
from funes.traces.codex_text import typed_text
from funes.traces.text import tool_input_text

Kind = Literal["user", "assistant", "thinking", "tool"]
"""Kinds of content that stand in items and again in events."""

_KINDS: dict[str, Kind] = {
    "user_message": "user",
    "agent_message": "assistant",
    "agent_reasoning": "thinking",
    "agent_reasoning_raw_content": "thinking",
    "exec_command_end": "tool",
    "mcp_tool_call_end": "tool",
    "patch_apply_end": "tool",
    "web_search_end": "tool",
    "UserMessage": "user",
    "AgentMessage": "assistant",
    "Plan": "assistant",
    "Reasoning": "thinking",
    "CommandExecution": "tool",
    "FileChange": "tool",
    "McpToolCall": "tool",
    "DynamicToolCall": "tool",
    "WebSearch": "tool",
}
_COMMANDS = frozenset(("exec_command_end", "CommandExecution"))
_CALLS = frozenset(
    (
        "function_call",
        "custom_tool_call",
        "local_shell_call",
        "web_search_call",
        "function_call_output",
        "custom_tool_call_output",
        "mcp_tool_call",
    )
)
# Progress and state, told by the last word of the name.
_QUIET = re.compile(
    r"(?:\w+_)?(?:delta|begin|end|started|completed?|cleared|compacted|updated?|applied|configured|available|aborted"
    r"|request|response|permissions|input|notice|interaction|activity|assessment|reroute|mode|break|event|info|error"
    r"|warning|count|diff|item|rolled_back|call)"
    r"|ContextCompaction|SubAgentActivity|CollabAgentToolCall|HookPrompt|ImageView|ImageGeneration|Sleep"
    r"|(?:Entered|Exited)ReviewMode"
)
_HEAD = re.compile(
    rb'\{"timestamp":\s?"[^"]*",\s?(?:"ordinal":\s?\d+,\s?)?"type":\s?"(\w+)",\s?"payload":\s?\{(?:"type":\s?"(\w+)")?'
)
_ITEM = re.compile(rb'"item":\s?\{"type":\s?"(\w+)"')


@dataclass(slots=True)
class Event:
    """An `event_msg` payload, or the item that it says is complete.

    Attributes:
        type: the event's type, or the item's.
        kind: kind of content that it repeats, None when it has none.
        body: the payload, or the item.
    """

    type: str
    kind: Kind | None
    body: dict[str, Any]

    @property
    def ident(self) -> str:
        """Id of the call or item that the event is about, empty when it has none."""
        return string(self.body.get("call_id")) or string(self.body.get("id"))

    @property
    def known(self) -> bool:
        """Whether this reader knows the type."""
        return self.kind is not None or _QUIET.fullmatch(self.type) is not None


class Coverage:
    """For which kinds of content a file has conversation items, so that its events only repeat them.

    Attributes:
        covered: the kinds for which it is known to have some.
    """

    def __init__(self, covers: Callable[[Kind], bool], redact: Callable[[str], str], state: dict[str, Any]) -> None:
        """Begin, or continue.

        Args:
            covers: looks through the file for items of a kind.
            redact: takes the credentials out of a text.
            state: what an earlier reader's `state()` returned.
        """
        self.covered: set[str] = {string(kind) for kind in state.get("covered") or ()}
        self._uncovered = {kind: string(text) for kind, text in mapping(state.get("uncovered")).items()}
        self._covers = covers
        self._redact = redact

    def state(self) -> dict[str, Any]:
        """Return a JSON-able value from which a later reader continues."""
        return {"covered": sorted(self.covered), "uncovered": self._uncovered}

    def add(self, kind: Kind) -> None:
        """Note an item."""
        self.covered.add(kind)

    def has(self, kind: Kind) -> bool:
        """Whether the file has items of a kind; looked up at the first event of that kind."""
        if kind not in self.covered and kind not in self._uncovered:
            if self._covers(kind):
                self.covered.add(kind)
            else:
                self._uncovered[kind] = ""
        return kind in self.covered

    def note_event(self, kind: Kind, texts: list[str]) -> None:
        """Note content that was taken from an event, there being no items of its kind."""
        self._uncovered[kind] = self._digest(texts)

    def repeats(self, kind: Kind, texts: list[str]) -> bool:
        """Note an item; True when it repeats the last event, which was read before the item was written."""
        repeated = kind not in self.covered and self._uncovered.get(kind) == self._digest(texts)
        self.covered.add(kind)
        return repeated

    def _digest(self, texts: list[str]) -> str:
        return digest(*map(self._redact, texts))


def event_of(payload: dict[str, Any]) -> Event:
    """Look into an `event_msg` payload."""
    name = string(payload.get("type"))
    body = mapping(payload.get("item")) if name in ("item_completed", "item_started", "item_updated") else payload
    if name == "item_completed":
        name = string(body.get("type"))
    return Event(name, _KINDS.get(name), body)


def event_texts(event: Event) -> Iterator[str]:
    """Return the texts of a `user`, `assistant` or `thinking` event."""
    for key in ("message", "text"):
        if text := string(event.body.get(key)):
            yield text
            return
    if event.kind == "thinking":
        yield from thinking_texts(event.body)
    else:
        yield from (part.text for part in message_parts(event.body) if part.text)


def event_call(event: Event) -> tuple[Call, Output]:
    """Read the call and its output that a `tool` event is about."""
    body = event.body
    if event.type in _COMMANDS:
        value: object = body.get("command")
        return Call("exec_command", value, _command_text(value)), Output(command_output(body))
    if event.type in ("mcp_tool_call_end", "McpToolCall", "DynamicToolCall"):
        about = mapping(body.get("invocation")) or body
        name = "__".join(n for n in (string(about.get("server")), string(about.get("tool"))) if n)
        result = body.get("result") or body.get("error") or body.get("content_items")
        arguments = about.get("arguments")
        return Call(name, arguments, tool_input_text(arguments)), output_of(result)
    if event.type in ("patch_apply_end", "FileChange"):
        changes = body.get("changes")
        return Call("apply_patch", changes, _changes_text(changes)), Output(command_output(body))
    query = body.get("action") or body.get("query")
    return Call("web_search", query, tool_input_text(query)), Output("")


def is_command(event: Event) -> bool:
    """Whether the event closes a command that the agent ran, so that it may hold the complete output."""
    return event.type in _COMMANDS and not is_user_command(event)


def is_user_command(event: Event) -> bool:
    """Whether the event closes a command that a person ran; the conversation records it as a message."""
    return event.type in _COMMANDS and string(event.body.get("source")) in ("user_shell", "userShell", "UserShell")


def _command_text(command: object) -> str:
    if isinstance(command, list) and len(command) == 3 and command[1] in ("-c", "-lc"):
        return string(command[2])
    return tool_input_text(command)


def _changes_text(changes: object) -> str:
    """Write the changes of a patch as one text: path by path, its diff or new content."""
    texts = []
    for path, change in mapping(changes).items():
        fields = mapping(change)
        if len(fields) == 1 and not isinstance(fields.get("type"), str):
            # Older: {"path": {"update": {"unified_diff": …}}}
            fields = mapping(next(iter(fields.values())))
        body = string(fields.get("unified_diff")) or string(fields.get("content"))
        texts.append(f"{path}\n{body}" if body else path)
    return "\n".join(texts) or ("" if not changes else json.dumps(changes, ensure_ascii=False))


def item_kind(record: dict[str, Any]) -> Kind | None:
    """Kind of content that a record holds when it is a conversation item rather than an event."""
    item = mapping(record.get("payload")) if record.get("type") == "response_item" else record
    kind = string(item.get("type"))
    if kind in _CALLS:
        return "tool"
    if kind == "reasoning":
        return "thinking" if thinking_texts(item) else None
    if kind == "message" and item.get("role") == "assistant":
        return "assistant"
    if kind == "message" and item.get("role") == "user":
        # What Codex itself puts into the conversation does not say that the prompts are items too.
        texts = (part.text for part in message_parts(item) if part.text.strip() and not part.from_program)
        return "user" if any(map(typed_text, texts)) else None
    return None


def skip_reason(line: bytes, covered: set[str]) -> str | None:
    """Say from a line's first bytes why it need not be decoded.

    Args:
        line: the record's bytes.
        covered: kinds of content for which the file has items, so that events about them are repetitions.
    """
    head = _HEAD.match(line, 0, 400)
    if head is None:
        return None
    kind, name = head[1], (head[2] or b"").decode()
    if kind == b"event_msg":
        if name == "item_completed":
            item = _ITEM.search(line, 0, 600)
            name = item[1].decode() if item else ""
        if name == "token_count" or name == "thread_settings_applied":
            return "metadata"
        if _KINDS.get(name) in covered and name not in _COMMANDS:
            return "event that repeats the conversation"
    elif kind in (b"world_state", b"token_usage_record"):
        return "metadata"
    elif kind == b"compacted" and b'"message":""' in line[:400]:
        return "compaction without a readable summary"
    return None
