"""The records of a Codex rollout, of any version, as turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from funes.traces.codex_calls import Calls
from funes.traces.codex_events import (
    Coverage,
    Event,
    Kind,
    event_call,
    event_of,
    event_texts,
    is_command,
    is_user_command,
)
from funes.traces.codex_items import (
    Part,
    call_of,
    command_output,
    item_turn,
    mapping,
    message_parts,
    output_of,
    string,
    thinking_texts,
)
from funes.traces.codex_lineage import directory, is_internal, is_older, name_session
from funes.traces.codex_text import context_directory
from funes.traces.codex_turns import TurnMaker
from funes.traces.codex_user import user_turns
from funes.traces.model import ReadReport, Session, Turn

METADATA = "metadata"
REPEATED = "event that repeats the conversation"
_HARNESS = "harness text"
_NO_SUMMARY = "compaction without a readable summary"
_EMPTY = "empty message"
_OWN = "own recall output"
_IMAGES = "image data"
_INTERNAL = "session that Codex runs for itself"

_QUIET_RECORDS = frozenset(
    (
        "world_state",
        "token_usage_record",
        "inter_agent_communication_metadata",
        "retained_context",
        "security_risk_score",
        "realtime_item",
    )
)
_QUIET_ITEMS = frozenset(("ghost_snapshot", "additional_tools", "tool_search_output", "item_reference"))
_COMPACTIONS = frozenset(("compaction", "compaction_summary", "context_compaction", "compaction_trigger"))
_BARE_ITEMS = _QUIET_ITEMS | _COMPACTIONS | {"message", "reasoning", "agent_message"}


class Rollout:
    """Turns a session's records into turns, one record at a time.

    Args:
        session: the session; filled in while its records pass.
        names: ids in the file's name.
        report: where records that are left out are counted.
        covers: whether any record of the file is a conversation item of the given kind.
        state: what an earlier reader's `state()` returned.

    Attributes:
        session: the session.
        coverage: for which kinds of content the file has conversation items.
    """

    def __init__(
        self,
        session: Session,
        names: list[str],
        report: ReadReport,
        covers: Callable[[Kind], bool],
        state: dict[str, Any] | None = None,
    ) -> None:
        state = state or {}
        self.session = session
        self.coverage = Coverage(covers, report.redact, mapping(state.get("coverage")))
        self._named = bool(state.get("named"))
        self._internal = bool(state.get("internal"))
        self._start = state.get("start")
        self._make = TurnMaker(session, report.redact, mapping(state.get("turns")))
        self._calls = Calls(mapping(state.get("calls")))
        self._names = names
        self._report = report
        self._held: Turn | None = None

    def state(self) -> dict[str, Any]:
        """Return a JSON-able value from which a later reader continues."""
        return {
            "coverage": self.coverage.state(),
            "named": self._named,
            "internal": self._internal,
            "start": self._start,
            "turns": self._make.state(),
            "calls": self._calls.state(),
        }

    def feed(self, record: dict[str, Any]) -> Iterator[Turn]:
        """Return the turns that a record completes."""
        if self._internal:
            self._skip(_INTERNAL)
            return
        for turn in self._record(record):
            if self._held is not None:
                yield self._held
                self._held = None
            if turn.role == "assistant" and turn.blocks[0].type == "text":
                # Held back for one turn: it may turn out to be a compaction's summary.
                self._held = turn
            else:
                yield turn

    def finish(self) -> Iterator[Turn]:
        """Return the turns that are left when there are no more records, for now."""
        if self._held is not None:
            yield self._held
            self._held = None
        for ident, name, text in self._calls.left_over():
            yield self._make.output(name, text, ident)

    def _record(self, record: dict[str, Any]) -> Iterator[Turn]:
        kind, payload = record.get("type"), record.get("payload")
        self._make.take_time(record.get("timestamp"))
        if isinstance(payload, dict) and isinstance(kind, str):
            yield from self._enveloped(kind, payload, record.get("ordinal"))
        elif isinstance(kind, str) and (kind in _BARE_ITEMS or kind.endswith(("_call", "_output"))):
            yield from self._item(record)
        elif isinstance(record.get("items"), list) and "session" in record:
            self._meta(mapping(record["session"]))
            for item in record["items"]:
                yield from self._item(mapping(item))
        elif kind is None and "id" in record and ("instructions" in record or "timestamp" in record):
            self._meta(record)
        else:
            self._skip(METADATA if "record_type" in record else f"unknown type {_label(kind)}")

    def _enveloped(self, kind: str, payload: dict[str, Any], ordinal: object) -> Iterator[Turn]:
        if kind == "response_item":
            yield from self._item(payload, ordinal)
        elif kind == "event_msg":
            yield from self._event(event_of(payload), payload)
        elif kind == "compacted":
            yield from self._compacted(payload)
        elif kind == "inter_agent_communication":
            yield from self._agent_message(payload)
        elif kind == "session_meta":
            self._meta(payload)
        elif kind == "turn_context":
            self._make.lineage.start_turn(string(payload.get("turn_id")))
            self._make.workdir = directory(payload.get("cwd")) or self._make.workdir
            self._skip(METADATA)
        else:
            self._skip(METADATA if kind in _QUIET_RECORDS else f"unknown type {_label(kind)}")

    def _meta(self, payload: dict[str, Any]) -> None:
        self._skip(METADATA)
        self._make.take_time(payload.get("timestamp"))
        session, lineage = self.session, self._make.lineage
        ident = string(payload.get("id"))
        if not self._named:
            self._named = name_session(session, payload, self._names)
            self._internal = self._named and is_internal(payload)
            self._start = payload.get("subagent_history_start_ordinal")
            lineage.start_from(ident or session.id)
        elif ident and ident != session.id:
            # The record of the session that this one was forked from or started in, copied with its lines.
            if not lineage.begun and session.kind == "main":
                session.kind, session.parent_id = "fork", ident
            elif not session.parent_id:
                session.parent_id = ident
            lineage.start_from(ident)

    def _item(self, payload: dict[str, Any], ordinal: object = None) -> Iterator[Turn]:
        kind, ident = string(payload.get("type")), string(payload.get("id"))
        if turn := item_turn(payload):
            self._make.lineage.start_turn(turn)
        if kind == "message":
            yield from self._message(payload, ident, ordinal)
        elif kind == "reasoning":
            if not (texts := thinking_texts(payload)):
                self._skip("encrypted reasoning")
            elif self.coverage.repeats("thinking", texts):
                self._skip(REPEATED)
            else:
                yield self._make.speech("assistant", "agent", texts, ident, "thinking")
        elif call := call_of(payload):
            self.coverage.add("tool")
            self._skip(_IMAGES, kind == "image_generation_call" and bool(payload.get("result")))
            self.session.workdir = self.session.workdir or directory(mapping(call.input).get("workdir"))
            call_id = string(payload.get("call_id")) or ident
            self._calls.opened(call_id, call)
            if call.text.strip() or call.name:
                yield self._make.call("assistant", "agent", call.name, call.text, call_id, ident)
            else:
                self._skip(_EMPTY)
        elif kind.endswith("_output") and kind not in _QUIET_ITEMS:
            yield from self._call_output(payload, ident)
        elif kind == "agent_message":
            yield from self._agent_message(payload)
        elif kind in _COMPACTIONS:
            self._skip(_NO_SUMMARY)
        else:
            self._skip(METADATA if kind in _QUIET_ITEMS else f"unknown type {_label(kind)}")

    def _message(self, payload: dict[str, Any], ident: str, ordinal: object) -> Iterator[Turn]:
        role = payload.get("role")
        parts = message_parts(payload)
        if role not in ("user", "assistant"):
            # `developer` and `system`: instructions.
            self._skip(_HARNESS)
            return
        self._skip(_IMAGES, sum(part.image for part in parts))
        if role == "user":
            for turn in self._user(parts, ident, ordinal):
                self.coverage.add("user")
                yield turn
        elif not (texts := [part.text for part in parts if part.text.strip()]):
            self._skip(_EMPTY)
        elif self.coverage.repeats("assistant", texts):
            self._skip(REPEATED)
        else:
            yield self._make.speech("assistant", "agent", texts, ident)

    def _user(self, parts: list[Part], ident: str, ordinal: object = None) -> Iterator[Turn]:
        if not self.session.workdir:
            self.session.workdir = next(filter(None, (context_directory(part.text) for part in parts)), "")
        from_agent = self.session.kind == "subagent" and not self._is_inherited(ordinal)
        turns = user_turns(parts, ident, "agent" if from_agent else "human", self._make)
        yield from turns
        if not turns:
            self._skip(_HARNESS if any(part.text.strip() for part in parts) else _EMPTY)

    def _is_inherited(self, ordinal: object) -> bool:
        """Whether a sub-agent has the current passage from the conversation it was started in."""
        if isinstance(self._start, int) and isinstance(ordinal, int):
            return ordinal < self._start
        return is_older(self._make.lineage.turn, self.session.id)

    def _agent_message(self, payload: dict[str, Any]) -> Iterator[Turn]:
        if texts := [part.text for part in message_parts(payload) if part.text.strip()]:
            yield self._make.speech("user", "agent", texts, string(payload.get("id")))
        else:
            self._skip(_EMPTY)

    def _call_output(self, payload: dict[str, Any], ident: str) -> Iterator[Turn]:
        self.coverage.add("tool")
        call_id = string(payload.get("call_id")) or ident
        output = output_of(payload["output"] if "output" in payload else payload.get("result"))
        self._skip(_IMAGES, output.images)
        if self._calls.take_given(call_id):
            self._skip(REPEATED)
            return
        closed = self._calls.closed(call_id, output)
        if closed is None:
            self._skip(_OWN)
        elif closed[1].strip():
            yield self._make.output(closed[0], closed[1], call_id, ident, recorded=output.text)
        else:
            self._skip(_EMPTY)

    def _compacted(self, payload: dict[str, Any]) -> Iterator[Turn]:
        message = string(payload.get("message"))
        if not message.strip():
            self._skip(_NO_SUMMARY)
            return
        held = self._held
        if held is not None and message.rstrip().endswith(held.blocks[-1].text.strip()):
            # The answer that the summary was made of: the same text, not a second passage.
            self._held, self._make.last = None, held.parent_uuid
            self._skip(REPEATED)
        yield self._make.speech("assistant", "compaction", [message], "", "summary")

    def _event(self, event: Event, payload: dict[str, Any]) -> Iterator[Turn]:
        if event.type in ("task_started", "turn_started"):
            self._make.lineage.start_turn(string(payload.get("turn_id")))
        elif event.type == "thread_name_updated":
            if string(payload.get("thread_id")) in ("", self.session.id):
                self.session.title = string(payload.get("thread_name")).strip() or self.session.title
        elif event.kind is not None and not is_user_command(event):
            if not self.coverage.has(event.kind):
                yield from self._from_event(event)
            elif is_command(event) and (late := self._calls.completed(event.ident, command_output(event.body))):
                # The command went on in the background after its output was recorded.
                yield self._make.output(late[0], late[1], event.ident, again="-complete")
            else:
                self._skip(REPEATED)
            return
        self._skip(METADATA if event.known else f"unknown type {_label(event.type)}")

    def _from_event(self, event: Event) -> Iterator[Turn]:
        """Make turns of content that the file has in no other form."""
        ident = string(event.body.get("id"))
        texts = [text for text in event_texts(event) if text.strip()]
        if event.kind is not None:
            self.coverage.note_event(event.kind, texts)
        if event.kind == "tool":
            call, output = event_call(event)
            self._calls.opened(event.ident, call)
            yield self._make.call("assistant", "agent", call.name, call.text, event.ident)
            closed = self._calls.closed(event.ident, output)
            if closed is None:
                self._skip(_OWN)
            elif closed[1].strip():
                yield self._make.output(closed[0], closed[1], event.ident)
        elif event.kind == "user":
            yield from self._user([Part(text) for text in texts], ident)
        elif texts:
            yield self._make.speech(
                "assistant", "agent", texts, ident, "thinking" if event.kind == "thinking" else "text"
            )
        else:
            self._skip(_EMPTY)

    def _skip(self, reason: str, count: int = 1) -> None:
        if count:
            self._report.skipped[reason] += count


def _label(kind: object) -> str:
    return kind[:60] if isinstance(kind, str) and kind else "(none)"
