"""Publishing rows: look at what the destination has, add what it lacks, start again when somebody else was quicker."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from funes.memory.remote.faults import RemoteBusyError, RemoteMovedError, RemoteUnreachableError
from funes.memory.remote.merge import Holdings, Missing
from funes.memory.remote.source import Source
from funes.memory.remote.tables import Tables

Phase = Literal["fetch", "write", "send"]
ATTEMPTS = 40
FAULTS = 3
"""How often the connection may fail while something is sent. Whether it got there is seen by looking again."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 3.0
_LONGEST_WAIT = 60.0
"""Seconds that a destination may ask to wait."""

Told = Callable[[Phase, int, int], None]
"""Told how far the work is: the phase (`fetch`, `write`, `send`), what is done and what there is to do."""

Choose = Callable[[Holdings], Missing]


@dataclass(slots=True)
class Publication:
    """What was published.

    Attributes:
        rows, vectors, titles: numbers of rows added; the titles are among the rows.
        copies: those of the rows that refer to a passage which another session has in the destination.
        before, after: passages that the destination held before and holds now, none counted twice.
        version: commit on the Hub, version of the chunks table elsewhere; empty when nothing was there to publish.
        sent: bytes sent, or written where the destination is a folder or a store.
        created: whether the repository was made.
        attempts: how often it was tried, because others published meanwhile or the connection failed.
    """

    rows: int = 0
    vectors: int = 0
    titles: int = 0
    copies: int = 0
    before: int = 0
    after: int = 0
    version: str = ""
    sent: int = 0
    created: bool = False
    attempts: int = 1

    @property
    def passages(self) -> int:
        """Number of passages that the destination did not have before."""
        return self.rows - self.titles - self.copies


class Target(Protocol):
    """A place to publish to."""

    label: str

    def look(self) -> Tables:
        """Open what is there now.

        Raises:
            FunesError: when it cannot be read, or is no place for a memory.
        """
        ...

    def version(self) -> str:
        """Name of the version that `look` saw last, empty when there was nothing."""
        ...

    def is_public(self) -> bool:
        """Whether it is known that anybody may read it."""
        ...

    def write(
        self,
        tables: Tables,
        source: Source,
        missing: Missing,
        there: Holdings,
        compact: bool,
        done: Publication,
    ) -> None:
        """Add rows to the version that `look` has opened, all of them or, but for a store, none.

        Args:
            tables: what `look` has opened.
            source: the local memory.
            missing: which of its rows.
            there: what the destination holds.
            compact: index, merge and clean up all of it.
            done: is added to, also by an attempt that has to be made again.

        Raises:
            RemoteMovedError: when there is a newer version, so that somebody has to look again.
        """
        ...


def publish(target: Target, source: Source, choose: Choose, *, compact: bool = False) -> Publication:
    """Publish what a destination lacks.

    Args:
        target: the destination.
        source: the local memory.
        choose: decides, from what the destination holds, what is to be added; called again for each attempt.
            What it raises ends the publication.
        compact: also index, merge and clean up all of the destination, even when it lacks nothing.

    Returns:
        What was done.

    Raises:
        RemoteMovedError: when others published at each of `ATTEMPTS` attempts.
        RemoteError: when the connection fails, or the destination refuses.
        FunesError: when the destination cannot be read or written, or is no memory that rows can be added to.
    """
    done = Publication()
    faults, first, unanswered = 0, None, None
    for attempt in range(1, ATTEMPTS + 1):
        done.attempts = attempt
        try:
            tables = target.look()
            tables.check(source.model)
            there = tables.holdings()
        except RemoteMovedError:
            if attempt == ATTEMPTS:
                raise
            _pause(attempt)
            continue
        first = there if first is None else first
        done.before = len(first.texts)
        missing = choose(there)
        if not missing and not (compact and tables.chunks is not None):
            done.after, done.version = len(there.texts), target.version()
            if unanswered is not None:
                _arrived(done, source, unanswered, first, there)
            return done
        try:
            target.write(tables, source, missing, there, compact, done)
        except (RemoteMovedError, RemoteBusyError, RemoteUnreachableError) as fault:
            if not isinstance(fault, RemoteMovedError):
                faults += 1
                unanswered = missing
            asked = fault.wait if isinstance(fault, RemoteBusyError) else 0.0
            if attempt == ATTEMPTS or faults == FAULTS or asked > _LONGEST_WAIT:
                raise
            _pause(attempt, asked)
            continue
        return done
    raise AssertionError("the last attempt returns or raises")


def _pause(attempt: int, asked: float = 0.0) -> None:
    """Wait a random while, longer each time, so that many writers get out of each other's way."""
    pause = random.uniform(0.3, 1.0) * min(_FIRST_PAUSE * 2 ** min(attempt, 6), _LONGEST_PAUSE)
    time.sleep(max(pause, asked))


def _arrived(done: Publication, source: Source, sent: Missing, before: Holdings, now: Holdings) -> None:
    """Count what an attempt published whose answer was lost, if it did."""
    import numpy as np

    catalogue = source.catalogue
    rows = np.concatenate([sent.rows, sent.titles])
    if not np.isin(catalogue.rows[rows], now.rows).all():
        return
    embedded = np.concatenate([sent.rows, sent.vectors])
    vectors = np.unique(catalogue.passages[embedded[catalogue.embedded[embedded]]])
    texts = np.unique(catalogue.passages[sent.rows])
    done.rows, done.titles = len(rows), len(sent.titles)
    done.copies = len(sent.rows) - int((~np.isin(texts, before.texts)).sum())
    done.vectors = int((~np.isin(vectors, before.vectors)).sum())
