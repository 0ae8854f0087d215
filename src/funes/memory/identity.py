"""Which memory a folder holds, told without importing Lance.

The state of indexing belongs to one memory. When that memory is deleted, replaced or put back from a backup, the state
has to be forgotten, or traces would count as read although nothing of them is stored.
"""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path

from funes.memory.schema import CHUNKS

FILE = "memory.json"
FORMAT = 1
REWRITING = "rewriting"
"""Name of the file that says: text that was replaced or removed is still on the disk."""

_LAST = 2**64 - 1


def read_identity(folder: Path) -> str:
    """Return the memory's id, or an empty string when there is no memory or it has none."""
    try:
        return str(json.loads((folder / FILE).read_text(encoding="utf-8"))["id"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def ensure_identity(folder: Path) -> str:
    """Return the memory's id, giving it one if needed. Call under the writer lock."""
    if identity := read_identity(folder):
        return identity
    identity = uuid.uuid4().hex
    temporary = folder / f".{FILE}.{os.getpid()}"
    temporary.write_text(json.dumps({"format": FORMAT, "id": identity}) + "\n", encoding="utf-8")
    temporary.replace(folder / FILE)
    return identity


def unfinished_rewrite(folder: Path) -> bool:
    """Whether a process was killed between replacing text and removing the former text from the disk."""
    return (folder / REWRITING).exists()


def newest_version(folder: Path, table: str = CHUNKS) -> int:
    """Return the number of a table's newest version, 0 when there is none, from the names of its files alone."""
    try:
        names = os.listdir(folder / table / "_versions")
    except OSError:
        return 0
    return max(map(manifest_version, names), default=0)


def manifest_version(name: str) -> int:
    """Return the version that a file of `_versions` describes, 0 for a file that describes none."""
    stem, _, suffix = name.partition(".")
    if suffix != "manifest" or not stem.isdigit():
        return 0
    number = int(stem)
    # Lance counts down from 2^64 - 1 in file names, so that the newest comes first in a listing.
    return _LAST - number if number > _LAST // 2 else number
