"""Turns of a Codex session, each hung on the one before it and anchored for its copies."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from funes.traces.codex_items import mapping, string
from funes.traces.codex_lineage import Lineage, is_unique
from funes.traces.model import Block, BlockType, Origin, Role, Session, Turn
from funes.traces.text import parse_time


class TurnMaker:
    """Makes turns.

    Attributes:
        lineage: makes the anchors.
        time: time of the current record, or of the last one that had a time.
        workdir: the current turn's working directory, empty to mean the session's.
        last: identifier of the turn made last.
    """

    def __init__(self, session: Session, redact: Callable[[str], str], state: dict[str, Any]) -> None:
        self.lineage = Lineage(session.id, redact, mapping(state.get("lineage")))
        self.time: datetime | None = parse_time(state.get("time"))
        self.workdir = string(state.get("workdir"))
        self.last = string(state.get("last"))
        self._session = session

    def state(self) -> dict[str, Any]:
        """Return a JSON-able value from which a later reader continues."""
        return {
            "lineage": self.lineage.state(),
            "time": self.time.isoformat() if self.time else "",
            "workdir": self.workdir,
            "last": self.last,
        }

    def take_time(self, value: object) -> None:
        """Note a record's time, when it has one."""
        self.time = parse_time(value) or self.time

    def speech(self, role: Role, origin: Origin, texts: list[str], ident: str, kind: BlockType = "text") -> Turn:
        """Make a turn of what somebody said or thought.

        Args:
            role: who speaks.
            origin: who is behind it.
            texts: the parts of the message, none of them empty.
            ident: the message's id in the trace, empty without one.
            kind: type of the blocks.
        """
        anchor = self.lineage.anchor(role if kind == "text" else kind, ident, texts)
        blocks = [Block(kind, text, anchor=anchor if n == 0 else f"{anchor}.{n}") for n, text in enumerate(texts)]
        return self._turn(anchor, role, origin, blocks, self.lineage.former)

    def call(self, role: Role, origin: Origin, name: str, text: str, ident: str, item: str = "") -> Turn:
        """Make a turn of a tool call.

        Args:
            role: who calls.
            origin: who is behind it.
            name: the tool.
            text: its input, empty when it takes none.
            ident: the call's id, empty without one.
            item: the id of the call's item, empty without one.
        """
        anchor = self.lineage.anchor("call", ident, [text])
        block = Block("tool_use", text or name, name, anchor)
        if is_unique(item):
            return self._turn(item, role, origin, [block])
        return self._turn(anchor, role, origin, [block], self.lineage.former)

    def output(self, name: str, text: str, ident: str, item: str = "", *, recorded: str = "", again: str = "") -> Turn:
        """Make a turn of a tool's output.

        Args:
            name: the tool, empty when unknown.
            text: what it returned.
            ident: the call's id, empty without one.
            item: the id of the output's item, empty without one.
            recorded: the output as its item has it, when `text` is a more complete one.
            again: what tells a second output of the same call from the first.
        """
        anchor = self.lineage.anchor("output", ident, [recorded or text])
        blocks = [Block("tool_result", text, name, anchor)]
        if is_unique(item):
            return self._turn(item, "tool", "tool", blocks)
        former = self.lineage.former and f"{self.lineage.former}-output{again}"
        return self._turn(f"{anchor}-output{again}", "tool", "tool", blocks, former)

    def _turn(self, uuid: str, role: Role, origin: Origin, blocks: list[Block], former: str = "") -> Turn:
        workdir = "" if self.workdir == self._session.workdir else self.workdir
        turn = Turn(uuid, role, origin, self.time, blocks, parent_uuid=self.last, workdir=workdir, former=former)
        self.last = uuid
        return turn
