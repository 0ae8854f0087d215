"""Publishing to an object store: Lance appends there itself.

There is no commit that spans both tables, and no lock that all machines share. So the text is appended first and the
vectors after it, and whoever finds that somebody else appended at the same time looks for rows that are there twice
and removes the later ones. A push that is killed leaves text without vectors at worst, which the next one completes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from funes.errors import FunesError
from funes.memory.counts import FILE as COUNTS
from funes.memory.identity import FILE as IDENTITY
from funes.memory.lance import is_lance_fault, lance_module
from funes.memory.remote import card
from funes.memory.remote.additions import append, new_identity, refresh_counts
from funes.memory.remote.crossing import give_way, remove_twice_stored
from funes.memory.remote.faults import RemoteMovedError
from funes.memory.remote.folder_target import OTHERS
from funes.memory.remote.merge import Holdings, Missing
from funes.memory.remote.publish import Publication, Told
from funes.memory.remote.source import Source
from funes.memory.remote.staging import TABLES
from funes.memory.remote.stores import is_overtaken, storage_options, store_fault
from funes.memory.remote.tables import Tables

T = TypeVar("T")

FILES_TRIES = 5
"""How often the files beside the tables are written because others publish at the same time; they are statistics."""


class StoreTarget:
    """Tables in an object store.

    Args:
        label: the memory's name.
        url: its address.
        told: see `publish.Told`.
    """

    def __init__(self, label: str, url: str, told: Told | None = None) -> None:
        self.label = label
        self.url = url
        self._told = told or (lambda *_: None)
        self._options = storage_options(url)
        self._version = ""

    def look(self) -> Tables:
        """Open what is there now."""
        tables = self._guard(self._open)
        if tables.chunks is None:
            self._guard(self._check_free)
        self._version = str(tables.versions()[0] or "")
        return tables

    def version(self) -> str:
        """Number of the chunks table's version."""
        return self._version

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
        """Append rows, then clear up what another writer appended at the same time."""
        before = self._guard(tables.bytes_held)
        self._told("write", 0, 2)
        self._guard(lambda: append(tables, source, missing, there, done))
        if tables.crossed:
            self._guard(lambda: remove_twice_stored(tables))
            gone = self._guard(lambda: give_way(tables, source.catalogue.rows[missing.rows]))
            if gone:
                done.rows, done.copies = done.rows - gone.total(), done.copies - gone["copies"]
                raise RemoteMovedError(f"{self.label} was changed by somebody else meanwhile; run the command again.")
        self._told("write", 1, 2)
        self._maintain(tables, compact)
        now = self._guard(self._open)
        done.after = len(self._guard(now.holdings).texts)
        done.sent = max(0, self._guard(now.bytes_held) - before)
        self._version = done.version = str(now.versions()[0])
        self._write_files()
        self._told("write", 2, 2)

    def _maintain(self, tables: Tables, compact: bool) -> None:
        """Index and merge. Where another writer does the same at the same time, one of them is enough."""
        try:
            tables.reopen()
            tables.maintain(compact=compact, alone=False)
        except BaseException as error:
            if not is_lance_fault(error):
                raise
            if not is_overtaken(error):
                raise store_fault(error, self.url) from error

    def _open(self) -> Tables:
        present = [name for name in TABLES if self._has(name)]
        return Tables(self.label, self.url, present, self._options, store=True)

    def _check_free(self) -> None:
        found = self._session().list_with_delimiter()
        names = [str(path).rstrip("/").rpartition("/")[2] for path in (*found.common_prefixes, *found.objects)]
        if others := sorted(set(names) - OTHERS - set(TABLES)):
            raise FunesError(
                f"{self.label} is no memory and not empty (it holds {others[0]}); name a new or an empty folder."
            )

    def _has(self, name: str) -> bool:
        try:
            lance_module().dataset(f"{self.url}/{name}", storage_options=self._options or None)
        except BaseException as error:
            if is_lance_fault(error) and "was not found" in str(error):
                return False
            raise
        return True

    def _write_files(self) -> None:
        """Bring the files beside the tables up to date.

        The last of several writers to get here has to leave what fits the newest version, so it looks whether there is
        another one once it has written, and each writer comes here after its own commits.
        """
        for _ in range(FILES_TRIES):
            tables = self._guard(self._open)
            self._guard(lambda tables=tables: self._write_files_of(tables))  # type: ignore[misc]
            if self._guard(self._open).versions() == tables.versions():
                return

    def _write_files_of(self, tables: Tables) -> None:
        """The card, the counts and the identity of one version, each where it is needed."""
        from funes.memory.reader import MemoryReader

        session = self._session()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for file in (COUNTS, card.FILE, IDENTITY):
                if session.contains(file):
                    session.download_file(file, str(folder / file))
            changed = [COUNTS] if refresh_counts(tables, folder) else []
            if not (folder / IDENTITY).exists():
                (folder / IDENTITY).write_bytes(new_identity(tables.birth()))
                changed.append(IDENTITY)
            path = folder / card.FILE
            existing = path.read_text(encoding="utf-8", errors="replace") if path.exists() else None
            text = card.updated(existing, self.label, MemoryReader.open(self.url).statistics())
            if text is not None:
                path.write_text(text, encoding="utf-8")
                changed.append(card.FILE)
            for file in changed:
                session.upload_file(str(folder / file), file)

    def _session(self) -> Any:
        lance_module()
        from lance.file import LanceFileSession

        return LanceFileSession(self.url, storage_options=self._options or None)

    def _guard(self, action: Callable[[], T]) -> T:
        """Run an action and turn any fault of the store into one sentence."""
        try:
            return action()
        except BaseException as error:
            if not is_lance_fault(error):
                raise
            if is_overtaken(error):
                raise RemoteMovedError(f"{self.label} was changed by somebody else meanwhile.") from error
            raise store_fault(error, self.url) from error
