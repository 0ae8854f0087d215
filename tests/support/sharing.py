"""Machines that publish to one memory: each a FUNES_HOME with sessions of its own and a cache of its own."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from funes.chunking import Chunk, passage_id, split_id, split_text
from funes.memory.reader import MemoryReader
from funes.memory.remote.tables import Tables
from funes.memory.schema import CHUNKS, REFERENCE, VECTORS, table_to_chunks
from funes.memory.store import MemoryWriter
from funes.memory.vector_store import VectorWriter
from funes.models.codes import BYTES
from funes.models.pinned import VECTORS_ID
from funes.traces.model import Block, Session, Turn
from tests.support.chunks import MOMENT, make_chunk
from tests.support.small_memory import header

TOKEN = "".join(("gh", "p_", "aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA2bC4"))
"""An invented credential, put together here so that no file has one in it."""


class Machine:
    """One machine.

    Args:
        folder: of its files.
        name: part of the ids of its sessions.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.home = folder / name
        self.memory = self.home / "memory"
        self.variables = {"FUNES_HOME": str(self.home), "HF_HOME": str(folder / f"{name}-hf")}
        self.variables["HF_HUB_CACHE"] = str(folder / f"{name}-hf" / "hub")

    def use(self, monkeypatch: Any) -> Machine:
        """Be this machine from now on."""
        for name, value in self.variables.items():
            monkeypatch.setenv(name, value)
        return self

    def remember(
        self, session: str, texts: Sequence[str], *, vectors: bool = True, title: str | None = None, **fields: Any
    ) -> list[Chunk]:
        """Store a session whose turns have one text block each, with vectors unless they are to wait."""
        rows = [row for seq, text in enumerate(texts) for row in turn_rows(session, seq, text, **fields)]
        titles = [] if title is None else [header(session, title)]
        return self.store([*rows, *titles], vectors=vectors)

    def store(self, rows: list[Chunk], *, vectors: bool = True) -> list[Chunk]:
        """Append rows as they are."""
        with MemoryWriter(self.memory) as writer:
            writer.append(rows)
            writer.finish()
        if vectors:
            embed(self.memory, [row.id for row in rows if row.offset != REFERENCE and row.seq >= 0])
        return rows


def turn_rows(session: str, seq: int, text: str, **fields: Any) -> list[Chunk]:
    """The rows of a turn with one block; the ids are those that the indexer would make."""
    where = Session(session, "claude_code", "")
    uuid = f"turn{seq:04d}-{session}"
    block = Block("text", text)
    whole = passage_id(where, Turn(uuid, "user", "human", None, []), block, text, 0)
    return [
        make_chunk(
            piece,
            **{
                "id": split_id(whole, number),
                "session_id": session,
                "turn_uuid": uuid,
                "seq": seq,
                "role": "user",
                "split_idx": number,
                "offset": offset,
                **fields,
            },
        )
        for number, (offset, piece) in enumerate(split_text(text))
    ]


def reference(row: Chunk, session: str, seq: int) -> Chunk:
    """The row that says: this session contains that passage, too."""
    values = {name: getattr(row, name) for name in row.__slots__}
    place = {"session_id": session, "seq": seq, "turn_uuid": f"copy{seq:04d}-{session}"}
    return Chunk(**(values | place | {"text": None, "offset": REFERENCE}))


def embed(folder: Path, ids: Iterable[str]) -> None:
    """Give passages vectors that depend on their ids alone."""
    wanted = list(ids)
    if not wanted:
        return
    with VectorWriter(folder, VECTORS_ID) as writer:
        rows = writer.without_vectors(wanted)
        if not rows.num_rows:
            return
        seeds = [hashlib.sha256(one.encode()).digest() for one in rows.column("id").to_pylist()]
        dense = np.array([np.frombuffer(seed * 12, np.uint8) for seed in seeds], np.float32) - 127.5
        dense /= np.linalg.norm(dense, axis=1, keepdims=True)
        codes = [np.frombuffer(seed * 2, np.uint8)[:BYTES].reshape(1, BYTES) for seed in seeds]
        writer.append(rows, dense, codes, [np.array([seed[0]], np.uint16) for seed in seeds])
        writer.finish()


def rows_in(folder: Path) -> list[Chunk]:
    """All rows of a memory in a folder, in order."""
    tables = Tables("test", str(folder), [CHUNKS])
    assert tables.chunks is not None
    return table_to_chunks(tables.chunks.to_table())


def vectors_in(folder: Path) -> list[dict[str, Any]]:
    """Ids and filter columns of all vectors of a memory in a folder."""
    tables = Tables("test", str(folder), [VECTORS])
    assert tables.vectors is not None
    columns = [name for name in tables.vectors.schema.names if name not in ("vector", "codes", "pieces")]
    found: list[dict[str, Any]] = tables.vectors.to_table(columns=columns).to_pylist()
    return found


def texts_of(folder: Path, session: str) -> list[str]:
    """What a session says, in order, as `get` would read it."""
    return [chunk.text or "" for chunk in MemoryReader.open(str(folder)).session_chunks(session)]


def environment(machine: Machine, **more: str) -> dict[str, str]:
    """The environment of a process on a machine."""
    return {**os.environ, **machine.variables, **more}


__all__ = ["MOMENT", "TOKEN", "Machine", "embed", "environment", "reference", "rows_in", "texts_of", "turn_rows"]
