"""What beside the tables knows of stored text, kept in step when `scrub` and `forget` change it."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from funes.commands.curating.decisions import FOLDER, deciding, parse_decisions, write_decisions
from funes.commands.curation import about
from funes.commands.indexing.reading import LEFT_OUT
from funes.commands.indexing.state import UNKNOWN, IndexState
from funes.commands.publishing import ledger
from funes.errors import FunesError, LockedError
from funes.memory.extents import SessionExtent, session_extents
from funes.memory.identity import newest_version, read_identity
from funes.memory.lock import WriterLock
from funes.paths import funes_home, memory_folder, state_file

if TYPE_CHECKING:
    from funes.memory.reader import MemoryReader


@dataclass(slots=True)
class TraceChange:
    """What changed of the passages that came from one trace.

    Attributes:
        stored: passages with their text, more or fewer.
        copies: passages that another session stores, more or fewer.
        skipped: what is left out now, by reason.
        redactions: credentials replaced, by rule.
        left_out: sessions of it that are left out now.
        forget_place: whether the place to continue from is given up, since it quotes the trace.
    """

    stored: int = 0
    copies: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    redactions: Counter[str] = field(default_factory=Counter)
    left_out: set[str] = field(default_factory=set)
    forget_place: bool = False


def forget_places(changes: Mapping[str, TraceChange]) -> None:
    """Give up the places to continue from in traces, where they quote text that goes. Call under the writer lock.

    Args:
        changes: by source path, as the rows have it.
    """
    with IndexState(state_file()) as state:
        if not _known(state):
            return
        traces = [state.trace(os.path.realpath(path)) for path, change in changes.items() if change.forget_place]
        # Without an offset it is the marks of a database, which say nothing of its text.
        quoting = [trace for trace in traces if trace is not None and "offset" in (trace.resume or {})]
        for trace in quoting:
            trace.resume = None
        if quoting:
            state.record(quoting, newest_version(memory_folder()))
        state.wipe()


def change_counts(changes: Mapping[str, TraceChange], rules: tuple[str, str] = ("", "")) -> None:
    """Bring the counts of the indexing state in step with the memory.

    Args:
        changes: by source path, as the rows have it.
        rules: fingerprint of what is to be left out, before and after; the traces need not be read again for that.
    """
    with IndexState(state_file()) as state:
        if not _known(state):
            return
        states = []
        for path, change in changes.items():
            trace = state.trace(os.path.realpath(path))
            if trace is None:
                continue
            outcome = trace.outcome
            # What a later read met again counts as known there, whether it was stored or a copy.
            outcome.stored, outcome.copies = outcome.stored + change.stored, outcome.copies + change.copies
            outcome.known = max(0, outcome.known + min(0, outcome.stored) + min(0, outcome.copies))
            outcome.stored, outcome.copies = max(0, outcome.stored), max(0, outcome.copies)
            outcome.passages = outcome.stored + outcome.copies + outcome.known
            outcome.skipped += change.skipped
            outcome.redactions += change.redactions
            if trace.resume is not None and change.left_out:
                trace.resume[LEFT_OUT] = sorted({*trace.resume.get(LEFT_OUT, ()), *change.left_out})
            states.append(trace)
        state.record(states, newest_version(memory_folder()))
        state.waiting = UNKNOWN
        if state.exclusions == rules[0]:
            state.exclusions = rules[1]


def drop_working_copies() -> list[str]:
    """Remove what killed pushes left: links to the table files of their time.

    Returns:
        A sentence for each push that is running now.
    """
    notes = []
    for work in (funes_home() / ledger.FOLDER).glob(f"*/{ledger.WORK}"):
        try:
            with WriterLock(work.parent, ledger.LOCK, wait=0, doing="cleaning up"):
                shutil.rmtree(work)
        except LockedError:
            notes.append(
                f"A push is running that began before this ({work.parent.name}); it may publish what was removed."
            )
    return notes


def _known(state: IndexState) -> bool:
    """Whether the indexing state is that of the memory."""
    folder = memory_folder()
    return state.belongs_to(read_identity(folder), newest_version(folder))


def change_decisions(
    reader: MemoryReader, forgotten: Collection[str] = (), before: Mapping[str, SessionExtent] | None = None
) -> list[str]:
    """Write the decisions of `funes curate` anew: they name sessions by their titles or first prompts.

    Args:
        reader: the memory as it is now.
        forgotten: sessions whose decisions go.
        before: how far sessions reached whose turns were renamed since; decisions about just that stay in force.

    Returns:
        A sentence for each file that cannot be understood and was left alone.
    """
    notes: list[str] = []
    paths = sorted((funes_home() / FOLDER).glob("*.txt"))
    if not paths:
        return notes
    abouts = {session.id: about(session) for session in reader.sessions()}
    now = session_extents(memory_folder(), list(before or ()))
    with deciding():
        for path in paths:
            try:
                decisions = parse_decisions(path.read_text(encoding="utf-8"), path)
            except (FunesError, OSError, UnicodeDecodeError) as error:
                notes.append(f"{path} may still name what was removed: {error}")
                continue
            for session in forgotten:
                decisions.sessions.pop(session, None)
            for session, extent in (before or {}).items():
                decision = decisions.sessions.get(session)
                if decision is not None and decision.digest == extent.digest and session in now:
                    decisions.sessions[session] = replace(
                        decision, blocks=now[session].blocks, digest=now[session].digest
                    )
            write_decisions(decisions, abouts)
    return notes
