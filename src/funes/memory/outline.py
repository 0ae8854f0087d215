"""Outlines: which passages of prose a session has, in order, without their text."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from funes.memory.schema import PROSE, quoted_list

if TYPE_CHECKING:
    from funes.memory.handle import TableHandle

_COLUMNS = ("id", "session_id", "seq", "role", "block_type", "block_idx", "split_idx")


@dataclass(slots=True)
class Outline:
    """The prose of one session.

    Attributes:
        ids: its passages in order of turn, block and split, those included whose text another session stores.
        prompts: positions in `ids` of what the user wrote, rising.
    """

    ids: list[str]
    prompts: list[int]
    _positions: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._positions = {identifier: position for position, identifier in reversed(list(enumerate(self.ids)))}

    def position(self, identifier: str) -> int | None:
        """Where a passage stands (first), None when it is not in the session's prose."""
        return self._positions.get(identifier)

    def is_prompt(self, position: int) -> bool:
        """Whether the user wrote the passage."""
        return self.prompt_before(position + 1) == position

    def prompt_before(self, position: int) -> int:
        """Position of the last prompt before a passage, -1 when there is none."""
        index = bisect_left(self.prompts, position) - 1
        return self.prompts[index] if index >= 0 else -1


def read_outlines(chunks: TableHandle, sessions: Iterable[str]) -> dict[str, Outline]:
    """Read the outlines of some sessions with one scan.

    Args:
        chunks: the chunks table.
        sessions: their ids; the result has no entry for one without prose.
    """
    import pyarrow.compute as pc

    wanted = list(dict.fromkeys(sessions))
    if not wanted:
        return {}
    condition = f"session_id IN ({quoted_list(wanted)}) AND block_type IN ({quoted_list(PROSE)})"
    table = chunks.scan(_COLUMNS, condition)
    order = ("session_id", "seq", "block_idx", "split_idx")
    keys = [(name, "ascending") for name in order if name in table.column_names]
    table = table.take(pc.sort_indices(table, sort_keys=keys)).combine_chunks()
    prompt = pc.and_(pc.equal(table.column("role"), "user"), pc.equal(table.column("block_type"), "text"))
    places = pc.indices_nonzero(prompt).to_pylist()
    ids, owners = table.column("id").to_pylist(), table.column("session_id").to_pylist()
    found = {}
    start = 0
    while start < len(ids):
        end = bisect_right(owners, owners[start])
        prompts = places[bisect_left(places, start) : bisect_left(places, end)]
        found[owners[start]] = Outline(ids[start:end], [place - start for place in prompts])
        start = end
    return found
