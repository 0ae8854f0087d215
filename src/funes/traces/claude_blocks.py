"""Messages of Claude Code to turns: what each block of an assistant's or user's message is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from funes.traces.claude_results import content_text, full_text, twin_text
from funes.traces.claude_text import Said, read_said, typed_in_rejection, without_reminder
from funes.traces.model import Block, Origin, ReadReport, Role, Turn
from funes.traces.text import is_own_command, is_own_output, is_own_tool, tool_input_text

_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")


class BlockReader:
    """Turns of single messages; their identifiers, times and places are left for the caller to fill in.

    Attributes:
        calls: name of the tool, and whether its output is funes's own, for each call without a result so far.
        tasks: description of each sub-agent's task, by the text of its prompt.
    """

    def __init__(self, path: Path, report: ReadReport, first_time: Callable[[str], bool]) -> None:
        """Prepare to read.

        Args:
            path: the transcript, beside which spilled tool outputs are looked for.
            report: what is left out is counted here.
            first_time: whether it is called with a key for the first time.
        """
        self.calls: dict[str, tuple[str, bool]] = {}
        self.tasks: dict[str, str] = {}
        self._path = path
        self._report = report
        self._first_time = first_time

    def assistant(self, record: dict[str, Any]) -> list[Turn]:
        """Read an assistant's record: what it says and calls, and the results of tools that the server ran."""
        message = record["message"]
        if record.get("isApiErrorMessage") is True:
            self._report.skipped["API error message"] += 1
            return []
        if message.get("model") == "<synthetic>":
            self._report.skipped["client-side message"] += 1
            return []
        anchor = text_of(message.get("id"))
        said: list[Block] = []
        results: list[Block] = []
        for item in items_of(message.get("content")):
            block = self._assistant_block(item, anchor)
            if block is None:
                continue
            # Some versions repeat the earlier blocks of a message with each new one.
            if anchor and not self._first_time(f"{anchor}\x1f{block.type}\x1f{block.anchor}\x1f{block.text}"):
                self._report.skipped["repeated block"] += 1
            elif block.type == "tool_result":
                results.append(block)
            else:
                said.append(block)
        return [*turn_of("assistant", "agent", said), *turn_of("tool", "tool", results)]

    def user(self, record: dict[str, Any], is_echo: Callable[[str], bool]) -> list[Turn]:
        """Read a user's record: tool results, prompts, and much that nobody said.

        Args:
            record: the record.
            is_echo: whether a prompt was yielded a moment ago and is only repeated here.
        """
        if record.get("isMeta") is True or record.get("rowSource") == "harness":
            self._report.skipped["harness text"] += 1
            return []
        uuid, content = text_of(record.get("uuid")), record["message"].get("content")
        if record.get("isCompactSummary") is True:
            text = first_text(content)
            return turn_of("user", "compaction", [Block("summary", text, anchor=uuid)] if text.strip() else [])
        results: list[Block] = []
        turns: list[Turn] = []
        for item in items_of(content):
            kind = item.get("type")
            if kind in ("tool_result", "mcp_tool_result"):
                block = self._result(item, record.get("toolUseResult"))
                if block is not None:
                    results.append(block)
                    if said := typed_in_rejection(block.text):
                        turns += turn_of("user", "human", [Block("text", said, anchor=f"{uuid}:said")])
            elif kind == "text":
                turns += self._said(text_of(item.get("text")), record, uuid, is_echo)
            else:
                self._report.skipped[f"{kind or 'unnamed'} block"] += 1
        return [*turn_of("tool", "tool", results), *_merged(turns)]

    def _assistant_block(self, item: dict[str, Any], anchor: str) -> Block | None:
        kind = item.get("type")
        if kind == "text":
            text = text_of(item.get("text"))
            if text.strip() not in ("", "(no content)"):
                return Block("text", text, anchor=anchor)
            self._report.skipped["empty text"] += 1
            return None
        if kind == "thinking":
            text = text_of(item.get("thinking"))
            if text.strip():
                return Block("thinking", text, anchor=anchor)
            self._report.skipped["empty thinking"] += 1
            return None
        if kind in _CALLS:
            return self._call(item, anchor)
        if isinstance(kind, str) and kind.endswith("tool_result"):
            return self._result(item, None)
        self._report.skipped[f"{kind or 'unnamed'} block"] += 1
        return None

    def _call(self, item: dict[str, Any], anchor: str) -> Block | None:
        name, given, call = text_of(item.get("name")), item.get("input"), text_of(item.get("id"))
        own = is_own_tool(name)
        if isinstance(given, dict):
            own = own or is_own_command(given.get("command"))
            prompt, description = given.get("prompt"), given.get("description")
            if isinstance(prompt, str) and isinstance(description, str):
                self.tasks[prompt.strip()] = description
        if call:
            self.calls[call] = (name, own)
        text = tool_input_text(given)
        if text.strip():
            return Block("tool_use", text, tool_name=name, anchor=call or anchor)
        self._report.skipped["call without arguments"] += 1
        return None

    def _result(self, item: dict[str, Any], twin: object) -> Block | None:
        call, content = text_of(item.get("tool_use_id")), item.get("content")
        name, own = self.calls.pop(call, ("", False))
        text = twin_text(twin, self._report) if content is None else content_text(content, self._report)
        if own or is_own_output(name, text):
            self._report.skipped["own recall output"] += 1
            return None
        text = without_reminder(full_text(text, twin, call, self._path, self._report))
        if text.strip():
            return Block("tool_result", text, tool_name=name, anchor=call)
        self._report.skipped["empty tool output"] += 1
        return None

    def _said(self, text: str, record: dict[str, Any], anchor: str, is_echo: Callable[[str], bool]) -> list[Turn]:
        said = read_said(text)
        if said.kind == "harness":
            if text.strip():
                self._report.skipped[said.text] += 1
            return []
        if said.kind == "prompt" and is_echo(said.text):
            self._report.skipped["queued prompt repeated"] += 1
            return []
        return said_turn(said, anchor, _origin(record))


def said_turn(said: Said, anchor: str, origin: Origin) -> list[Turn]:
    """Make the turn of a text that somebody said.

    Args:
        said: the text.
        anchor: what names the text in every copy of its record.
        origin: whose prompt it is, if it is one.
    """
    if said.kind == "shell":
        return turn_of("user", origin, [Block("tool_use", said.text, tool_name="bash", anchor=anchor)])
    if said.kind == "shell output":
        return turn_of("tool", "tool", [Block("tool_result", said.text, tool_name="bash", anchor=anchor)])
    if said.kind == "answer":
        return turn_of("tool", "tool", [Block("tool_result", said.text, anchor=said.source or anchor)])
    if said.kind == "summary":
        return turn_of("user", "compaction", [Block("summary", said.text, anchor=anchor)])
    typed = said.kind == "prompt"
    return turn_of("user", origin if typed else "agent", [Block("text", said.text, anchor=anchor)])


def turn_of(role: Role, origin: Origin, blocks: list[Block]) -> list[Turn]:
    """Make a turn whose place is still to be filled in; none without blocks."""
    return [Turn("", role, origin, None, blocks)] if blocks else []


def items_of(content: object) -> list[dict[str, Any]]:
    """Return the blocks of a message, whose content may be a string."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return []
    texts = [{"type": "text", "text": item} if isinstance(item, str) else item for item in content]
    return [item for item in texts if isinstance(item, dict)]


def first_text(content: object) -> str:
    """Return the first text of a message, empty when it has none."""
    return next((text_of(item.get("text")) for item in items_of(content) if item.get("type") == "text"), "")


def text_of(value: object) -> str:
    """Return a decoded value when it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def _merged(turns: list[Turn]) -> list[Turn]:
    """Join the turns of one record that have the same speaker."""
    merged: list[Turn] = []
    for turn in turns:
        if merged and (merged[-1].role, merged[-1].origin) == (turn.role, turn.origin):
            merged[-1].blocks += turn.blocks
        else:
            merged.append(turn)
    return merged


def _origin(record: dict[str, Any]) -> Origin:
    """Tell whether a prompt was typed by a person (or given by the program that drives the session)."""
    if record.get("isSidechain") is True:
        return "agent"
    origin = record.get("origin")
    kind = origin.get("kind") if isinstance(origin, dict) else None
    typed = kind in (None, "human") and record.get("promptSource") != "system"
    return "human" if typed and record.get("turnOrigin") in (None, "human", "sdk") else "agent"
