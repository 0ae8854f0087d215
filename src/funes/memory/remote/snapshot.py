"""A version of a memory on the Hub as a folder of the Hugging Face cache, to be read and never written to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from funes.errors import CorruptMemoryError, FunesError, NoMemoryError
from funes.memory.backing import FolderBacking
from funes.memory.counts import FILE as COUNTS
from funes.memory.identity import FILE as IDENTITY
from funes.memory.lance import is_lance_fault, lance_module
from funes.memory.remote.cache import RepoCache
from funes.memory.remote.faults import RemoteBusyError, RemoteUnreachableError
from funes.memory.remote.hub import MAIN, HubClient
from funes.memory.remote.live import live_paths, newest_manifest
from funes.memory.remote.pruning import prune
from funes.memory.schema import CHUNKS, VECTORS
from funes.memory.uri import MemoryPlace

if TYPE_CHECKING:
    from funes.memory.remote.hub import Told


FURNITURE = frozenset({".gitattributes", ".gitignore", "README.md", "LICENSE"})


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An opened version.

    Attributes:
        folder: where its files are.
        commit: which version it is.
        cached: whether the Hub could not be asked, so that there may be a newer version.
        note: a sentence for the user about that, else empty.
    """

    folder: Path
    commit: str
    cached: bool = False
    note: str = ""


class SnapshotBacking(FolderBacking):
    """The tables of a snapshot.

    Args:
        folder: its folder.
        place: the memory that it is of.
    """

    def __init__(self, folder: Path, place: MemoryPlace) -> None:
        super().__init__(folder)
        self._place = place

    def changed(self, table: str) -> datetime | None:
        """When the newest version of a table was written; the files here are as old as their download."""
        if not self.has(table):
            return None
        written: datetime = self.open(table).versions()[-1]["timestamp"]
        return written.astimezone(UTC)

    def fault(self, error: BaseException) -> FunesError:
        """Make the error for a fault of the storage."""
        return CorruptMemoryError(
            f"The copy of {self._place.label} in the cache is damaged; remove the folder {self.folder.parents[1]} and "
            "run the command again to fetch it anew."
        )


def open_snapshot(place: MemoryPlace, client: HubClient, told: Told | None = None) -> Snapshot:
    """Bring the newest version of a memory on the Hub into the cache, if it is not there yet.

    Exactly the files of the live version of both tables are brought, whatever else the repository holds. When the Hub
    cannot be asked, the newest version in the cache is opened.

    Args:
        place: the memory, of the kind `hub`.
        client: the Hub.
        told: told how far a download is.

    Raises:
        NoMemoryError: when the repository is empty, or holds something else.
        CorruptMemoryError: when the tables there cannot be read.
        RemoteError: one of its subclasses says why the memory cannot be brought.
    """
    before = client.cached(place.repo, place.revision)
    cache = RepoCache(place.repo)
    if before is not None:
        cache.use(before[0])
    try:
        commit = client.head(place.repo, place.revision)
        if before is not None and before[0] == commit:
            return Snapshot(before[1], commit)
        if cache.is_complete(commit):
            cache.use(commit)
            cache.point(place.revision or MAIN, commit)
            return Snapshot(cache.snapshot(commit), commit)
        folder = _bring(place, client, commit, told)
        prune(cache)
        return Snapshot(folder, commit)
    except (RemoteUnreachableError, RemoteBusyError) as fault:
        if before is None:
            raise
        note = f"{fault.message.rstrip('.')}; this is the version of {place.label} in the cache ({before[0][:7]})"
        return Snapshot(before[1], before[0], cached=True, note=note)


def _bring(place: MemoryPlace, client: HubClient, commit: str, told: Told | None) -> Path:
    paths = client.files(place.repo, commit)
    manifests = {name: newest_manifest(paths, name) for name in (CHUNKS, VECTORS)}
    if not manifests[CHUNKS]:
        raise NoMemoryError(_no_memory(place, paths))
    needed = [path for path in manifests.values() if path]
    folder = client.download(place.repo, commit, needed)
    for name, manifest in manifests.items():
        if manifest:
            needed += _live(place, folder, name, paths)
    needed += [name for name in (COUNTS, IDENTITY) if name in paths]
    client.download(place.repo, commit, needed, told)
    client.keep(place.repo, commit, place.revision, needed)
    return folder


def _live(place: MemoryPlace, folder: Path, table: str, paths: Iterable[str]) -> list[str]:
    try:
        return live_paths(lance_module().dataset(str(folder / table)), table, paths)
    except CorruptMemoryError as error:
        raise CorruptMemoryError(f"{place.label} cannot be used as a memory: {error.message}") from error
    except BaseException as error:
        if not is_lance_fault(error):
            raise
        raise CorruptMemoryError(
            f"The memory in {place.label} cannot be read: its table {table} is damaged, or was made by a newer version."
        ) from error


def _no_memory(place: MemoryPlace, paths: Iterable[str]) -> str:
    if set(paths) <= FURNITURE:
        return f"{place.label} on the Hub is empty: nobody has published a memory there yet."
    return (
        f"{place.label} on the Hub is a dataset, but not a memory of funes (it has no {CHUNKS}); if it holds agent "
        f"traces, `funes index {place.label}` reads them."
    )
