"""`funes status`: what a memory holds, and what did not make it into it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from funes.commands.opened import OpenMemory
from funes.commands.publishing.standing import is_destination, is_remote, known_standing, known_standings, look
from funes.errors import FunesError, LockedError, NoMemoryError
from funes.paths import funes_home, memory_folder, state_file
from funes.ui.views import HookRun, Standing, StatusReport, TraceProblem, TraceTotals

if TYPE_CHECKING:
    from funes.commands.indexing.state import TraceState
    from funes.memory.reader import MemoryReader


def status(memory: OpenMemory, *, ahead: bool = True) -> StatusReport:
    """Look at a memory.

    Args:
        memory: which.
        ahead: for a memory other than the local one, also look what a push to it would publish and hold back; then it
            is no fault that one elsewhere cannot be read, or does not exist yet.

    Raises:
        NoMemoryError: when there is none.
        CorruptMemoryError: when it cannot be read.
    """
    from funes.memory.statistics import MemoryStatistics
    from funes.models.fetch import find
    from funes.models.pinned import MINILM, VECTORS_ID

    try:
        reader = memory.reader()
    except FunesError as error:
        if ahead and is_remote(memory.location) and (standing := _ahead(memory)):
            standing.unreadable = error.message
            held = MemoryStatistics(standing.memory, "not read")
            return StatusReport(held, None, VECTORS_ID, find(MINILM), sharing=[standing])
        if not isinstance(error, NoMemoryError):
            raise
        if failed := _hooks()[1]:
            raise NoMemoryError(f"{error.message} An agent's hook failed at {failed.time}: {failed.error}") from error
        raise
    own = reader.folder == memory_folder()
    return StatusReport(
        reader.statistics(),
        _trace_totals(reader),
        VECTORS_ID,
        find(MINILM),
        _writers(reader.folder),
        *(_hooks() if own else (None, None)),
        notes=_notes(reader) if own else [],
        sharing=known_standings() if own else _listed(_ahead(memory) if ahead else known_standing(memory.location)),
    )


def _ahead(memory: OpenMemory) -> Standing | None:
    """How this machine stands with a memory, None for one that it cannot publish to."""
    if not is_destination(memory.location):
        return None
    return look(memory.location or "")


def _listed(standing: Standing | None) -> list[Standing]:
    return [] if standing is None else [standing]


def sum_up(traces: Iterable[TraceState]) -> TraceTotals:
    """Add up what came of traces; problems are in the order of their paths."""
    totals = TraceTotals()
    skipped: Counter[str] = Counter()
    redactions: Counter[str] = Counter()
    for trace in sorted(traces, key=lambda trace: trace.path):
        outcome = trace.outcome
        totals.traces += 1
        totals.records += outcome.records
        totals.turns += outcome.turns
        totals.parsed += outcome.passages
        totals.stored += outcome.stored
        totals.copies += outcome.copies
        totals.known += outcome.known
        skipped += outcome.skipped
        redactions += outcome.redactions
        reasons = [outcome.failed] if outcome.failed else list(outcome.damaged)
        if outcome.unrecognised:
            reasons = ["not a trace of any harness known here"]
        elif outcome.torn_tail:
            reasons.append("the last line is unfinished and waits for the next run")
        if reasons:
            totals.problems.append(TraceProblem(trace.path, bool(outcome.failed or outcome.unrecognised), reasons))
    totals.skipped = dict(skipped.most_common())
    totals.redactions = dict(redactions.most_common())
    return totals


def _trace_totals(reader: MemoryReader) -> TraceTotals | None:
    """What the indexing state says, if it is the state of this memory."""
    from funes.commands.indexing.state import read_traces
    from funes.memory.identity import read_identity

    identity = read_identity(reader.folder)
    for path in dict.fromkeys((state_file(), reader.folder.parent / "state.sqlite")):
        if traces := read_traces(path, identity, reader.version[0]):
            return sum_up(traces.values())
    return None


def _notes(reader: MemoryReader) -> list[str]:
    """What `scrub` and `forget` would still have to do in the local memory."""
    from funes.commands.ignoring import read_ignore_rules
    from funes.commands.indexing.leaving_out import stored_note
    from funes.memory.identity import unfinished_rewrite

    notes = []
    if unfinished_rewrite(reader.folder):
        notes.append("A scrub or forget was killed before it removed old text from the disk; `funes index` does that.")
    try:
        rules = read_ignore_rules()
    except FunesError as error:
        return [*notes, error.message]
    if rules.lines and (note := stored_note(rules, reader.sessions())):
        notes.append(note)
    return notes


def _hooks() -> tuple[HookRun | None, HookRun | None]:
    """The last event of an agent that was indexed, and the last that was not."""
    from funes.commands.following.log import Entry, last_entries

    def shown(entry: Entry | None) -> HookRun | None:
        if entry is None:
            return None
        return HookRun(entry.time, entry.harness, entry.event, entry.stored, entry.error)

    success, error = last_entries(funes_home())
    return shown(success), shown(error)


def _writers(folder: Path) -> list[str]:
    """Who holds the locks. A signed lock file may be left from a process that died, so the lock itself is tried."""
    from funes.memory.lock import VECTORS_LOCK, WORDS_LOCK, WriterLock, read_holder

    writers = []
    for name in (WORDS_LOCK, VECTORS_LOCK):
        holder = read_holder(folder / name)
        if not holder:
            continue
        try:
            with WriterLock(folder, name, wait=0, doing="looking who writes"):
                pass
        except LockedError:
            writers.append(f"process {holder['pid']} on {holder['host']} is {holder['doing']} since {holder['since']}")
        except FunesError:
            pass  # The folder is read-only for this user; nothing can be said about who writes elsewhere.
    return writers
