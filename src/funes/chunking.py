"""Blocks to chunks: data URIs elided, long blocks split, ids made.

A chunk's id names a passage, not a place: copies of one passage (a resumed, forked or synced session) have the same
id, so that the text is stored and embedded once.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime

from funes.traces.model import Block, Session, Turn

MAX_CHARACTERS = 1200
OVERLAP = 150

_DATA_URI = re.compile(
    r"data:(?P<type>[\w.+-]{1,60}/[\w.+-]{1,60})(?:;[\w=.+-]{1,80}){0,4};base64,(?P<body>[A-Za-z0-9+/=_-]{64,})"
)


@dataclass(slots=True)
class Chunk:
    """One row of the chunks table.

    Attributes:
        id: passage id, 24 hexadecimal digits; the same for every copy of the passage.
        text: the chunk's characters; None in a row that only records that a session contains a copy of the passage.
        offset: position of `text` in its whole block, in characters.
        block_idx: position of the block in its turn.
        split_idx: position of the chunk in its block.
        seq: position of the turn among the retained turns of its session, from 0; -1 in a session's header row.
        ruleset: id of the secret rules that the text was scanned with.

    The other attributes are those of the block's `Turn` and `Session`.
    """

    id: str
    text: str | None
    session_id: str
    workdir: str
    repo: str
    branch: str
    turn_uuid: str
    parent_uuid: str
    seq: int
    ts: datetime | None
    role: str
    block_type: str
    tool_name: str
    source_path: str
    block_idx: int
    split_idx: int
    offset: int
    harness: str
    origin: str
    ruleset: str


def elide_data_uris(text: str) -> str:
    """Replace the payload of every base64 data URI by its size; everything else stays as it is."""
    if ";base64," not in text:
        return text
    return _DATA_URI.sub(lambda m: f"[data:{m['type']}, {len(m['body']) * 3 // 4} bytes left out]", text)


def split_text(text: str, limit: int = MAX_CHARACTERS, overlap: int = OVERLAP) -> list[tuple[int, str]]:
    """Cut a text into pieces of at most `limit` characters.

    A cut falls behind the last line end of the piece's second half, else behind its last blank, else at the limit.
    The next piece starts about `overlap` characters before the cut, at the start of a line or word where there is one.

    Args:
        text: the whole block.
        limit: longest piece, in characters.
        overlap: characters that two neighbouring pieces share, at most; smaller than half of `limit`.

    Returns:
        `(offset, piece)` pairs in order. They cover the text without a gap, so that it can be stitched together again.
    """
    pieces: list[tuple[int, str]] = []
    start = 0
    while len(text) - start > limit:
        half = start + limit // 2
        cut = text.rfind("\n", half, start + limit) + 1
        if cut <= half:
            cut = _last_blank(text, half, start + limit)
        if cut <= half:
            cut = start + limit
        pieces.append((start, text[start:cut]))
        start = _restart(text, cut, overlap)
    if start < len(text) or not pieces:
        pieces.append((start, text[start:]))
    return pieces


def _last_blank(text: str, low: int, high: int) -> int:
    """Position behind the last blank in `text[low:high]`, or 0."""
    return max(text.rfind(" ", low, high), text.rfind("\t", low, high)) + 1


def _restart(text: str, cut: int, overlap: int) -> int:
    """Where the piece after `cut` starts: at a line or word start within `overlap` characters before it."""
    low = cut - overlap
    if low <= 0:
        return cut
    line = text.find("\n", low, cut - 1)
    if line >= 0:
        return line + 1
    blank = text.find(" ", low, cut - 1)
    return blank + 1 if blank >= 0 else low


def passage_id(session: Session, turn: Turn, block: Block, text: str, block_idx: int) -> str:
    """Id of a whole block: its anchor where the format has one, else its place, with its type and text.

    Args:
        session: the conversation.
        turn: the block's turn in it.
        block: the block.
        text: the block's text as it is stored (redacted).
        block_idx: the block's position in its turn.
    """
    place = block.anchor or unanchored(session.id, turn.uuid, block_idx)
    return passage_id_at(session.harness, place, block.type, text)


def unanchored(session_id: str, turn_uuid: str, block_idx: int) -> str:
    """What stands for the anchor of a block that has none: its place."""
    return f"{session_id}\x1f{turn_uuid}\x1f{block_idx}"


def passage_id_at(harness: str, place: str, block_type: str, text: str) -> str:
    """Id of a whole block from its anchor, or from what stands for it."""
    head = "\x1f".join((harness, place, block_type, ""))
    digest = hashlib.blake2b(head.encode("utf-8", "surrogatepass"), digest_size=12)
    digest.update(text.encode("utf-8", "surrogatepass"))  # apart: a block may be tens of megabytes
    return digest.hexdigest()


def split_id(block_id: str, split_idx: int) -> str:
    """Id of one chunk of a block; the first chunk has the block's id."""
    if split_idx == 0:
        return block_id
    return hashlib.blake2b(f"{block_id}\x1f{split_idx}".encode(), digest_size=12).hexdigest()
