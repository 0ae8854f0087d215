"""Where a push goes: the name of a memory as something that can be published to."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from funes.errors import FunesError
from funes.paths import memory_folder

if TYPE_CHECKING:
    from funes.memory.remote.publish import Target, Told
    from funes.memory.uri import MemoryPlace

_MISTYPED = re.compile(r"[^/~.][^/]*/[^/]*")
"""What is meant as `ORG/NAME`, when there is no folder ORG and the Hub does not allow the name."""


def destination(memory: str) -> tuple[str, MemoryPlace]:
    """Find out where a memory is that is to be published to.

    Args:
        memory: what the user calls it.

    Returns:
        The one name that is used for all spellings of it, and the place.

    Raises:
        FunesError: when it is the local memory itself, or looks like a repository that the Hub does not allow.
    """
    from funes.memory.uri import place_name, resolve

    place = resolve(memory)
    own = os.path.realpath(memory_folder())
    if place.kind == "local" or (place.folder is not None and os.path.realpath(place.folder) == own):
        raise FunesError("That is the local memory, which is what gets published; name another one, such as ORG/NAME.")
    if place.kind == "folder" and _MISTYPED.fullmatch(memory) and not os.path.isdir(memory.partition("/")[0]):
        raise FunesError(
            f"The Hub allows no repository of the name {memory[:200]!r}; name another one, or write ./{memory[:200]} "
            "for a folder."
        )
    return place_name(place), place


def open_target(label: str, place: MemoryPlace, work: Path, told: Told) -> Target:
    """Make the target of a push.

    Args:
        label: the memory's name.
        place: where it is.
        work: an empty folder to work in.
        told: told how far the work is.
    """
    if place.kind == "hub":
        from funes.memory.remote.hub import HubClient
        from funes.memory.remote.hub_target import HubTarget

        return HubTarget(label, place, HubClient(), work, told)
    if place.kind == "store":
        from funes.memory.remote.store_target import StoreTarget

        return StoreTarget(label, place.url, told)
    from funes.memory.remote.folder_target import FolderTarget

    assert place.folder is not None
    return FolderTarget(label, Path(os.path.realpath(place.folder)), told)
