"""Turns that `funes scrub` named by their place because their trace was gone, met again when the trace comes back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from funes.traces.identity import REDACTED, place_name

if TYPE_CHECKING:
    from funes.commands.indexing.messages import BlockRows
    from funes.memory.store import StoredSession


class PlacedTurns:
    """Those of one session, which its trace brings in the same order.

    Args:
        session_id: the session.
        stored: its rows.
    """

    def __init__(self, session_id: str, stored: StoredSession) -> None:
        self.seqs: dict[str, int] = {}
        self._names: dict[str, str] = {}
        if stored.table is not None:
            pairs = zip(*(stored.table.column(name).to_pylist() for name in ("turn_uuid", "seq")), strict=True)
            found = {(seq, turn) for turn, seq in pairs if turn.startswith(REDACTED)}
            self.seqs = {turn: seq for seq, turn in sorted(found) if turn == place_name(session_id, seq)}

    def find(self, rows: BlockRows, is_stored: Callable[[BlockRows], bool]) -> str:
        """Find the turn that a block belongs to; empty when it is none of these.

        Args:
            rows: the block.
            is_stored: whether a block is stored at its place, by its text.
        """
        if rows.turn_uuid not in self._names:
            taken = set(self._names.values())
            names = (turn for turn in self.seqs if turn not in taken)
            name = next((turn for turn in names if is_stored(replace(rows, turn_uuid=turn))), "")
            if not name:
                return ""
            self._names[rows.turn_uuid] = name
        return self._names[rows.turn_uuid]
