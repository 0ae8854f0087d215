"""Blocks are put together from rows in whatever way an index run left them, and redacted as a whole."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from funes.chunking import Chunk, split_text
from funes.commands.scrub import scrub
from funes.commands.scrubbing.blocks import stored_blocks, with_texts
from funes.memory.handle import TableHandle
from funes.memory.reader import MemoryReader
from funes.memory.schema import CHUNKS, REFERENCE
from funes.memory.store import MemoryWriter
from funes.paths import memory_folder
from funes.secrets import Redactor
from tests.support.chunks import make_chunk
from tests.support.secret_samples import Inventor

TOKEN = Inventor(31).github()
FILLER = "\n".join(f"line {number} of the output of the build" for number in range(120))
TEXT = f"{FILLER[:1170]} {TOKEN} {FILLER[1170:]}"
PIECES = split_text(TEXT)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if Redactor().missing_engine:
        pytest.skip(Redactor().missing_engine)
    monkeypatch.setenv("FUNES_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FUNES_MODELS", str(tmp_path / "no models"))


def place(session: str, owned: set[int], present: set[int] | None = None, **fields: object) -> list[Chunk]:
    """Rows of the block in a session that stores some splits of it and refers to the others."""
    rows = []
    for split_idx, (offset, piece) in enumerate(PIECES):
        if present is None or split_idx in present:
            chunk = make_chunk(piece, id=f"{split_idx:024x}", session_id=session, turn_uuid="t", seq=0, ruleset="old")
            own = split_idx in owned
            rows.append(
                replace(
                    chunk,
                    text=piece if own else None,
                    offset=offset if own else REFERENCE,
                    split_idx=split_idx,
                    source_path="",
                    **fields,  # type: ignore[arg-type]
                )
            )
    return rows


def store(*rows: Chunk) -> None:
    with MemoryWriter(memory_folder()) as writer:
        writer.append(rows)


def whole(session: str) -> str:
    chunks = MemoryReader.open().session_chunks(session)
    text = ""
    for chunk in chunks:
        text = text[: chunk.offset] + (chunk.text or "")
    return text


@pytest.mark.parametrize("seed", range(4))
def test_a_block_may_be_stored_by_several_sessions(seed: int) -> None:
    generator = random.Random(seed)
    everything = set(range(len(PIECES)))
    first = set(generator.sample(sorted(everything), 2))
    rows = [*place("a", first), *place("b", everything - first), *place("c", set())]
    generator.shuffle(rows)
    store(*rows)
    assert len(PIECES) == 4
    report = scrub()
    assert (report.scanned, report.redacted) == (1, 1)
    expected = Redactor().redact(TEXT).text
    assert expected is not None
    assert TOKEN not in expected
    assert {session: whole(session) for session in "abc"} == dict.fromkeys("abc", expected)
    own = [chunk for chunk in _rows() if chunk.text is not None]
    assert len(own) == len(split_text(expected))
    assert {chunk.session_id for chunk in own} == {"a" if 0 in first else "b"}


def test_a_half_stored_block_is_completed_in_every_session() -> None:
    store(*place("a", {0, 1}, {0, 1}), *place("b", {2, 3}))
    scrub()
    expected = Redactor().redact(TEXT).text
    assert whole("a") == whole("b") == expected


def test_a_block_with_a_gap_keeps_what_there_is() -> None:
    store(*place("a", {0, 1, 3}, {0, 1, 3}))
    assert scrub().redacted == 1
    text = whole("a")
    assert TOKEN not in text
    assert "characters are missing" in text
    assert text.endswith(PIECES[3][1][-100:])


def test_references_to_nothing_are_left_alone() -> None:
    store(*place("a", set()), make_chunk("Clean.", id="e" * 24, session_id="b", ruleset="old"))
    report = scrub()
    assert (report.scanned, report.found) == (1, False)
    assert len(_rows()) == len(PIECES) + 1
    assert {chunk.ruleset for chunk in _rows()} == {report.ruleset}


def test_blocks_are_found_with_their_places() -> None:
    store(
        *place("a", {0, 1, 2, 3}), *place("b", set()), make_chunk("Other.", id="f" * 24, session_id="b", turn_uuid="u")
    )
    table = TableHandle(memory_folder(), CHUNKS)
    blocks = stored_blocks(lambda columns, condition: table.scan(columns, condition, with_row_address=True))
    assert [[item.session for item in block.places] for block in blocks] == [["a", "b"], ["b"]]
    texts = with_texts(lambda columns, condition: table.scan(columns, condition, with_row_address=True), blocks)
    assert [text for _, text in texts] == [TEXT, "Other."]


def _rows() -> list[Chunk]:
    from funes.memory.schema import CHUNK_COLUMNS, table_to_chunks

    return table_to_chunks(TableHandle(memory_folder(), CHUNKS).scan(CHUNK_COLUMNS))
