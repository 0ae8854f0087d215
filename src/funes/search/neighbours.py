"""Neighbours: the passages around a hit in its session."""

from __future__ import annotations

from collections.abc import Iterable

from funes.memory.outline import NOWHERE, Outline
from funes.memory.reader import MemoryReader
from funes.memory.schema import PROSE
from funes.search.model import Hit, Neighbour

LOOK_AROUND = 6
"""Turns looked through on each side for each neighbour wanted: tool turns in between are passed over."""

SAID = tuple(kind for kind in PROSE if kind != "thinking")


def add_neighbours(reader: MemoryReader, hits: list[Hit], count: int) -> None:
    """Set the passages before and after each hit.

    The first chunk of each neighbouring block of prose stands for it; where a side has none, a tool call or its output
    does.

    Args:
        reader: the memory.
        hits: changed in place.
        count: passages wanted on each side.
    """
    if count <= 0 or not hits:
        return
    outline = reader.outline()
    sides: list[tuple[Hit, list[int], list[int]]] = []
    for hit, place in zip(hits, outline.places([hit.chunk.id for hit in hits]).tolist(), strict=True):
        if place != NOWHERE:
            first, end = outline.session(place)
            before = _nearest(outline, place, range(place - 1, first - 1, -1), count)[::-1]
            sides.append((hit, before, _nearest(outline, place, range(place + 1, end), count)))
    wanted = list(dict.fromkeys(place for _, before, after in sides for place in (*before, *after)))
    ids = dict(zip(wanted, outline.ids(wanted), strict=True))
    texts = reader.texts(ids.values())
    for hit, before, after in sides:
        hit.before, hit.after = (
            [_neighbour(outline, place, texts[ids[place]]) for place in side if ids[place] in texts]
            for side in (before, after)
        )


def _nearest(outline: Outline, place: int, side: Iterable[int], count: int) -> list[int]:
    """The first `count` places of a side, in order of distance: prose when there is any."""
    here, reach = (outline.seq(place), outline.block(place)), LOOK_AROUND * count
    prose: list[int] = []
    others: list[int] = []
    for other in side:
        if abs(outline.seq(other) - here[0]) > reach or len(prose) == count:
            break
        if (outline.seq(other), outline.block(other)) != here and outline.begins_block(other):
            (prose if outline.block_type(other) in SAID else others).append(other)
    return prose or others[:count]


def _neighbour(outline: Outline, place: int, text: str) -> Neighbour:
    return Neighbour(outline.role(place), outline.block_type(place), outline.seq(place), text)
