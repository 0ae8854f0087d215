"""How this machine stands with a memory: what is not there yet, and what the gate would hold back of it.

The memory itself is not asked. What it has is what the last push left there, which this machine remembers; others may
have added to it since.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from funes.commands.publishing.destination import destination
from funes.commands.publishing.ledger import LOCK, Ledger, states
from funes.errors import FunesError, LockedError, NoMemoryError
from funes.paths import memory_folder
from funes.ui.views import Standing

if TYPE_CHECKING:
    from funes.commands.publishing.ledger import PushState

LOCK_SECONDS = 5.0


def known_standings() -> list[Standing]:
    """How the last pushes to each memory went, without looking at any passage."""
    return [_standing(state) for state in states() if state.approved or state.time or state.error]


def known_standing(memory: str | None) -> Standing | None:
    """How the last push to one memory went; None when there was none from here."""
    if not is_destination(memory):
        return None
    label, _ = destination(memory or "")
    return next((standing for standing in known_standings() if standing.memory == label), None)


def look(memory: str) -> Standing | None:
    """Look what a push to a memory would publish and what it would hold back.

    Args:
        memory: the memory.

    Returns:
        None when there is no local memory to publish.

    Raises:
        FunesError: when the local memory cannot be read, or a secret scanner is missing or fails.
    """
    from funes.commands.curation import publishable
    from funes.commands.publishing.gate import Gate
    from funes.commands.publishing.kept_out import kept_out
    from funes.memory.remote.merge import Holdings
    from funes.memory.remote.source import Source
    from funes.models.pinned import VECTORS_ID

    label, _ = destination(memory)
    ledger = Ledger(label)
    state = ledger.state()
    existed = ledger.folder.exists()
    standing = _standing(state)
    try:
        with ledger.lock(LOCK_SECONDS), _work(ledger, keep=existed) as work:
            source = Source(memory_folder(), work, VECTORS_ID)
            selection = publishable(label)
            sessions = None if selection is None else selection.sessions
            if ignored := kept_out():
                sessions = (frozenset(source.catalogue.sessions) if sessions is None else sessions) - ignored
            offered = source.catalogue.offer(sessions, words=state.words)
            missing = source.catalogue.lacking(offered, Holdings(rows=ledger.published()))
            missing.vectors = missing.vectors[:0]
            standing.waiting = source.catalogue.waiting(sessions, offered)
            verdict = None
            if len(missing.rows):
                verdict = Gate(source).verdict(missing)
                standing.would_hold_back = [asdict(block) for block in verdict.held]
                missing = missing.without(verdict.places, source.catalogue, Holdings())
            standing.pending = source.catalogue.distinct(missing.rows)
            standing.repo = selection.repo if selection is not None else ""
    except NoMemoryError:
        return None
    except LockedError:
        standing.busy = True
    return standing


@contextlib.contextmanager
def _work(ledger: Ledger, *, keep: bool) -> Iterator[Path]:
    """A folder to work in; afterwards nothing is left for a memory that was only looked at, if it is not to be kept."""
    try:
        yield ledger.work()
    finally:
        ledger.clear_work()
        if not keep:
            with contextlib.suppress(OSError):
                (ledger.folder / LOCK).unlink()
                ledger.folder.rmdir()
                ledger.folder.parent.rmdir()


def is_destination(memory: str | None) -> bool:
    """Whether a memory is one that could be published to: every one but the local."""
    if memory is None:
        return False
    with contextlib.suppress(FunesError):
        destination(memory)
        return True
    return False


def is_remote(memory: str | None) -> bool:
    """Whether a memory is on the Hub or in a store, where it may be out of reach."""
    from funes.memory.uri import resolve

    return resolve(memory).kind in ("hub", "store")


def _standing(state: PushState) -> Standing:
    return Standing(
        memory=state.memory,
        publishes=state.approved,
        last_push=state.time,
        version=state.version,
        published=state.published,
        held=state.held,
        held_back=state.held_back,
        failed=state.failed,
        error=state.error,
    )
