"""Publishing into a plain folder: another memory on this machine, or on a disk that several machines share."""

from __future__ import annotations

from pathlib import Path

from funes.errors import FunesError
from funes.memory.identity import ensure_identity, newest_version
from funes.memory.lance import written
from funes.memory.lock import VECTORS_LOCK, WORDS_LOCK, WriterLock
from funes.memory.remote import card
from funes.memory.remote.additions import append, refresh_counts
from funes.memory.remote.faults import RemoteMovedError
from funes.memory.remote.merge import Holdings, Missing
from funes.memory.remote.publish import Publication, Told
from funes.memory.remote.source import Source
from funes.memory.remote.staging import TABLES
from funes.memory.remote.tables import Tables
from funes.memory.schema import CHUNKS

LOCK_SECONDS = 30.0
OTHERS = frozenset({card.FILE, "LICENSE", "LICENSE.md", "LICENSE.txt", ".gitattributes", ".gitignore", "memory.json"})
"""What may lie at a place that is not a memory yet. Anything else means that the place is for something else."""


class FolderTarget:
    """A folder.

    Args:
        label: what the user calls it.
        folder: its path; made by the first write.
        told: see `publish.Told`.
    """

    def __init__(self, label: str, folder: Path, told: Told | None = None) -> None:
        self.label = label
        self.folder = folder
        self._told = told or (lambda *_: None)
        self._seen = (0, 0)

    def look(self) -> Tables:
        """Open what is there now."""
        if not newest_version(self.folder, CHUNKS):
            self._check_free()
        self._seen = self._versions()
        return self._open()

    def version(self) -> str:
        """Number of the chunks table's version."""
        return str(self._seen[0] or "")

    def is_public(self) -> bool:
        """Never known: who may read it is not decided here."""
        return False

    def write(
        self,
        tables: Tables,
        source: Source,
        missing: Missing,
        there: Holdings,
        compact: bool,
        done: Publication,
    ) -> None:
        """Add rows under both locks of the folder; a version that came since `look` counts as moved."""
        words = WriterLock(self.folder, WORDS_LOCK, LOCK_SECONDS, doing="publishing")
        vectors = WriterLock(self.folder, VECTORS_LOCK, LOCK_SECONDS, doing="publishing")
        with words, vectors:
            if self._versions() != self._seen:
                raise RemoteMovedError(f"{self.label} was written to meanwhile; run the command again.")
            ensure_identity(self.folder)
            before = self._bytes()
            self._told("write", 0, 1)
            written(self.folder, lambda: append(tables, source, missing, there, done))
            written(self.folder, lambda: tables.maintain(compact=compact))
            refresh_counts(tables, self.folder)
            self._write_card()
            self._told("write", 1, 1)
            after = self._bytes()
            self._seen = self._versions()
            done.version = self.version()
            done.after = len(self._open().holdings().texts)
            done.sent = sum(size for path, size in after.items() if path not in before)

    def _open(self) -> Tables:
        present = [name for name in TABLES if newest_version(self.folder, name)]
        return Tables(self.label, str(self.folder), present)

    def _versions(self) -> tuple[int, int]:
        words, vectors = (newest_version(self.folder, name) for name in TABLES)
        return words, vectors

    def _check_free(self) -> None:
        try:
            others = sorted(
                path.name
                for path in self.folder.iterdir()
                if path.name not in OTHERS and path.suffix != ".lock" and path.name not in TABLES
            )
        except FileNotFoundError:
            return
        except OSError as error:
            raise FunesError(
                f"{self.folder} cannot be read ({error.strerror}); name a folder to publish to."
            ) from error
        if others:
            raise FunesError(
                f"{self.label} is no memory and not empty (it holds {others[0]}); name a new or an empty folder."
            )

    def _write_card(self) -> None:
        from funes.memory.reader import MemoryReader

        path = self.folder / card.FILE
        try:
            existing = path.read_text(encoding="utf-8") if path.exists() else None
            text = card.updated(existing, self.label, MemoryReader.open(str(self.folder)).statistics())
            if text is not None:
                path.write_text(text, encoding="utf-8")
        except (OSError, ValueError) as error:
            raise FunesError(f"{path} cannot be written ({error}); the passages themselves are published.") from error

    def _bytes(self) -> dict[str, int]:
        return {
            str(path): path.stat().st_size
            for name in TABLES
            for path in (self.folder / name).rglob("*")
            if path.is_file()
        }
