"""From what a user calls a memory to the folder it lies in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from funes.errors import FunesError
from funes.paths import memory_folder

LOCAL = "local"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


@dataclass(frozen=True, slots=True)
class MemoryPlace:
    """Where a memory is.

    Attributes:
        label: what to call it in output and in `--memory`.
        folder: the folder of its tables.
    """

    label: str
    folder: Path


def resolve(location: str | None) -> MemoryPlace:
    """Find the folder of a memory.

    Args:
        location: None or `local` for this machine's own memory, else the path of a folder; the home of a whole
            `FUNES_HOME`, which holds the tables in `memory/`, is accepted too.

    Raises:
        FunesError: for a location that is not on this machine.
    """
    if location is None or location in ("", LOCAL):
        return MemoryPlace(LOCAL, memory_folder())
    if _SCHEME.match(location):
        raise FunesError(f"{location} is not on this machine, and this version of funes reads only memories that are.")
    folder = Path(location).expanduser()
    if not (folder / "chunks.lance").is_dir() and (folder / "memory" / "chunks.lance").is_dir():
        folder = folder / "memory"
    return MemoryPlace(location, folder)
