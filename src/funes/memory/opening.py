"""From the place of a memory to what holds its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from funes.errors import CorruptMemoryError, FunesError, NoMemoryError
from funes.memory.backing import Backing, FolderBacking
from funes.memory.schema import CHUNKS
from funes.memory.uri import MemoryPlace

if TYPE_CHECKING:
    from funes.memory.remote.hub import Told


def reach(place: MemoryPlace, told: Told | None = None) -> tuple[Backing, str]:
    """Find what holds a memory's tables, bringing them here where that is how they are read.

    Args:
        place: the memory.
        told: told how far a download is.

    Returns:
        What holds them, and a sentence for the user about it, which may be empty.

    Raises:
        NoMemoryError: when a repository on the Hub holds no memory.
        RemoteError: when the place cannot be reached, or not without more rights.
    """
    if place.kind == "hub":
        from funes.memory.remote.hub import HubClient
        from funes.memory.remote.snapshot import SnapshotBacking, open_snapshot

        snapshot = open_snapshot(place, HubClient(), told)
        return SnapshotBacking(snapshot.folder, place), snapshot.note
    if place.kind == "store":
        from funes.memory.remote.stores import StoreBacking

        return StoreBacking(place), ""
    assert place.folder is not None
    return FolderBacking(place.folder), ""


def nothing_there(place: MemoryPlace, backing: Backing) -> FunesError:
    """The error for a place without a version of the chunks table."""
    if place.kind != "store" and any((backing.folder / CHUNKS).rglob("*.lance")):
        return CorruptMemoryError(
            f"The memory in {backing.where} is damaged: its table has data but no version of it; "
            "move that folder away and run `funes index` to build it again from the traces."
        )
    if place.kind == "local":
        return NoMemoryError(
            f"There is no memory in {backing.where} yet; run `funes index` to make one from this machine's sessions."
        )
    if place.kind == "store":
        return NoMemoryError(f"There is no memory at {place.label}: it has no {CHUNKS}.")
    return NoMemoryError(
        f"There is no memory in {backing.where}; name the folder of one, or run `funes index` to make a local one."
    )
