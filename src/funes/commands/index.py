"""`funes index`: traces become a memory. Words first, vectors behind, nothing twice."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from funes.commands.indexing.discovery import Found, discover, find_harnesses, still_to_read
from funes.commands.indexing.exclusions import Exclusions
from funes.commands.indexing.leaving_out import apply_exclusions, finish_rewrite
from funes.commands.indexing.report import FoundHarness, IndexOptions, IndexReport, NoProgress, Progress
from funes.commands.indexing.state import UNKNOWN, IndexState, KnownTrace, TraceOutcome, TraceState
from funes.errors import FunesError, LockedError, ModelMissingError
from funes.memory.identity import newest_version, read_identity
from funes.memory.lock import WAIT_SECONDS
from funes.paths import memory_folder, state_file

if TYPE_CHECKING:
    from funes.commands.indexing.messages import ReadJob
    from funes.commands.indexing.words import WordsPhase

DEFAULT_BUDGET = 60.0
SMALL_STEP = 8000
"""Characters that are embedded before something more urgent is looked for: about half a second."""

Confirm = Callable[[list[FoundHarness]], bool]

__all__ = ["Confirm", "FoundHarness", "IndexOptions", "IndexReport", "NoProgress", "Progress", "run_index"]


def run_index(options: IndexOptions, progress: Progress | None = None, confirm: Confirm | None = None) -> IndexReport:
    """Bring the local memory up to date with the traces.

    Args:
        options: what to index.
        progress: told how far it is; None to work silently.
        confirm: asked, with what was found, before everything found is indexed; needed for an interactive run
            without a path, a harness or `yes`.

    Returns:
        What was done. `interrupted` is set after Ctrl-C, in which case the caller exits with 130.

    Raises:
        FunesError: when there is nothing to index, or not said what.
        LockedError: when another process is writing and did not end within a few seconds.
        CorruptMemoryError: when the memory cannot be read.
    """
    _check(options)
    if _is_everything(options) and not options.yes:
        found = find_harnesses()
        if not found:
            raise FunesError(_nothing_found(None))
        if confirm is None or not confirm(found):
            raise FunesError("Nothing was indexed.")
    with _interruptible() as stop:
        return _Run(options, progress or NoProgress(), stop).run()


def run_vectors(*, budget: float, stop: Callable[[], bool], passages: Sequence[str] | None = None) -> IndexReport:
    """Embed passages that have no vector yet, with a model that is on this machine, in small steps.

    Args:
        budget: most seconds to spend.
        stop: says whether to end early.
        passages: ids of the passages; None for whatever waits.

    Returns:
        What was done: `embedded`, `waiting`, `notes` and `vectors_seconds` are set.

    Raises:
        LockedError: when another process computes vectors; it is not waited for, since it comes to these too.
        CorruptMemoryError: when the memory cannot be read.
    """
    return _Run(IndexOptions(budget=budget, fetch_model=False), NoProgress(), stop).embed(passages)


class _Run:
    """One run: look, read, store, embed."""

    def __init__(self, options: IndexOptions, progress: Progress, stop: Callable[[], bool]) -> None:
        self.options = options
        self.progress = progress
        self.stop = stop
        self.report = IndexReport()
        self.folder = memory_folder()
        self.exclusions = Exclusions()

    def run(self) -> IndexReport:
        began = time.monotonic()
        with IndexState(state_file()) as state:
            finish_rewrite(self.folder)
            self.exclusions = apply_exclusions(state, self.folder, self.report)
            if self.options.dataset is not None:
                from funes.commands.indexing.hub_dataset import read_dataset

                earlier = self._earlier(state)
                read = partial(self._words, state)
                read_dataset(self.options, earlier, self.report, self.progress, self.stop, read)
            else:
                found = discover(self.options, self._earlier(state))
                self._tell(found)
                if found.jobs or found.unrecognised:
                    self._words(state, found)
            self.report.words_seconds = time.monotonic() - began
            began = time.monotonic()
            if not self.stop():
                self._vectors(state)
            self.report.vectors_seconds = time.monotonic() - began
            if self.report.waiting is None and not self.options.follows:
                self.report.waiting = self._count_waiting(state)
        self.report.interrupted = self.stop()
        return self.report

    def _count_waiting(self, state: IndexState) -> int:
        """Return the number of passages without a vector, looking for them only when an earlier run was killed."""
        if state.waiting == UNKNOWN:
            from funes.memory.reader import MemoryReader

            state.waiting = MemoryReader.open().statistics().waiting if newest_version(self.folder) else 0
        return state.waiting

    def embed(self, passages: Sequence[str] | None) -> IndexReport:
        """Only embed."""
        began = time.monotonic()
        with IndexState(state_file()) as state:
            self._vectors(state, passages, wait=0.0, step=SMALL_STEP)
        self.report.vectors_seconds = time.monotonic() - began
        return self.report

    def _earlier(self, state: IndexState) -> dict[str, KnownTrace]:
        if state.belongs_to(read_identity(self.folder), newest_version(self.folder)):
            return self._known(state)
        return {}

    def _known(self, state: IndexState) -> dict[str, KnownTrace]:
        traces = self.options.traces
        return state.known(None if traces is None else {os.path.realpath(path) for path in traces})

    def _tell(self, found: Found) -> None:
        report = self.report
        report.traces, report.unchanged = found.traces, found.unchanged
        report.unrecognised = [path for path, _ in found.unrecognised]
        report.failed += found.unreadable
        for sentence in found.problems:
            report.note(sentence)
        if not found.traces and not found.unrecognised and not found.unreadable and not self.options.follows:
            raise FunesError(_nothing_found(self.options))

    def _words(self, state: IndexState, found: Found) -> None:
        """Read and store, holding the writer lock."""
        from funes.memory.store import MemoryWriter

        earlier = self._earlier(state)
        new = [(path, stamp) for path, stamp in found.unrecognised if _is_news(str(path), stamp, earlier)]
        if not found.jobs and not new and not found.noted:
            return
        with MemoryWriter(self.folder) as writer:
            self.exclusions = Exclusions.load()  # a session may have been forgotten while this waited for the lock
            version = newest_version(self.folder)
            if not state.belongs_to(writer.identity, version):
                state.adopt(writer.identity, UNKNOWN if version else 0)
                state.exclusions = self.exclusions.fingerprint()
            jobs = still_to_read(found.jobs, self._known(state))
            if jobs:
                from funes.commands.indexing.words import WordsPhase

                self._read(state, WordsPhase(writer, state, self.report), jobs)
                writer.finish()
            noted = [*found.noted, *(_unrecognised(path, stamp) for path, stamp in new)]
            state.record(noted, newest_version(self.folder))

    def _read(self, state: IndexState, phase: WordsPhase, jobs: list[ReadJob]) -> None:
        """Deliver what the readers read to the words phase."""
        from funes.commands.indexing.messages import Batch
        from funes.commands.indexing.pool import read_traces
        from funes.commands.indexing.rules import prepare_rules

        waiting = state.waiting
        prepare_rules(self.progress, self.stop)
        if self.stop():
            return
        self.progress.start("read", sum(job.size for job in jobs))
        for job, message in read_traces(jobs, state.repos(), self.stop, self.exclusions):
            if isinstance(message, Batch):
                state.waiting = UNKNOWN  # until the end: a killed run has to count again
                phase.add(job, message)
                self.progress.advance(0, passages=sum(len(rows.pieces) for rows in message.rows))
            else:
                phase.finish(job, message)
                self.progress.advance(job.size, files=1)
        phase.close()
        if waiting != UNKNOWN:
            state.waiting = waiting + self.report.stored
        self.progress.finish()

    def _vectors(
        self,
        state: IndexState,
        passages: Sequence[str] | None = None,
        *,
        wait: float = WAIT_SECONDS,
        step: int | None = None,
    ) -> None:
        """Embed what waits, or some of it, as far as the budget goes; without a model, say so."""
        budget = self.options.budget
        if budget is None and self.options.path is None and self.options.dataset is None:
            budget = DEFAULT_BUDGET
        from funes.models.pinned import VECTORS_ID

        if state.model not in ("", VECTORS_ID):
            state.waiting = UNKNOWN
            if passages is not None:
                return  # a few new vectors must not take the place of all the old ones
        if not newest_version(self.folder) or state.waiting == 0 or budget == 0:
            return
        from funes.commands.indexing.vectors import embed_waiting
        from funes.models.encoder import load_encoder

        def told(_what: str, done: int, total: int) -> None:
            self.progress.model(done, total)
            if self.stop():
                raise KeyboardInterrupt

        try:
            encoder = load_encoder(fetch=self.options.fetch_model, progress=told)
        except KeyboardInterrupt:
            if not self.stop():
                raise
            return  # the run ends as it does between two steps
        except ModelMissingError as error:
            self.report.note(f"Recall works by words only: {error.message}")
            return
        try:
            embed_waiting(
                self.folder,
                encoder,
                passages=passages,
                budget=budget,
                wait=wait,
                step=step,
                stop=self.stop,
                progress=self.progress,
                report=self.report,
            )
        except LockedError as error:
            if not self.report.stored:
                raise
            self.report.note(f"The new passages wait for their vectors. {error.message}")
            return
        if passages is None or self.report.embedded:
            state.model = VECTORS_ID
        if passages is not None and self.report.embedded and state.waiting != UNKNOWN:
            self.report.waiting = max(0, state.waiting - self.report.embedded)
        if self.report.waiting is not None:
            state.waiting = self.report.waiting


def _is_everything(options: IndexOptions) -> bool:
    """Whether nothing in particular was asked for."""
    return all(one is None for one in (options.path, options.traces, options.harness, options.dataset))


def _check(options: IndexOptions) -> None:
    if options.limit is not None and options.limit < 1:
        raise FunesError(f"--limit is {options.limit}; it has to be 1 or more.")
    if options.budget is not None and options.budget < 0:
        raise FunesError(f"--budget is {options.budget:g}; it has to be 0 (no vectors) or more seconds.")
    if _is_everything(options) and not options.yes and not options.interactive:
        raise FunesError(
            "Say what to index: a PATH, --harness NAME, or --yes for the sessions of every harness on this machine."
        )


def _nothing_found(options: IndexOptions | None) -> str:
    if options is not None and options.path is not None:
        return f"There are no sessions below {options.path}; name a trace file, or a folder that holds some."
    if options is not None and options.harness is not None:
        return f"There are no sessions of {options.harness} on this machine; to index a copy of some, name its PATH."
    return "There are no sessions of any harness on this machine; to index a copy of some, name its PATH."


def _is_news(path: str, stamp: str, earlier: dict[str, KnownTrace]) -> bool:
    known = earlier.get(os.path.realpath(path))
    return known is None or known.stamp != stamp


def _unrecognised(path: Path, stamp: str) -> TraceState:
    return TraceState(os.path.realpath(path), "", stamp, True, TraceOutcome(unrecognised=True))


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C (or SIGTERM) into a flag that the run looks at between steps; the second one kills."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return

    def ask(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
