"""A memory and the model, opened when first needed and kept: once for a command, for good in the MCP server."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from funes.errors import CorruptMemoryError, FunesError, ModelMissingError

if TYPE_CHECKING:
    from funes.memory.reader import MemoryReader
    from funes.models.cross_encoder import CrossEncoder
    from funes.models.encoder import Encoder

NO_MODEL = "no embedding model on this machine, so this searches by words only; `funes models pull` fetches it once"


class OpenMemory:
    """One memory for reading.

    Args:
        location: None or `local`, or a path.
    """

    def __init__(self, location: str | None = None) -> None:
        self.location = location
        self._reader: MemoryReader | None = None
        self._encoder: Encoder | None = None
        self._cross_encoder: CrossEncoder | None = None

    def reader(self) -> MemoryReader:
        """The reader, moved on to what was written since the last call.

        Raises:
            NoMemoryError: when there is no memory at the place yet.
            CorruptMemoryError: when it cannot be read.
        """
        if self._reader is not None:
            try:
                self._reader.refresh()
            except CorruptMemoryError:
                # Deleted, or built again from scratch, while it was open.
                self._reader = None
        if self._reader is None:
            from funes.memory.reader import MemoryReader

            self._reader = MemoryReader.open(self.location)
        return self._reader

    def label(self) -> str:
        """What the user calls the memory."""
        return self.reader().label

    def encoder(self) -> Encoder | None:
        """The model, None when none is on disk (nothing is fetched here)."""
        if self._encoder is None:
            from funes.models.encoder import load_encoder

            try:
                self._encoder = load_encoder(fetch=False)
            except ModelMissingError:
                return None
        return self._encoder

    def cross_encoder(self) -> CrossEncoder:
        """The cross-encoder on disk (nothing is fetched here).

        Raises:
            ModelMissingError: when there is none.
            FunesError: when the one that the user chose cannot be run.
        """
        if self._cross_encoder is None:
            from funes.models.cross_encoder import load_cross_encoder

            self._cross_encoder = load_cross_encoder()
        return self._cross_encoder

    def session(self, prefix: str) -> str:
        """Full id of the session that a prefix names.

        Raises:
            FunesError: for a prefix that names none, or several.
        """
        reader = self.reader()
        return one_of(prefix, reader.find_sessions, "session", f"`funes sessions{_flag(reader.label)}` lists them")


def one_of(prefix: str, find: Callable[[str], list[str]], kind: str, remedy: str) -> str:
    """The one id that a prefix names, which may be percent-encoded as the agent format prints it.

    Args:
        prefix: what the user gave.
        find: gives the ids that start with a prefix.
        kind: what the ids are of, for the sentence.
        remedy: what to do when there is none.

    Raises:
        FunesError: for a blank prefix, and one that names no id or several.
    """
    wanted = prefix.strip()
    if not wanted:
        raise FunesError(f"The {kind} id is empty; {remedy}.")
    found = find(wanted)
    if not found and "%" in wanted:
        from urllib.parse import unquote

        found = find(unquote(wanted))
    if not found:
        raise FunesError(f"No {kind} begins with {wanted[:80]!r}; {remedy}.")
    if len(found) > 1:
        few = ", ".join(found[:4]) + (f" and {len(found) - 4} more" if len(found) > 4 else "")
        raise FunesError(f"{wanted!r} is the beginning of several {kind} ids: {few}; give more of it.")
    return found[0]


def _flag(label: str) -> str:
    return "" if label == "local" else f" --memory {label}"
