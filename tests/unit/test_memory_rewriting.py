"""Rows are replaced and removed in one commit, and what they said cannot be read from the disk any more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from funes.chunking import Chunk
from funes.errors import LockedError
from funes.memory.filters import Filter
from funes.memory.identity import unfinished_rewrite
from funes.memory.maintenance import FTS, index_chunks
from funes.memory.reader import MemoryReader
from funes.memory.rewriting import ADDRESS, MemoryRewriter
from funes.memory.schema import CHUNK_COLUMNS, CHUNKS, REFERENCE, VECTORS, quoted, table_to_chunks
from funes.memory.store import MemoryWriter
from funes.memory.vector_store import VectorWriter
from tests.support.disk import files_with
from tests.support.small_memory import CACHE, HELPER, PARSER, blocks, header, make_memory

SECRET = "quokkazebra"
SENTENCE = f"The {SECRET} opens the staging door."


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    folder = make_memory(tmp_path / "memory")
    with MemoryWriter(folder) as writer:
        writer.append(blocks(PARSER, 4, [("text", "", SENTENCE)], "user"))
        index_chunks(writer._dataset, 0)
    embed(folder)
    return folder


def embed(folder: Path) -> None:
    with VectorWriter(folder, "m") as writer:
        rows = writer.passages(writer.waiting().places)
        count = rows.num_rows
        dense = np.zeros((count, 384), np.float32)
        dense[np.arange(count), np.arange(count) % 384] = 1
        pieces = [np.array([number], np.uint16) for number in range(count)]
        writer.append(rows, dense, [np.zeros((1, 48), np.uint8)] * count, pieces)
        writer.finish()


def rows_of(rewriter: MemoryRewriter, condition: str) -> list[tuple[int, Chunk]]:
    table = rewriter.scan(CHUNK_COLUMNS, condition)
    return list(zip(table.column(ADDRESS).to_pylist(), table_to_chunks(table), strict=True))


def index_files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if "_indices" in path.parts and path.is_file()}


def vocabulary(folder: Path) -> int:
    import lance

    statistics = lance.dataset(str(folder / CHUNKS)).stats.index_stats(FTS)
    assert statistics["num_unindexed_rows"] == 0
    return sum(segment.get("num_tokens", 0) for segment in statistics["segments"])


def snapshot(folder: Path) -> list[dict[str, Any]]:
    import lance

    return list(lance.dataset(str(folder / CHUNKS)).to_table().to_pylist())


def vector_ids(folder: Path) -> set[str]:
    import lance

    return set(lance.dataset(str(folder / VECTORS)).to_table(columns=["id"]).column("id").to_pylist())


def test_the_files_are_searched_for_what_they_say(memory: Path) -> None:
    assert [place.split("/")[1] for place in files_with(memory, SECRET)] == ["data"]
    assert files_with(memory, CACHE)  # an index of ids is read as well
    assert any("_indices" in place for place in files_with(memory, CACHE))
    assert not files_with(memory, "no such word")


def test_a_replaced_row_leaves_nothing_behind(memory: Path) -> None:
    before = snapshot(memory)
    with MemoryRewriter(memory) as rewriter:
        [(address, chunk)] = rows_of(rewriter, "contains(text, 'quokka')")
        new = replace(chunk, id="ab" * 12, text="The [REDACTED] opens the door.", ruleset="r2")
        rewriter.replace({address: [new]})
        assert unfinished_rewrite(memory)
        assert rewriter.finish()
    assert not unfinished_rewrite(memory)
    assert files_with(memory, SECRET) == []
    reader = MemoryReader.open(str(memory))
    assert reader.words(SECRET, Filter(), 5) == []
    assert next(identifier for identifier, _ in reader.words("redacted opens", Filter(), 5)) == "ab" * 12
    assert reader.rows(["ab" * 12])["ab" * 12].text == new.text
    after = snapshot(memory)
    key = lambda row: (row["session_id"], row["seq"], row["block_idx"], row["split_idx"])  # noqa: E731
    assert sorted(map(key, before)) == sorted(map(key, after))
    assert [row for row in sorted(after, key=key) if row["id"] != new.id] == [
        row for row in sorted(before, key=key) if row["id"] != chunk.id
    ]
    assert chunk.id not in vector_ids(memory)
    assert len(vector_ids(memory)) == len([row for row in after if row["offset"] != REFERENCE and row["seq"] >= 0]) - 1
    with_vectors = reader.rows(vector_ids(memory)).values()
    assert reader.piece_counts()[1] == sum(row.block_type in ("text", "thinking", "summary") for row in with_vectors)


def test_the_words_index_forgets_too(memory: Path, tmp_path: Path) -> None:
    # Lance keeps the words as an automaton that no search of the files can see into, so they are counted.
    before = index_files(memory)
    with MemoryRewriter(memory) as rewriter:
        [(address, chunk)] = rows_of(rewriter, "contains(text, 'quokka')")
        rewriter.replace({address: [replace(chunk, text="The door.")]})
        rewriter.finish()
    assert not before & index_files(memory)
    with MemoryRewriter(memory) as rewriter:
        rows = [chunk for _, chunk in rows_of(rewriter, "true")]
    with MemoryWriter(tmp_path / "fresh") as writer:
        writer.append(rows)
        index_chunks(writer._dataset, 0)
    assert vocabulary(memory) == vocabulary(tmp_path / "fresh")


def test_only_the_ruleset_of_restamped_rows_changes(memory: Path) -> None:
    before = snapshot(memory)
    with MemoryRewriter(memory) as rewriter:
        stale = [address for address, _ in rows_of(rewriter, f"session_id = {quoted(CACHE)}")]
        rewriter.replace({}, stale, "r9")
        rewriter.finish()
    for row in before:
        if row["session_id"] == CACHE:
            row["ruleset"] = "r9"
    after = snapshot(memory)
    assert sorted(map(repr, before)) == sorted(map(repr, after))
    reader = MemoryReader.open(str(memory))
    assert len(reader.words("streaming parser", Filter(session=PARSER), 9)) == 3
    assert [chunk.text for chunk in reader.session_chunks(CACHE)][-1] == "Why did we move off the streaming parser?"


def test_all_rows_of_a_session_can_go(memory: Path) -> None:
    with MemoryRewriter(memory) as rewriter:
        doomed = rows_of(rewriter, f"session_id = {quoted(HELPER)}")
        rewriter.replace({address: () for address, _ in doomed})
        rewriter.finish()
    reader = MemoryReader.open(str(memory))
    assert {session.id for session in reader.sessions()} == {PARSER, CACHE}
    assert files_with(memory, "callers") == []
    assert files_with(memory, HELPER) == []


def test_everything_can_go(memory: Path) -> None:
    with MemoryRewriter(memory) as rewriter:
        rewriter.replace({address: () for address, _ in rows_of(rewriter, "true")})
        rewriter.finish()
    assert snapshot(memory) == []
    assert vector_ids(memory) == set()
    assert files_with(memory, "parser") == []
    with MemoryWriter(memory) as writer:
        writer.append(blocks(PARSER, 0, [("text", "", "A new beginning.")], "user"))
        writer.finish()
    assert len(MemoryReader.open(str(memory)).words("beginning", Filter(), 5)) == 1


def test_a_vector_moves_with_its_passage(memory: Path) -> None:
    with MemoryRewriter(memory) as rewriter:
        [(own, original)] = rows_of(rewriter, f"id = {quoted(PARSER[:10] + '0000000000')} AND offset >= 0")
        [(place, reference)] = rows_of(rewriter, f"id = {quoted(original.id)} AND offset = {REFERENCE}")
        assert reference.session_id == CACHE
        rewriter.replace({own: (), place: [replace(reference, text=original.text, offset=0)]})
        rewriter.finish()
    reader = MemoryReader.open(str(memory))
    vector = np.zeros(384, np.float32)
    vector[0] = 1
    found = reader.nearest(vector, Filter(session=CACHE), 50)
    assert original.id in [identifier for identifier, _ in found]
    assert original.id not in [identifier for identifier, _ in reader.nearest(vector, Filter(session=PARSER), 50)]
    assert reader.rows([original.id])[original.id].session_id == CACHE


def test_the_newest_title_stays_the_newest(memory: Path) -> None:
    with MemoryWriter(memory) as writer:
        writer.append([header(PARSER, "A better title")])
    with MemoryRewriter(memory) as rewriter:
        doomed = [address for address, _ in rows_of(rewriter, f"session_id = {quoted(HELPER)}")]
        rewriter.replace(dict.fromkeys(doomed, ()))
        rewriter.finish()
    titles = {session.id: session.title for session in MemoryReader.open(str(memory)).sessions()}
    assert titles[PARSER] == "A better title"


def test_a_killed_rewrite_is_completed_by_the_next(memory: Path) -> None:
    with MemoryRewriter(memory) as rewriter:
        [(address, _)] = rows_of(rewriter, "contains(text, 'quokka')")
        rewriter.replace({address: ()})  # and now the process dies
    assert files_with(memory, SECRET)
    assert unfinished_rewrite(memory)
    with MemoryRewriter(memory) as rewriter:
        assert rewriter.finish()
    assert files_with(memory, SECRET) == []
    with MemoryRewriter(memory) as rewriter:
        assert not rewriter.finish()


def test_a_reader_survives(memory: Path) -> None:
    reader = MemoryReader.open(str(memory))
    assert len(reader.words(SECRET, Filter(), 5)) == 1
    with MemoryRewriter(memory) as rewriter:
        [(address, chunk)] = rows_of(rewriter, "contains(text, 'quokka')")
        rewriter.replace({address: [replace(chunk, id="cd" * 12, text="Redacted.")]})
        rewriter.finish()
    assert [chunk.text for chunk in reader.session_chunks(PARSER, first=4)] == ["Redacted."]
    reader.refresh()
    assert reader.words(SECRET, Filter(), 5) == []


def test_other_writers_wait(memory: Path) -> None:
    with MemoryRewriter(memory):
        with pytest.raises(LockedError), MemoryWriter(memory, wait=0):
            pass
        with pytest.raises(LockedError), VectorWriter(memory, "m", wait=0):
            pass
    with MemoryWriter(memory, wait=0), pytest.raises(LockedError), MemoryRewriter(memory, wait=0):
        pass
    with MemoryRewriter(memory, wait=0):
        pass
