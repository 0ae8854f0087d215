"""A memory and the model, opened when first needed and kept: once for a command, for good in the MCP server."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from funes.errors import CorruptMemoryError, FunesError, ModelMissingError, NoMemoryError
from funes.memory.uri import LOCAL, resolve

if TYPE_CHECKING:
    from funes.memory.reader import MemoryReader
    from funes.models.cross_encoder import CrossEncoder
    from funes.models.encoder import Encoder

NO_MODEL = "no embedding model on this machine, so this searches by words only; `funes models pull` fetches it once"


class OpenMemory:
    """One memory for reading.

    Args:
        location: what `memory.uri.resolve` takes.
        fresh_for: seconds after which a memory elsewhere is looked at for something newer; by default it is looked at
            once.
        stands_in: whether the local memory stands in for one elsewhere that cannot be reached and is not in the cache.
        told: told how many bytes of how many of a download are there.
    """

    def __init__(
        self,
        location: str | None = None,
        *,
        fresh_for: float = math.inf,
        stands_in: bool = False,
        told: Callable[[int, int], None] | None = None,
    ) -> None:
        self.location = location
        self._place = resolve(location)
        self._fresh_for = fresh_for
        self._stands_in = stands_in
        self._told = told
        self._looked = -math.inf
        self._reader: MemoryReader | None = None
        self._encoder: Encoder | None = None
        self._cross_encoder: CrossEncoder | None = None

    def reader(self) -> MemoryReader:
        """The reader, moved on to what was written since the last call.

        Raises:
            NoMemoryError: when there is no memory at the place yet.
            CorruptMemoryError: when it cannot be read.
            RemoteError: when the place cannot be reached, or not without more rights.
        """
        if self._place.kind in ("hub", "store"):
            if self._reader is None or time.monotonic() - self._looked >= self._fresh_for:
                self._reader = self._look_elsewhere()
                self._looked = time.monotonic()
            return self._reader
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

    @property
    def notes(self) -> list[str]:
        """What the user should know about what was opened."""
        return [self._reader.note] if self._reader is not None and self._reader.note else []

    @property
    def stand_in(self) -> str | None:
        """Name of the memory that stands in for the one that was asked for, None when none does."""
        if self._place.kind == "local" or self._reader is None or self._reader.label != LOCAL:
            return None
        return LOCAL

    @property
    def is_shared(self) -> bool:
        """Whether other people may have written what was read."""
        return self._place.kind in ("hub", "store") and self.stand_in is None

    def _look_elsewhere(self) -> MemoryReader:
        """A reader of the newest version; the open one when that is it."""
        from funes.memory.reader import MemoryReader
        from funes.memory.remote.faults import RemoteBusyError, RemoteUnreachableError

        try:
            return MemoryReader.open(self.location, told=self._told, opened=self._reader)
        except (RemoteUnreachableError, RemoteBusyError) as fault:
            if not self._stands_in:
                raise
            try:
                reader = MemoryReader.open()
            except NoMemoryError:
                raise fault from None
            reader.note = f"{fault.message.rstrip('.')}; these passages are from the local memory instead"
            return reader

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
