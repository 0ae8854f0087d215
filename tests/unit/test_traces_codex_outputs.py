from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.codex import (
    CALL,
    Record,
    assistant,
    call,
    command_event,
    event,
    item,
    meta,
    output,
    read,
    record,
    said,
    user,
    write,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ('{"output":"inner\\n","metadata":{"exit_code":1}}', "inner\n"),
        ('{"output": "a tool\'s own JSON"}', '{"output": "a tool\'s own JSON"}'),
        ('{"name": "kiln"}', '{"name": "kiln"}'),
        ("{broken", "{broken"),
        ([{"type": "input_text", "text": "one"}, {"type": "input_image", "image_url": "data:x"}], "one"),
        ('[{"type":"text","text":"from a server"}]', "from a server"),
        ('[{"type":"kiln"}]', '[{"type":"kiln"}]'),
        ({"content": "failed", "success": False}, "failed"),
        ({"content": [{"type": "input_text", "text": "listed"}], "success": True}, "listed"),
        ({"output": "from a dict", "metadata": {"exit_code": 0}}, "from a dict"),
        ({"Err": "no such tool"}, "no such tool"),
        ({"temperature": 1222}, '{"temperature": 1222}'),
        ([1, 2], "[1, 2]"),
        (7, "7"),
    ],
)
def test_every_shape_of_output_becomes_its_text(value: object, text: str, tmp_path: Path) -> None:
    _, turns, _ = read(write(tmp_path, [meta(), call(), output(value)]))
    assert (turns[-1].blocks[0].type, turns[-1].blocks[0].text) == ("tool_result", text)
    assert turns[-1].blocks[0].tool_name == "exec_command"


@pytest.mark.parametrize("value", ["", None, {}, [], {"content": "", "success": True}])
def test_an_empty_output_is_counted(value: object, tmp_path: Path) -> None:
    _, turns, report = read(write(tmp_path, [meta(), call(), output(value)]))
    assert len(turns) == 1
    assert report.skipped["empty message"] == 1


HEAD = "Chunk ID: a1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n"


def test_the_complete_output_is_taken_when_the_recorded_one_is_cut(tmp_path: Path) -> None:
    full = "\n".join(map(str, range(500)))
    records = [meta(), call(), command_event(full), output(HEAD + "0\n1\n…490 lines truncated…\n499")]
    _, turns, report = read(write(tmp_path, records))
    assert [turn.blocks[0].text for turn in turns[1:]] == [HEAD + full]
    assert report.skipped["event that repeats the conversation"] == 1


def test_the_recorded_output_is_kept_when_nothing_is_cut(tmp_path: Path) -> None:
    _, turns, _ = read(write(tmp_path, [meta(), call(), command_event("pot\n"), output(HEAD + "pot\n")]))
    assert [turn.blocks[0].text for turn in turns[1:]] == [HEAD + "pot\n"]


def test_a_complete_output_that_comes_late_is_added_when_it_has_more(tmp_path: Path) -> None:
    full = "\n".join(map(str, range(500)))
    running = "Wall time: 1 seconds\nProcess running with session ID 4321\nOutput:\n0\n1"
    late = [meta(), call(), output(running), command_event(full)]
    turns = read(write(tmp_path, late))[1]
    assert [turn.blocks[0].text for turn in turns[1:]] == [running, full]
    assert len({turn.uuid for turn in turns}) == 3

    poll = "call_Poll9rT7vX1bN5mL2aD8eF4"
    polled = [
        *late[:3],
        call("write_stdin", {"session_id": 4321}, poll),
        output(f"Wall time: 1 s\nOutput:\n{full[3:]}", poll),
        late[3],
    ]
    assert [t.blocks[0].text for t in read(write(tmp_path, polled))[1] if t.role == "tool"][
        -1
    ] == f"Wall time: 1 s\nOutput:\n{full[3:]}"


def test_an_output_known_from_its_event_only_is_kept_once(tmp_path: Path) -> None:
    records = [meta(), call(), command_event("pot\n")]
    path = write(tmp_path, records)
    _, first, report = read(path)
    assert [turn.blocks[0].text for turn in first[1:]] == ["pot\n"]
    write(tmp_path, [*records, output(HEAD + "pot\n"), assistant("Done.")])
    assert [text for *_, text in said(read(path, report.resume)[1])] == ["Done."]


def test_a_command_that_a_person_ran_is_not_taken_from_its_event(tmp_path: Path) -> None:
    records = [meta(), command_event("secret", "u1", source="user_shell", command=["cat", "x"])]
    assert read(write(tmp_path, records))[1] == []


@pytest.mark.parametrize(
    ("made", "result"),
    [
        (call("mcp__funes__recall", {"query": "kiln"}), "[2026-03-04] a hit"),
        (call("recall", {"query": "kiln"}, namespace="mcp__funes"), "[2026-03-04] a hit"),
        (call(arguments={"cmd": "funes recall kiln"}), "a hit"),
        (call("shell", {"command": ["bash", "-lc", "cd x && funes get 1 2"]}), "a turn"),
        (call("recall", {"query": "kiln"}), "a hit\n  → get 01a2 77"),
        (call("other"), '<untrusted_tool_result source="mcp__funes__recall">\na hit\n</untrusted_tool_result>'),
    ],
)
def test_what_funes_recalled_is_not_remembered_again(made: Record, result: str, tmp_path: Path) -> None:
    _, turns, report = read(
        write(tmp_path, [meta(), made, command_event(result * 900), output(result), command_event(result * 1900)])
    )
    assert [turn.blocks[0].type for turn in turns] == ["tool_use"]
    assert report.skipped["own recall output"] == 1


def test_names_of_namespaced_tools(tmp_path: Path) -> None:
    _, turns, _ = read(write(tmp_path, [meta(), call("ask_question", {"q": 1}, namespace="mcp__wiki")]))
    assert turns[0].blocks[0].tool_name == "mcp__wiki__ask_question"


def test_arguments_that_are_not_json_stay_as_they_are(tmp_path: Path) -> None:
    made = item({"type": "function_call", "name": "shell", "arguments": '{"command": ["ls"', "call_id": CALL})
    assert read(write(tmp_path, [meta(), made]))[1][0].blocks[0].text == '{"command": ["ls"'


def test_a_compaction_is_one_summary_and_its_history_is_ignored(tmp_path: Path) -> None:
    history = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fire the kiln."}]}]
    summary = "Another language model started to solve this problem.\nThe kiln is hot."
    records = [
        meta(),
        user("Fire the kiln."),
        assistant("The kiln is hot.", 2),
        record("compacted", {"message": summary, "replacement_history": history}, 3),
        assistant("Going on.", 4),
        record("compacted", {"message": "", "replacement_history": history}, 5),
        item({"type": "compaction", "encrypted_content": "gAAA"}, 5),
    ]
    _, turns, report = read(write(tmp_path, records))
    assert said(turns) == [
        ("user", "human", "text", "Fire the kiln."),
        ("assistant", "compaction", "summary", summary),
        ("assistant", "agent", "text", "Going on."),
    ]
    assert turns[1].parent_uuid == turns[0].uuid
    assert report.skipped["compaction without a readable summary"] == 2


def test_rolled_back_turns_are_history_too(tmp_path: Path) -> None:
    records = [
        meta(),
        user("First idea."),
        event({"type": "thread_rolled_back", "num_turns": 1}),
        user("Second idea.", 3),
    ]
    assert [text for *_, text in said(read(write(tmp_path, records))[1])] == ["First idea.", "Second idea."]
