"""The one place that imports Lance.

Lance prints warnings to stderr unless told not to before its import, takes a third of a second to import, and does
not survive a `fork`. So it is imported late, through this module only, and never in a process that forks afterwards.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from funes.errors import CorruptMemoryError, FunesError
from funes.memory.identity import newest_version
from funes.memory.schema import CHUNKS, VECTORS

T = TypeVar("T")

_SOURCE_LINE = re.compile(r",? *[^\s,()]*\.rs:\d+:\d+")


def lance_module() -> Any:
    """Import `lance`, with its log limited to errors."""
    os.environ.setdefault("LANCE_LOG", "error")
    import lance

    return lance


def give_memory_back() -> None:
    """Return freed memory to the system; glibc and Arrow would keep it, 100 MB after an index build."""
    if "pyarrow" in sys.modules:
        import pyarrow as pa

        pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def is_lance_fault(error: BaseException) -> bool:
    """Whether an exception comes from Lance or Arrow reading a table (a panic of the Rust side included).

    A condition that Lance cannot parse is a fault of this program and says nothing about the table.
    """
    if any(sign in str(error) for sign in ("Error parsing statement", "Error during planning")):
        return False
    if isinstance(error, (OSError, ValueError, RuntimeError, LookupError)):
        return True
    return type(error).__name__ == "PanicException"


def guarded(folder: Path, action: Callable[[], T]) -> T:
    """Run an action on a table and turn any fault of the storage into one sentence.

    Args:
        folder: the memory's folder, named in the sentence.
        action: what to do.

    Raises:
        CorruptMemoryError: when the table cannot be read.
    """
    try:
        return action()
    except BaseException as error:
        if not is_lance_fault(error):
            raise
        raise corrupt(folder, error) from error


def settled(folder: Path, action: Callable[[], T]) -> T:
    """Run an action that opens the newest versions of a memory's tables and reads them, without their locks.

    Another process may move a table on meanwhile and remove the files of the version that was opened. Then the action
    is run again; only a fault of tables that stay as they are counts.

    Args:
        folder: the memory's folder, named in the sentence.
        action: what to do.

    Raises:
        CorruptMemoryError: when a table cannot be read.
    """
    while True:
        before = _versions(folder)
        try:
            return action()
        except BaseException as error:
            if not is_lance_fault(error):
                raise
            if _versions(folder) == before:
                raise corrupt(folder, error) from error


def _versions(folder: Path) -> list[int]:
    return [newest_version(folder, table) for table in (CHUNKS, VECTORS)]


def written(folder: Path, action: Callable[[], T]) -> T:
    """Run an action that writes to a table and turn any fault of the storage into one sentence.

    Args:
        folder: the memory's folder, named in the sentence.
        action: what to do.

    Raises:
        FunesError: when the table cannot be written.
    """
    try:
        return action()
    except BaseException as error:
        if not is_lance_fault(error):
            raise
        raise FunesError(
            f"The memory in {folder} cannot be written{_detail(error)}; "
            "check its permissions and the free space, then run the command again: what was stored before stays."
        ) from error


def corrupt(folder: Path, error: BaseException | None = None) -> CorruptMemoryError:
    """Make the error for a memory that cannot be read, with the remedy."""
    detail = "" if error is None else _detail(error)
    return CorruptMemoryError(
        f"The memory in {folder} is damaged and cannot be read{detail}; "
        "move that folder away and run `funes index` to build it again from the traces."
    )


def _detail(error: BaseException) -> str:
    # Lance names the line of its own source that noticed.
    text = _SOURCE_LINE.sub("", str(error))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f" ({lines[0][:160].rstrip('.')})" if lines else ""
