"""Reading passages in context: outlines of sessions, what surrounds a passage, completed matches."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funes.chunking import Chunk
from funes.memory.outline import NOWHERE, Outline
from funes.memory.reader import MemoryReader
from funes.memory.register import Names, Register, Rows
from funes.memory.schema import PROSE, REFERENCE, chunks_to_table
from funes.search.context import AROUND, BEFORE, PROMPT, Surroundings, completed, surroundings
from tests.support.chunks import make_chunk
from tests.support.small_memory import CACHE, PARSER, make_memory


def outline(ids: Sequence[str], prompts: Collection[int], session: str = "s") -> Outline:
    """Of one session with a passage in each turn."""
    return prose_of([_said(session, ids, turn, turn in prompts) for turn in range(len(ids))])


def prose_of(chunks: list[Chunk]) -> Outline:
    return Outline.of(register_of(chunks)).only(PROSE)


def register_of(chunks: list[Chunk]) -> Register:
    names = Names()
    table = chunks_to_table(chunks).append_column("_rowid", pa.array(range(len(chunks)), pa.uint64()))
    return Register(None, Rows.of(table, names), names)


def _said(session: str, ids: Sequence[str], turn: int, by_user: bool) -> Chunk:
    return make_chunk(
        "x", id=ids[turn], session_id=session, seq=turn, role="user" if by_user else "assistant", block_type="text"
    )


OUTLINE = outline(["p0", "a1", "a2", "p3", "p4", "a5", "a6", "a7", "a8", "a9"], [0, 3, 4])


def around(identifier: str) -> Surroundings:
    (found,) = surroundings(OUTLINE, [identifier])
    return found


def test_an_answer_is_read_with_its_prompt_and_what_is_near() -> None:
    assert around("a9") == Surroundings("p4", "a8", ("a6", "a7", "a8"))
    assert around("a2") == Surroundings("p0", "a1", ("p0", "a1", "p3", "p4", "a5"))


def test_a_prompt_serves_no_prompt() -> None:
    assert around("p0") == Surroundings("", "", ("a1", "a2", "p3"))
    assert around("p4") == Surroundings("", "p3", ("a1", "a2", "p3", "a5", "a6", "a7"))


def test_what_stands_before_the_first_prompt_has_none() -> None:
    (found,) = surroundings(outline(["summary", "text"], []), ["text"])
    assert found == Surroundings("", "summary", ("summary",))


def test_tool_output_and_unknown_passages_have_no_context() -> None:
    tool = make_chunk("x", id="tool", session_id="s", seq=2, block_type="tool_result")
    register = register_of([_said("s", ["a", "b"], 0, True), _said("s", ["a", "b"], 1, False), tool])
    found = surroundings(Outline.of(register).only(PROSE), ["tool", "unknown", "b"])
    assert found == [Surroundings(), Surroundings(), Surroundings("a", "a", ("a",))]
    assert surroundings(prose_of([]), ["a"]) == [Surroundings()]


def test_context_ends_where_the_session_does() -> None:
    chunks = [_said(session, [f"{session}0", f"{session}1"], turn, turn == 0) for turn in (1, 0) for session in "abc"]
    assert surroundings(prose_of(chunks), ["b0", "b1"]) == [
        Surroundings("", "", ("b1",)),
        Surroundings("b0", "b0", ("b0",)),
    ]


def test_a_passage_that_is_repeated_is_read_where_it_is_stored() -> None:
    chunks = [_said("s", ["p", "same", "q", "same"], turn, turn in (0, 2)) for turn in range(4)]
    chunks[3].text, chunks[3].offset = None, REFERENCE
    assert prose_of(chunks).places(["same"]).tolist() == [1]


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("ab")), min_size=1, max_size=30), st.data())
def test_prompts_are_found_as_by_looking_back(turns: list[tuple[bool, str]], data: st.DataObject) -> None:
    ids = [str(number) for number in range(len(turns))]
    chunks = [_said(session, ids, turn, prompt) for turn, (prompt, session) in enumerate(turns)]
    found = prose_of(chunks)
    number = data.draw(st.integers(0, len(turns) - 1))
    (place,) = found.places([ids[number]]).tolist()
    assert found.is_prompt(place) == turns[number][0]
    earlier = [n for n in range(number) if turns[n] == (True, turns[number][1])]
    before = found.prompt_before(place)
    assert (found.ids([before]) if before != NOWHERE else []) == ([ids[max(earlier)]] if earlier else [])


def test_matches_are_completed_at_a_discount() -> None:
    own = np.array([[0.5, 0.1, 0.1, 0.9]], np.float32)
    matches = {
        "prompt": np.array([0.2, 0.9, 0.1, 0.9], np.float32),
        "before": np.array([0.2, 0.1, 0.8, 0.9], np.float32),
        "near": np.array([0.9, 0.1, 0.1, 0.9], np.float32),
    }
    result = completed(own, [Surroundings("prompt", "before", ("near", "before", "gone"))], matches)
    assert result[0] == pytest.approx([0.5, 0.9 * PROMPT, 0.8 * BEFORE, 0.9])
    result = completed(own, [Surroundings("", "", ("near",))], {"near": np.array([1.0, 1, 0, 0], np.float32)})
    assert result[0] == pytest.approx([0.5, AROUND, 0.1, 0.9])


def test_completing_leaves_the_passages_own_matches_alone() -> None:
    own = np.zeros((1, 2), np.float32)
    completed(own, [Surroundings("p")], {"p": np.ones(2, np.float32)})
    assert not own.any()


def test_an_outline_holds_the_prose_in_order_with_references(tmp_path: Path) -> None:
    reader = MemoryReader.open(str(make_memory(tmp_path)))
    prose = reader.outline(prose=True)
    parser, cache = (
        [chunk for chunk in reader.session_chunks(one) if chunk.block_type in PROSE] for one in (PARSER, CACHE)
    )
    first, end = prose.session(int(prose.places([parser[0].id])[0]))
    assert prose.ids(range(first, end)) == [chunk.id for chunk in parser]
    assert [prose.seq(place) for place in range(first, end)] == [0, 1, 1, 3]
    assert [place - first for place in range(first, end) if prose.is_prompt(place)] == [0, 3]
    own = next(chunk for chunk in cache if chunk.id not in {one.id for one in parser})
    first, end = prose.session(int(prose.places([own.id])[0]))
    assert prose.ids(range(first, end)) == [chunk.id for chunk in cache]
    assert parser[0].id in prose.ids(range(first, end))  # said here too, stored there
    assert len(reader.outline()) > len(prose)
    assert reader.outline(prose=True) is prose
