"""Names for turns of formats whose own ids do not last: made of the content, and of how often it came before."""

from __future__ import annotations

import hashlib
from collections import Counter

from funes.traces.model import Turn


class ContentNames:
    """Names the turns and blocks of one session, which have to come in order.

    The same conversation gets the same names however its messages were rewritten, renumbered or copied.
    """

    def __init__(self, session_id: str, lineage: str = "") -> None:
        """Start a session.

        Args:
            session_id: the session; a turn's name is made for it.
            lineage: what a block's name is made for: sessions that share messages have the same.
        """
        self._session_id = session_id
        self._lineage = lineage or session_id
        self._turns: Counter[bytes] = Counter()
        self._blocks: Counter[bytes] = Counter()

    def name(self, turn: Turn) -> tuple[str, list[str]]:
        """Return the names of the next turn and of its blocks; what their anchors hold takes part."""
        keys = [digest(turn.role, block.type, block.anchor, block.tool_name, block.text) for block in turn.blocks]
        whole = digest(turn.role, *(key.hex() for key in keys))
        uuid = digest(self._session_id, whole.hex(), str(self._turns[whole])).hex()
        self._turns[whole] += 1
        return uuid, [self._block_name(key) for key in keys]

    def _block_name(self, key: bytes) -> str:
        ordinal = self._blocks[key]
        self._blocks[key] += 1
        return f"{digest(self._lineage, key.hex()).hex()}:{ordinal}"


def digest(*parts: str) -> bytes:
    """Hash a sequence of strings."""
    joined = "\x1e".join(parts).encode("utf-8", "replace")
    return hashlib.blake2b(joined, digest_size=12).digest()
