"""What goes between the process that stores and those that read: a job one way, rows and an outcome the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from funes.commands.indexing.state import TraceOutcome


@dataclass(frozen=True, slots=True)
class ReadJob:
    """One trace to read.

    Attributes:
        path: the trace.
        key: its real path, or its address elsewhere, which the state knows it by.
        source: name of the source that reads it.
        stamp: the source's stamp before the read.
        size: bytes still to read, about.
        thinking: whether thinking is wanted.
        resume: where an earlier read stopped, None to read everything.
        limit: most sessions to read, None for all.
        origin: what to store as the place that it was read from, when that is not `path`.
    """

    path: Path
    key: str
    source: str
    stamp: str
    size: int
    thinking: bool = True
    resume: dict[str, Any] | None = None
    limit: int | None = None
    origin: str = ""


@dataclass(slots=True)
class SessionInfo:
    """A session's own data, redacted; the attributes are those of `funes.traces.model.Session`."""

    id: str
    harness: str
    workdir: str
    repo: str
    branch: str
    title: str
    parent_id: str
    kind: str
    source_path: str


@dataclass(slots=True)
class BlockRows:
    """Some or all pieces of one block.

    Attributes:
        id: passage id of the whole block.
        former_turn: another uuid that the turn may be stored under; see `funes.traces.model.Turn`.
        first: position of the first of `pieces` in the block.
        pieces: `(offset, text)` of each chunk.
    """

    id: str
    session_id: str
    harness: str
    workdir: str
    repo: str
    branch: str
    turn_uuid: str
    parent_uuid: str
    ts: datetime | None
    role: str
    origin: str
    block_idx: int
    block_type: str
    tool_name: str
    source_path: str
    first: int
    pieces: list[tuple[int, str]]
    former_turn: str = ""


@dataclass(slots=True)
class Batch:
    """Rows of a trace, in order, how many characters they are, and the id of the secret rules they passed."""

    rows: list[BlockRows]
    characters: int
    ruleset: str


@dataclass(slots=True)
class Finished:
    """The end of a trace.

    Attributes:
        outcome: what came of this read.
        resumed: whether the read continued behind an earlier one.
        complete: whether all of it was read, so that its stamp may be remembered.
        resume: where the next read can continue.
        sessions: the sessions it contained, with all that was known of them at the end.
        repos: repositories that were looked up.
        ruleset: id of the secret rules.
        note: something to tell the user once, empty for nothing.
    """

    outcome: TraceOutcome
    resumed: bool = False
    complete: bool = True
    resume: dict[str, Any] | None = None
    sessions: list[SessionInfo] = field(default_factory=list)
    repos: dict[str, str] = field(default_factory=dict)
    ruleset: str = ""
    note: str = ""
