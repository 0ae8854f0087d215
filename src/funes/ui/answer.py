"""What stands around an agent's answer: its pieces made harmless, and the passages it came from."""

from __future__ import annotations

from collections.abc import Sequence

from funes.search.model import Hit
from funes.ui.agent import shown_id, shown_time
from funes.ui.human import memory_flag
from funes.ui.safe import clean, one_line


class AnswerText:
    """Pieces of an answer on their way to the terminal, without what would drive it."""

    def __init__(self) -> None:
        self._last = "\n"

    def piece(self, text: str) -> str:
        """A piece as it may be printed."""
        shown = clean(text)
        self._last = shown[-1:] or self._last
        return shown

    def end(self) -> str:
        """What is missing for the answer to end with a whole line."""
        return "" if self._last == "\n" else "\n"


def sources_text(hits: Sequence[Hit], label: str) -> str:
    """The passages an answer was drawn from, by the numbers the agent knows them by.

    Args:
        hits: in the order of the prompt.
        label: name of the memory, for the `funes get` lines.
    """
    parts = [f"\nSources ({one_line(label)}):\n"]
    for number, hit in enumerate(hits, 1):
        chunk = hit.chunk
        place = one_line(chunk.repo or chunk.workdir)
        said = f"{one_line(chunk.role)} {one_line(chunk.block_type).replace('_', ' ')}"
        facets = [shown_time(chunk.ts), one_line(chunk.harness), place, f"seq{chunk.seq}", said]
        head = " ".join(filter(None, facets)) + (" (weak)" if hit.weak else "")
        command = f"funes get {shown_id(chunk.session_id)} {shown_id(chunk.turn_uuid)}{memory_flag(label)}"
        parts.append(f"[{number}] {head}\n    {command}\n")
    return "".join(parts)
