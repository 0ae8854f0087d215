"""How far sessions reach: what tells whether one has grown since somebody looked at it."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from funes.memory.handle import TableHandle
from funes.memory.schema import CHUNKS, quoted_list

SESSIONS_BY_INDEX = 500
_DIGEST_BYTES = 6


@dataclass(frozen=True, slots=True)
class SessionExtent:
    """What a session consists of.

    Attributes:
        blocks: number of its blocks.
        digest: 12 hexadecimal digits over the places of its blocks; another one means that blocks came or went.
        repos: the repositories that its turns were made in.
    """

    blocks: int
    digest: str
    repos: frozenset[str]


def session_extents(folder: Path, sessions: Collection[str]) -> dict[str, SessionExtent]:
    """Read how far sessions reach; those that the memory does not hold are left out.

    Args:
        folder: the memory's folder.
        sessions: full ids.

    Raises:
        CorruptMemoryError: when the memory cannot be read.
    """
    if not sessions:
        return {}
    condition = "seq >= 0"
    if len(sessions) <= SESSIONS_BY_INDEX:
        condition = f"session_id IN ({quoted_list(sessions)}) AND {condition}"
    rows = TableHandle(folder, CHUNKS).scan(["session_id", "turn_uuid", "block_idx", "repo"], condition)
    wanted = set(sessions)
    places: defaultdict[str, set[str]] = defaultdict(set)
    repos: defaultdict[str, set[str]] = defaultdict(set)
    columns = (rows.column(name).to_pylist() for name in ("session_id", "turn_uuid", "block_idx", "repo"))
    for session, turn, block, repo in zip(*columns, strict=True):
        if session in wanted:
            places[session].add(f"{turn}\x1f{block}")
            repos[session].add(repo)
    return {
        session: SessionExtent(len(found), _digest(found), frozenset(repos[session] - {""}))
        for session, found in places.items()
    }


def _digest(places: set[str]) -> str:
    text = "\x1e".join(sorted(places))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()
