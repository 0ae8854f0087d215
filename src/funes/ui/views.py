"""What the read commands return and every format renders: plain data, no text layout, no storage."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from funes.memory.sessions import SessionSummary
from funes.memory.statistics import MemoryStatistics


@dataclass(slots=True)
class BlockView:
    """One whole block: its type, its text (splits stitched), and the tool's name for tool blocks."""

    type: str
    text: str
    tool_name: str = ""


@dataclass(slots=True)
class TurnView:
    """One turn of a session with its blocks in order."""

    uuid: str
    seq: int
    ts: datetime | None
    role: str
    blocks: list[BlockView] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Characters of all its blocks."""
        return sum(len(block.text) for block in self.blocks)


@dataclass(slots=True)
class SessionList:
    """Sessions of one memory, newest first; `more` says that the limit left some out."""

    label: str
    sessions: list[SessionSummary]
    more: bool = False


@dataclass(slots=True)
class Reading:
    """A stretch of a session, for `get`.

    Attributes:
        label: name of the memory.
        session: the session read.
        turns: the turns, in order. May end early when the reader asked for no more than a format can show.
        last: seq of the last turn that was asked for, whether `turns` reaches it or not; -1 for an empty stretch.
        offset: characters of the first turn to leave out, counted over its blocks' texts in order.
        target: uuid of the turn that was asked for by name, empty for a range.
    """

    label: str
    session: SessionSummary
    turns: list[TurnView]
    last: int
    offset: int = 0
    target: str = ""


@dataclass(slots=True)
class SessionPreview:
    """What to look at before a session is published.

    Attributes:
        prompts: time and text of what people said, in order.
        redactions: credentials that were replaced in all of its text, by rule.
    """

    prompts: list[tuple[datetime | None, str]]
    redactions: dict[str, int]


@dataclass(slots=True)
class ReviewItem:
    """One session in a list to be reviewed.

    Attributes:
        id: the session.
        status: `included`, `excluded`, `pending` or `grown`.
        day: the day of its latest turn.
        harness: its agent.
        turns: number of its turns.
        title: its title, or its first prompt.
        about: further facts for the preview, a line each.
        helpers: ids of its sub-agents' sessions.
    """

    id: str
    status: str
    day: str
    harness: str
    turns: int
    title: str
    about: list[str] = field(default_factory=list)
    helpers: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Match:
    """One place where the text of `scan` stands.

    Attributes:
        at: position in the block, in characters.
        before, after: text around it, cut to a bounded length.
    """

    turn_uuid: str
    seq: int
    ts: datetime | None
    role: str
    block_type: str
    tool_name: str
    at: int
    before: str
    match: str
    after: str


@dataclass(slots=True)
class ScanResult:
    """Matches of an exact text in one session, in order; `total` counts also those past the limit."""

    label: str
    session: SessionSummary
    literal: str
    matches: list[Match]
    total: int


@dataclass(slots=True)
class TraceProblem:
    """A trace that was not read, or not whole.

    Attributes:
        path: the trace.
        failed: whether nothing of it could be read.
        reasons: one sentence for each fault.
    """

    path: str
    failed: bool
    reasons: list[str]


@dataclass(slots=True)
class TraceTotals:
    """What came of all traces that the memory was made from, as far as this machine knows.

    Attributes:
        traces: traces read.
        records: records parsed.
        turns: turns found in them.
        parsed: passages that the turns were cut into.
        stored: passages stored with their text.
        copies: passages that another session stores.
        known: passages that the same session already had.
        skipped: records and blocks left out, by reason.
        redactions: credentials replaced, by rule.
        problems: traces skipped or partly read.
    """

    traces: int = 0
    records: int = 0
    turns: int = 0
    parsed: int = 0
    stored: int = 0
    copies: int = 0
    known: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    redactions: dict[str, int] = field(default_factory=dict)
    problems: list[TraceProblem] = field(default_factory=list)


@dataclass(slots=True)
class HookRun:
    """What came of an event that an agent's hook reported.

    Attributes:
        time: when it was done, ISO 8601, UTC.
        harness: the agent's name.
        event: the agent's name for the event.
        stored: passages stored.
        error: why it failed, empty when it did not.
    """

    time: str
    harness: str
    event: str
    stored: int
    error: str


@dataclass(slots=True)
class Standing:
    """How this machine stands with a memory that it publishes to, or could.

    Attributes:
        memory: what it is called.
        publishes: whether somebody agreed that the hooks publish to it.
        last_push: time of the last push that reached it, ISO 8601, UTC; empty for none.
        version: what its version was called then.
        published: passages of this machine that it had then.
        held: blocks and titles that were held back then.
        held_back: the first of them: session, turn, type, rules.
        failed: time of the last push if that failed, else empty.
        error: why.
        pending: passages that a push would publish now; None when nobody looked.
        would_hold_back: what a push would hold back now.
        waiting: passages that have to get a vector first.
        repo: the repository that it is curated for, empty when it is not curated.
        busy: whether a push is under way, so that nothing more can be said.
        unreadable: why the memory itself could not be looked at, empty when it could.
    """

    memory: str
    publishes: bool = False
    last_push: str = ""
    version: str = ""
    published: int = 0
    held: int = 0
    held_back: list[dict[str, Any]] = field(default_factory=list)
    failed: str = ""
    error: str = ""
    pending: int | None = None
    would_hold_back: list[dict[str, Any]] = field(default_factory=list)
    waiting: int = 0
    repo: str = ""
    busy: bool = False
    unreadable: str = ""


@dataclass(slots=True)
class StatusReport:
    """What a memory holds and where it comes from.

    Attributes:
        statistics: counted in the tables.
        traces: None when this machine does not know the traces the memory was made from.
        model: id of the pinned model.
        model_folder: where that model is on this machine, None when it is not.
        writers: who writes to the memory right now, a phrase each.
        last_hook: the last event of an agent that was indexed; None when the log has none.
        failed_hook: the last one that was not.
        notes: what the user may want to do something about, a sentence each.
        sharing: how this machine stands with memories that it publishes to.
    """

    statistics: MemoryStatistics
    traces: TraceTotals | None
    model: str
    model_folder: Path | None
    writers: list[str] = field(default_factory=list)
    last_hook: HookRun | None = None
    failed_hook: HookRun | None = None
    notes: list[str] = field(default_factory=list)
    sharing: list[Standing] = field(default_factory=list)
