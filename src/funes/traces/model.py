"""What every trace reader yields: sessions, turns and blocks, and a report of what could not be read.

A reader streams `(Session, Turn)` pairs. Streaming keeps the memory bounded by one turn, whatever the size of the
trace; a session's metadata that only appears at its end (a title, say) is set on the same `Session` object, so it is
complete once the iterator is exhausted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol

BlockType = Literal["text", "thinking", "tool_use", "tool_result", "summary"]
Role = Literal["user", "assistant", "tool", "system"]
Origin = Literal["human", "agent", "tool", "compaction"]
SessionKind = Literal["main", "subagent", "fork"]


@dataclass(slots=True)
class Session:
    """One conversation.

    Attributes:
        id: the harness's own session id; a sub-agent has an id of its own.
        harness: stored facet (`claude_code`, `codex`, `pi`, `hermes`, or another package's).
        workdir: working directory at the start of the session, as recorded; empty when the trace has none.
        repo: `owner/name` when the trace itself records a git remote, else empty (the indexer asks git).
        branch: git branch at the start, empty when unknown.
        title: the session's name in its harness, empty when it has none.
        parent_id: session that this one was spawned or forked from, empty for none.
        kind: whether it is a conversation of its own, a sub-agent's, or a fork.
        source_path: the file the session was read from.
    """

    id: str
    harness: str
    workdir: str = ""
    repo: str = ""
    branch: str = ""
    title: str = ""
    parent_id: str = ""
    kind: SessionKind = "main"
    source_path: str = ""


@dataclass(slots=True)
class Block:
    """One part of a message, verbatim.

    Attributes:
        type: `text`, `thinking`, `tool_use` (the call: its name and arguments), `tool_result` or `summary` (of a
            compaction or of an abandoned branch).
        text: the content. A tool call's is the tool's input as JSON, or the raw input of a free-form tool.
        tool_name: name of the tool for `tool_use` and `tool_result`.
        anchor: an identifier that survives every copy of this block (message id, tool call id, entry id); empty when
            the format has none. Two blocks with the same anchor, type and text are copies of one passage.
    """

    type: BlockType
    text: str
    tool_name: str = ""
    anchor: str = ""


@dataclass(slots=True)
class Turn:
    """One message of a session.

    Attributes:
        uuid: identifier, unique inside its session and stable from one read to the next.
        role: who speaks; a tool's output has the role `tool`.
        origin: who caused the text: a person, the agent, a tool, or a compaction.
        timestamp: aware UTC time, None when the trace has none.
        blocks: non-empty blocks in order.
        parent_uuid: the turn before it in the conversation tree, empty for a root.
        workdir: working directory at this turn, empty to mean the session's.
        branch: git branch at this turn, empty to mean the session's.
        former: the identifier that a memory may know the turn by when `uuid` is made of its text and that text has a
            credential: the same made of the text as the trace has it. It is looked up and never stored.
    """

    uuid: str
    role: Role
    origin: Origin
    timestamp: datetime | None
    blocks: list[Block]
    parent_uuid: str = ""
    workdir: str = ""
    branch: str = ""
    former: str = ""


def unchanged(text: str) -> str:
    """Return a text as it is: what stands for a redaction where nothing is stored."""
    return text


@dataclass(slots=True)
class ReadReport:
    """What happened while one trace was read.

    Attributes:
        redact: given by who reads, not filled in: returns a text without the credentials in it. Whatever an identifier
            or an anchor is made of has to pass through it, since guesses can be tested against a digest.
        records: records parsed (lines, rows or messages).
        turns: turns yielded.
        skipped: number of records left out, by reason; reasons are short phrases a user can read, e.g.
            `unknown type api-request`, `harness text`, `own recall output`.
        damaged: one sentence for each fault that lost or may have lost content (`line 41: not JSON`), at most 20
            of them, the last of which says how many more there are.
        torn_tail: whether the last line is unfinished and was left for the next read.
        failed: reason the whole file could not be read, empty when it could.
        resume: opaque JSON-able state from which the next `read` can continue, None when the format cannot.
        anew: whether the read began at the start although it was given a place to continue from that still holds.
        sessions: sessions whose data (title, say) this read knows although it yielded no turn of them, because the
            read continued behind their turns; optional.
    """

    redact: Callable[[str], str] = unchanged
    records: int = 0
    turns: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    damaged: list[str] = field(default_factory=list)
    torn_tail: bool = False
    failed: str = ""
    resume: dict[str, Any] | None = None
    anew: bool = False
    sessions: list[Session] = field(default_factory=list)

    MAX_DAMAGED = 20

    def damage(self, sentence: str) -> None:
        """Note a fault; past the limit only their number is kept."""
        if len(self.damaged) < self.MAX_DAMAGED:
            self.damaged.append(sentence)
        else:
            self.skipped["further damaged records"] += 1


@dataclass(slots=True)
class Head:
    """The beginning of a file, for detection.

    Attributes:
        path: the file.
        start: its first bytes (decompressed when it is zstd), at most 256 KB.
        records: JSON objects found on its first 50 lines.
        tables: names of the tables when it is an SQLite file.
    """

    path: Path
    start: bytes
    records: list[dict[str, Any]]
    tables: frozenset[str] = frozenset()


class TraceSource(Protocol):
    """A harness funes can read: one class, registered under the entry point group `funes.sources`.

    The class is instantiated without arguments. See `docs/adding-a-harness.md`.
    """

    name: str
    """Name on the command line (`claude`)."""

    harness: str
    """Stored facet (`claude_code`); the same as `name` for most."""

    def roots(self) -> list[Path]:
        """Folders where this harness keeps its traces on this machine, environment overrides applied."""
        ...

    def files(self, root: Path) -> Iterator[Path]:
        """Trace files below `root`, which is one of `roots()`."""
        ...

    def matches(self, head: Head) -> bool:
        """Whether the file is one of this harness's traces, judged by content."""
        ...

    def stamp(self, path: Path) -> str:
        """A string that changes whenever the trace may have changed (sizes, times and inodes of its files)."""
        ...

    def read(
        self, path: Path, report: ReadReport, resume: dict[str, Any] | None = None
    ) -> Iterator[tuple[Session, Turn]]:
        """Stream the turns of the trace, in file order.

        Args:
            path: the trace.
            report: filled in while reading.
            resume: what an earlier read left in `report.resume`. A source that cannot continue from it, because the
                file was rewritten, say, reads from the start; repeated turns are recognised by the indexer.
        """
        ...
