from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funes.traces.model import Head, ReadReport, Session, Turn
from funes.traces.pi import PiSource
from funes.traces.pi_text import session_of_file, split_prompt

Record = dict[str, Any]
SESSION = "01a20000-0000-7000-8000-00000000000a"
PARENT = "01a10000-0000-7000-8000-00000000000b"


def header(ident: str = SESSION, **fields: Any) -> Record:
    start = {"type": "session", "version": 3, "id": ident, "timestamp": "2026-03-04T10:20:00.000Z"}
    return start | {"cwd": "/home/dev/kiln"} | fields


def entry(kind: str, number: int, **fields: Any) -> Record:
    ids = {"id": f"{number:08x}", "parentId": f"{number - 1:08x}" if number > 1 else None}
    return {"type": kind, **ids, "timestamp": f"2026-03-04T10:20:{number:02d}.000Z"} | fields


def message(number: int, role: str, content: object = None, **fields: Any) -> Record:
    body: Record = {"role": role, "timestamp": 1772619600000 + number}
    return entry("message", number, message=body | ({} if content is None else {"content": content}) | fields)


def call(number: int, name: str, arguments: object, ident: str = "call_1") -> Record:
    return message(number, "assistant", [{"type": "toolCall", "id": ident, "name": name, "arguments": arguments}])


def result(number: int, text: object, name: str = "bash", ident: str = "call_1") -> Record:
    content = [{"type": "text", "text": text}] if isinstance(text, str) else text
    return message(number, "toolResult", content, toolCallId=ident, toolName=name, isError=False)


def write(folder: Path, records: list[Record], name: str = f"2026-03-04T10-20-00-000Z_{SESSION}.jsonl") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    return path


def read(path: Path, resume: Record | None = None) -> tuple[Session, list[Turn], ReadReport]:
    report = ReadReport()
    pairs = list(PiSource().read(path, report, resume))
    return pairs[0][0] if pairs else Session("", "pi"), [turn for _, turn in pairs], report


def said(turns: list[Turn]) -> list[tuple[str, str, str, str]]:
    return [(turn.role, turn.origin, block.type, block.text) for turn in turns for block in turn.blocks]


def passages(turns: list[Turn]) -> list[tuple[str, str, str]]:
    return [(block.anchor, block.type, block.text) for turn in turns for block in turn.blocks]


def test_every_role_of_the_current_version(tmp_path: Path) -> None:
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    records = [
        header(),
        entry("model_change", 1, provider="p", modelId="m"),
        message(2, "system", "", sections={"preamble": "You are a potter."}, toolsAdded=[]),
        message(3, "user", "Fire the kiln."),
        message(4, "user", [{"type": "text", "text": "And the lid."}, image]),
        message(
            5,
            "assistant",
            [
                {"type": "thinking", "thinking": "Check the cone.", "thinkingSignature": "s"},
                {"type": "text", "text": "Looking."},
                {"type": "toolCall", "id": "call_1", "name": "bash", "arguments": {"command": "ls\npwd"}},
            ],
        ),
        result(6, [{"type": "text", "text": "pot.txt"}, image]),
        message(7, "bashExecution", command="git status", output="clean", exitCode=0, cancelled=False),
        message(8, "bashExecution", command="cat .env", output="hidden", excludeFromContext=True),
        message(9, "custom", "injected by an extension", customType="x", display=True),
        entry("custom_message", 10, customType="x", content="injected", display=False),
        entry("custom", 11, customType="x", data={"text": "state"}),
        entry("compaction", 12, summary="The kiln is hot.", firstKeptEntryId="x", tokensBefore=9),
        entry("branch_summary", 13, fromId="x", summary="The lid leaked."),
        message(14, "compactionSummary", summary="Older summary.", tokensBefore=1),
        message(15, "branchSummary", summary="Older branch.", fromId="x"),
        entry("context_edit", 16, targetId="x", replacement="rewritten"),
        entry("usage", 17, usage={"input": 0}),
        entry("session_info", 18, name=" Kiln repair "),
        entry("entry_of_next_year", 19, text="x"),
    ]
    session, turns, report = read(write(tmp_path, records))
    assert said(turns) == [
        ("user", "human", "text", "Fire the kiln."),
        ("user", "human", "text", "And the lid."),
        ("assistant", "agent", "thinking", "Check the cone."),
        ("assistant", "agent", "text", "Looking."),
        ("assistant", "agent", "tool_use", '{"command": "ls\npwd"}'),
        ("tool", "tool", "tool_result", "pot.txt"),
        ("user", "human", "tool_use", "git status"),
        ("tool", "tool", "tool_result", "clean"),
        ("user", "compaction", "summary", "The kiln is hot."),
        ("user", "compaction", "summary", "The lid leaked."),
        ("user", "compaction", "summary", "Older summary."),
        ("user", "compaction", "summary", "Older branch."),
    ]
    assert session == Session(
        SESSION, "pi", workdir="/home/dev/kiln", title="Kiln repair", source_path=str(tmp_path / session.source_path)
    )
    assert report.skipped == {
        "metadata": 6,
        "harness text": 3,
        "image data": 2,
        "command that the user kept from the agent": 1,
        "unknown type entry_of_next_year": 1,
    }
    assert turns[0].timestamp is not None
    assert turns[0].timestamp.isoformat() == "2026-03-04T10:20:03+00:00"
    assert (turns[3].blocks[0].tool_name, turns[4].blocks[0].tool_name) == ("bash", "bash")


@pytest.mark.parametrize("content", [None, "", "  ", [], [{"type": "thinking", "thinking": ""}], {"x": 1}, 7])
def test_messages_without_text_are_counted(content: object, tmp_path: Path) -> None:
    _, turns, report = read(write(tmp_path, [header(), message(1, "assistant", content)]))
    if content == 7:
        assert said(turns) == [("assistant", "agent", "text", "7")]
    else:
        assert (turns, report.skipped["empty message"]) == ([], 1)


def test_the_tree_runs_through_entries_without_content(tmp_path: Path) -> None:
    records = [
        header(),
        message(1, "user", "Start."),
        entry("model_change", 2),
        entry("custom", 3),
        message(4, "user", "One way."),
        message(5, "user", "Other way.", parentId="x"),
        message(6, "user", "A second root."),
    ]
    records[5]["parentId"] = records[2]["id"]
    records[6]["parentId"] = None
    turns = read(write(tmp_path, records))[1]
    start, one, other, root = turns
    assert [turn.parent_uuid for turn in turns] == ["", start.uuid, start.uuid, ""]
    assert [turn.blocks[0].text for turn in (start, one, other, root)] == [
        "Start.",
        "One way.",
        "Other way.",
        "A second root.",
    ]


def test_what_pi_puts_in_front_of_a_prompt_is_not_the_prompt(tmp_path: Path) -> None:
    attached = '<file name="/home/dev/notes.md">\ncone 6\n</file>'
    skill = '<skill name="glaze" location="/s/SKILL.md">\nReferences are relative to /s.\n\nMix.\n</skill>'
    records = [
        header(),
        message(1, "user", f'{attached}\n<file name="/home/dev/pot.png"></file>\nWhat is this?'),
        message(2, "user", f"{skill}\n\nuse the blue one"),
        message(3, "user", skill),
        message(4, "user", '<file> is not closed, <file name="x"> neither'),
    ]
    _, turns, report = read(write(tmp_path, records))
    assert said(turns) == [
        ("tool", "tool", "tool_result", attached),
        ("user", "human", "text", "What is this?"),
        ("user", "human", "text", "use the blue one"),
        ("user", "human", "text", '<file> is not closed, <file name="x"> neither'),
    ]
    assert report.skipped["harness text"] == 1
    assert len({turn.uuid for turn in turns}) == 4


@given(st.text())
def test_splitting_a_prompt_loses_nothing_that_was_typed(text: str) -> None:
    if not text.startswith("<"):
        assert split_prompt(text) == ([], text)
    assert split_prompt(f'<file name="a">\n1\n</file>\n{text}')[1].endswith(split_prompt(text)[1])


@pytest.mark.parametrize(
    ("made", "output", "name"),
    [
        (call(1, "mcp__funes__recall", {"query": "x"}), "a hit", "mcp__funes__recall"),
        (call(1, "funes_recall", {"query": "x"}), "a hit", "funes_recall"),
        (call(1, "recall", {"query": "x"}), "a hit\n  → get 01a2 77", "recall"),
        (call(1, "bash", {"command": "funes recall kiln"}), "a hit", "bash"),
    ],
)
def test_what_funes_recalled_is_not_remembered_again(made: Record, output: str, name: str, tmp_path: Path) -> None:
    _, turns, report = read(write(tmp_path, [header(), made, result(2, output, name)]))
    assert [turn.blocks[0].type for turn in turns] == ["tool_use"]
    assert report.skipped["own recall output"] == 1


def linear() -> list[Record]:
    records = [
        message(1, "user", "Fire the kiln."),
        call(2, "bash", {"command": "ls"}),
        result(3, "pot"),
        result(3, "pot", ident="call_2"),
        message(4, "bashExecution", command="pwd", output="/kiln"),
        entry("compaction", 5, summary="Hot.", firstKeptEntryIndex=1),
        message(6, "hookMessage", "injected"),
        message(7, "user", "continue"),
        message(7, "user", "continue"),
    ]
    return [{key: value for key, value in record.items() if key not in ("id", "parentId")} for record in records]


def test_a_file_of_version_1_keeps_its_passages_when_pi_rewrites_it(tmp_path: Path) -> None:
    start = {key: value for key, value in header().items() if key != "version"}
    path = write(tmp_path, [start, *linear()])
    _, old, report = read(path)
    assert [turn.parent_uuid for turn in old] == ["", *(turn.uuid for turn in old[:-1])]
    assert len(set(passages(old))) == len({turn.uuid for turn in old}) == len(old) == 9
    rewritten = [
        {**record, "id": f"{n:08x}", "parentId": f"{n - 1:08x}" if n else None} for n, record in enumerate(linear())
    ]
    write(tmp_path, [header(), *rewritten, message(9, "user", "more")])
    _, new, _ = read(path, report.resume)
    assert passages(new)[: len(passages(old))] == passages(old)
    assert len(new) == len(old) + 1
    assert len({turn.uuid for turn in new}) == len(new)


@pytest.mark.parametrize("key", ["parentSession", "branchedFrom"])
def test_a_fork_shares_the_passages_it_copied(key: str, tmp_path: Path) -> None:
    records = [message(1, "user", "Fire the kiln."), call(2, "bash", {"command": "ls"}), result(3, "pot")]
    first = read(write(tmp_path, [header(PARENT), *records], f"2026-03-04T10-20-00-000Z_{PARENT}.jsonl"))[1]
    parent = f"C:\\Users\\dev\\sessions\\2026-03-04T10-20-00-000Z_{PARENT}.jsonl"
    session, second, _ = read(write(tmp_path, [header(**{key: parent}), *records, message(4, "user", "Now the lid.")]))
    assert (session.id, session.kind, session.parent_id) == (SESSION, "fork", PARENT)
    assert passages(second)[: len(first)] == passages(first)


def test_equal_messages_of_unrelated_sessions_are_different_passages(tmp_path: Path) -> None:
    one = read(write(tmp_path, [header(PARENT), message(1, "user", "continue")], "one.jsonl"))[1]
    two = read(write(tmp_path, [header(), message(2, "user", "continue")], "two.jsonl"))[1]
    assert passages(one)[0][0] != passages(two)[0][0]


@pytest.mark.parametrize(
    ("name", "ident"),
    [
        ("2026-03-04T10-20-00-000Z_my_own_id.jsonl", "my_own_id"),
        ("/a/b/2026-03-04T10-20-00-000Z_x.jsonl.zst", "x"),
        ("kiln.jsonl", "kiln"),
        (SESSION, SESSION),
    ],
)
def test_the_id_in_a_file_name(name: str, ident: str) -> None:
    assert session_of_file(name) == ident


def test_the_trace_format_of_hugging_face(tmp_path: Path) -> None:
    records = [
        {"type": "session", "harness": "codex", "id": "s1", "name": "Kiln repair"},
        {"type": "message", "message": {"role": "system", "content": "You are a potter."}},
        {"type": "message", "message": {"role": "user", "content": "Fire the kiln.", "timestamp": 1772619600000}},
        {
            "type": "message",
            "message": {
                "role": "assistant",
                "content": "Looking.",
                "reasoningContent": "Check the cone.",
                "toolCalls": [{"id": "c1", "function": {"name": "shell", "arguments": '{"cmd": "ls"}'}}],
            },
        },
        {"type": "message", "message": {"role": "tool", "content": "pot", "toolCallId": "c1"}},
        {"type": "message", "message": {"role": "user", "content": "continue"}},
        {"type": "message", "message": {"role": "user", "content": "continue"}},
    ]
    session, turns, _ = read(write(tmp_path, records, "s1.jsonl"))
    assert said(turns) == [
        ("user", "human", "text", "Fire the kiln."),
        ("assistant", "agent", "thinking", "Check the cone."),
        ("assistant", "agent", "text", "Looking."),
        ("assistant", "agent", "tool_use", '{"cmd": "ls"}'),
        ("tool", "tool", "tool_result", "pot"),
        ("user", "human", "text", "continue"),
        ("user", "human", "text", "continue"),
    ]
    assert (session.id, session.harness, session.title) == ("s1", "codex", "Kiln repair")
    assert turns[2].blocks[0].tool_name == "shell"
    assert len({turn.uuid for turn in turns}) == 5


@pytest.mark.parametrize(
    ("harness", "facet"),
    [("claude-code", "claude_code"), ("Hermes Agent", "hermes"), ("pi", "pi"), ("my-own-agent", "pi"), (5, "pi")],
)
def test_the_harness_a_header_names(harness: object, facet: str, tmp_path: Path) -> None:
    assert read(write(tmp_path, [header(harness=harness), message(1, "user", "Hi.")]))[0].harness == facet


def test_relatives_of_pi_are_read_too(tmp_path: Path) -> None:
    records = [
        header(title="From omp"),
        message(1, "developer", "Instructions."),
        entry("title_change", 2, title="Renamed"),
        entry("mode_change", 3, mode="plan"),
        message(4, "user", [{"type": "text", "text": "Fire."}]),
    ]
    session, turns, report = read(write(tmp_path, records))
    assert (session.title, len(turns)) == ("Renamed", 1)
    assert report.skipped == {"metadata": 3, "harness text": 1}


WHOLE = b"".join(
    json.dumps(record).encode() + b"\n"
    for record in [
        header(),
        message(1, "user", "Fire the kiln."),
        entry("model_change", 2),
        call(3, "bash", {"command": "funes recall x"}),
        result(4, "own"),
        call(5, "bash", {"command": "ls"}, "call_2"),
        result(6, "pot — crème", ident="call_2"),
        message(7, "bashExecution", command="pwd", output="/kiln"),
        *linear(),
        message(9, "user", "continue"),
    ]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, len(WHOLE)), min_size=1, max_size=3).map(sorted))
def test_a_file_read_while_it_grows_gives_the_turns_of_one_read(cuts: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{SESSION}.jsonl")
        resume: dict[str, Any] | None = None
        seen: list[Any] = []
        for cut in [*cuts, len(WHOLE)]:
            path.write_bytes(WHOLE[:cut])
            _, turns, report = read(path, resume)
            resume = json.loads(json.dumps(report.resume))
            seen += turns
        assert seen == read(path)[1]


def test_a_new_name_alone_reaches_the_session(tmp_path: Path) -> None:
    records = [header(), message(1, "user", "Fire the kiln.")]
    path = write(tmp_path, records)
    first = read(path)[2]
    write(tmp_path, [*records, entry("session_info", 2, name="Kiln repair")])
    session, turns, report = read(path, first.resume)
    assert (session.title, len(turns), report.turns, report.records) == ("Kiln repair", 1, 1, 3)
    assert read(path, report.resume)[1] == []


def test_a_broken_resume_state_does_not_raise(tmp_path: Path) -> None:
    path = write(tmp_path, [header(), message(1, "user", "Fire.")])
    good = read(path)[2].resume
    assert good is not None
    for bad in ({}, {"offset": None}, {**good, "entries": 5, "session": 5}, {**good, "entries": {"open": {"a": []}}}):
        read(path, bad)


def test_damaged_lines_are_noted_and_the_rest_is_kept(tmp_path: Path) -> None:
    path = write(
        tmp_path, [header(), message(1, "user", "One."), message(2, "user", "Two."), message(3, "user", "Three.")]
    )
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b'{"type":"sess\n' + lines[1] + b"\x00" * 200 + lines[2] + b"{}\n" + lines[3][:-20])
    session, turns, report = read(path)
    assert [text for *_, text in said(turns)] == ["One.", "Two."]
    assert session.id == SESSION
    assert report.torn_tail
    assert len(report.damaged) == 2


def test_a_missing_file_is_a_failure_of_that_file(tmp_path: Path) -> None:
    _, turns, report = read(tmp_path / "gone.jsonl")
    assert turns == []
    assert report.failed.startswith("it cannot be opened")


def one_of(words: str) -> st.SearchStrategy[str]:
    return st.sampled_from(words.split())


names = one_of(
    "type role content text id parentId message summary name arguments toolCalls toolCallId toolName command output "
    "thinking timestamp function attachments cwd harness parentSession title excludeFromContext"
)
kinds = one_of(
    "session message compaction branch_summary session_info custom_message user assistant toolResult tool text "
    "bashExecution compactionSummary system thinking toolCall image"
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | kinds,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names | st.text(max_size=5), inner, max_size=5),
    max_leaves=12,
)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.dictionaries(names, values | kinds, max_size=6), max_size=6))
def test_no_record_raises_whatever_it_holds(records: list[Record]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.jsonl")
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        _, turns, report = read(path)
        assert report.turns == len(turns)
        assert all(turn.uuid and turn.blocks and all(block.text for block in turn.blocks) for turn in turns)
        json.dumps(report.resume)


def test_files_of_other_programs_do_not_match(tmp_path: Path) -> None:
    def head(*records: Record) -> Head:
        return Head(tmp_path / "x.jsonl", b"", list(records))

    source = PiSource()
    assert source.matches(head(header()))
    assert source.matches(head(message(1, "user", "The header is lost.")))
    assert source.matches(head({"type": "session", "harness": "x", "id": "s"}))
    for other in (
        {"type": "session.start", "data": {}, "id": "x"},
        {"type": "user", "uuid": "u", "sessionId": "s", "message": {"role": "user"}},
        {"type": "message", "role": "user", "content": []},
        {"type": "session_meta", "payload": {"id": "x"}},
        {"role": "session_meta"},
    ):
        assert not source.matches(head(other))


def test_roots_and_files_follow_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path))
    monkeypatch.delenv("PI_CODING_AGENT_SESSION_DIR", raising=False)
    source = PiSource()
    (root,) = source.roots()
    assert list(source.files(root)) == []
    old = write(tmp_path, [header()], f"2025-11-01T10-20-00-000Z_{PARENT}.jsonl")
    write(tmp_path, [], "prompts.jsonl")
    folder = tmp_path / "sessions/--home-dev-kiln--"
    new = write(folder, [header()])
    write(folder, [header()], "x.checkpoint.1.jsonl")
    write(folder, [header()], "notes.txt")
    os.symlink(folder, folder / "loop")
    assert list(source.files(root)) == [old, new]
    (tmp_path / "settings.json").write_text(json.dumps({"sessionDir": str(tmp_path / "elsewhere")}))
    other = write(tmp_path / "elsewhere", [header()], "own.jsonl")
    assert [path for place in source.roots() for path in source.files(place)] == [old, new, other]
    monkeypatch.setenv("PI_CODING_AGENT_SESSION_DIR", str(tmp_path / "nowhere"))
    (tmp_path / "settings.json").write_text("{broken")
    assert source.roots() == [tmp_path, tmp_path / "nowhere"]
    before = source.stamp(new)
    write(folder, [header(), message(1, "user", "On.")])
    assert source.stamp(new) != before


@pytest.mark.real_corpus
def test_real_sessions_give_the_prompts_that_were_typed() -> None:
    from tests.support.corpus import shared_corpus

    prompts = {}
    for path in sorted((shared_corpus() / "pi").rglob("*.jsonl")):
        session, turns, report = read(path)
        assert (report.damaged, report.failed, session.id) == ([], "", session_of_file(path.name))
        assert set(report.skipped) <= {"metadata", "harness text", "image data"}
        prompts[session.id[:13]] = [b.text for t in turns if t.role == "user" for b in t.blocks if b.type == "text"]
    assert prompts == {
        "01a22abf-bb1b": ["Please fix the flaky test. SCEN-basic", "Follow-up. SCEN-follow"],
        "01a22abf-c34a": ["Look at this. SCEN-image"],
        "01a22ac0-ae15": ["Please fix the flaky test. SCEN-basic", "Follow-up. SCEN-follow", "Forked. SCEN-forked"],
        "01a22ac3-202f": ["First. SCEN-basic", "After compact. SCEN-after"],
    }


@pytest.mark.real_corpus
def test_a_real_fork_shares_every_passage_it_copied() -> None:
    from tests.support.corpus import shared_corpus

    files = {session_of_file(path.name)[:13]: path for path in (shared_corpus() / "pi").rglob("*.jsonl")}
    session, fork, _ = read(files["01a22ac0-ae15"])
    original = read(files["01a22abf-bb1b"])[1]
    assert session.kind == "fork"
    assert session.parent_id.startswith("01a22abf-bb1b")
    assert passages(fork)[: len(passages(original))] == passages(original)
