"""Memories that are kept between runs, and made again when the code that makes their rows has changed."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import funes

NOTE = "made-by"
PARTS = ("chunking.py", "traces", "secrets", "models", "commands/indexing", "memory/schema.py", "memory/maintenance.py")


def current(home: Path) -> bool:
    """Whether the memory in a `FUNES_HOME` was made whole by the code that is here now."""
    note = home / NOTE
    return note.exists() and note.read_text(encoding="utf-8") == _code()


def mark(home: Path) -> None:
    """Say that the memory in a `FUNES_HOME` is whole."""
    (home / NOTE).write_text(_code(), encoding="utf-8")


@cache
def _code() -> str:
    """Hash of what decides which rows a trace gives, what vectors they get and how they lie on disk."""
    root = Path(funes.__file__).parent
    files = [path for part in PARTS for path in ([root / part] if part.endswith(".py") else (root / part).rglob("*"))]
    digest = hashlib.sha256()
    for path in sorted(path for path in files if path.is_file() and path.suffix != ".pyc"):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
