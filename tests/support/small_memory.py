"""A small memory, made by the real writer: three sessions of an invented project, one with a copy of another's turn."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from funes.chunking import Chunk, split_text
from funes.memory.schema import REFERENCE, header_row
from funes.memory.store import MemoryWriter
from tests.support.chunks import MOMENT, make_chunk

PARSER = "1a2b3c4d-0000-4000-8000-000000000001"
CACHE = "1a2b9999-0000-4000-8000-000000000002"
HELPER = "agent-77aa"
LONG_OUTPUT = "\n".join(f"line {number}: build step {number} finished with code {number % 7}" for number in range(400))
NEEDLE = "ECONNRESET"


def blocks(session_id: str, seq: int, texts: list[tuple[str, str, str]], role: str, **fields: object) -> list[Chunk]:
    """Chunks of one turn; `texts` are (block type, tool name, text)."""
    chunks = []
    for block_idx, (block_type, tool_name, text) in enumerate(texts):
        for split_idx, (offset, piece) in enumerate(split_text(text)):
            chunks.append(
                make_chunk(
                    piece,
                    id=f"{session_id[:10]}{seq:04d}{block_idx:02d}{split_idx:04d}",
                    session_id=session_id,
                    turn_uuid=f"{'beef' if seq % 2 else 'cafe'}{seq:04d}-{session_id[:8]}",
                    seq=seq,
                    ts=MOMENT + timedelta(minutes=seq),
                    role=role,
                    block_type=block_type,
                    tool_name=tool_name,
                    block_idx=block_idx,
                    split_idx=split_idx,
                    offset=offset,
                    **fields,
                )
            )
    return chunks


def parser_session() -> list[Chunk]:
    output = LONG_OUTPUT[:1195] + NEEDLE + LONG_OUTPUT[1195:]  # stands across the border of two chunks
    return [
        *blocks(PARSER, 0, [("text", "", "Why did we move off the streaming parser?")], "user"),
        *blocks(
            PARSER,
            1,
            [
                ("thinking", "", "They mean the XML one."),
                (
                    "text",
                    "",
                    "The streaming parser held the whole file in memory anyway, and its errors had no position.",
                ),
                ("tool_use", "Bash", '{"command": "make build"}'),
            ],
            "assistant",
        ),
        *blocks(PARSER, 2, [("tool_result", "Bash", output)], "tool"),
        *blocks(PARSER, 3, [("text", "", "Good. Use the recursive descent parser then.")], "user"),
    ]


def cache_session() -> list[Chunk]:
    where = {"harness": "codex", "repo": "acme/web", "workdir": "/home/dev/web", "branch": "fix/cache"}
    own = [
        *blocks(CACHE, 0, [("text", "", "The cache returns stale prices after a deploy.")], "user", **where),
        *blocks(
            CACHE,
            1,
            [("text", "", "\x1b[31mInvalidate\x1b[0m it by version, not by time.\n---\nDone.")],
            "assistant",
            **where,
        ),
    ]
    # The first turn of the parser session was also said here: stored once, referenced from here.
    copy = parser_session()[0]
    place = {"session_id": CACHE, "seq": 2, "turn_uuid": "cafe0002-copy", "text": None, "offset": REFERENCE}
    copied = {name: getattr(copy, name) for name in copy.__slots__} | where | place
    return [*own, Chunk(**copied)]


def helper_session() -> list[Chunk]:
    return blocks(HELPER, 0, [("text", "", "Search the code for callers of the cache.")], "user", repo="acme/web")


def header(session_id: str, title: str, **fields: str) -> Chunk:
    values = {
        "harness": "claude_code",
        "parent_id": "",
        "kind": "main",
        "workdir": "/home/dev/api",
        "repo": "acme/api",
        "branch": "main",
        "source_path": "",
        "ruleset": "r1",
    }
    return header_row(session_id=session_id, title=title, ts=MOMENT, **(values | fields))


def make_memory(folder: Path) -> Path:
    """Write the memory into a folder (its tables lie there directly)."""
    rows = [*parser_session(), *cache_session(), *helper_session()]
    headers = [
        header(PARSER, "Parser rewrite"),
        header(HELPER, "", parent_id=CACHE, kind="subagent", repo="acme/web"),
    ]
    with MemoryWriter(folder) as writer:
        writer.append([*rows, *headers])
        writer.finish()
    return folder
