"""Reading passages in context: outlines of sessions, what surrounds a passage, completed matches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funes.memory.outline import Outline
from funes.memory.reader import MemoryReader
from funes.search.context import AROUND, BEFORE, PROMPT, Surroundings, completed, surroundings
from tests.support.chunks import make_chunk
from tests.support.small_memory import CACHE, PARSER, make_memory

OUTLINE = Outline(["p0", "a1", "a2", "p3", "p4", "a5", "a6", "a7", "a8", "a9"], [0, 3, 4])


def around(identifier: str) -> Surroundings:
    (found,) = surroundings({"s": OUTLINE}, [make_chunk("x", id=identifier, session_id="s")])
    return found


def test_an_answer_is_read_with_its_prompt_and_what_is_near() -> None:
    assert around("a9") == Surroundings("p4", "a8", ("a6", "a7", "a8"))
    assert around("a2") == Surroundings("p0", "a1", ("p0", "a1", "p3", "p4", "a5"))


def test_a_prompt_serves_no_prompt() -> None:
    assert around("p0") == Surroundings("", "", ("a1", "a2", "p3"))
    assert around("p4") == Surroundings("", "p3", ("a1", "a2", "p3", "a5", "a6", "a7"))


def test_what_stands_before_the_first_prompt_has_none() -> None:
    outline = Outline(["summary", "text"], [])
    (found,) = surroundings({"s": outline}, [make_chunk("x", id="text", session_id="s")])
    assert found == Surroundings("", "summary", ("summary",))


def test_tool_output_and_unknown_sessions_have_no_context() -> None:
    chunks = [make_chunk("x", id="tool", session_id="s"), make_chunk("x", id="a1", session_id="other")]
    assert surroundings({"s": OUTLINE}, chunks) == [Surroundings(), Surroundings()]


def test_a_passage_that_stands_twice_in_a_session_is_read_where_it_stands_first() -> None:
    outline = Outline(["p", "same", "q", "same"], [0, 2])
    assert outline.position("same") == 1


@given(st.lists(st.booleans(), min_size=1, max_size=30), st.data())
def test_prompts_are_found_as_by_looking_back(prompts: list[bool], data: st.DataObject) -> None:
    outline = Outline([str(n) for n in range(len(prompts))], [n for n, is_prompt in enumerate(prompts) if is_prompt])
    position = data.draw(st.integers(0, len(prompts) - 1))
    assert outline.is_prompt(position) == prompts[position]
    assert outline.prompt_before(position) == max((n for n in range(position) if prompts[n]), default=-1)


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


def test_outlines_hold_the_prose_in_order_with_references(tmp_path: Path) -> None:
    folder = make_memory(tmp_path)
    outlines = MemoryReader.open(str(folder)).outlines([PARSER, CACHE, "unknown"])
    assert set(outlines) == {PARSER, CACHE}
    parser = outlines[PARSER]
    assert [identifier[10:14] for identifier in parser.ids] == ["0000", "0001", "0001", "0003"]
    assert parser.prompts == [0, 3]
    assert parser.ids[0] in outlines[CACHE].ids  # said here too, stored there


def test_outlines_of_nothing(tmp_path: Path) -> None:
    assert MemoryReader.open(str(make_memory(tmp_path))).outlines([]) == {}
