"""Copies: passages that a session contains while another one stores them.

A resumed or forked session repeats what was said before; the text is stored once, and the others keep a reference. A
read that is narrowed to a place (a session, a repository, a folder) has to find those, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING

from funes.memory.filters import Filter
from funes.memory.schema import REFERENCE, quoted_list

if TYPE_CHECKING:
    from funes.memory.handle import TableHandle

MOST_COPIES = 20_000
"""Passages of a place that are stored elsewhere: so many, the latest, are looked for there, since each has its cost."""

IDS_AT_ONCE = 5000
PLACES_KEPT = 8


class Copies:
    """The copies in one open table. What was found is kept until `forget`.

    Args:
        chunks: the chunks table.
    """

    def __init__(self, chunks: TableHandle) -> None:
        self._chunks = chunks
        self._known: dict[Filter, list[str]] = {}
        self._lock = Lock()

    def forget(self) -> None:
        """Look again: the table has moved on."""
        with self._lock:
            self._known = {}

    def of(self, where: Filter) -> list[str]:
        """Ids of the passages that sessions of a place contain but do not store, in the order of their rows."""
        rows = self._chunks.scan(["id"], f"{where.place.sql(self._chunks.dialect)} AND {self._is_reference()}")
        return list(dict.fromkeys(rows.column("id").to_pylist()))

    def ways(self, where: Filter) -> Sequence[list[str] | None]:
        """How the passages that meet conditions are to be asked for.

        Returns:
            What `Filter.sql` takes as `among`: None, for those that meet the conditions where they are stored; and, if
            there are such, ids of those that a session of the place contains and another one, elsewhere, stores. Asking
            for both at once would keep Lance from using an index.
        """
        if where.place == Filter():
            return [None]
        with self._lock:
            if where.place not in self._known:
                kept = list(self._known.items())[1 - PLACES_KEPT :]
                self._known = dict(kept) | {where.place: self._stored_elsewhere(where.place)}
            copies = self._known[where.place]
        return [None, copies] if copies else [None]

    def _stored_elsewhere(self, place: Filter) -> list[str]:
        copies = self.of(place)[-MOST_COPIES:]
        if place == Filter(session=place.session):
            return copies
        # Most are stored in the same place, where a session was resumed.
        here = f"{place.sql(self._chunks.dialect)} AND NOT ({self._is_reference()})"
        stored: set[str] = set()
        for start in range(0, len(copies), IDS_AT_ONCE):
            part = quoted_list(copies[start : start + IDS_AT_ONCE])
            stored.update(self._chunks.scan(["id"], f"id IN ({part}) AND {here}").column("id").to_pylist())
        return [identifier for identifier in copies if identifier not in stored]

    def _is_reference(self) -> str:
        return f"offset = {REFERENCE}" if "offset" in self._chunks.columns else "text IS NULL"
