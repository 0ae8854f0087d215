"""The texts of ranked passages, read as far down the list as somebody looks."""

from __future__ import annotations

from collections.abc import Sequence

from funes.memory.reader import MemoryReader

READ_AT_ONCE = 24


class Texts:
    """Texts by id, read some at a time in the order of a list.

    Args:
        reader: the memory.
        ids: the passages, those first that are looked at first.
    """

    def __init__(self, reader: MemoryReader, ids: Sequence[str]) -> None:
        self._reader = reader
        self._ids = ids
        self._places = {identifier: place for place, identifier in enumerate(ids)}
        self._known: dict[str, str] = {}

    def __call__(self, identifier: str) -> str:
        """The text of a passage, empty when it is not there any more."""
        if identifier not in self._known:
            place = self._places[identifier]
            part = [one for one in self._ids[place : place + READ_AT_ONCE] if one not in self._known]
            self._known |= dict.fromkeys(part, "") | self._reader.texts(part)
        return self._known[identifier]
