"""Clearing up after two writers that added rows to a store at the same time."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from funes.memory.remote.merge import digests
from funes.memory.schema import REFERENCE, SESSION_TYPE, quoted

if TYPE_CHECKING:
    from funes.memory.remote.merge import Digests
    from funes.memory.remote.tables import Tables


def remove_twice_stored(tables: Tables) -> int:
    """Remove rows that two writers added at the same time; of each the one stays that came first.

    Whoever looks keeps the same one, so that two may do this at once.

    Args:
        tables: of the store; they move on to their newest versions.

    Returns:
        The number of rows removed.
    """
    removed = 0
    tables.reopen()
    if tables.chunks is not None:
        rows = tables.chunks.scanner(columns=["id", "session_id"], with_row_id=True).to_table()
        keys = digests(rows.column("id").to_pylist(), rows.column("session_id").to_pylist())
        removed += _delete_later(tables.chunks, keys, rows.column("_rowid").to_numpy())
    if tables.vectors is not None:
        rows = tables.vectors.scanner(columns=["id"], with_row_id=True).to_table()
        removed += _delete_later(
            tables.vectors, digests(rows.column("id").to_pylist()), rows.column("_rowid").to_numpy()
        )
    return removed


def give_way(tables: Tables, own: Digests) -> Counter[str]:
    """Remove blocks of ours that stand where somebody else put another text at the same time, but earlier.

    A writer decides where its blocks stand by what was there when it looked. The caller looks again, and adds these
    once more behind those of the other.

    Args:
        tables: of the store.
        own: digests of the rows that were added here, by session and id.

    Returns:
        The number of rows removed: `passages` and `copies`.
    """
    gone: Counter[str] = Counter()
    if tables.chunks is None:
        return gone
    names = ["id", "session_id", "turn_uuid", "block_idx", "split_idx", "offset"]
    passages = f"block_type != {quoted(SESSION_TYPE)}"
    rows = tables.chunks.scanner(columns=names, filter=passages, with_row_id=True).to_table()
    ids, sessions, turns, blocks, splits, offsets = (rows.column(name).to_pylist() for name in names)
    mine = np.isin(digests(ids, sessions), own).tolist()
    row_ids = rows.column("_rowid").to_pylist()
    first: dict[tuple[str, str, int, int], int] = {}
    places = list(zip(sessions, turns, blocks, splits, strict=True))
    for number in sorted(range(len(places)), key=row_ids.__getitem__):
        first.setdefault(places[number], number)
    taken = {places[number][:3] for number in range(len(places)) if mine[number] and not mine[first[places[number]]]}
    going = [number for number in range(len(places)) if mine[number] and places[number][:3] in taken]
    if going:
        tables.chunks.delete(f"_rowid IN ({', '.join(str(row_ids[number]) for number in going)})")
    gone.update("copies" if offsets[number] == REFERENCE else "passages" for number in going)
    return gone


def _delete_later(table: Any, keys: Any, row_ids: Any) -> int:
    """Delete all rows but the one with the lowest row id of each key."""
    order = np.argsort(row_ids, kind="stable")
    _, first = np.unique(keys[order], return_index=True)
    later = np.delete(order, first)
    if len(later):
        table.delete(f"_rowid IN ({', '.join(map(str, row_ids[later].tolist()))})")
    return len(later)
