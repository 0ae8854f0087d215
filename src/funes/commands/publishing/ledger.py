"""What this machine remembers about each memory that it publishes to.

One folder for each, below `FUNES_HOME/sharing`: `state.json` says how the last push went and what was held back,
`published.npy` has a digest of each local row that is known to be there, so that `funes status` can say what is not
without asking anybody, and `push.lock` keeps two pushes of one machine apart, `state.lock` two changes of the state.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from funes.memory.lock import WriterLock
from funes.paths import funes_home

if TYPE_CHECKING:
    from funes.commands.publishing.gate import HeldBack
    from funes.memory.remote.merge import Digests

FOLDER = "sharing"
STATE = "state.json"
PUBLISHED = "published.npy"
LOCK = "push.lock"
STATE_LOCK = "state.lock"
STATE_SECONDS = 10.0
WORK = "work"
HELD_KEPT = 200
"""Held-back blocks that the state names; the rest are counted."""


@dataclass(slots=True)
class PushState:
    """How things stand with one memory, as seen from this machine.

    Attributes:
        memory: what the user calls it.
        approved: whether a person has decided that this machine's passages go there.
        words: whether passages without vectors go there too.
        time: of the last push that reached the memory, ISO 8601, UTC; empty for none.
        version: commit, or version, that it made or found.
        published: passages of this machine that are there.
        local: versions of the local memory's two tables that it published.
        held: number of blocks and titles that were held back.
        held_back: the first of them.
        failed: time of the last push that failed, empty when it succeeded.
        error: why.
    """

    memory: str
    approved: bool = False
    words: bool = False
    time: str = ""
    version: str = ""
    published: int = 0
    local: list[int] = field(default_factory=list)
    held: int = 0
    held_back: list[dict[str, Any]] = field(default_factory=list)
    failed: str = ""
    error: str = ""


class Ledger:
    """What is remembered about one memory.

    Args:
        label: what it is called; a folder by its absolute path.
        home: FUNES_HOME; None for the one in force.
    """

    def __init__(self, label: str, home: Path | None = None) -> None:
        self.label = label
        readable = re.sub(r"[^A-Za-z0-9._-]+", "-", label).strip("-.")[-60:]
        digest = hashlib.blake2b(label.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
        self.folder = (home or funes_home()) / FOLDER / f"{readable}-{digest}"

    def state(self) -> PushState:
        """How things stand; a state that is missing or damaged is that of a memory never published to."""
        return _read_state(self.folder) or PushState(self.label)

    def succeed(self, version: str, rows: Digests, passages: int, held: list[HeldBack], local: Sequence[int]) -> None:
        """Note a push that reached the memory.

        Args:
            version: what the memory's version is called now.
            rows: digests of this machine's rows that are there now.
            passages: how many of them are passages.
            held: what was held back.
            local: versions of the local tables that were published as a whole; empty when only a part of them was.
        """
        import io

        import numpy as np

        stream = io.BytesIO()
        np.save(stream, np.unique(rows))
        self._folder()
        _replace(self.folder / PUBLISHED, stream.getvalue())
        self._change(
            time=now(),
            version=version,
            published=passages,
            local=list(local),
            held=len(held),
            held_back=[asdict(block) for block in held[:HELD_KEPT]],
            failed="",
            error="",
        )

    def fail(self, error: str) -> None:
        """Note a push that failed; what was known of the memory stays known."""
        self._change(failed=now(), error=error)

    def agree(self, approved: bool, words: bool) -> None:
        """Note what a person has decided: whether this machine's passages go there, and those without vectors too."""
        self._change(approved=approved, words=words)

    def _change(self, **values: Any) -> None:
        """Change a part of the state: another process may change another part of it at the same time."""
        self._folder()
        with WriterLock(self.folder, STATE_LOCK, STATE_SECONDS, doing=f"noting a push to {self.label}"):
            state = replace(self.state(), **values)
            _replace(self.folder / STATE, (json.dumps(asdict(state), indent=1) + "\n").encode())

    def _folder(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def published(self) -> Digests:
        """Digests of the local rows that are known to be there."""
        import numpy as np

        try:
            rows = np.load(self.folder / PUBLISHED, allow_pickle=False)
        except (OSError, ValueError, EOFError):
            rows = np.zeros(0, np.uint64)
        return rows if rows.dtype == np.uint64 and rows.ndim == 1 else np.zeros(0, np.uint64)

    def lock(self, wait: float) -> WriterLock:
        """The lock of whoever publishes to this memory from this machine."""
        self._folder()
        return WriterLock(self.folder, LOCK, wait, doing=f"publishing to {self.label}")

    def work(self) -> Path:
        """An empty folder to work in. Only for the holder of the lock: a killed push left whatever lies there."""
        folder = self.folder / WORK
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700, parents=True)
        return folder

    def clear_work(self) -> None:
        """Remove the folder to work in."""
        shutil.rmtree(self.folder / WORK, ignore_errors=True)


def states(home: Path | None = None) -> list[PushState]:
    """How things stand with every memory that this machine has ever published to, or tried to."""
    folder = (home or funes_home()) / FOLDER
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    found = (_read_state(folder / name) for name in names)
    return sorted((state for state in found if state is not None), key=lambda state: state.memory)


def now() -> str:
    """The moment, ISO 8601, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _read_state(folder: Path) -> PushState | None:
    try:
        values = json.loads((folder / STATE).read_text(encoding="utf-8"))
        return PushState(**{name: values[name] for name in PushState.__slots__ if name in values})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _replace(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(data)
    temporary.replace(path)
