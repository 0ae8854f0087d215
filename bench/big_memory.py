"""A memory of a chosen number of chunks: real text, made-up vectors, the project's own writers.

Encoding 100,000 passages takes an hour or two, and what a recall costs does not depend on what the vectors mean. So
two thousand passages are encoded, and all get: their own word pieces, which the tokenizer gives, and which decide how
many codes a passage has; for each piece the code of a real token, of the same piece where there is one; and the dense
vector of a real passage with noise. Text is real; when the traces have fewer chunks, their sessions are repeated under
other ids.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from funes.chunking import Chunk
from funes.memory import maintenance, schema
from funes.memory.reader import MemoryReader
from funes.memory.schema import CALLS, CHUNK_COLUMNS, PROSE, SESSION_TYPE, table_to_chunks
from funes.memory.store import MemoryWriter
from funes.memory.vector_store import VectorWriter
from funes.models import codes as token_codes

if TYPE_CHECKING:
    from funes.models.encoder import Encoder

FORM = 1
"""Raised when what is built changes."""

WORDS_AT_ONCE = 20_000
VECTORS_AT_ONCE = 2_000
POOL = 2_000
NOISE = 0.5
"""Length of the noise that is added to a unit vector."""

CODED = (*PROSE, *CALLS)


@dataclass(frozen=True, slots=True)
class BigMemory:
    """A memory made for measuring.

    Attributes:
        home: its `FUNES_HOME`.
        chunks: number of its chunks.
        questions: what to ask it, taken from its prose.
        origin: one line that says what it is made of.
        text_sha256: of all its text, so that two runs can tell whether they measured the same.
    """

    home: Path
    chunks: int
    questions: list[str]
    origin: str
    text_sha256: str

    @property
    def folder(self) -> Path:
        """Folder of its tables."""
        return self.home / "memory"


def build(words: Callable[[], Path], encoder: Encoder, chunks: int, work: Path, origin: str) -> BigMemory:
    """Make the memory, or take the one that an earlier run made of the same things.

    Args:
        words: gives the `FUNES_HOME` of a memory whose chunks are used; called only when the memory has to be made.
        encoder: the model.
        chunks: number of chunks wanted.
        work: folder in which it is kept.
        origin: what the chunks come from, one line.
    """
    home = work / f"memory-{chunks}"
    note = home / "made.json"
    key = {"form": FORM, "chunks": chunks, "origin": origin, "model": encoder.model_id, "code": _code()}
    if note.exists() and (made := json.loads(note.read_text()))["key"] == key:
        return BigMemory(home, chunks, made["questions"], origin, made["text_sha256"])
    shutil.rmtree(home, ignore_errors=True)
    began = time.monotonic()
    digest = _store_words(words(), home / "memory", chunks)
    pool = Pool.encode(encoder, _some_texts(home / "memory", max(100, min(POOL, chunks // 50))))
    _store_vectors(home / "memory", encoder, pool)
    questions = _questions(home / "memory", 200)
    note.write_text(json.dumps({"key": key, "questions": questions, "text_sha256": digest}))
    print(f"made a memory of {chunks:,} chunks in {time.monotonic() - began:.0f} s", flush=True)
    return BigMemory(home, chunks, questions, origin, digest)


def made(home: Path | None, chunks: int, work: Path, folder: Path | None, quick: bool) -> BigMemory:
    """The memory that a table is about: one that exists, or one of `chunks` chunks, built when it is not there yet.

    Args:
        home: a `FUNES_HOME` whose memory is taken as it is; None to build one.
        chunks: number of chunks to build.
        work: where what is built is kept.
        folder: the traces to build it of; None for the default (`corpus.find`).
        quick: whether a corpus that has to be made is small.
    """
    import corpus
    import indexing
    import kept
    from funes.models.encoder import load_encoder

    if home is not None:
        reader = MemoryReader.open(str(home))
        return BigMemory(
            home, reader.statistics().passages, _questions(home / "memory", 200), f"memory {home.name}", ""
        )
    traces = corpus.find(folder, work, quick)
    # A part of the traces will do for a part of the chunks: 150 sessions of the team are 57,000.
    wanted = 6_000_000 if chunks <= 10_000 else 0
    if wanted and traces.size > 2 * wanted:
        traces = corpus.sample(traces, work, wanted)

    def words() -> Path:
        home = work / f"words-{traces.size}"
        return home if kept.current(home) else indexing.words(traces, home).home

    return build(words, load_encoder(fetch=True), chunks, work, traces.describe())


def _code() -> str:
    """Hash of what decides how a memory lies on disk: a memory that other code made is made again."""
    assets = sorted((Path(token_codes.__file__).parent / "assets").glob("*.npy"))
    paths = [Path(maintenance.__file__), Path(schema.__file__), *assets]
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:16]


@dataclass(slots=True)
class Pool:
    """Real encodings to draw from.

    Attributes:
        dense: `(n, 384)` float32, unit rows.
        codes: `(tokens, 48)` uint8, ordered by word piece.
        starts: `(vocabulary + 1,)` int64: the codes of piece `p` are `codes[starts[p]:starts[p + 1]]`.
    """

    dense: npt.NDArray[np.float32]
    codes: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]

    @classmethod
    def encode(cls, encoder: Encoder, texts: list[str]) -> Pool:
        """Encode some texts."""
        made = encoder.encode_passages(texts)
        assert made.codes is not None
        pieces = np.concatenate(made.pieces)
        order = np.argsort(pieces, kind="stable")
        starts = np.searchsorted(pieces[order], np.arange(1 << 16))
        return cls(made.dense, np.concatenate(made.codes)[order], np.append(starts, len(order)))

    def vectors(self, count: int, chance: np.random.Generator) -> npt.NDArray[np.float32]:
        """Dense vectors, `(count, 384)` float32, unit rows."""
        width = self.dense.shape[1]
        rows = self.dense[chance.integers(len(self.dense), size=count)]
        rows = rows + chance.standard_normal((count, width), np.float32) * np.float32(NOISE / width**0.5)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def codes_of(self, pieces: npt.NDArray[np.uint16], chance: np.random.Generator) -> npt.NDArray[np.uint8]:
        """A code for each word piece, `(tokens, 48)` uint8."""
        low, high = self.starts[pieces], self.starts[pieces.astype(np.int64) + 1]
        drawn = chance.random(len(pieces))
        anywhere = (drawn * len(self.codes)).astype(np.int64)
        same_piece = low + (drawn * (high - low)).astype(np.int64)
        found: npt.NDArray[np.uint8] = self.codes[np.where(high > low, same_piece, anywhere)]
        return found


def _store_words(words: Path, folder: Path, wanted: int) -> str:
    """Write the chunks table; returns the sha256 of its text."""
    source = MemoryReader.open(str(words))
    digest = hashlib.sha256()
    left = wanted
    with MemoryWriter(folder, wait=60) as writer:
        for batch in _copies(source):
            part: list[Chunk] = []
            for chunk in batch:
                if left == 0:
                    break
                left -= chunk.block_type != SESSION_TYPE
                digest.update((chunk.text or "").encode())
                part.append(chunk)
            writer.append(part)
            writer.index()
            if left == 0:
                break
        writer.finish()
    return digest.hexdigest()


def _copies(source: MemoryReader) -> Iterator[list[Chunk]]:
    """The chunks of a memory, then the same as if of further sessions, and so on for ever."""
    rows = source._chunks.scan(CHUNK_COLUMNS, "text IS NOT NULL")  # the reader has no whole-table read, on purpose
    number = 0
    while True:
        for start in range(0, rows.num_rows, WORDS_AT_ONCE):
            batch = table_to_chunks(rows.slice(start, WORDS_AT_ONCE))
            yield batch if number == 0 else [_copy(chunk, number) for chunk in batch]
        number += 1


def _copy(chunk: Chunk, number: int) -> Chunk:
    identifier = hashlib.blake2b(f"{chunk.id} {number}".encode(), digest_size=12).hexdigest()
    return replace(chunk, id=identifier, session_id=f"{number:x}{chunk.session_id[1:]}-{number}")


def _some_texts(folder: Path, count: int) -> list[str]:
    """Texts of random passages of the tiers that have codes."""
    reader = MemoryReader.open(str(folder))
    kinds = ", ".join(f"'{kind}'" for kind in CODED)
    rows = reader._chunks.scan(["id"], f"block_type IN ({kinds})").column("id").to_pylist()
    drawn = random.Random(FORM).sample(rows, min(count, len(rows)))
    return [chunk.text or "" for chunk in reader.rows(drawn).values()]


def _store_vectors(folder: Path, encoder: Encoder, pool: Pool) -> None:
    chance = np.random.default_rng(FORM)
    with VectorWriter(folder, encoder.model_id, wait=60) as writer:
        order = writer.waiting().places
        for start in range(0, len(order), VECTORS_AT_ONCE):
            passages = writer.passages(order[start : start + VECTORS_AT_ONCE])
            pieces = encoder.pieces(passages.column("text").to_pylist())
            coded = [kind in CODED for kind in passages.column("block_type").to_pylist()]
            codes = [pool.codes_of(one, chance) if has else None for one, has in zip(pieces, coded, strict=True)]
            writer.append(passages, pool.vectors(len(pieces), chance), codes, pieces)
        writer.finish()


def _questions(folder: Path, count: int) -> list[str]:
    """Things to ask: runs of 8 to 16 words out of what was said."""
    reader = MemoryReader.open(str(folder))
    rows = reader._chunks.scan(["text"], "block_type = 'text' AND length(text) > 100").column("text").to_pylist()
    chance = random.Random(FORM)
    questions = []
    for text in chance.sample(rows, min(4 * count, len(rows))):
        words = text.split()
        size = chance.randint(8, 16)
        if len(words) > size and len(questions) < count:
            start = chance.randrange(len(words) - size)
            questions.append(" ".join(words[start : start + size])[:200])
    return questions
