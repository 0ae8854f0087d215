"""Reading a memory: words, vectors, codes, rows, sessions, statistics, and what hostile input does to them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funes.chunking import Chunk
from funes.memory.filters import Filter
from funes.memory.reader import MemoryReader
from funes.memory.schema import REFERENCE
from funes.memory.store import MemoryWriter
from funes.memory.vector_store import VectorWriter
from funes.memory.words import MAX_CHARACTERS, WordQuery, bounded
from funes.models.codes import BYTES
from tests.support.chunks import MOMENT, make_chunk
from tests.support.small_memory import CACHE, HELPER, PARSER, header, make_memory


def unit(*values: float) -> np.ndarray:
    vector = np.zeros(384, np.float32)
    vector[: len(values)] = values
    return vector / np.linalg.norm(vector)


def embed(folder: Path, model: str = "test-model") -> int:
    """Give every waiting passage a vector: the n-th gets the n-th axis."""
    with VectorWriter(folder, model) as writer:
        order = writer.waiting()
        passages = writer.passages(order.places)
        count = len(order)
        codes = [
            None if tier == 2 else np.full((3, BYTES), number, np.uint8) for number, tier in enumerate(order.tiers)
        ]
        pieces = [np.array([100, 101, 100 + number], np.uint16) for number in range(count)]
        writer.append(passages, np.eye(count, 384, dtype=np.float32), codes, pieces)
        writer.finish()
        return count


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_memory(tmp_path_factory.mktemp("memory"))
    embed(folder)
    return folder


@pytest.fixture(scope="module")
def reader(folder: Path) -> MemoryReader:
    return MemoryReader.open(str(folder))


def texts(reader: MemoryReader, ranked: list[tuple[str, float]]) -> list[str]:
    rows = reader.rows([identifier for identifier, _ in ranked])
    return [rows[identifier].text or "" for identifier, _ in ranked]


def test_a_question_is_not_a_conjunction(reader: MemoryReader) -> None:
    hits = reader.words("why on earth did anybody leave the streaming parser behind?", Filter(), 10)
    assert "streaming parser" in texts(reader, hits)[0]
    assert [score for _, score in hits] == sorted((score for _, score in hits), reverse=True)


def test_words_are_split_and_stemmed(reader: MemoryReader) -> None:
    assert "stale prices" in texts(reader, reader.words("cached price deploys", Filter(), 3))[0]


def test_phrases_need_their_words_in_order(reader: MemoryReader) -> None:
    assert texts(reader, reader.phrases(["recursive descent parser"], Filter(), 5)) == [
        "Good. Use the recursive descent parser then."
    ]
    assert reader.phrases(["descent recursive"], Filter(), 5) == []


def test_weights_move_the_order(reader: MemoryReader) -> None:
    light = reader.words(WordQuery(parts=(("cache", 1.0), ("parser", 0.01))), Filter(types=("text",)), 1)
    heavy = reader.words(WordQuery(parts=(("cache", 0.01), ("parser", 1.0))), Filter(types=("text",)), 1)
    assert "cache" in texts(reader, light)[0]
    assert "parser" in texts(reader, heavy)[0]
    phrase = WordQuery(parts=(("cache", 1.0),), phrases=(("held the whole file", 5.0),))
    assert "held the whole file" in texts(reader, reader.words(phrase, Filter(), 1))[0]


def test_a_copy_is_found_once_and_within_its_session(reader: MemoryReader) -> None:
    everywhere = reader.words("streaming", Filter(), 10)
    assert len(everywhere) == len({identifier for identifier, _ in everywhere}) == 2
    inside = reader.words("streaming", Filter(session=CACHE), 10)
    assert texts(reader, inside) == ["Why did we move off the streaming parser?"]
    assert reader.copies(CACHE) == [inside[0][0]]
    assert reader.copies(PARSER) == []


HOSTILE = [
    "",
    " ",
    "\x00",
    "!!!",
    "'",
    '"',
    '"unclosed',
    "a\x00b",
    "AND OR NOT",
    "+parser -cache ~x *",
    "(((",
    "a:b:c",
    "😀😀",
    "日本語",
    "ñ́",
    "text IS NULL; --",
    "x" * 100_000,
    "word " * 20_000,
    "\n".join(f"f{n}()" for n in range(20_000)),
    "\ud800 lone",
    "%" * 5000,
    "\u2028\u0085",
    "SELECT * FROM t",
]


@pytest.mark.parametrize("query", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_queries_are_only_words(reader: MemoryReader, query: str) -> None:
    for where in (Filter(), Filter(session=CACHE, types=("text",))):
        assert isinstance(reader.words(query, where, 5), list)
        assert isinstance(reader.phrases([query, query], where, 5), list)
        assert isinstance(reader.words(WordQuery(((query, 2.0), ("parser", 1.0)), ((query, 3.0),)), where, 5), list)


@settings(max_examples=50)
@given(st.text(max_size=200))
def test_any_query_is_answered(reader: MemoryReader, query: str) -> None:
    assert all(score > 0 for _, score in reader.words(query, Filter(), 5))
    assert "recursive" in " ".join(texts(reader, reader.words(f"{query} recursive", Filter(), 20)))


def test_a_pasted_document_is_cut() -> None:
    assert len(bounded("word " * 20_000)) < 10
    assert len(bounded(" ".join(f"w{n}" for n in range(5000)))) <= MAX_CHARACTERS
    assert bounded("as is  it\tstays") == "as is  it\tstays"


def test_limits(reader: MemoryReader) -> None:
    assert len(reader.words("parser", Filter(), 2)) == 2
    assert reader.words("parser", Filter(), 0) == []
    assert reader.nearest(unit(1), Filter(), 0) == []


def test_nearest_ranks_by_cosine(reader: MemoryReader) -> None:
    ranked = reader.nearest(unit(3, 2, 1), Filter(), 3)
    assert [score for _, score in ranked] == pytest.approx([3 / 14**0.5, 2 / 14**0.5, 1 / 14**0.5], abs=2e-3)
    filtered = reader.nearest(unit(3, 2, 1), Filter(harnesses=("codex",)), 50)
    rows = reader.rows([identifier for identifier, _ in filtered])
    assert len(filtered) == 2
    assert {row.harness for row in rows.values()} == {"codex"}


def test_nearest_within_a_session_finds_its_copies(reader: MemoryReader) -> None:
    ranked = reader.nearest(unit(1), Filter(session=CACHE), 50)
    assert len(ranked) == 3
    assert reader.copies(CACHE)[0] in dict(ranked)


def test_codes_and_pieces(reader: MemoryReader) -> None:
    every = [identifier for identifier, _ in reader.nearest(unit(1), Filter(), 100)]
    asked = ["no such id", *every]
    codes, pieces = reader.codes(asked), reader.pieces(asked)
    kinds = {identifier: row.block_type for identifier, row in reader.rows(every).items()}
    outputs = {identifier for identifier, kind in kinds.items() if kind == "tool_result"}
    assert outputs
    assert {asked[place] for place in codes.places} == set(every) - outputs
    assert {asked[place] for place in pieces.places} == set(every)
    assert codes.values.shape == (3 * len(codes.places), BYTES)
    assert (pieces.values.dtype, pieces.values.shape) == (np.uint16, (3 * len(every),))
    assert set(codes.lengths.tolist()) == set(pieces.lengths.tolist()) == {3}
    frequencies, rows = reader.piece_counts()
    assert rows == sum(kind in ("text", "thinking", "summary") for kind in kinds.values()) < len(every) - len(outputs)
    assert frequencies.shape == (30_522,)
    assert frequencies[100] == rows
    assert frequencies.sum() == 3 * rows - 2  # the first two passages repeat a piece


def test_piece_counts_are_counted_again_without_their_file(folder: Path, reader: MemoryReader) -> None:
    counted = reader.piece_counts()
    (folder / "piece-counts.npy").write_bytes(b"garbage")
    again = MemoryReader.open(str(folder)).piece_counts()
    assert again[1] == counted[1]
    assert (again[0] == counted[0]).all()


def test_rows_carry_everything(reader: MemoryReader) -> None:
    original = next(
        chunk for chunk in reader.session_chunks(PARSER) if chunk.seq == 1 and chunk.block_type == "tool_use"
    )
    assert reader.rows([original.id, original.id]) == {original.id: original}
    assert original.tool_name == "Bash"
    assert original.ts is not None
    assert original.ts.utcoffset() is not None
    assert original.ruleset == "r1"


@pytest.mark.parametrize(
    "place",
    [
        {"repo": "acme/web"},
        {"repo": "WEB"},
        {"workdir": "/home/dev/web"},
        {"branch": "fix/cache"},
        {"repo": "web", "session": CACHE},
    ],
)
def test_a_place_has_what_its_sessions_contain_though_another_stores_it(
    reader: MemoryReader, place: dict[str, str]
) -> None:
    copy = reader.copies(CACHE)[0]
    where = Filter(**place)
    assert [identifier for identifier, _ in reader.words("streaming parser", where, 5)] == [copy]
    assert copy in dict(reader.nearest(unit(1), where, 20))
    assert reader.passages([copy, "unknown"], where)[copy].session_id == PARSER
    assert reader.passages(["unknown"], where) == {}


def test_what_a_place_has_is_narrowed_all_the_same(reader: MemoryReader) -> None:
    copy = reader.copies(CACHE)[0]
    assert reader.words("streaming parser", Filter(repo="web", roles=("assistant",)), 5) == []
    assert reader.words("streaming parser", Filter(repo="web", types=("tool_use",)), 5) == []
    assert reader.words("streaming parser", Filter(repo="web", session=PARSER), 5) == []
    assert copy not in reader.passages([copy], Filter(repo="web", since=MOMENT.replace(year=2100)))
    assert copy not in dict(reader.words("streaming parser", Filter(repo="nowhere"), 5))


def test_copies_are_looked_for_again_when_the_memory_has_grown(tmp_path: Path) -> None:
    folder = make_memory(tmp_path)
    reader = MemoryReader.open(str(folder))
    where = Filter(repo="late/comer")
    assert reader.words("streaming parser", where, 5) == []
    copy = reader.rows([reader.copies(CACHE)[0]]).popitem()[1]
    place = {"session_id": "late", "repo": "late/comer", "text": None, "offset": REFERENCE}
    values = {name: getattr(copy, name) for name in copy.__slots__} | place
    with MemoryWriter(folder) as writer:
        writer.append([Chunk(**values)])
    reader.refresh()
    assert [identifier for identifier, _ in reader.words("streaming parser", where, 5)] == [copy.id]


def test_of_very_many_copies_the_latest_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funes.memory.copies.MOST_COPIES", 2)
    originals = [make_chunk(f"pebble {number}", id=f"p{number}", session_id="first", seq=number) for number in range(4)]
    place = {"session_id": "fork", "repo": "acme/fork", "text": None, "offset": REFERENCE}
    copies = [Chunk(**({name: getattr(one, name) for name in one.__slots__} | place)) for one in originals]
    with MemoryWriter(tmp_path) as writer:
        writer.append([*originals, *copies])
    reader = MemoryReader.open(str(tmp_path))
    assert sorted(dict(reader.words("pebble", Filter(repo="acme/fork"), 9))) == ["p2", "p3"]


def test_texts_are_those_of_the_rows_wherever_they_are_stored(reader: MemoryReader) -> None:
    ids = [chunk.id for session in (PARSER, CACHE, HELPER) for chunk in reader.session_chunks(session)]
    assert reader.texts([*ids, "unknown"]) == {one: chunk.text for one, chunk in reader.rows(ids).items()}
    assert reader.texts([]) == {}


def test_a_session_reads_in_order_with_its_copies(reader: MemoryReader) -> None:
    chunks = reader.session_chunks(CACHE)
    assert [chunk.seq for chunk in chunks] == [0, 1, 2]
    assert chunks[2].text == "Why did we move off the streaming parser?"
    assert (chunks[2].offset, chunks[2].session_id, chunks[2].turn_uuid) == (0, CACHE, "cafe0002-copy")
    splits = reader.session_chunks(PARSER, 2, 2)
    assert [chunk.split_idx for chunk in splits] == list(range(len(splits)))
    assert [chunk.seq for chunk in reader.session_chunks(PARSER, 1, 3)][0::4][:1] == [1]
    assert reader.session_chunks(PARSER, 4) == []


def test_find_sessions(reader: MemoryReader) -> None:
    assert reader.find_sessions("1a2b") == sorted([PARSER, CACHE])
    assert reader.find_sessions(PARSER) == [PARSER]
    assert reader.find_sessions("zz") == []
    assert len(reader.find_sessions("")) == 3


def test_session_summaries(reader: MemoryReader) -> None:
    by_id = {summary.id: summary for summary in reader.sessions()}
    assert set(by_id) == {PARSER, CACHE, HELPER}
    parser = by_id[PARSER]
    assert (parser.title, parser.first_prompt) == ("Parser rewrite", "Why did we move off the streaming parser?")
    assert (parser.turns, parser.kind, parser.parent_id) == (4, "main", "")
    assert parser.passages == len(reader.session_chunks(PARSER))
    helper = by_id[HELPER]
    assert (helper.kind, helper.parent_id, helper.turns) == ("subagent", CACHE, 1)
    cache = by_id[CACHE]  # has no header row
    assert (cache.title, cache.repo, cache.harness) == ("", "acme/web", "codex")
    assert (cache.turns, cache.passages) == (3, 3)
    assert parser.first_ts == MOMENT


def test_sessions_are_filtered_sorted_and_limited(reader: MemoryReader) -> None:
    assert [summary.id for summary in reader.sessions(Filter(harnesses=("codex",)))] == [CACHE]
    assert [summary.id for summary in reader.sessions(Filter(repo="web"), 1)] == [CACHE]
    assert reader.sessions(Filter(repo="nothing")) == []
    times = [summary.last_ts for summary in reader.sessions()]
    assert times == sorted(times, reverse=True)  # type: ignore[type-var]
    assert reader.sessions(Filter(session=PARSER))[0].turns == 4


def test_the_newest_header_wins(tmp_path: Path) -> None:
    for title in ("first", "second", "first"):
        with MemoryWriter(tmp_path) as writer:
            writer.append([make_chunk(id=title, session_id=PARSER), header(PARSER, title)])
    assert MemoryReader.open(str(tmp_path)).sessions()[0].title == "first"
    with MemoryWriter(tmp_path) as writer:
        stored = writer.stored_session(PARSER)
    assert stored.header is not None
    assert stored.header.text == "first"


def test_statistics(reader: MemoryReader) -> None:
    found = reader.statistics()
    assert (found.sessions, found.copies, found.waiting) == (3, 1, 0)
    assert found.passages == found.embedded == sum(found.passages_by_type.values())
    assert found.sessions_by_harness == {"claude_code": 2, "codex": 1}
    assert found.passages_by_harness["codex"] == 2
    assert found.models == ["test-model"]
    assert found.rulesets == {"r1": found.passages}
    assert min(found.bytes_text, found.bytes_vectors, found.bytes_indexes) > 0
    assert found.versions[0] >= 1
    assert found.last_indexed is not None
    assert found.first_ts == MOMENT


def test_statistics_without_vectors(tmp_path: Path) -> None:
    reader = MemoryReader.open(str(make_memory(tmp_path)))
    found = reader.statistics()
    assert found.waiting == found.passages
    assert found.waiting_by_type == found.passages_by_type
    assert (found.models, found.embedded, found.bytes_vectors) == ([], 0, 0)
    assert reader.nearest(unit(1), Filter(), 5) == []
    assert reader.codes(["x"]).places.tolist() == []
    assert reader.piece_counts()[1] == 0


def test_refresh_sees_what_was_written(tmp_path: Path) -> None:
    reader = MemoryReader.open(str(make_memory(tmp_path)))
    assert reader.refresh() is False
    with MemoryWriter(tmp_path) as writer:
        writer.append([make_chunk("a brand new quokka", id="new")])
    assert reader.words("quokka", Filter(), 5) == []
    assert reader.refresh() is True
    assert [identifier for identifier, _ in reader.words("quokka", Filter(), 5)] == ["new"]
    embed(tmp_path)
    assert reader.refresh() is True
    assert reader.model == "test-model"
    assert len(reader.nearest(unit(1), Filter(), 100)) == reader.statistics().passages


def test_another_programs_memory_is_readable(tmp_path: Path) -> None:
    """Fewer columns, as the original Rust program's published memories have, and a vector column."""
    import lance

    rows = {
        "id": ["a", "b"],
        "text": ["the streaming parser", "a cache of prices"],
        "session_id": ["s1", "s1"],
        "turn_uuid": ["t1", "t2"],
        "seq": [0, 1],
        "block_type": ["text", "text"],
        "role": ["user", "assistant"],
        "ts": pa.array([MOMENT, MOMENT], pa.timestamp("us", "UTC")),
        "vector": pa.array([[0.0] * 384] * 2, pa.list_(pa.float32(), 384)),
    }
    lance.write_dataset(pa.table(rows), str(tmp_path / "chunks.lance"))
    reader = MemoryReader.open(str(tmp_path))
    assert [identifier for identifier, _ in reader.words("streaming", Filter(), 5)] == ["a"]
    assert reader.rows(["b"])["b"].harness == "claude_code"
    assert [chunk.text for chunk in reader.session_chunks("s1")] == ["the streaming parser", "a cache of prices"]
    assert reader.sessions()[0].first_prompt == "the streaming parser"
    assert reader.statistics().passages == 2
    assert reader.copies("s1") == []
