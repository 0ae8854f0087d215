"""Publishing to a dataset repository on the Hub: the next version is made on this machine and sent as one commit."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from funes.errors import FunesError, NoMemoryError
from funes.memory.counts import FILE as COUNTS
from funes.memory.identity import FILE as IDENTITY
from funes.memory.lance import written
from funes.memory.remote import card
from funes.memory.remote.additions import append, new_identity, refresh_counts
from funes.memory.remote.adopting import adopt
from funes.memory.remote.faults import (
    RemoteDeniedError,
    RemoteMissingError,
    RemoteMovedError,
    RemoteUnreachableError,
)
from funes.memory.remote.folder_target import OTHERS
from funes.memory.remote.live import newest_manifest
from funes.memory.remote.merge import Holdings, Missing
from funes.memory.remote.publish import Publication, Told
from funes.memory.remote.snapshot import Snapshot, open_snapshot
from funes.memory.remote.source import Source
from funes.memory.remote.staging import TABLES, link_files, table_files
from funes.memory.remote.tables import Tables
from funes.memory.schema import CHUNKS

if TYPE_CHECKING:
    from funes.memory.remote.hub import HubClient
    from funes.memory.uri import MemoryPlace


NEW = frozenset({".gitattributes"})
"""What the Hub puts into a repository that it makes."""


class HubTarget:
    """A dataset repository.

    The working copy is made of links to the files of the newest version, so only what is added is written, and only
    that is sent: the files of the new version that the old one lacks. Files that the new version does without are
    deleted by the same commit, which names its parent; whoever reads sees the old version or the new one.

    Args:
        label: its name.
        place: where it is.
        client: the Hub.
        work: an empty folder to work in.
        told: see `publish.Told`.
    """

    def __init__(self, label: str, place: MemoryPlace, client: HubClient, work: Path, told: Told | None = None) -> None:
        if place.revision:
            raise FunesError(
                f"{place.label} names a revision, and only the main branch is published to; leave out the @ part."
            )
        self.label = label
        self._place = place
        self._client = client
        self._work = work
        self._told = told or (lambda *_: None)
        self._parent = ""
        self._created = False
        self._before: frozenset[str] = frozenset()
        self._remote: frozenset[str] = frozenset()

    @property
    def _copy(self) -> Path:
        return self._work / "copy"

    def look(self) -> Tables:
        """Open what is there now, as a working copy. One request when the cache has the newest version already."""
        shutil.rmtree(self._copy, ignore_errors=True)
        self._copy.mkdir(parents=True)
        self._before = self._remote = frozenset()
        self._parent = ""
        try:
            snapshot = self._snapshot()
        except RemoteMissingError:
            if self._exists():
                raise  # it is there, but not whole
            return self._empty()
        except NoMemoryError:
            self._parent = self._client.head(self._place.repo)
            self._list()
            if not newest_manifest(self._remote, CHUNKS):
                return self._empty()
            snapshot = self._snapshot()  # somebody has published there since
        if snapshot.cached:
            reason = snapshot.note.partition(";")[0]
            raise RemoteUnreachableError(f"{reason}, so nothing is published; run the command again later.")
        self._parent = snapshot.commit
        return self._open(snapshot.folder)

    def _snapshot(self) -> Snapshot:
        return open_snapshot(self._place, self._client, lambda done, total: self._told("fetch", done, total))

    def version(self) -> str:
        """Name of the commit."""
        return self._parent

    def is_public(self) -> bool:
        """Whether anybody may read the repository; one that is still to be made will be private."""
        return bool(self._parent) and self._client.is_public(self._place.repo)

    def write(
        self,
        tables: Tables,
        source: Source,
        missing: Missing,
        there: Holdings,
        compact: bool,
        done: Publication,
    ) -> None:
        """Make the next version and commit it; the repository is made, private, if there is none."""
        made = Publication()  # counts only once it is committed
        self._told("write", 0, 1)
        written(self._copy, lambda: append(tables, source, missing, there, made))
        written(self._copy, lambda: tables.maintain(compact=compact))
        add, delete = self._changes(tables)
        self._told("write", 1, 1)
        if not self._parent:
            self._create()
        done.created = self._created
        made.sent = sum(
            len(content) if isinstance(content, bytes) else content.stat().st_size for content in add.values()
        )
        done.version = self._commit(add, delete, made)
        done.rows, done.titles, done.copies, done.vectors = made.rows, made.titles, made.copies, made.vectors
        done.sent = made.sent
        done.after = len(there.texts) + made.passages
        self._keep(done.version)

    def _create(self) -> None:
        """Make the repository. The first commit in it has to be this one, which was made for an empty one."""
        repo = self._place.repo
        made = self._client.create(repo)
        if not made and not self._exists():
            raise RemoteDeniedError(
                f"{self.label} exists, but the token here may not see it; use another token or another name."
            )
        self._created = self._created or made
        head = self._client.head(repo)
        if not made or not set(self._client.files(repo, head)) <= NEW:
            raise RemoteMovedError(f"{self.label} was made by somebody else meanwhile; run the command again.")
        self._parent = head

    def _commit(self, add: Mapping[str, Path | bytes], delete: list[str], done: Publication) -> str:
        total = done.sent
        return self._client.commit(
            self._place.repo,
            self._parent,
            add,
            delete,
            _message(done),
            told=lambda sent, _: self._told("send", min(sent, total), total),
        )

    def _keep(self, commit: str) -> None:
        """Keep the new version in the cache. Where that fails, the next command fetches it."""
        files = table_files(self._copy)
        files |= {name: self._copy / name for name in (COUNTS, IDENTITY) if (self._copy / name).exists()}
        with contextlib.suppress(FunesError, OSError):
            adopt(self._client, self._place.repo, commit, files)

    def _open(self, folder: Path) -> Tables:
        files = table_files(folder)
        self._before = frozenset(files)
        link_files(folder, files, self._copy)
        for name in (COUNTS, IDENTITY):
            if (folder / name).exists():
                shutil.copyfile(folder / name, self._copy / name)
        present = [name for name in TABLES if any(path.startswith(f"{name}/") for path in files)]
        return Tables(self.label, str(self._copy), present, unread=True)

    def _empty(self) -> Tables:
        """No tables yet, in a repository that is free for some."""
        others = sorted(path for path in self._remote if path not in OTHERS)
        if others:
            raise FunesError(
                f"{self.label} is no memory and not empty (it holds {others[0]}); push to a new name, and a private "
                "repository is created."
            )
        return Tables(self.label, str(self._copy), (), unread=True)

    def _exists(self) -> bool:
        try:
            self._client.head(self._place.repo)
        except RemoteMissingError:
            return False
        return True

    def _list(self) -> None:
        self._remote = frozenset(self._client.files(self._place.repo, self._parent)) if self._parent else frozenset()

    def _changes(self, tables: Tables) -> tuple[dict[str, Path | bytes], list[str]]:
        """What the commit adds, and what it deletes."""
        self._list()
        files = table_files(self._copy)
        add: dict[str, Path | bytes] = {path: file for path, file in files.items() if path not in self._before}
        of_tables = tuple(f"{name}/" for name in TABLES)
        delete = sorted(path for path in self._remote if path.startswith(of_tables) and path not in files)
        if refresh_counts(tables, self._copy):
            add[COUNTS] = self._copy / COUNTS
        if IDENTITY not in self._remote:
            (self._copy / IDENTITY).write_bytes(new_identity())
            add[IDENTITY] = self._copy / IDENTITY
        if (text := self._card()) is not None:
            add[card.FILE] = text.encode()
        return add, delete

    def _card(self) -> str | None:
        from funes.memory.reader import MemoryReader

        existing = None
        if card.FILE in self._remote:
            folder = self._client.download(self._place.repo, self._parent, [card.FILE])
            existing = (folder / card.FILE).read_text(encoding="utf-8", errors="replace")
        return card.updated(existing, self.label, MemoryReader.open(str(self._copy)).statistics())


def _message(done: Publication) -> str:
    """Title of the commit."""
    beside = {"vectors": done.vectors, "titles": done.titles, "copies": done.copies}
    counted = {"passages": done.passages} if done.passages else beside
    parts = [f"{count:,} {name}" for name, count in counted.items() if count]
    return f"Add {' and '.join(parts)}" if parts else "Merge and index"
