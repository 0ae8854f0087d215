"""One writer at a time: an advisory lock on a file, held by the process and released by the system when it ends."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from funes.errors import FunesError, LockedError

WORDS_LOCK = "writer.lock"
VECTORS_LOCK = "vectors.lock"
WAIT_SECONDS = 5.0
_POLL_SECONDS = 0.05


class WriterLock:
    """The lock of one table, a context manager.

    The file says who holds the lock, for the message of the next writer; what it says after its holder died does not
    matter, since the system has released the lock itself.

    Args:
        folder: the memory's folder, made when it does not exist.
        name: `WORDS_LOCK` or `VECTORS_LOCK`.
        wait: seconds to wait for another holder.
        doing: what the holder does, as in "is ...", for the message of the next writer.

    Raises:
        LockedError: on entering, when another process still holds it after the wait.
    """

    def __init__(
        self, folder: Path, name: str = WORDS_LOCK, wait: float = WAIT_SECONDS, doing: str = "writing"
    ) -> None:
        self.path = folder / name
        self.wait = wait
        self.doing = doing
        self._descriptor: int | None = None

    def __enter__(self) -> WriterLock:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def acquire(self) -> None:
        """Take the lock, waiting up to `wait` seconds."""
        if self._descriptor is not None:
            return
        deadline = time.monotonic() + self.wait
        while not self._acquired(deadline):
            pass  # at once: the file of that name is there, or can be made

    def _acquired(self, deadline: float) -> bool:
        """Take the lock; False when the file was removed meanwhile, so that others lock another one of its name."""
        descriptor = _open(self.path)
        try:
            while not _try_lock(descriptor):
                if time.monotonic() >= deadline:
                    raise LockedError(self._held_message())
                time.sleep(_POLL_SECONDS)
            if not _is_at(descriptor, self.path):
                os.close(descriptor)
                return False
            self._sign(descriptor)
        except OSError as error:
            os.close(descriptor)
            raise FunesError(
                f"{self.path} cannot be locked ({error.strerror}); check the free space, or use another file system."
            ) from error
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        """Give the lock back; nothing happens when it is not held."""
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None

    def _sign(self, descriptor: int) -> None:
        holder = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
            "doing": self.doing,
        }
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(holder).encode(), 0)

    def _held_message(self) -> str:
        holder = read_holder(self.path)
        who = "another process"
        if holder:
            who = f"process {holder['pid']} on {holder['host']}, since {holder['since']}"
        doing = holder.get("doing", "writing") if holder else "writing"
        return f"Another funes is {doing} ({who}); wait for it to end, then run the command again."


def read_holder(path: Path) -> dict[str, str]:
    """Read who signed a lock file last; empty when nobody did or it cannot be read."""
    try:
        holder = json.loads(path.read_bytes())
        return {name: str(holder[name]) for name in ("pid", "host", "since", "doing")}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether an open file is the one at a path."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _open(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    except OSError as error:
        raise FunesError(
            f"{path.parent} cannot be written ({error.strerror}); "
            "check its permissions, or set FUNES_HOME to another folder."
        ) from error


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        # Far behind the end: a locked range cannot be read by others, and they read who holds the lock.
        os.lseek(descriptor, 1 << 20, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
