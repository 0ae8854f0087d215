"""Neighbours: the passages around a hit in its session."""

from __future__ import annotations

from funes.chunking import Chunk
from funes.memory.reader import MemoryReader
from funes.search.model import Hit, Neighbour

LOOK_AROUND = 6
"""Turns read on each side for each neighbour wanted: tool turns in between are passed over."""


def add_neighbours(reader: MemoryReader, hits: list[Hit], count: int) -> None:
    """Set the passages before and after each hit.

    The first chunk of each neighbouring block of prose stands for it; where a side has none, a tool call or its output
    does.

    Args:
        reader: the memory.
        hits: changed in place.
        count: passages wanted on each side.
    """
    if count <= 0:
        return
    reach = LOOK_AROUND * count
    places = [(hit.chunk.session_id, hit.chunk.seq - reach, hit.chunk.seq + reach) for hit in hits]
    read = reader.stretches(places)
    for hit, (session, first, last) in zip(hits, places, strict=True):
        around = [one for one in read if one.session_id == session and first <= one.seq <= last]
        here = _place(hit.chunk)
        before = [one for one in around if _place(one) < here and one.split_idx == 0]
        after = [one for one in around if _place(one) > here and one.split_idx == 0]
        hit.before = [_neighbour(one) for one in _nearest(before[::-1], count)[::-1]]
        hit.after = [_neighbour(one) for one in _nearest(after, count)]


def _nearest(chunks: list[Chunk], count: int) -> list[Chunk]:
    """The first `count` in order of distance: prose when there is any."""
    prose = [one for one in chunks if one.block_type in ("text", "summary")]
    return (prose or chunks)[:count]


def _place(chunk: Chunk) -> tuple[int, int]:
    return (chunk.seq, chunk.block_idx)


def _neighbour(chunk: Chunk) -> Neighbour:
    return Neighbour(chunk.role, chunk.block_type, chunk.seq, chunk.text or "")
