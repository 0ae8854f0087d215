"""Names made of what was said, for turns of formats whose own ids do not last.

Whoever has a memory can test guesses against a digest, so a name is made of the text without its credentials. A text
that has none gives the plain digest; another one gives a name that says so.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from funes.traces.model import Turn, unchanged

REDACTED = "r-"
"""What the digest in a name begins with when credentials were taken out of the text that it is made of."""

CHAINED = frozenset(("codex",))
"""Harnesses in which a name may be made of all that was said before in the session, too."""

_MADE = re.compile(rf"(?:queued-)?(?P<redacted>{REDACTED})?[0-9a-f]{{24}}(?:-output(?:-complete)?)?")


@dataclass(slots=True)
class Name:
    """What a turn and its blocks are called.

    Attributes:
        uuid: the turn's.
        anchors: the blocks', in order.
        former: the turn's when it is made of the text as it is; empty when that is `uuid`.
    """

    uuid: str
    anchors: list[str]
    former: str = ""


class ContentNames:
    """Names the turns and blocks of one session, which have to come in order.

    The same conversation gets the same names however its messages were rewritten, renumbered or copied.
    """

    def __init__(self, session_id: str, lineage: str = "", redact: Callable[[str], str] = unchanged) -> None:
        """Start a session.

        Args:
            session_id: the session; a turn's name is made for it.
            lineage: what a block's name is made for: sessions that share messages have the same.
            redact: takes the credentials out of a text.
        """
        self._session_id = session_id
        self._lineage = lineage or session_id
        self._redact = redact
        self._turns: Counter[bytes] = Counter()
        self._blocks: Counter[bytes] = Counter()

    def name(self, turn: Turn) -> Name:
        """Name the next turn and its blocks; what their anchors hold takes part."""
        recorded = [digest(turn.role, block.type, block.anchor, block.tool_name, block.text) for block in turn.blocks]
        keys = []
        for key, block in zip(recorded, turn.blocks, strict=True):
            tool, text = self._redact(block.tool_name), self._redact(block.text)
            clean = tool == block.tool_name and text == block.text
            keys.append(key if clean else digest(REDACTED, turn.role, block.type, block.anchor, tool, text))
        anchors = [self._block_name(key) for key in keys]
        former = self._turn_name(digest(turn.role, *(key.hex() for key in recorded)))
        if keys == recorded:
            return Name(former, anchors)
        uuid = self._turn_name(digest(REDACTED, turn.role, *(key.hex() for key in keys)))
        return Name(REDACTED + uuid, anchors, former)

    def _turn_name(self, whole: bytes) -> str:
        name = digest(self._session_id, whole.hex(), str(self._turns[whole])).hex()
        self._turns[whole] += 1
        return name

    def _block_name(self, key: bytes) -> str:
        ordinal = self._blocks[key]
        self._blocks[key] += 1
        return f"{digest(self._lineage, key.hex()).hex()}:{ordinal}"


def digest(*parts: str) -> bytes:
    """Hash a sequence of strings."""
    joined = "\x1e".join(parts).encode("utf-8", "replace")
    return hashlib.blake2b(joined, digest_size=12).digest()


def place_name(session_id: str, seq: int) -> str:
    """Name a turn by its place alone, when nothing tells any more what its name should be made of."""
    return REDACTED + digest("place", session_id, str(seq)).hex()


def is_made(uuid: str) -> bool:
    """Whether a turn's identifier may be one that funes made of its text."""
    return _MADE.fullmatch(uuid) is not None


def is_plain(uuid: str) -> bool:
    """Whether a turn's identifier may be a digest of text from which no credentials were taken out."""
    found = _MADE.fullmatch(uuid)
    return found is not None and not found["redacted"]
