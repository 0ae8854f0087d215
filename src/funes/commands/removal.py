"""Which rows of a memory go with some sessions, and which rows of others take over their text."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from funes.commands.stored import TraceChange
from funes.ui.reasons import FORGOTTEN

if TYPE_CHECKING:
    import pyarrow as pa

    from funes.chunking import Chunk
    from funes.memory.rewriting import MemoryRewriter

IDS_AT_ONCE = 1000
COLUMNS = ("id", "session_id", "seq", "offset", "source_path")


class Removal:
    """Which rows go, and which take over their text.

    Args:
        rows: the whole table: `COLUMNS` and the addresses.
        doomed: ids of the sessions that go.
    """

    def __init__(self, rows: pa.Table, doomed: set[str]) -> None:
        from funes.memory.rewriting import ADDRESS
        from funes.memory.schema import REFERENCE

        columns = [rows.column(name).to_pylist() for name in (*COLUMNS, ADDRESS)]
        self.addresses: list[int] = []
        self.own: dict[str, int] = {}
        self.heirs: dict[str, int] = {}
        self.changes: dict[str, TraceChange] = defaultdict(lambda: TraceChange(forget_place=True))
        sources: set[tuple[str, str]] = set()
        for identifier, session, seq, offset, path, address in zip(*columns, strict=True):
            if session not in doomed:
                continue
            self.addresses.append(address)
            if seq < 0:
                continue
            sources.add((path, session))
            if offset == REFERENCE:
                self.changes[path].copies -= 1
            else:
                self.changes[path].stored -= 1
                self.own[identifier] = address
        for path, session in sources:
            self.changes[path].skipped[FORGOTTEN] += 1
            self.changes[path].left_out.add(session)
        for identifier, session, _, offset, path, address in zip(*columns, strict=True):
            waits = identifier in self.own and identifier not in self.heirs
            if waits and offset == REFERENCE and session not in doomed:
                self.heirs[identifier] = address
                heir = self.changes.setdefault(path, TraceChange())
                heir.copies -= 1
                heir.stored += 1

    @property
    def passages(self) -> int:
        """Passages that are in no other session."""
        return len(self.own) - len(self.heirs)


def inherited(rewriter: MemoryRewriter, removal: Removal) -> dict[int, list[Chunk]]:
    """Rows that were references, with the text that they take over."""
    from funes.memory.rewriting import ADDRESS
    from funes.memory.schema import CHUNK_COLUMNS, quoted_list, table_to_chunks

    found: dict[int, list[Chunk]] = {}
    wanted = list(removal.heirs)
    for start in range(0, len(wanted), IDS_AT_ONCE):
        part = wanted[start : start + IDS_AT_ONCE]
        table = rewriter.scan(CHUNK_COLUMNS, f"id IN ({quoted_list(part)})")
        by_address = dict(zip(table.column(ADDRESS).to_pylist(), table_to_chunks(table), strict=True))
        for identifier in part:
            donor = by_address[removal.own[identifier]]
            heir = by_address[removal.heirs[identifier]]
            found[removal.heirs[identifier]] = [
                replace(heir, text=donor.text, offset=donor.offset, ruleset=donor.ruleset)
            ]
    return found
