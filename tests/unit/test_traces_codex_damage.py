from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.codex import (
    OLD_TURN,
    TURN,
    Record,
    assistant,
    conversation,
    event,
    meta,
    read,
    record,
    rollout_name,
    said,
    started,
    user,
    write,
)


def growing() -> bytes:
    records = [meta(), *conversation(""), *conversation(OLD_TURN), started(TURN), *conversation("")]
    return b"".join(json.dumps(r).encode() + b"\n" for r in records)


WHOLE = growing()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, len(WHOLE)), min_size=1, max_size=3).map(sorted))
def test_a_file_read_while_it_grows_gives_the_turns_of_one_read(cuts: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, rollout_name())
        resume: dict[str, Any] | None = None
        seen: list[Any] = []
        for cut in [*cuts, len(WHOLE)]:
            path.write_bytes(WHOLE[:cut])
            _, turns, report = read(path, resume)
            resume = json.loads(json.dumps(report.resume))
            seen += turns
        assert seen == read(path)[1]


def test_an_answer_read_from_its_event_before_its_item_was_written_is_kept_once(tmp_path: Path) -> None:
    records = [meta(), started(), user("Fire."), event({"type": "agent_message", "message": "Hot."})]
    path = write(tmp_path, records)
    _, first, report = read(path)
    write(
        tmp_path, [*records, assistant("Hot."), event({"type": "agent_message", "message": "Off."}), assistant("Off.")]
    )
    _, second, _ = read(path, report.resume)
    assert [text for *_, text in said(first + second)] == ["Fire.", "Hot.", "Off."]


def test_a_rewritten_file_is_read_from_its_start(tmp_path: Path) -> None:
    path = write(tmp_path, [meta(), user("Fire the kiln."), assistant("Hot.")])
    resume = read(path)[2].resume
    write(tmp_path, [meta(), user("Fire the oven."), assistant("Hot."), user("And now?")])
    assert [text for *_, text in said(read(path, resume)[1])] == ["Fire the oven.", "Hot.", "And now?"]


def test_a_broken_resume_state_does_not_raise(tmp_path: Path) -> None:
    path = write(tmp_path, [meta(), user("Fire the kiln.")])
    good = read(path)[2].resume
    assert good is not None
    for bad in (
        {},
        {"offset": "x"},
        {**good, "rollout": 5, "session": []},
        {**good, "rollout": {"calls": {"open": 3}, "turns": []}},
    ):
        read(path, bad)


def test_damaged_lines_are_noted_and_the_rest_is_kept(tmp_path: Path) -> None:
    path = write(tmp_path, [meta(), user("One."), user("Two."), user("Three.")])
    lines = path.read_bytes().splitlines(keepends=True)
    torn = lines[1][: len(lines[1]) // 2]
    path.write_bytes(
        lines[0]
        + torn
        + lines[1]
        + b"\x00" * 300
        + b"\n"
        + b"[1]\n\n"
        + lines[2].replace(b"\n", b"\r\n")
        + lines[3][:-9]
    )
    _, turns, report = read(path)
    assert [text for *_, text in said(turns)] == ["One.", "Two."]
    assert report.torn_tail
    assert len(report.damaged) == 3


def test_a_missing_file_is_a_failure_of_that_file(tmp_path: Path) -> None:
    _, turns, report = read(tmp_path / "gone.jsonl")
    assert turns == []
    assert report.failed.startswith("it cannot be opened")


def one_of(words: str) -> st.SearchStrategy[str]:
    return st.sampled_from(words.split())


names = one_of(
    "type role content text id call_id name arguments output input action summary message item payload turn_id cwd "
    "session items result changes command aggregated_output timestamp metadata source git"
)
types = one_of(
    "message reasoning function_call function_call_output custom_tool_call local_shell_call web_search_call "
    "agent_message input_text output_text user assistant user_message agent_message exec_command_end item_completed "
    "CommandExecution UserMessage FileChange McpToolCall Reasoning session_meta response_item event_msg compacted "
    "turn_context inter_agent_communication image_generation_call"
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | types,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names | st.text(max_size=5), inner, max_size=5),
    max_leaves=12,
)


objects = st.dictionaries(names, values | types, max_size=6)
enveloped = st.builds(record, types, st.builds(lambda kind, rest: rest | {"type": kind}, types | values, objects))


@settings(max_examples=150, deadline=None)
@given(st.lists(objects | enveloped, max_size=6))
def test_no_record_raises_whatever_it_holds(records: list[Record]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for suffix in (".jsonl", ".json"):
            path = Path(folder, rollout_name(suffix=suffix))
            path.write_text("".join(json.dumps(r) + "\n" for r in records))
            _, turns, report = read(path)
            assert report.turns == len(turns)
            assert all(turn.uuid and turn.blocks and all(block.text for block in turn.blocks) for turn in turns)
            json.dumps(report.resume)
