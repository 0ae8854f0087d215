"""What one index run did, and how it says so while it goes on."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

Phase = Literal["rules", "read", "vectors", "scan", "fetch", "write", "send"]


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """What to index and how far.

    Attributes:
        path: tree, trace file, Parquet file or database; None for what the harnesses keep on this machine.
        harness: only this harness (`claude` or `claude_code`, …); None for every one found.
        limit: only the newest this many traces (and sessions of a trace that holds many); None for all.
        thinking: whether the agent's thinking is stored.
        yes: do not ask before indexing everything found.
        budget: most seconds to spend on vectors; None means 60 without a path or dataset and no limit with one.
        interactive: whether a person at a terminal can be asked.
        fetch_model: whether the embedding model may be downloaded when it is not on disk.
        traces: only these trace files; those that are gone are left out.
        since: leave traces alone that were never read and have not changed since that time (seconds since the epoch).
        dataset: a dataset of traces on the Hub, as `memory.uri.resolve` takes it; None for what is on this machine.
    """

    path: Path | None = None
    harness: str | None = None
    limit: int | None = None
    thinking: bool = True
    yes: bool = False
    budget: float | None = None
    interactive: bool = False
    fetch_model: bool = True
    traces: tuple[Path, ...] | None = None
    since: float | None = None
    dataset: str | None = None

    @property
    def follows(self) -> bool:
        """Whether an agent is followed: finding nothing new is no fault then, and nobody reads what is counted."""
        return self.traces is not None or self.since is not None


@dataclass(slots=True)
class FoundHarness:
    """What a harness keeps on this machine: its command-line name, where, how many traces of how many bytes."""

    name: str
    roots: list[Path]
    traces: int
    bytes: int


@dataclass(slots=True)
class IndexReport:
    """The outcome of one run.

    Attributes:
        traces: trace files looked at.
        unchanged: those that had not changed since the last run and were not opened.
        read: those that were read, in whole or from where the last run stopped.
        sessions: sessions that had something read.
        new_sessions: those of them that the memory had not contained.
        turns: turns parsed.
        parsed: passages that the turns were cut into.
        stored: passages stored with their text.
        copies: passages that another session already stores; only the place was recorded.
        known: passages that were there already, in the same session.
        waiting: passages without a vector at the end of the run; None when that was not counted.
        embedded: passages embedded in this run.
        skipped: records and blocks left out, by reason.
        redactions: credentials replaced, by rule.
        failed: traces that could not be read, with the reason.
        unrecognised: files that look like traces but that no source recognises.
        damaged: faults inside traces that were otherwise read: the trace and one sentence.
        notes: whatever else the user should know, a sentence each.
        fresh: ids of stored passages that are not tool output, the first `MAX_FRESH` of them.
        words_seconds, vectors_seconds: time spent until everything was searchable by words, and on vectors.
        interrupted: whether the user ended the run; what was stored stays.
    """

    traces: int = 0
    unchanged: int = 0
    read: int = 0
    sessions: int = 0
    new_sessions: int = 0
    turns: int = 0
    parsed: int = 0
    stored: int = 0
    copies: int = 0
    known: int = 0
    waiting: int | None = None
    embedded: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    redactions: Counter[str] = field(default_factory=Counter)
    failed: list[tuple[Path | str, str]] = field(default_factory=list)
    unrecognised: list[Path] = field(default_factory=list)
    damaged: list[tuple[Path | str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    fresh: list[str] = field(default_factory=list)
    words_seconds: float = 0.0
    vectors_seconds: float = 0.0
    interrupted: bool = False

    MAX_FRESH = 2000

    def note(self, sentence: str) -> None:
        """Add a note once."""
        if sentence and sentence not in self.notes:
            self.notes.append(sentence)


class Progress(Protocol):
    """How a run tells how far it is."""

    def start(self, phase: Phase, total: int) -> None:
        """Begin a phase: `read`, `fetch` and `send` count bytes, `vectors` passages, `scan` blocks, `write` steps.

        How far `rules` is, nobody knows.
        """
        ...

    def advance(self, amount: int, *, files: int = 0, passages: int = 0) -> None:
        """Count work done: `amount` in the phase's unit, and the files and passages that it was."""
        ...

    def finish(self) -> None:
        """End the current phase."""
        ...

    def say(self, sentence: str) -> None:
        """Show a sentence to the user at once."""
        ...

    def model(self, done: int, total: int) -> None:
        """Show how many bytes of the model have been downloaded."""
        ...


class NoProgress:
    """Progress that shows nothing."""

    def start(self, phase: Phase, total: int) -> None:
        """Ignore it."""

    def advance(self, amount: int, *, files: int = 0, passages: int = 0) -> None:
        """Ignore it."""

    def finish(self) -> None:
        """Ignore it."""

    def say(self, sentence: str) -> None:
        """Ignore it."""

    def model(self, done: int, total: int) -> None:
        """Ignore it."""
