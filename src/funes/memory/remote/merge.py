"""What another copy of a memory lacks: rows by session and passage, vectors by passage, titles by session.

A row is known by its session and its passage id, of which a session has each once. A passage is stored once in a
memory, under one of the sessions that contain it; which one that is may differ between two memories, so a row travels
as what it has to be at its destination: with its text where that has none yet, else as a reference.

Where the destination has another text at a block's place (another version of the rules redacted it differently, say),
the block becomes a further one of its turn, as it would when it is indexed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from funes.memory.schema import REFERENCE, SESSION_TYPE

if TYPE_CHECKING:
    import pyarrow as pa

KEY_COLUMNS = ("id", "session_id", "turn_uuid", "block_idx", "split_idx", "offset", "block_type", "ts")
Digests = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]
Block = tuple[str, str, int]
"""A block of a message: session, turn, position in the turn."""


def digests(ids: Sequence[str], sessions: Sequence[str] | None = None) -> Digests:
    """Digest ids, each with its session where there is one: `(n,)` uint64.

    Eight bytes keep the keys of a million rows small; two of them meet by chance once in 30 million such memories.
    """
    keys = ids if sessions is None else [f"{session}\x1f{one}" for session, one in zip(sessions, ids, strict=True)]
    raw = b"".join(hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest() for key in keys)
    return np.frombuffer(raw, np.uint64)


@dataclass(slots=True)
class Holdings:
    """What a memory holds, without its text.

    Attributes:
        rows: digest of each row, by session and id.
        texts: digest of the id of each passage whose text is there.
        vectors: digest of the id of each passage that has a vector.
        sessions: their ids.
        titles: for each session the time of its newest header row.
        doubled: whether a row or a vector is there twice.
        places: hash of the place of each passage: session, turn, block, split.
        blocks: hash of the place of each block.
    """

    rows: Digests = field(default_factory=lambda: np.zeros(0, np.uint64))
    texts: Digests = field(default_factory=lambda: np.zeros(0, np.uint64))
    vectors: Digests = field(default_factory=lambda: np.zeros(0, np.uint64))
    sessions: frozenset[str] = frozenset()
    titles: dict[str, datetime | None] = field(default_factory=dict)
    doubled: bool = False
    places: Places = field(default_factory=lambda: np.zeros(0, np.int64))
    blocks: frozenset[int] = frozenset()

    @property
    def empty(self) -> bool:
        """Whether there is no passage."""
        return not len(self.texts)

    @classmethod
    def of(cls, keys: pa.Table, vector_ids: Sequence[str]) -> Holdings:
        """Take stock.

        Args:
            keys: `KEY_COLUMNS` of all rows of the chunks table.
            vector_ids: ids in the vectors table.
        """
        columns = {name: keys.column(name).to_pylist() for name in KEY_COLUMNS}
        ids, sessions, kinds = columns["id"], columns["session_id"], columns["block_type"]
        rows = zip(sessions, kinds, columns["ts"], strict=True)
        titles = {session: ts for session, kind, ts in rows if kind == SESSION_TYPE}
        own = [
            one
            for one, kind, offset in zip(ids, kinds, columns["offset"], strict=True)
            if kind != SESSION_TYPE and offset != REFERENCE
        ]
        passages = {session for session, kind in zip(sessions, kinds, strict=True) if kind != SESSION_TYPE}
        rows_there, vectors = digests(ids, sessions), digests(vector_ids)
        doubled = len(np.unique(rows_there)) < len(rows_there) or len(np.unique(vectors)) < len(vectors)
        turns, blocks, splits = (columns[name] for name in ("turn_uuid", "block_idx", "split_idx"))
        places = np.array([hash(place) for place in zip(sessions, turns, blocks, splits, strict=True)], np.int64)
        held = frozenset(hash(block) for block in zip(sessions, turns, blocks, strict=True))
        return cls(rows_there, digests(own), vectors, frozenset(passages), titles, doubled, places, held)


class Catalogue:
    """The rows of the local memory, of which a part is offered to another one.

    Args:
        keys: `KEY_COLUMNS` of all rows of the chunks table, in its order.
        vector_ids: ids of the passages that have a vector of the current model.

    Attributes:
        ids, sessions: of each row.
        rows, passages: digest of each row by session and id, and by id alone.
    """

    def __init__(self, keys: pa.Table, vector_ids: Sequence[str]) -> None:
        columns: dict[str, list[Any]] = {name: keys.column(name).to_pylist() for name in KEY_COLUMNS}
        self.ids: list[str] = columns["id"]
        self.sessions: list[str] = columns["session_id"]
        self.rows = digests(self.ids, self.sessions)
        self.passages = digests(self.ids)
        self.embedded = np.isin(self.passages, digests(vector_ids))
        self._ts: list[datetime | None] = columns["ts"]
        self._title = np.array([kind == SESSION_TYPE for kind in columns["block_type"]], bool)
        self._own = ~self._title & np.array([offset != REFERENCE for offset in columns["offset"]], bool)
        self._splits: list[int] = columns["split_idx"]
        ends = (columns["turn_uuid"], columns["block_idx"], self._splits)
        self._places = np.array([hash(place) for place in zip(self.sessions, *ends, strict=True)], np.int64)
        places = zip(self.sessions, columns["turn_uuid"], columns["block_idx"], strict=True)
        numbers: dict[Block, int] = {}
        self._block = np.array([numbers.setdefault(block, len(numbers)) for block in places], np.int64)
        self._blocks = list(numbers)
        self._numbers = numbers
        self._originals: dict[str, int] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def offer(self, sessions: Collection[str] | None = None, *, words: bool = False) -> Places:
        """Choose the passages that may be published.

        Args:
            sessions: only those of these sessions; None for all.
            words: also passages without a vector. Otherwise a block is offered when all of its pieces have one.

        Returns:
            Places of rows, in order; titles are not among them.
        """
        chosen = ~self._title
        if sessions is not None:
            chosen &= np.array([session in sessions for session in self.sessions], bool)
        if not words:
            chosen &= ~np.isin(self._block, self._block[~self._title & ~self.embedded])
        return np.flatnonzero(chosen)

    def lacking(self, offered: Places, there: Holdings) -> Missing:
        """Find what of an offer another memory lacks."""
        rows = offered[~np.isin(self.rows[offered], there.rows)]
        present = offered[np.isin(self.rows[offered], there.rows)]
        plain = present[self.embedded[present] & ~np.isin(self.passages[present], there.vectors)]
        return Missing(rows, self._titles(offered, there), self._first_of_each(plain), self._moved(rows, there))

    def common(self, there: Holdings) -> int:
        """Count the passages that both memories contain."""
        return int(np.isin(np.unique(self.passages[~self._title]), there.texts).sum())

    def passages_among(self, rows: Digests) -> int:
        """Count the passages, titles left out and none twice, among rows given by their digests."""
        return self.distinct(np.flatnonzero(np.isin(self.rows, rows) & ~self._title))

    def distinct(self, places: Places) -> int:
        """Count the different passages among rows."""
        return len(np.unique(self.passages[places]))

    def waiting(self, sessions: Collection[str] | None, offered: Places) -> int:
        """Count the passages that are not offered because they, or other pieces of their blocks, have no vector."""
        return self.distinct(np.setdiff1d(self.offer(sessions, words=True), offered))

    def blocks_of(self, places: Places) -> dict[Block, list[int]]:
        """Group rows with all the other rows of their blocks: for each block its rows in the order of its splits."""
        numbers = np.unique(self._block[places])
        members = np.flatnonzero(np.isin(self._block, numbers) & ~self._title)
        blocks: dict[Block, list[int]] = {self._blocks[number]: [] for number in numbers}
        for place in members.tolist():
            blocks[self._blocks[self._block[place]]].append(place)
        for rows in blocks.values():
            rows.sort(key=self._splits.__getitem__)
        return blocks

    def is_reference(self, place: int) -> bool:
        """Whether a row has no text of its own."""
        return not (self._own[place] or self._title[place])

    def original(self, place: int) -> int:
        """Place of the row that stores the text of a reference; its own place when there is none."""
        if self._originals is None:
            self._originals = {self.ids[own]: own for own in np.flatnonzero(self._own).tolist()}
        return self._originals.get(self.ids[place], place)

    def _titles(self, offered: Places, there: Holdings) -> Places:
        """The newest header row of each session that is published, unless the other memory has it or a newer one."""
        sessions = {self.sessions[place] for place in offered.tolist()}
        newest = {self.sessions[place]: place for place in np.flatnonzero(self._title).tolist()}
        known = set(there.rows[np.isin(there.rows, self.rows[self._title])].tolist())
        titles = []
        for session, place in newest.items():
            if session not in sessions or int(self.rows[place]) in known:
                continue
            mine, other = self._ts[place], there.titles.get(session)
            if other is None or (mine is not None and mine >= other):
                titles.append(place)
        return np.array(sorted(titles), np.int64)

    def _moved(self, rows: Places, there: Holdings) -> dict[int, int]:
        """New positions for blocks at whose place the other memory has another text: place of the row → position."""
        numbers = np.unique(self._block[rows[np.isin(self._places[rows], there.places)]])
        moved: dict[int, int] = {}
        taken: set[Block] = set()
        for number in numbers.tolist():
            session, turn, position = self._blocks[number]
            block = (session, turn, position)
            while block in self._numbers or block in taken or hash(block) in there.blocks:
                position += 1
                block = (session, turn, position)
            taken.add(block)
            moved |= dict.fromkeys(rows[self._block[rows] == number].tolist(), position)
        return moved

    def _first_of_each(self, places: Places) -> Places:
        """One row of each passage."""
        return places[np.sort(np.unique(self.passages[places], return_index=True)[1])]


@dataclass(slots=True)
class Missing:
    """What of an offer a memory lacks, as places in the catalogue.

    Attributes:
        rows: passages.
        titles: header rows.
        vectors: passages that are there and only lack their vector, one row of each.
        moved: rows whose block becomes a further one of its turn, with its position there.
    """

    rows: Places
    titles: Places
    vectors: Places
    moved: dict[int, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(len(self.rows) or len(self.vectors) or len(self.titles))

    def without(self, held: Iterable[int], catalogue: Catalogue, there: Holdings) -> Missing:
        """Leave rows out, every other row with the same passage, and the titles of sessions of which nothing is left.

        Args:
            held: places of the rows, titles among them.
            catalogue: what the places refer to.
            there: what the other memory holds.
        """
        out = np.fromiter(held, np.int64)
        texts = catalogue.passages[out]
        rows = self.rows[~np.isin(catalogue.passages[self.rows], texts)]
        vectors = self.vectors[~np.isin(catalogue.passages[self.vectors], texts)]
        left = {catalogue.sessions[place] for place in rows.tolist()} | there.sessions
        named = np.array([catalogue.sessions[place] in left for place in self.titles.tolist()], bool)
        return Missing(rows, self.titles[named & ~np.isin(self.titles, out)], vectors, self.moved)

    def parts(self, size: int) -> Iterator[Places]:
        """Places of the passages and then of the titles, in parts of at most `size`."""
        everything = np.concatenate([self.rows, self.titles])
        for start in range(0, len(everything), size):
            yield everything[start : start + size]
