"""Names for turns of formats whose own ids do not last: made of the content, and of how often it came before."""

from __future__ import annotations

import hashlib
from collections import Counter

from funes.traces.model import Block, Turn


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

    def turn(self, turn: Turn) -> str:
        """Return the name of the next turn; its blocks' anchors take part."""
        whole = digest(turn.role, *(_block_key(turn, block).hex() for block in turn.blocks))
        ordinal = self._turns[whole]
        self._turns[whole] += 1
        return digest(self._session_id, whole.hex(), str(ordinal)).hex()

    def block(self, turn: Turn, block: Block) -> str:
        """Return the name of the next block."""
        key = _block_key(turn, block)
        ordinal = self._blocks[key]
        self._blocks[key] += 1
        return f"{digest(self._lineage, key.hex()).hex()}:{ordinal}"


def digest(*parts: str) -> bytes:
    """Hash a sequence of strings."""
    joined = "\x1e".join(parts).encode("utf-8", "replace")
    return hashlib.blake2b(joined, digest_size=12).digest()


def _block_key(turn: Turn, block: Block) -> bytes:
    return digest(turn.role, block.type, block.anchor, block.tool_name, block.text)
