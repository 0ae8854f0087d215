"""The `messages` of an agent-trace dataset's row to turns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from funes.traces.claude_text import read_said
from funes.traces.codex_text import is_summary, typed_text
from funes.traces.hermes_text import read_assistant, read_result, read_user
from funes.traces.identity import ContentNames
from funes.traces.jsonl import sanitize
from funes.traces.model import Block, Origin, ReadReport, Role, Session, Turn
from funes.traces.openai import Call, Content, read_calls, read_content, read_reasoning
from funes.traces.parquet_rows import Row
from funes.traces.text import is_own_output, parse_time

_UNKNOWN_TOOL = "unknown_tool"


def read_messages(row: Row, session: Session, report: ReadReport) -> Iterator[Turn]:
    """Stream the turns of a row's messages, in order.

    Args:
        row: the row.
        session: the row's session.
        report: counts what is left out, and notes what cannot be read.
    """
    reader = _Messages(row, session, report)
    for position, item in enumerate(row.messages or []):
        report.records += 1
        message = _decoded(item)
        if message is None:
            report.damage(f"row {row.number}: message {position + 1} is not a JSON object")
            continue
        for turn in reader.turns(message):
            report.turns += 1
            yield turn


class _Messages:
    """Turns the messages of one session into turns. Most have no id; their content names them."""

    def __init__(self, row: Row, session: Session, report: ReadReport) -> None:
        self._row = row
        self._session = session
        self._report = report
        self._calls: dict[str, tuple[str, Any]] = {}
        self._names = ContentNames(session.id, redact=report.redact)
        self._last_uuid = ""

    def turns(self, message: Mapping[str, Any]) -> Iterator[Turn]:
        content = read_content(message.get("content"))
        results, parts = _anthropic_parts(message.get("content"))
        if parts:
            content = read_content(parts if parts != [None] else None)
        if content.media:
            self._report.skipped["images and files"] += content.media
        role = str(message.get("role") or "").strip().lower()
        if role == "user":
            yield from self._user(message, content, results)
        elif role == "assistant":
            yield from self._assistant(message, content)
        elif role in ("tool", "function"):
            call_id = str(message.get("tool_call_id") or message.get("toolCallId") or "")
            yield from self._result(message, call_id, str(message.get("name") or ""), content.text)
        elif role in ("system", "developer"):
            self._report.skipped["harness text"] += 1
        else:
            self._report.skipped[f"unknown role {role[:40]}" if role else "message without a role"] += 1

    def _user(self, message: Mapping[str, Any], content: Content, results: list[tuple[str, str]]) -> Iterator[Turn]:
        for call_id, output in results:
            yield from self._result(message, call_id, "", output)
        text, summary = self._typed(content.text)
        blocks = [Block("summary", summary)] if summary.strip() else []
        if text.strip():
            blocks.append(Block("text", text))
        if blocks:
            origin: Origin = "compaction" if summary.strip() else "human"
            yield self._turn(message, "user", origin, blocks)
        elif not results:
            self._report.skipped["harness text" if content.text.strip() else "empty message"] += 1

    def _typed(self, text: str) -> tuple[str, str]:
        """Return what a person typed in a user message, and the summary of a compaction that it holds."""
        harness = self._session.harness
        if harness == "hermes":
            message = read_user(text)
            return message.text or message.notice, message.summary
        if harness == "claude_code":
            said = read_said(text)
            text = "" if said.kind == "harness" else said.text
            return ("", text) if said.kind == "summary" else (text, "")
        if harness == "codex":
            return ("", text) if is_summary(text) else (typed_text(text), "")
        return text, ""

    def _assistant(self, message: Mapping[str, Any], content: Content) -> Iterator[Turn]:
        text, inner, summary = content.text, "", ""
        if self._session.harness == "hermes":
            said = read_assistant(text)
            text, inner, summary = said.text, said.thinking, said.summary
        blocks = []
        thinking = read_reasoning(message, content) or inner
        if thinking.strip():
            blocks.append(Block("thinking", thinking))
        if summary.strip():
            blocks.append(Block("summary", summary))
        if text.strip():
            blocks.append(Block("text", text))
        for call in self._tool_calls(message):
            blocks.append(Block("tool_use", call.text, call.name, _anchor(call.id)))
            if call.id:
                self._calls[call.id] = (call.name, call.input)
        if blocks:
            yield self._turn(message, "assistant", "compaction" if summary.strip() else "agent", blocks)
        else:
            self._report.skipped["empty message"] += 1

    def _tool_calls(self, message: Mapping[str, Any]) -> list[Call]:
        value = message.get("tool_calls") or message.get("toolCalls") or _anthropic_calls(message.get("content"))
        try:
            return read_calls(value)
        except ValueError:
            self._report.damage(f"row {self._row.number}: a tool call is not JSON; it is kept as text")
            return [Call("", "", str(value))]

    def _result(self, message: Mapping[str, Any], call_id: str, name: str, output: str) -> Iterator[Turn]:
        called, call_input = self._calls.get(call_id, ("", None))
        name = called if name in ("", _UNKNOWN_TOOL) else name
        text, source = read_result(output) if self._session.harness == "hermes" else (output, "")
        if is_own_output(name or source, output, call_input):
            self._report.skipped["own recall output"] += 1
        elif text.strip():
            block = Block("tool_result", text, name or source, _anchor(call_id))
            yield self._turn(message, "tool", "tool", [block])
        else:
            self._report.skipped["empty message"] += 1

    def _turn(self, message: Mapping[str, Any], role: Role, origin: Origin, blocks: list[Block]) -> Turn:
        time = parse_time(message.get("timestamp")) or self._row.sent_at
        turn = Turn("", role, origin, time, blocks, parent_uuid=self._last_uuid)
        name = self._names.name(turn)
        self._last_uuid = turn.uuid = name.uuid
        turn.former = name.former
        return turn


def _decoded(item: object) -> Mapping[str, Any] | None:
    if isinstance(item, (str, bytes)):
        try:
            item = sanitize(json.loads(item, strict=False))
        except (ValueError, RecursionError):
            return None
    return item if isinstance(item, Mapping) else None


def _anthropic_parts(value: object) -> tuple[list[tuple[str, str]], list[Any]]:
    """Split content in Anthropic's shape: the tool results in it as `(call id, output)`, and its other parts.

    Returns:
        Nothing twice when it holds neither calls nor results; `[None]` as the other parts when it holds nothing else.
    """
    if not isinstance(value, list) or not any(_kind(part) in ("tool_use", "tool_result") for part in value):
        return [], []
    results = [
        (str(part.get("tool_use_id") or ""), read_content(part.get("content")).text)
        for part in value
        if _kind(part) == "tool_result"
    ]
    rest = [part for part in value if _kind(part) not in ("tool_use", "tool_result")]
    return results, rest or [None]


def _anthropic_calls(value: object) -> list[Any]:
    return [part for part in value if _kind(part) == "tool_use"] if isinstance(value, list) else []


def _kind(part: object) -> str:
    return str(part.get("type") or "") if isinstance(part, Mapping) else ""


def _anchor(call_id: str) -> str:
    """Return a call's id where it is one that no other session has; short ones are counted per answer."""
    return call_id if len(call_id) >= 12 else ""
