from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from funes.chunking import split_text
from funes.commands.get import stitch, to_turns
from tests.support.chunks import make_chunk


def splits(text, limit=40, overlap=9, with_offsets=True):
    pieces = split_text(text, limit, overlap)
    return [
        make_chunk(piece, split_idx=i, offset=offset if with_offsets else 0) for i, (offset, piece) in enumerate(pieces)
    ]


@given(st.text(alphabet="ab \n\té", max_size=400))
def test_splits_are_stitched_to_the_whole_block(text):
    assert stitch(splits(text)) == text


def test_splits_without_offsets_are_joined_where_they_repeat():
    text = "\n".join(f"line {number} of some output" for number in range(20))
    assert stitch(splits(text, with_offsets=False)) == text


def test_a_missing_split_is_named():
    text = "".join(f"{number:04d}" for number in range(100))
    parts = splits(text)
    first, last = parts[0], parts[-1]
    whole = stitch([first, last])
    missing = last.offset - len(first.text)
    assert whole == f"{first.text}\n[{missing} characters are missing]\n{last.text}"
    assert stitch([parts[1], parts[2]]).startswith(f"\n[{parts[1].offset} characters are missing]\n{parts[1].text}")
    end = parts[2].offset + len(parts[2].text)
    assert stitch([parts[1], parts[2]]).endswith(text[parts[1].offset : end])


def test_turns_and_blocks_are_told_apart():
    chunks = [
        make_chunk("a", seq=0, turn_uuid="t0", role="user"),
        make_chunk("b", seq=1, turn_uuid="t1", block_type="thinking"),
        make_chunk("c", seq=1, turn_uuid="t1", block_idx=1, block_type="tool_use", tool_name="Bash"),
    ]
    turns = to_turns(chunks)
    assert [(turn.uuid, turn.role, [(b.type, b.tool_name, b.text) for b in turn.blocks]) for turn in turns] == [
        ("t0", "user", [("text", "", "a")]),
        ("t1", "assistant", [("thinking", "", "b"), ("tool_use", "Bash", "c")]),
    ]
    assert turns[1].size == 2
