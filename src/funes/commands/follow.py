"""The worker behind the hooks: what an agent has just written becomes recallable.

It runs in a process of its own that no agent waits for, one at a time (`funes.hook` says how), and takes the spool of
events empty. Events about the same agent are handled together: the traces they name are read on from where the last
read stopped, stored, and then the new prose and tool calls get their vectors. Tool output, which is most of the
passages and the least of what is searched, gets its vectors at the boundaries of sessions, with what else waits.

After a turn it stays for a few minutes, in case another one is finished (`following/lingering.py`).
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from funes import hook
from funes.commands.following.events import Event, Spool, contains_answer
from funes.commands.following.lingering import Lingering
from funes.commands.following.log import Entry
from funes.commands.following.targets import traces_of
from funes.commands.index import IndexOptions, IndexReport, run_index, run_vectors
from funes.errors import FunesError, LockedError
from funes.memory.identity import FILE as IDENTITY_FILE
from funes.paths import funes_home, memory_folder
from funes.traces.registry import source_named

ANSWER_SECONDS = 2.0
"""How long the last line of a turn may take to be in the trace: a Stop hook can run before it is written."""

TURN_BUDGET = 1.0
BOUNDARY_BUDGET = 10.0
"""Seconds for vectors after a turn, and for whatever waits when a session begins or ends."""

PATIENT = 5
"""Niceness for the latter. With the highest, one step could delay the next event by minutes on a busy machine."""

RETRY_SECONDS = (2.0, 5.0, 10.0, 30.0, 60.0)
"""Pauses while another process writes to the memory. After the last one the events are left to the next worker."""

RECENT = 3600.0
"""Traces that changed up to this many seconds before the memory was made are news too."""


def follow(descriptor: int | None) -> None:
    """Handle the events in the spool, and those that come meanwhile.

    Args:
        descriptor: of the worker's lock file, whose lock this process holds; None to take the lock, and to do nothing
            when another worker has it.
    """
    home = funes_home()
    worker = _Worker(home)
    locked = descriptor is not None
    if descriptor is None:
        (home / hook.FOLDER).mkdir(parents=True, exist_ok=True)
        descriptor = os.open(home / hook.FOLDER / hook.LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    lingering = Lingering(home / hook.FOLDER, descriptor)
    try:
        left: set[str] = set()
        while locked or hook.try_lock(descriptor):
            left = worker.run()
            while worker.may_stay and not left and lingering.wait(worker.called):
                left = worker.run()
            lingering.close()
            hook.unlock(descriptor)
            locked = False
            # An event that came since the last look found the lock taken, and its hook relied on this look.
            if set(worker.spool.waiting()) <= left:
                return
    finally:
        os.close(descriptor)


class _Worker:
    """Handles events while it holds the lock."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.spool = Spool(home)
        self.cpu = 0.0
        self.niceness = os.nice(0)
        self.ended = False
        """Whether the last thing that happened was the end of a session."""
        self.fresh: list[str] = []
        """Passages whose vectors were put off for a more urgent event."""

    @property
    def may_stay(self) -> bool:
        """Whether to wait for the next event: not where none is to be expected, nor with a lowered priority."""
        return not self.ended and os.nice(0) == self.niceness

    def run(self) -> set[str]:
        """Handle events until there are none; returns the names of those that are left for later."""
        pauses = iter(RETRY_SECONDS)
        while events := self.spool.take():
            locked = self._handle(events)
            if locked is None:
                pauses = iter(RETRY_SECONDS)
                continue
            self.spool.put_back(events)
            pause = next(pauses, None)
            if pause is None:
                self._log(events, IndexReport(), error=f"{locked.message} The next event tries again.")
                return {event.path.name for event in events} | set(self.spool.waiting())
            time.sleep(pause)
        return set()

    def _handle(self, events: list[Event]) -> LockedError | None:
        """Handle some events, agent by agent; returns why they have to wait, if they do."""
        wait_for_answers(events)
        for group in _groups(events):
            report = None
            try:
                report = self._index(group)
            except LockedError as error:
                return error
            except FunesError as error:
                self._log(group, IndexReport(), error=error.message)
            except Exception as error:
                # Whatever it is, the next event gets its own chance, and `funes status` shows what happened.
                detail = " ".join(str(error).split())[:300]
                self._log(group, IndexReport(), error=f"unexpected {type(error).__name__}: {detail}")
            if report is not None and report.interrupted:
                self.spool.put_back(events)
                sys.exit(0)  # the machine is shut down, say; what was stored stays
            for event in group:
                event.done()
                events.remove(event)
            if report is not None:
                self._finish(group, report)
        return None

    def _index(self, events: Sequence[Event]) -> IndexReport:
        """Make the traces of one agent's events recallable by words."""
        harness = _known_harness(events[0].harness)
        since = _since(min(event.time for event in events))
        named = [path for event in events for trace in event.traces for path in traces_of(harness or "", trace, since)]
        report = IndexReport()
        with _environment(events[0].variables):
            if named:
                traces = tuple(dict.fromkeys(named))
                options = IndexOptions(harness=harness, traces=traces, budget=0, fetch_model=False)
                report = run_index(options)
            if any(event.starts or not event.traces for event in events):
                options = IndexOptions(harness=harness, yes=True, since=since, budget=0, fetch_model=False)
                report = _sum(report, run_index(options))
        return report

    def _finish(self, events: Sequence[Event], report: IndexReport) -> None:
        """What can be done once the passages are found by words: vectors, the boundary of a session, the log."""
        recallable = time.time()
        self.ended = events[-1].ends
        problems = [f"{path}: {reason}" for path, reason in report.failed]
        try:
            if fresh := (self.fresh + report.fresh)[-report.MAX_FRESH :]:
                report.embedded = run_vectors(budget=TURN_BUDGET, stop=self.called, passages=fresh).embedded
                self.fresh = fresh if self.called() else []
            if any(event.starts or event.ends for event in events):
                session_boundary(events[-1].memory, events[-1].place, stop=self.called)
        except LockedError:
            pass  # Whoever computes vectors now comes to these too.
        except FunesError as error:
            problems.append(error.message)
        self._log(events, report, error="; ".join(problems[:3]), recallable=recallable)

    def called(self) -> bool:
        """Whether another event waits, which is more urgent than vectors."""
        return bool(self.spool.waiting())

    def _log(self, events: Sequence[Event], report: IndexReport, *, error: str = "", recallable: float = 0.0) -> None:
        now, cpu = time.time(), _cpu_seconds()
        last = max(event.time for event in events)
        Entry(
            harness=events[0].harness,
            event=" ".join(dict.fromkeys(event.name or "?" for event in events)),
            events=len(events),
            traces=report.read,
            stored=report.stored,
            embedded=report.embedded,
            seconds=round(now - last, 3),
            recallable=round(recallable - last, 3) if recallable else 0.0,
            cpu=round(cpu - self.cpu, 3),
            note="; ".join(report.notes[:3]),
            error=error,
        ).write(self.home)
        self.cpu = cpu


def session_boundary(memory: str, place: Mapping[str, str], *, stop: Callable[[], bool]) -> None:
    """Do what belongs to the beginning and the end of a session, after its traces are indexed.

    What waits for vectors gets some. A memory that is published is published from here too, at the end, and at the
    beginning for agents that do not tell when a session ends.

    Args:
        memory: the memory that the agent is bound to, empty for the local one.
        place: variables that say where that memory is and how to get there.
        stop: says whether something more urgent waits.
    """
    if os.nice(0) < PATIENT:
        os.nice(PATIENT)  # nobody waits for these vectors, and the user may be working
    try:
        run_vectors(budget=BOUNDARY_BUDGET, stop=stop)
    finally:
        if memory:
            from funes.commands.publishing import quiet

            quiet.start(memory, place)  # a process of its own: no turn waits for the network


def wait_for_answers(events: Iterable[Event]) -> None:
    """Wait, for a limited time, until the traces contain the turns' last messages."""
    deadline = time.monotonic() + ANSWER_SECONDS
    missing = [event for event in events if event.answer and event.traces]
    while missing := [event for event in missing if not contains_answer(event.traces[0], event.answer)]:
        if time.monotonic() >= deadline:
            return
        time.sleep(0.05)


def _groups(events: Iterable[Event]) -> list[list[Event]]:
    """Put events of the same agent together, in the order of each agent's first."""
    groups: dict[tuple[object, ...], list[Event]] = {}
    for event in events:
        where = (*sorted(event.variables.items()), *sorted(event.place.items()))
        groups.setdefault((event.harness, event.memory, *where), []).append(event)
    return list(groups.values())


def _known_harness(name: str) -> str | None:
    """The name, None for one that no source has; the content of the traces decides then."""
    try:
        return source_named(name).name
    except FunesError:
        return None


def _since(event: float) -> float:
    """The time from which on traces are news: older ones were left out when the memory was made, by the user's will."""
    try:
        made = (memory_folder() / IDENTITY_FILE).stat().st_mtime
    except OSError:
        made = event
    return min(made, event) - RECENT


def _sum(first: IndexReport, second: IndexReport) -> IndexReport:
    second.read += first.read
    second.stored += first.stored
    second.fresh = (first.fresh + second.fresh)[: second.MAX_FRESH]
    second.failed += first.failed
    second.interrupted |= first.interrupted
    for sentence in first.notes:
        second.note(sentence)
    return second


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Look for traces where the agent that the event is from keeps them."""
    before = {name: os.environ.get(name) for name in hook.ROOT_VARIABLES}
    if variables:
        for name in before:
            os.environ.pop(name, None)
        os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _cpu_seconds() -> float:
    """CPU time of this process and its children."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
