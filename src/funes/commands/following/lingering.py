"""Waiting for the next event with everything loaded, since most of what a turn costs is the start of its worker.

The worker keeps its lock and sleeps at a pipe, into which a hook that finds the lock taken puts a byte. It holds none
of the memory's locks meanwhile. It ends by itself after some minutes, when FUNES_HOME is gone, and when any file that
it was loaded from has changed: then it would be a program that no longer exists, and starts again as the new one.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path

from funes import hook
from funes.memory.lance import give_memory_back

LINGER_SECONDS = 300.0
"""In 905 turns of real sessions, 6 of 10 ended within this time of the one before, and 3 of 10 within two minutes."""

LOOK_SECONDS = 15.0
"""Pause between two looks at whether FUNES_HOME is still there."""


class Lingering:
    """The waits of one worker.

    Args:
        folder: the folder of the spool.
        lock: descriptor of the worker's lock file.
    """

    def __init__(self, folder: Path, lock: int) -> None:
        self._folder = folder
        self._lock = lock
        self._began = time.time()
        self._pipe: tuple[int, int] | None = None

    def wait(self, waiting: Callable[[], bool]) -> bool:
        """Wait for an event.

        Args:
            waiting: says whether there is one.

        Returns:
            Whether there is one, and this process is still fit to handle it.
        """
        deadline = time.monotonic() + _seconds()
        if time.monotonic() >= deadline or _changed_since(self._began) or not self._open() or self._pipe is None:
            return False
        gc.collect()
        give_memory_back()
        # An event from before the pipe was open has put nothing into it.
        while not waiting():
            left = deadline - time.monotonic()
            if left <= 0 or self._home_gone():
                return False
            if select.select([self._pipe[0]], [], [], min(left, LOOK_SECONDS))[0]:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._pipe[0], 1 << 16)
        if self._home_gone():
            return False
        if _changed_since(self._began):
            self._start_again()
            return False
        return True

    def close(self) -> None:
        """Take the pipe away, which not every program that copies files can copy. Call while the lock is held."""
        if self._pipe is not None:
            path = self._folder / hook.PIPE
            with contextlib.suppress(OSError):  # gone with the home; another one's pipe is not ours to remove
                if os.path.samestat(os.stat(path), os.fstat(self._pipe[0])):
                    path.unlink()
            for descriptor in self._pipe:
                os.close(descriptor)
            self._pipe = None

    def _open(self) -> bool:
        """Open the pipe; False where there are none, or something else has its name."""
        if self._pipe is not None:
            return True
        path = self._folder / hook.PIPE
        try:
            with contextlib.suppress(FileExistsError):
                os.mkfifo(path, 0o600)
            reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except (OSError, AttributeError):
            return False
        try:
            if not stat.S_ISFIFO(os.fstat(reading).st_mode):
                raise OSError("no pipe")
            # With a writer of its own the pipe never says that it has ended.
            self._pipe = reading, os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            os.close(reading)
            return False
        return True

    def _home_gone(self) -> bool:
        """Whether the lock file that new hooks would find is not the one that this worker holds."""
        try:
            return not os.path.samestat(os.stat(self._folder / hook.LOCK), os.fstat(self._lock))
        except OSError:
            return True

    def _start_again(self) -> None:
        """Become a new worker, which takes the lock over; returns when that is impossible."""
        with contextlib.suppress(OSError):
            os.set_inheritable(self._lock, True)
            command = hook.worker_command(str(self._lock))
            os.execv(command[0], command)


def _seconds() -> float:
    """How long to wait: `FUNES_LINGER`, or the usual time."""
    try:
        return float(os.environ.get(hook.LINGER) or LINGER_SECONDS)
    except ValueError:
        return LINGER_SECONDS


def _changed_since(moment: float) -> bool:
    """Whether a file of a loaded module was replaced, moved or removed since a time (seconds since the epoch)."""
    for path in {file for module in list(sys.modules.values()) if (file := getattr(module, "__file__", None))}:
        try:
            if os.stat(path).st_ctime > moment:
                return True
        except OSError:
            return True
    return False
