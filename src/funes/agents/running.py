"""Running an agent's program once: the prompt on its stdin, its output line by line, a deadline, and no process left.

The program leads a process group and session of its own, so that whatever it starts can be ended with it and nothing it
starts can ask for a password on the user's terminal.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import FrameType
from typing import IO

GRACE = 2.0
"""Seconds between asking a group of processes to end and ending it."""
LINGER = 1.0
"""Seconds in which the output of a program that has exited must end; a process it left behind may hold it open."""
LAST_LINES = 21
"""Of stderr; its end counts as one."""

LONGEST_LINE = 4 << 20
"""Bytes of a line that are kept; agents that print JSON print a line for each piece of an answer."""

LONGEST_ERROR = 4000

LINES_AHEAD = 1000
"""Lines that are read before they are handed on: a program that prints faster has to wait, and fills no memory."""

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@dataclass(slots=True)
class Outcome:
    """How a run ended.

    Attributes:
        code: exit code, negative for a signal; None when the deadline came first.
        errors: the last lines of stderr.
    """

    code: int | None
    errors: list[str] = field(default_factory=list)


def run_program(
    command: Sequence[str],
    prompt: str,
    on_line: Callable[[str], None],
    *,
    timeout: float,
    environment: Mapping[str, str],
) -> Outcome:
    """Run a program to its end, or to the deadline.

    Args:
        command: the program and its arguments.
        prompt: what it reads on stdin, of any length.
        on_line: called with each line of its stdout, without the line end, as it comes.
        timeout: seconds until the program and all it has started are ended.
        environment: the whole environment.

    Raises:
        OSError: when the program cannot be started.
    """
    deadline = time.monotonic() + timeout
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(environment),
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    lines: queue.Queue[str | None] = queue.Queue(LINES_AHEAD)
    over = threading.Event()
    errors: deque[str] = deque(maxlen=LAST_LINES)
    feeder = threading.Thread(target=_feed, args=(process.stdin, prompt.encode("utf-8", "replace")), daemon=True)
    readers = [
        threading.Thread(target=_read, args=(process.stdout, partial(_put, lines, over)), daemon=True),
        threading.Thread(
            target=_read, args=(process.stderr, lambda line: errors.append((line or "")[:LONGEST_ERROR])), daemon=True
        ),
    ]
    ended = False
    try:
        with _signals_raise():
            for thread in (feeder, *readers):
                thread.start()
            ended = _pass_on(process, lines, on_line, deadline)
    finally:
        over.set()  # a reader that waits for room reads on and drops what it reads
        if not ended:
            _end_group(process, readers)
    readers[1].join(LINGER)
    return Outcome(process.returncode if ended else None, [line for line in list(errors) if line.strip()])


def _pass_on(
    process: subprocess.Popen[bytes],
    lines: queue.Queue[str | None],
    on_line: Callable[[str], None],
    deadline: float,
) -> bool:
    """Hand the lines on until the program has ended; False when the deadline or a left-over process came first."""
    while True:
        if time.monotonic() >= deadline:
            return False  # also while it goes on printing
        try:
            line = lines.get(timeout=max(0.0, min(LINGER, deadline - time.monotonic())))
        except queue.Empty:
            if process.poll() is not None:
                # The program is done, but something it has started holds its output open.
                _signal_group(process, signal.SIGKILL)
                return True
            continue
        if line is None:
            break
        on_line(line)
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return False
    return True


def _feed(stream: IO[bytes], data: bytes) -> None:
    # A program that does not read to the end has its own reasons; its exit code tells.
    with contextlib.suppress(BrokenPipeError):
        stream.write(data)
    with contextlib.suppress(BrokenPipeError):
        stream.close()


def _read(stream: IO[bytes], put: Callable[[str | None], None]) -> None:
    """Hand on the lines of a stream, and None at its end. Of a line that is too long the beginning is handed on."""
    with stream:
        cut = False
        while line := stream.readline(LONGEST_LINE):
            if not cut:
                put(line.decode("utf-8", "replace").rstrip("\r\n"))
            cut = not line.endswith(b"\n")
    put(None)


def _put(lines: queue.Queue[str | None], over: threading.Event, line: str | None) -> None:
    while not over.is_set():
        with contextlib.suppress(queue.Full):
            lines.put(line, timeout=LINGER)
            return


def _end_group(process: subprocess.Popen[bytes], readers: list[threading.Thread]) -> None:
    """End a program and everything in its group: ask, wait, insist.

    The program itself is waited for last: as long as it is not, its id cannot become another group's.
    """
    _signal_group(process, signal.SIGTERM)
    until = time.monotonic() + GRACE
    for reader in readers:
        reader.join(max(0.0, until - time.monotonic()))
    _signal_group(process, signal.SIGKILL)
    process.wait()


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    # No such group: all have ended. Not permitted: macOS says so of a group of zombies.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


@contextlib.contextmanager
def _signals_raise() -> Iterator[None]:
    """Turn requests to stop into an exception, so that the agent does not outlive us."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, stop) for number in _STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
