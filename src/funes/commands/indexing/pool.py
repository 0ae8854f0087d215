"""Reading traces in worker processes, their rows delivered in the order of the traces.

Each worker has a pipe of its own. A pipe that nobody reads stops its worker, which bounds the memory; rows of traces
whose turn has not come are held back up to a limit. The order is kept so that a passage that several traces contain is
always stored under the same session.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from funes.commands.indexing.exclusions import Exclusions
from funes.commands.indexing.messages import Batch, Finished, ReadJob
from funes.commands.indexing.reading import TraceReader
from funes.commands.indexing.state import TraceOutcome

MAX_WORKERS = 2  # the main process keeps up with no more, and each may hold a very long line
HELD_BACK_CHARACTERS = 48 << 20
SMALL_RUN_BYTES = 4 << 20
"""Up to this much is read without workers: starting one costs more."""

_POLL_SECONDS = 0.5

Stop = Callable[[], bool]
Known = tuple[dict[str, str], Exclusions | None]


def read_traces(
    jobs: Sequence[ReadJob], remembered: dict[str, str], stop: Stop, exclusions: Exclusions | None = None
) -> Iterator[tuple[ReadJob, Batch | Finished]]:
    """Read traces, each one's batches and then its end, one trace after the other.

    Args:
        jobs: the traces, in the order to deliver them.
        remembered: repositories of working directories, from earlier runs.
        stop: says whether to end early; what was delivered then stays incomplete.
        exclusions: what to leave out.
    """
    if sum(job.size for job in jobs) <= SMALL_RUN_BYTES:
        reader = TraceReader(remembered, exclusions)
        for job in jobs:
            for message in reader.read(job):
                yield job, message
                if stop():
                    return
        return
    pool = _Pool(jobs, (remembered, exclusions), stop)
    try:
        yield from pool.messages()
    finally:
        pool.close()


class _Worker:
    """One process and the pipe to it."""

    def __init__(self, known: Known) -> None:
        context = get_context("spawn")  # a fork would not survive Lance
        self.pipe, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(target=_work, args=(theirs, *known), daemon=True)
        with _interrupts_blocked():
            self.process.start()
        theirs.close()
        self.job: int | None = None

    def close(self) -> None:
        self.pipe.close()
        self.process.terminate()
        self.process.join()


class _Pool:
    """The workers, and what they delivered too early."""

    def __init__(self, jobs: Sequence[ReadJob], known: Known, stop: Stop) -> None:
        self.jobs = jobs
        self.known = known
        self.stop = stop
        count = min(os.cpu_count() or 1, MAX_WORKERS, len(jobs))
        self.workers = [_Worker(known) for _ in range(max(count, 1))]
        self.early: dict[int, deque[Batch | Finished]] = {}
        self.held = 0
        self.next_job = 0

    def messages(self) -> Iterator[tuple[ReadJob, Batch | Finished]]:
        for current, job in enumerate(self.jobs):
            while not self.stop():
                queue = self.early.setdefault(current, deque())
                if not queue:
                    self._receive(current)
                    continue
                message = queue.popleft()
                if isinstance(message, Batch):
                    self.held -= message.characters
                yield job, message
                if isinstance(message, Finished):
                    del self.early[current]
                    break

    def close(self) -> None:
        for worker in self.workers:
            worker.close()

    def _receive(self, current: int) -> None:
        """Give idle workers something to do and take in what has arrived."""
        for worker in self.workers:
            if worker.job is None and self.next_job < len(self.jobs):
                worker.job = self.next_job
                self.next_job += 1
                with contextlib.suppress(OSError):  # a dead worker is noticed when its pipe is read
                    worker.pipe.send(self.jobs[worker.job])
        busy = {worker.pipe: worker for worker in self.workers if worker.job is not None}
        full = self.held >= HELD_BACK_CHARACTERS
        awaited = [pipe for pipe, worker in busy.items() if worker.job == current or not full]
        for pipe in wait(awaited, timeout=_POLL_SECONDS):
            self._take(busy[pipe])  # type: ignore[index]

    def _take(self, worker: _Worker) -> None:
        assert worker.job is not None
        try:
            message: Batch | Finished = worker.pipe.recv()
        except (EOFError, OSError):
            message = Finished(TraceOutcome(failed=self._death(worker)), complete=False)
            self.workers[self.workers.index(worker)] = _Worker(self.known)
        self.early.setdefault(worker.job, deque()).append(message)
        if isinstance(message, Batch):
            self.held += message.characters
        else:
            worker.job = None

    def _death(self, worker: _Worker) -> str:
        worker.close()
        return f"the process that read it ended (exit code {worker.process.exitcode}); it is tried again next time"


def _work(pipe: Connection, remembered: dict[str, str], exclusions: Exclusions | None) -> None:
    """Read traces for as long as the other end of the pipe asks for them."""
    reader = TraceReader(remembered, exclusions)
    with contextlib.suppress(EOFError, OSError):  # the main process ended
        while True:
            job: ReadJob = pipe.recv()
            for message in reader.read(job):
                pipe.send(message)


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Let a process started inside inherit a mask without Ctrl-C, which only the main process should handle."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
