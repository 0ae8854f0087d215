"""Where funes keeps its files.

`FUNES_HOME` (default `~/.funes`) holds the local memory and the indexing state; models live in a cache folder
outside it (`FUNES_MODELS` overrides), because they can be fetched again and a memory cannot.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def funes_home() -> Path:
    """Folder of the local memory, the indexing state and the logs."""
    override = os.environ.get("FUNES_HOME")
    return Path(override).expanduser() if override else Path.home() / ".funes"


def memory_folder() -> Path:
    """Folder of the local memory's tables."""
    return funes_home() / "memory"


def state_file() -> Path:
    """SQLite file that remembers which traces were read, and how far."""
    return funes_home() / "state.sqlite"


def cache_folder() -> Path:
    """Per-user cache folder: the platform's own, or `XDG_CACHE_HOME`, with `funes` appended."""
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        return Path(xdg).expanduser() / "funes"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "funes"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "funes"
    return Path.home() / ".cache" / "funes"


def models_folder() -> Path:
    """Folder of the pinned models; `FUNES_MODELS` overrides."""
    override = os.environ.get("FUNES_MODELS")
    return Path(override).expanduser() if override else cache_folder() / "models"


def shown(path: Path) -> str:
    """A path as people write it, with `~` for their home folder."""
    home, text = str(Path.home()), str(path)
    inside = home != os.sep and (text == home or text.startswith(home + os.sep))
    return f"~{text[len(home) :]}" if inside else text
