"""Stored blocks: the rows of one block in every session that contains it, and its text stitched together again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from funes.commands.get import stitch
from funes.memory.rewriting import ADDRESS
from funes.memory.schema import REFERENCE, quoted_list, table_to_chunks

if TYPE_CHECKING:
    import pyarrow as pa

    from funes.chunking import Chunk

Scan = Callable[[Sequence[str], str | None], "pa.Table"]
"""Reads columns of the rows that meet a condition, with their addresses."""

COLUMNS = (
    "id",
    "session_id",
    "turn_uuid",
    "seq",
    "block_type",
    "block_idx",
    "split_idx",
    "offset",
    "ruleset",
    "harness",
)
TEXT_COLUMNS = ("id", "text", "split_idx", "offset")
IDS_AT_ONCE = 2000
GROUPS_AT_ONCE = 500

PlaceKey = tuple[str, str, int]


@dataclass(slots=True)
class Place:
    """Where a block stands in one session.

    Attributes:
        session: the session.
        turn: uuid of the turn.
        block_idx: position of the block in it.
        block_type: its type.
        seq: position of the turn in the session.
        harness: the session's.
        ids: passage id of each split, by position.
        addresses: address of each split's row, by position.
        owned: positions of the splits whose text is in this session's rows.
    """

    session: str
    turn: str
    block_idx: int
    block_type: str
    seq: int
    harness: str
    ids: dict[int, str] = field(default_factory=dict)
    addresses: dict[int, int] = field(default_factory=dict)
    owned: set[int] = field(default_factory=set)

    @property
    def key(self) -> PlaceKey:
        """What tells it from other places."""
        return self.session, self.turn, self.block_idx


@dataclass(slots=True)
class StoredBlock:
    """One block and all its places.

    Attributes:
        ids: passage id of each split, by position.
        places: the places, the one that stores the beginning of the text first.
        rulesets: ids of the secret rules that its rows were scanned with.
    """

    ids: dict[int, str] = field(default_factory=dict)
    places: list[Place] = field(default_factory=list)
    rulesets: set[str] = field(default_factory=set)

    @property
    def addresses(self) -> Iterator[int]:
        """Addresses of all its rows."""
        for place in self.places:
            yield from place.addresses.values()


def stored_blocks(scan: Scan) -> list[StoredBlock]:
    """Group the rows of a memory into blocks, in the order of the table."""
    rows = scan(COLUMNS, "seq >= 0")
    places: dict[PlaceKey, Place] = {}
    rulesets: dict[PlaceKey, set[str]] = {}
    columns = [rows.column(name).to_pylist() for name in (*COLUMNS, ADDRESS)]
    for identifier, session, turn, seq, kind, block_idx, split_idx, offset, ruleset, harness, address in zip(
        *columns, strict=True
    ):
        key = (session, turn, block_idx)
        place = places.get(key)
        if place is None:
            place = places[key] = Place(session, turn, block_idx, kind, seq, harness)
            rulesets[key] = set()
        place.ids[split_idx] = identifier
        place.addresses[split_idx] = address
        rulesets[key].add(ruleset)
        if offset != REFERENCE:
            place.owned.add(split_idx)
    blocks: list[StoredBlock] = []
    by_id: dict[str, StoredBlock] = {}
    for place in places.values():
        # A killed index run may have left a part of a block in one session and the rest in another.
        block = next((by_id[identifier] for identifier in place.ids.values() if identifier in by_id), None)
        if block is None:
            block = StoredBlock()
            blocks.append(block)
        block.places.append(place)
        block.rulesets |= rulesets[place.key]
        for split_idx, identifier in place.ids.items():
            block.ids.setdefault(split_idx, identifier)
            by_id[identifier] = block
    for block in blocks:
        block.places.sort(key=lambda place: min(place.owned, default=len(block.ids) + 1))
    return blocks


def with_texts(scan: Scan, blocks: Iterable[StoredBlock]) -> Iterator[tuple[StoredBlock, str]]:
    """Read the whole texts of blocks; blocks of which no text is stored are left out."""
    waiting = list(blocks)
    for start in range(0, len(waiting), GROUPS_AT_ONCE):
        part = waiting[start : start + GROUPS_AT_ONCE]
        texts = _texts(scan, [identifier for block in part for identifier in block.ids.values()])
        for block in part:
            splits = [texts[identifier] for _, identifier in sorted(block.ids.items()) if identifier in texts]
            if splits:
                yield block, stitch(splits)


def _texts(scan: Scan, ids: Sequence[str]) -> dict[str, Chunk]:
    found: dict[str, Chunk] = {}
    for start in range(0, len(ids), IDS_AT_ONCE):
        condition = f"id IN ({quoted_list(ids[start : start + IDS_AT_ONCE])}) AND offset != {REFERENCE}"
        for chunk in table_to_chunks(scan(TEXT_COLUMNS, condition)):
            found.setdefault(chunk.id, chunk)
    return found
