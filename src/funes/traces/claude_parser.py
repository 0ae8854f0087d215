"""Records of a Claude Code transcript to turns: one state machine, fed with one record after the other."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from funes.traces.claude_blocks import BlockReader, text_of
from funes.traces.claude_queue import PromptQueue
from funes.traces.claude_sessions import Sessions, branch_of
from funes.traces.model import ReadReport, Session, Turn
from funes.traces.text import parse_time

# Types of records that hold no conversation of their own.
METADATA = frozenset(
    """
    progress file-history-snapshot file-history-delta last-prompt api-request api-request-shape api-request-blob
    api-request-resumed cost-state tools-used mode permission-mode atis-latch worktree-state pr-link bridge-session
    agent-color agent-setting agent-name tag content-replacement relocated continued-in dedup-transcript
    history-suppression resume-head-vouch session-owner memory-mode observer-ref attribution-snapshot task-summary
    """.split()  # noqa: SIM905
)
_TITLES = frozenset(("summary", "ai-title", "custom-title", "derived-from", "fork-context-ref"))

_RESUMES_IN_PLACE = (2, 0, 22)
_LINKS = 8192
_LINKS_KEPT = 64
_HELD = 32


class ClaudeParser:
    """Turns of one transcript."""

    def __init__(self, path: Path, session: Session, report: ReadReport) -> None:
        """Prepare to parse.

        Args:
            path: the transcript.
            session: its session, with the id that the file's name gives it, or an empty id to use the records'.
            report: what is left out is counted here.
        """
        self._report = report
        self._blocks = BlockReader(path, report, self._first_time)
        self._sessions = Sessions(session, lambda prompt: self._blocks.tasks.get(prompt, ""))
        self._queue = PromptQueue(report.redact)
        # Hashes instead of strings: a transcript of a gigabyte has half a million records.
        self._seen: set[int] = set()
        self._links: OrderedDict[str, str] = OrderedDict()
        self._last: dict[str, str] = {}
        self._held: dict[str, list[tuple[Session, Turn]]] = {}
        self._is_old = False

    def feed(self, record: dict[str, Any], line: int) -> Iterator[tuple[Session, Turn]]:
        """Yield the turns of one record.

        Args:
            record: the decoded record.
            line: its line number, the last resort for an identifier.
        """
        self._queue.tick()
        kind = text_of(record.get("type"))
        if kind in ("user", "assistant"):
            yield from self._message(record, line)
        elif kind == "attachment":
            yield from self._attachment(record, line)
        elif kind == "queue-operation":
            yield from self._operation(record)
        elif kind in _TITLES:
            self._sessions.retitle(record, self._is_known)
            self._skip(record, f"metadata {kind}")
        elif kind == "system":
            self._skip(record, f"system {record.get('subtype') or 'message'}")
        else:
            self._skip(record, f"metadata {kind}" if kind in METADATA else f"unknown type {kind}")

    def finish(self) -> Iterator[tuple[Session, Turn]]:
        """Yield what is still held at the end of the file, and settle the session's metadata."""
        for session_id in list(self._held):
            yield from self._release(session_id, "")
        self._sessions.settle()

    @property
    def session(self) -> Session:
        """The transcript's session."""
        return self._sessions.main

    def described(self) -> tuple[str, str, str]:
        """What records without a turn can change of the session: title, ancestor, kind."""
        main = self._sessions.main
        return main.title, main.parent_id, main.kind

    def state(self) -> dict[str, Any] | None:
        """Return what a parser of the rest of the file has to know, JSON-able; None when it needs the whole file."""
        if self._is_old or self._sessions.has_inline:
            return None
        return {
            "sessions": self._sessions.state(),
            "queue": self._queue.state(),
            "calls": {call: list(known) for call, known in self._blocks.calls.items()},
            "last": self._last.get(self._sessions.main.id, ""),
            "links": list(self._links.items())[-_LINKS_KEPT:],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the `state()` of an earlier parser.

        Raises:
            KeyError, TypeError, ValueError: it is not one.
        """
        self._sessions.restore(state["sessions"])
        self._queue.restore(state["queue"])
        self._blocks.calls.update({call: (name, own) for call, (name, own) in state["calls"].items()})
        self._last[self._sessions.main.id] = state["last"]
        self._links.update(dict(state["links"]))

    def _message(self, record: dict[str, Any], line: int) -> Iterator[tuple[Session, Turn]]:
        if not isinstance(record.get("message"), dict):
            self._skip(record, "record without a message")
            return
        session = self._sessions.place(record)
        uuid = text_of(record.get("uuid"))
        if session is None:
            self._skip(record, "warm-up exchange")
        elif uuid and not self._first_time(f"uuid {uuid}"):
            self._report.skipped["repeated record"] += 1
        else:
            if record["type"] == "assistant":
                turns = self._blocks.assistant(record)
            else:
                turns = self._blocks.user(record, self._queue.is_echo)
            for number, turn in enumerate(turns):
                turn.uuid = (uuid or f"line-{line}") + (f":{number + 1}" if number else "")
                turn.timestamp = parse_time(record.get("timestamp"))
                turn.parent_uuid = turns[number - 1].uuid if number else self._parent(record, session)
                self._situate(turn, session, record)
                yield from self._emit(session, turn, record)
            if turns:
                self._last[session.id] = turns[-1].uuid
            self._link(record, session, turns[-1].uuid if turns else "")

    def _attachment(self, record: dict[str, Any], line: int) -> Iterator[tuple[Session, Turn]]:
        """Yield the prompt of an attachment that holds one: typed mid-turn, with no user record in some versions."""
        self._queue.has_attachments = True
        attachment = record.get("attachment")
        kind = attachment.get("type") if isinstance(attachment, dict) else None
        if not isinstance(attachment, dict) or kind != "queued_command":
            self._skip(record, f"attachment {kind}")
            return
        source = text_of(attachment.get("source_uuid"))
        if source and not self._first_time(f"uuid {source}"):
            self._skip(record, "queued prompt repeated")
            return
        as_user = {key: value for key, value in record.items() if key != "attachment"}
        as_user |= {"type": "user", "message": {"role": "user", "content": attachment.get("prompt")}}
        as_user.setdefault("origin", attachment.get("origin"))
        for session, turn in self._message(as_user, line):
            for block in turn.blocks:
                self._queue.expect_echo(block.text)
            yield session, turn

    def _operation(self, record: dict[str, Any]) -> Iterator[tuple[Session, Turn]]:
        self._report.skipped["queue-operation"] += 1
        for turn in self._queue.operate(record):
            self._sessions.describe(record)
            session = self._sessions.main
            turn.parent_uuid = self._last.get(session.id, "")
            self._last[session.id] = turn.uuid
            yield from self._emit(session, turn, record)

    def _situate(self, turn: Turn, session: Session, record: dict[str, Any]) -> None:
        """Set the turn's folder and branch where they differ from the session's."""
        workdir, branch = text_of(record.get("cwd")), branch_of(record)
        turn.workdir = workdir if workdir != session.workdir else ""
        turn.branch = branch if branch != session.branch else ""

    def _emit(self, session: Session, turn: Turn, record: dict[str, Any]) -> Iterator[tuple[Session, Turn]]:
        """Yield a turn, unless it is a prompt whose anchor is only known from the answer to it.

        Before 2.0.22 resuming a session writes its history anew, with new uuids: what stays is the id of the message
        that answers a prompt.
        """
        if turn.role == "user" and _rewrites_history(record):
            self._is_old = True
            self._held.setdefault(session.id, [])
        held = self._held.get(session.id)
        if held is None:
            yield session, turn
        elif turn.role == "assistant":
            yield from self._release(session.id, text_of(record["message"].get("id")))
            yield session, turn
        else:
            held.append((session, turn))
            if len(held) > _HELD:
                yield from self._release(session.id, "")

    def _release(self, session_id: str, answer: str) -> Iterator[tuple[Session, Turn]]:
        for session, turn in self._held.pop(session_id, ()):
            if answer and turn.role == "user":
                for block in turn.blocks:
                    block.anchor = f"before:{answer}"
            yield session, turn

    def _skip(self, record: dict[str, Any], reason: str) -> None:
        self._report.skipped[reason] += 1
        self._link(record, self._sessions.main)

    def _link(self, record: dict[str, Any], session: Session, turn: str = "") -> None:
        """Remember the turn of a record, or the one that a record without a turn follows."""
        if uuid := text_of(record.get("uuid")):
            self._links[uuid] = turn or self._parent(record, session)
            if len(self._links) > _LINKS:
                self._links.popitem(last=False)

    def _parent(self, record: dict[str, Any], session: Session) -> str:
        """Return the turn that a record follows; a compaction's follows the last one before it."""
        parent = text_of(record.get("parentUuid")) or text_of(record.get("logicalParentUuid"))
        if not parent:
            return ""
        if parent in self._links:
            return self._links[parent]
        return parent if hash(f"uuid {parent}") in self._seen else self._last.get(session.id, "")

    def _first_time(self, key: str) -> bool:
        mark = hash(key)
        if mark in self._seen:
            return False
        self._seen.add(mark)
        return True

    def _is_known(self, uuid: str) -> bool:
        return uuid in self._links or hash(f"uuid {uuid}") in self._seen


def _rewrites_history(record: dict[str, Any]) -> bool:
    """Whether a record is of a version that copies the history with new uuids when it resumes."""
    parts = text_of(record.get("version")).split(".")
    if len(parts) != 3 or not all(part.isdigit() for part in parts):
        return False
    return tuple(map(int, parts)) < _RESUMES_IN_PLACE
