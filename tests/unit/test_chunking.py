"""Chunks cover a block without a gap, stay within the limit, and can be stitched together again."""

from __future__ import annotations

import base64
import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funes.chunking import MAX_CHARACTERS, OVERLAP, elide_data_uris, passage_id, split_id, split_text
from funes.traces.model import Block, Session, Turn

# Texts with the shapes that decide where a cut falls: words, lines, long runs without either, astral characters.
texts = st.lists(
    st.one_of(
        st.text(max_size=30),
        st.sampled_from(
            ["\n", "\n\n", " ", "\t", "word ", "ein längerer Satz. ", "x" * 700, "y" * 1300, "🦉" * 40, "\r\n"]
        ),
    ),
    max_size=60,
).map("".join)


def stitch(pieces: list[tuple[int, str]]) -> str:
    text = ""
    for offset, piece in pieces:
        text = text[:offset] + piece
    return text


@given(texts)
def test_pieces_cover_the_text_without_a_gap(text: str) -> None:
    pieces = split_text(text)
    end = 0
    for offset, piece in pieces:
        assert offset <= end
        assert text[offset : offset + len(piece)] == piece
        end = max(end, offset + len(piece))
    assert end == len(text)
    assert pieces[0][0] == 0


@given(texts)
def test_pieces_stay_within_the_limits(text: str) -> None:
    pieces = split_text(text)
    for offset, piece in pieces:
        assert len(piece) <= MAX_CHARACTERS
        assert piece or (offset, piece) == (0, "")
    for (first, piece), (second, _) in itertools.pairwise(pieces):
        assert first < second
        assert first + len(piece) - OVERLAP <= second <= first + len(piece)


@given(texts)
def test_pieces_stitch_together(text: str) -> None:
    assert stitch(split_text(text)) == text


@given(texts, st.integers(2, 50))
def test_small_limits_work_too(text: str, limit: int) -> None:
    pieces = split_text(text, limit, limit // 2 - 1)
    assert stitch(pieces) == text
    assert all(len(piece) <= limit for _, piece in pieces)


def test_a_short_text_is_one_piece() -> None:
    assert split_text("a" * MAX_CHARACTERS) == [(0, "a" * MAX_CHARACTERS)]


def test_a_cut_falls_behind_a_line_end_in_the_second_half() -> None:
    text = "a" * 500 + "\n" + "b" * 400 + "\n" + "c" * 900
    first, second = split_text(text)[:2]
    assert first == (0, "a" * 500 + "\n" + "b" * 400 + "\n")
    assert second[0] == 902 - OVERLAP  # neither a line nor a word starts in the overlap, so all of it is repeated


def test_a_cut_falls_behind_a_blank_when_there_is_no_line_end() -> None:
    text = "wort " * 500
    for offset, piece in split_text(text)[:-1]:
        assert piece.endswith(" ")
        assert text[offset : offset + 4] == "wort"


def test_the_next_piece_starts_at_a_line_within_the_overlap() -> None:
    lines = "".join(f"line {number:04} of a log\n" for number in range(200))
    for offset, piece in split_text(lines):
        assert lines[offset : offset + 4] == "line"
        assert piece.endswith("\n")


@pytest.mark.parametrize(("text", "number"), [("", 1), ("x", 1), ("x" * 1200, 1), ("x" * 1201, 2)])
def test_number_of_pieces(text: str, number: int) -> None:
    assert len(split_text(text)) == number


def test_data_uris_lose_their_payload() -> None:
    payload = base64.b64encode(bytes(range(256)) * 4).decode()
    text = f"before ![shot](data:image/png;base64,{payload}) after"
    assert elide_data_uris(text) == f"before ![shot]([data:image/png, {len(payload) * 3 // 4} bytes left out]) after"


def test_data_uris_with_parameters_lose_their_payload() -> None:
    uri = "data:text/plain;charset=utf-8;base64," + "QUJD" * 50
    assert elide_data_uris(uri) == "[data:text/plain, 150 bytes left out]"


@pytest.mark.parametrize("text", ["data:image/png;base64,short", "data: x", "no uri ;base64, here", ""])
def test_what_is_no_data_uri_stays(text: str) -> None:
    assert elide_data_uris(text) == text


@given(texts)
def test_elision_leaves_no_long_payload(text: str) -> None:
    out = elide_data_uris(text + "data:a/b;base64," + "A" * 100)
    assert not re.search(r"data:[\w.+/-]+;base64,[A-Za-z0-9+/=_-]{64,}", out)


def _place(session: str = "s", turn: str = "t", anchor: str = "") -> tuple[Session, Turn, Block]:
    block = Block("text", "hello", anchor=anchor)
    return Session(session, "codex"), Turn(turn, "user", "human", None, [block]), block


def test_a_passage_with_an_anchor_has_one_id_everywhere() -> None:
    here, there = _place("s1", "t1", "m1"), _place("s2", "t9", "m1")
    assert passage_id(*here, "hello", 0) == passage_id(*there, "hello", 3)
    assert passage_id(*here, "hello", 0) != passage_id(*here, "other text", 0)


def test_a_passage_without_an_anchor_is_named_by_its_place() -> None:
    first = passage_id(*_place("s1", "t1"), "hello", 0)
    assert re.fullmatch("[0-9a-f]{24}", first)
    others = {passage_id(*_place("s2", "t1"), "hello", 0), passage_id(*_place("s1", "t2"), "hello", 0)}
    others.add(passage_id(*_place("s1", "t1"), "hello", 1))
    assert len(others | {first}) == 4


def test_ids_stay_what_they_are() -> None:
    """A changed id would store every passage again."""
    assert passage_id(*_place("s1", "t1"), "hello", 0) == "70fe08eefa3087b23f9d141b"
    assert passage_id(*_place("s1", "t1", "m1"), "h\ud800 🦉", 0) == "a0c9371864cb4b62fa8b9928"
    assert split_id("0" * 24, 3) == "0b32a83fe6e78512f0944624"


def test_split_ids_differ_and_begin_with_the_block_id() -> None:
    block = passage_id(*_place(), "hello", 0)
    ids = [split_id(block, k) for k in range(50)]
    assert ids[0] == block
    assert len(set(ids)) == 50
