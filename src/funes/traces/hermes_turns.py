"""Hermes messages to turns, with identities that survive what Hermes does to its rows.

Row ids change whenever Hermes rewrites a transcript (`/retry`, `/undo`, `/compress`), and a compaction copies the first
and the last messages of a conversation, into a new session or behind the old rows of the same one. So a turn is named
by its session, its content and how many turns with that content came before it; a block by the same within the lineage
of sessions, so that copies in a continued session are the same passages. Copies within one session are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from funes.traces.hermes_copies import CopyFilter, Item
from funes.traces.hermes_text import (
    JSON_PREFIX,
    Message,
    is_review,
    read_assistant,
    read_result,
    read_user,
    without_media_notes,
)
from funes.traces.identity import ContentNames, digest
from funes.traces.model import Block, Origin, ReadReport, Role, Session, Turn
from funes.traces.openai import Call, Content, read_calls, read_content, read_reasoning
from funes.traces.text import is_own_output, parse_time

# Rows that Hermes's own screens do not show as anybody's words.
_MACHINERY = frozenset(("hidden", "internal_notification", "model_switch", "auto_continue"))
_COMMAND_KEYS = ("command", "cmd", "script")


@dataclass(slots=True)
class _Pending:
    """A tool call whose result has not come yet: what is needed to name the result and to know funes's own."""

    name: str
    input: Any


class SessionTurns:
    """Makes turns of the messages of one session, given in the order they were written."""

    def __init__(self, session: Session, lineage: str, report: ReadReport) -> None:
        """Start a session.

        Args:
            session: the session.
            lineage: id of the first session of its lineage, its own id when it is that one.
            report: counts what is left out, and notes what cannot be read.
        """
        self._session = session
        self._report = report
        self._copies = CopyFilter(report)
        self._names = ContentNames(session.id, lineage, report.redact)
        self._pending: dict[str, _Pending] = {}
        self._in_review = False
        self._last_uuid = ""

    def feed(self, message: Mapping[str, Any]) -> Iterator[Turn]:
        """Take the next message; yields the turns that are certain by now."""
        self._report.records += 1
        if _is_undone(message):
            self._report.skipped["undone by the user"] += 1
            return
        item = self._item(message)
        if item is not None:
            yield from self._finished(self._copies.feed(item))

    def finish(self) -> Iterator[Turn]:
        """End the session; yields the turns that were held back."""
        yield from self._finished(self._copies.finish())

    def _finished(self, turns: list[Turn]) -> Iterator[Turn]:
        for turn in turns:
            self._identify(turn)
            self._report.turns += 1
            yield turn

    def _item(self, message: Mapping[str, Any]) -> Item | None:
        role = str(message.get("role") or "").strip().lower()
        if role in ("session_meta", "meta"):
            self._report.skipped["session metadata"] += 1
            return None
        if role not in ("user", "assistant", "tool", "function", "system", "developer"):
            self._report.skipped[f"unknown role {role[:40]}" if role else "message without a role"] += 1
            return None
        content = read_content(self._decoded(message))
        if content.media:
            self._report.skipped["images and files"] += content.media
        if role in ("user", "system", "developer"):
            return self._spoken(role, content.text, message)
        if self._in_review:
            self._report.skipped["background review"] += 1
            return None
        if role == "assistant":
            return self._assistant(content, message)
        return self._result(content.text, message)

    def _decoded(self, message: Mapping[str, Any]) -> object:
        value = message.get("content")
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        if not isinstance(value, str) or not value.startswith(JSON_PREFIX):
            return value
        text = value[len(JSON_PREFIX) :]
        try:
            return json.loads(text, strict=False)
        except (ValueError, RecursionError):
            self._damage("the parts of a message are not JSON; they are kept as they are")
            return text

    def _spoken(self, role: str, text: str, message: Mapping[str, Any]) -> Item | None:
        self._in_review = is_review(text)
        if self._in_review:
            self._report.skipped["background review"] += 1
            return None
        marked = bool(message.get("_compressed_summary"))
        parts = read_user(text, is_summary=marked)
        key = digest(role, without_media_notes(text))
        if parts.summary:
            return self._summarised(role, parts, key, message)
        machinery = role != "user" or message.get("display_kind") in _MACHINERY
        if parts.notice:
            block = Block("tool_result", parts.notice, parts.notice_tool)
            return Item(key, self._turn("tool", "tool", [block], message))
        if machinery or not parts.text.strip():
            self._report.skipped["harness text" if text.strip() else "empty message"] += 1
            return Item(key)
        return Item(key, self._turn("user", "human", [Block("text", parts.text)], message))

    def _summarised(self, role: str, parts: Message, key: bytes, message: Mapping[str, Any]) -> Item:
        """Make the item of a compaction's summary, which may hold the messages before and after it as well."""
        speaker: Role = "assistant" if role == "assistant" else "user"
        blocks = [Block("text", parts.prior)] if parts.prior.strip() else []
        blocks.append(Block("summary", parts.summary))
        if parts.text.strip():
            blocks.append(Block("text", parts.text))
        prior = digest(role, parts.prior) if parts.prior.strip() else b""
        return Item(key, self._turn(speaker, "compaction", blocks, message), is_summary=True, prior=prior)

    def _assistant(self, content: Content, message: Mapping[str, Any]) -> Item:
        parts = read_assistant(content.text, is_summary=bool(message.get("_compressed_summary")))
        calls = self._calls(message)
        key = digest("assistant", content.text, *(f"{call.id}\x1f{call.name}" for call in calls))
        if parts.summary:
            return self._summarised("assistant", parts, key, message)
        blocks = []
        thinking = read_reasoning(message, content) or parts.thinking
        if thinking.strip():
            blocks.append(Block("thinking", thinking))
        if parts.text.strip():
            blocks.append(Block("text", parts.text))
        for call in calls:
            blocks.append(Block("tool_use", call.text, call.name, anchor=call.id))
            if call.id:
                self._pending[call.id] = _Pending(call.name, _commands(call.input))
        if not blocks:
            self._report.skipped["empty message"] += 1
            return Item(key)
        return Item(key, self._turn("assistant", "agent", blocks, message))

    def _calls(self, message: Mapping[str, Any]) -> list[Call]:
        value = message.get("tool_calls") or message.get("function_call")
        if not value:
            return []
        try:
            return read_calls(value)
        except ValueError:
            self._damage("a tool call is not JSON; it is kept as text")
            return [Call("", "", value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value))]

    def _result(self, raw: str, message: Mapping[str, Any]) -> Item:
        call_id = str(message.get("tool_call_id") or "")
        pending = self._pending.pop(call_id, _Pending("", None))
        output, source = read_result(raw)
        name = str(message.get("tool_name") or message.get("name") or pending.name or source)
        # A compaction shortens old outputs, so the copy of a result is known by its call.
        key = digest("tool", call_id) if call_id else digest("tool", "", raw)
        if is_own_output(name, raw, pending.input) or is_own_output(source, raw):
            self._report.skipped["own recall output"] += 1
            return Item(key)
        if not output.strip():
            self._report.skipped["harness text" if raw.strip() else "empty message"] += 1
            return Item(key)
        block = Block("tool_result", output, name, anchor=call_id)
        return Item(key, self._turn("tool", "tool", [block], message))

    def _turn(self, role: Role, origin: Origin, blocks: list[Block], message: Mapping[str, Any]) -> Turn:
        return Turn("", role, origin, parse_time(message.get("timestamp")), blocks)

    def _identify(self, turn: Turn) -> None:
        """Name a turn and its blocks; a block's `anchor` holds the id of its tool call until here."""
        name = self._names.name(turn)
        turn.uuid, turn.former = name.uuid, name.former
        for block, anchor in zip(turn.blocks, name.anchors, strict=True):
            block.anchor = anchor
        turn.parent_uuid, self._last_uuid = self._last_uuid, turn.uuid

    def _damage(self, what: str) -> None:
        self._report.damage(f"session {self._session.id}: {what}")


def _is_undone(message: Mapping[str, Any]) -> bool:
    """Whether the user took the message back; one that a compaction put away has `compacted` set instead."""
    return _flag(message.get("active"), default=True) is False and not _flag(message.get("compacted"), default=False)


def _flag(value: object, *, default: bool) -> bool:
    if value is None or value == "":
        return default
    return str(value).strip().lower() not in ("0", "0.0", "false", "b'0'")


def _commands(value: object) -> object:
    """Keep of a call's input what may be a shell command."""
    if isinstance(value, Mapping):
        return {key: value[key] for key in _COMMAND_KEYS if key in value}
    return None
