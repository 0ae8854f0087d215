"""Agent traces in Parquet: the shapes that datasets have had, and rows and files that are damaged."""

from __future__ import annotations

import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet as pq

from funes.traces.claude import ClaudeSource
from funes.traces.detect import read_head
from funes.traces.model import ReadReport, Session, Turn
from funes.traces.parquet import ParquetSource
from tests.support.hermes import call

CLAUDE_ID = "20ae1ece-ed53-4a41-9531-b9720a0cde76"
CLAUDE = [
    {
        "type": "user",
        "uuid": "u-1",
        "parentUuid": None,
        "sessionId": CLAUDE_ID,
        "cwd": "/home/u/parser",
        "gitBranch": "main",
        "version": "2.1.110",
        "timestamp": "2026-11-30T04:36:33.406Z",
        "message": {"role": "user", "content": "fix the parser"},
    },
    {
        "type": "assistant",
        "uuid": "a-1",
        "parentUuid": "u-1",
        "sessionId": CLAUDE_ID,
        "cwd": "/home/u/parser",
        "version": "2.1.110",
        "timestamp": "2026-11-30T04:36:35.000Z",
        "message": {
            "id": "msg_1",
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "toolu_0123456789", "name": "Bash", "input": {"command": "ls"}}],
        },
    },
    {
        "type": "user",
        "uuid": "u-2",
        "parentUuid": "a-1",
        "sessionId": CLAUDE_ID,
        "cwd": "/home/u/parser",
        "version": "2.1.110",
        "timestamp": "2026-11-30T04:36:36.000Z",
        "message": {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "toolu_0123456789", "content": "parser.py\nlexer.py"}],
        },
    },
]
CLAUDE_TEXT = "".join(json.dumps(record) + "\n" for record in CLAUDE)
PI = [
    {"type": "session", "version": 3, "id": "pi-1", "timestamp": "2026-11-30T04:00:00Z", "cwd": "/home/u/parser"},
    {
        "type": "message",
        "id": "0a0b0c0d",
        "parentId": None,
        "timestamp": "2026-11-30T04:00:01Z",
        "message": {"role": "user", "content": "hello pi", "timestamp": 1796011201000},
    },
]
MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "You are an agent."},
    {"role": "user", "content": "fix the parser"},
    {
        "role": "assistant",
        "content": "looking",
        "reasoning_content": "the range",
        "tool_calls": [
            {"id": "call_0123456789", "type": "function", "function": {"name": "shell", "arguments": {"cmd": "ls"}}}
        ],
    },
    {"role": "tool", "tool_call_id": "call_0123456789", "name": "unknown_tool", "content": "parser.py"},
    {"role": "assistant", "content": "done"},
]
EXPECTED = [
    ("user", "text", "", "fix the parser"),
    ("assistant", "thinking", "", "the range"),
    ("assistant", "text", "", "looking"),
    ("assistant", "tool_use", "shell", '{"cmd": "ls"}'),
    ("tool", "tool_result", "shell", "parser.py"),
    ("assistant", "text", "", "done"),
]


def json_array(values: list[str | None], storage: Any = None) -> Any:
    """Make a column of the JSON extension type."""
    storage = storage or pa.string()
    return pa.ExtensionArray.from_storage(pa.json_(storage), pa.array(values, storage))


def json_lists(values: list[list[str]]) -> Any:
    offsets = [0]
    for value in values:
        offsets.append(offsets[-1] + len(value))
    flat = [item for value in values for item in value]
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), json_array(flat))


def write(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    pq.write_table(pa.table(columns), path, **options)
    return path


def read(path: Path) -> tuple[list[tuple[Session, Turn]], ReadReport]:
    report = ReadReport()
    return list(ParquetSource().read(path, report)), report


def said(found: list[tuple[Session, Turn]]) -> list[tuple[str, str, str, str]]:
    return [(turn.role, b.type, b.tool_name, b.text) for _, turn in found for b in turn.blocks]


def session_ids(found: list[tuple[Session, Turn]]) -> list[str]:
    return list(dict.fromkeys(session.id for session, _ in found))


# The raw trace


@pytest.mark.parametrize(
    "trace",
    [
        pa.array([CLAUDE_TEXT]),
        pa.array([CLAUDE_TEXT.rstrip()]),
        pa.array([CLAUDE_TEXT], pa.large_string()),
        pa.array([CLAUDE_TEXT.encode()], pa.binary()),
        json_array([json.dumps(CLAUDE_TEXT)]),
        json_array([json.dumps(CLAUDE_TEXT)], pa.large_string()),
        json_array([json.dumps(CLAUDE)]),
        pa.array([[json.dumps(record) for record in CLAUDE]]),
        pa.array([[json.dumps(record, indent=1) for record in CLAUDE]]),
        json_lists([[json.dumps(record) for record in CLAUDE]]),
    ],
    ids=[
        "text",
        "no line end",
        "large",
        "bytes",
        "json",
        "large json",
        "json list",
        "strings",
        "indented",
        "json items",
    ],
)
@pytest.mark.parametrize("name", ["trace", "traces"])
def test_a_raw_trace_is_read_by_its_harnesss_parser(tmp_path: Path, name: str, trace: Any) -> None:
    columns = {"harness": ["claude_code"], "session_id": [CLAUDE_ID], name: trace}
    path = write(tmp_path / "0000.parquet", columns)
    found, report = read(path)
    native = tmp_path / f"{CLAUDE_ID}.jsonl"
    native.write_text(CLAUDE_TEXT)
    expected = list(ClaudeSource().read(native, ReadReport()))
    assert [turn for _, turn in found] == [turn for _, turn in expected]
    assert len(found) == 3
    session = found[0][0]
    assert (session.id, session.harness, session.workdir) == (CLAUDE_ID, "claude_code", "/home/u/parser")
    assert session.source_path == str(path)
    assert found[2][1].timestamp == datetime(2026, 11, 30, 4, 36, 36, tzinfo=UTC)
    assert (report.turns, report.damaged, report.torn_tail) == (3, [], False)


def test_a_trace_of_structs_is_read(tmp_path: Path) -> None:
    record = CLAUDE[0] | {"parentUuid": "none"}
    path = write(
        tmp_path / "0000.parquet", {"harness": ["claude"], "traces": [[record, {"type": "mode", "mode": "x"}]]}
    )
    found, _ = read(path)
    assert [turn.blocks[0].text for _, turn in found] == ["fix the parser"]


def test_several_sessions_of_several_harnesses_in_one_file(tmp_path: Path) -> None:
    hermes = {
        "id": "20251130_120000_ab12cd",
        "source": "cli",
        "messages": [{"role": "user", "content": "hello hermes", "timestamp": 1764480000.25}],
    }
    path = write(
        tmp_path / "0000.parquet",
        {
            "harness": ["claude-code", "pi", "hermes", "goose"],
            "session_id": [CLAUDE_ID, "pi-1", "20251130_120000_ab12cd", "g-1"],
            "trace": [CLAUDE_TEXT, "".join(json.dumps(r) + "\n" for r in PI), json.dumps(hermes), None],
            "messages": pa.array([None, None, None, [json.dumps(message) for message in MESSAGES]]),
            "metadata": [None, None, None, json.dumps({"cwd": "/home/u/goose", "git_branch": "dev", "title": "T"})],
        },
        row_group_size=1,
    )
    found, report = read(path)
    assert session_ids(found) == [CLAUDE_ID, "pi-1", "20251130_120000_ab12cd", "g-1"]
    assert {session.harness for session, _ in found} == {"claude_code", "pi", "hermes", "goose"}
    last = found[-1][0]
    assert (last.workdir, last.branch, last.title) == ("/home/u/goose", "dev", "T")
    assert report.damaged == []


def test_a_trace_is_recognised_without_the_name_of_its_harness(tmp_path: Path) -> None:
    found, _ = read(write(tmp_path / "x.parquet", {"trace": [CLAUDE_TEXT], "file_path": [f"/x/{CLAUDE_ID}.jsonl"]}))
    assert (found[0][0].harness, found[0][0].id) == ("claude_code", CLAUDE_ID)


def test_a_trace_of_an_unknown_harness_gives_its_messages(tmp_path: Path) -> None:
    columns = {
        "harness": ["goose"],
        "session_id": ["g-1"],
        "trace": ['{"kind": "something"}\n'],
        "messages": pa.array([[json.dumps(message) for message in MESSAGES]]),
    }
    found, report = read(write(tmp_path / "0000.parquet", columns))
    assert said(found) == EXPECTED
    assert report.damaged == []


def test_a_sub_agents_trace_keeps_the_name_of_its_file(tmp_path: Path) -> None:
    records = [record | {"isSidechain": True, "agentId": "abc123"} for record in CLAUDE]
    for columns in (
        {"trace": ["".join(json.dumps(record) + "\n" for record in records)]},
        {"messages": pa.array([[json.dumps(message) for message in MESSAGES]])},
    ):
        columns |= {
            "harness": ["claude_code"],
            "session_id": [CLAUDE_ID],
            "file_path": [f"C:\\Users\\u\\{CLAUDE_ID}\\subagents\\agent-abc123.jsonl"],
        }
        found, _ = read(write(tmp_path / "0000.parquet", columns))
        session = found[0][0]
        assert (session.id, session.parent_id, session.kind) == ("agent-abc123", CLAUDE_ID, "subagent")


@pytest.fixture
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files that no other program uses."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.parametrize(
    "name", ["../../../etc/passwd", "/", "..", "a/../../b.jsonl", "x" * 400, "C:\\..\\..\\x", "é🎉\n"]
)
def test_a_file_name_in_the_data_names_no_place_here(tmp_path: Path, temporary: Path, name: str) -> None:
    path = write(tmp_path / "0000.parquet", {"harness": ["claude_code"], "trace": [CLAUDE_TEXT], "file_path": [name]})
    found, report = read(path)
    assert len(found) == 3
    assert report.damaged == []
    assert list(temporary.iterdir()) == []
    assert [item.name for item in tmp_path.iterdir()] == ["0000.parquet"]


def test_an_abandoned_read_leaves_nothing_behind(tmp_path: Path, temporary: Path) -> None:
    stream = ParquetSource().read(write(tmp_path / "x.parquet", {"trace": [CLAUDE_TEXT] * 3}), ReadReport())
    next(stream)
    assert list(temporary.iterdir())
    stream.close()
    assert list(temporary.iterdir()) == []


# Messages


@pytest.mark.parametrize(
    "messages",
    [
        pa.array([[json.dumps(message) for message in MESSAGES]]),
        json_lists([[json.dumps(message) for message in MESSAGES]]),
        pa.array([json.dumps(MESSAGES)], pa.large_string()),
        pa.array([MESSAGES]),
    ],
    ids=["strings", "json items", "one text", "structs"],
)
def test_messages_become_turns(tmp_path: Path, messages: Any) -> None:
    columns = {"harness": ["codex"], "session_id": ["c-1"], "messages": messages, "sent_at": ["2026-11-30T04:36:33Z"]}
    found, report = read(write(tmp_path / "0000.parquet", columns))
    assert said(found) == EXPECTED
    assert {turn.timestamp for _, turn in found} == {datetime(2026, 11, 30, 4, 36, 33, tzinfo=UTC)}
    assert [turn.parent_uuid for _, turn in found] == ["", *[turn.uuid for _, turn in found[:-1]]]
    assert len({turn.uuid for _, turn in found}) == len(found)
    assert report.skipped == {"harness text": 1}
    assert report.records == 5
    assert found[2][1].blocks[0].anchor == found[1][1].blocks[2].anchor == "call_0123456789"


def test_arguments_as_text_are_the_same_as_an_object(tmp_path: Path) -> None:
    message = {"role": "assistant", "content": None, "tool_calls": [call("c1", "shell", cmd="ls", n=1)]}
    found, _ = read(write(tmp_path / "x.parquet", {"session_id": ["s"], "messages": pa.array([[json.dumps(message)]])}))
    assert said(found) == [("assistant", "tool_use", "shell", '{"cmd": "ls", "n": 1}')]
    assert found[0][0].harness == "unknown"


def test_messages_in_anthropics_shape_are_read(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "list it"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm"},
                {"type": "text", "text": "ok"},
                {"type": "tool_use", "id": "toolu_0123456789", "name": "Bash", "input": {"command": "ls"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_0123456789", "content": [{"type": "text", "text": "a"}]}
            ],
        },
    ]
    columns = {"harness": ["amp"], "session_id": ["s"], "messages": pa.array([[json.dumps(m) for m in messages]])}
    found, report = read(write(tmp_path / "x.parquet", columns))
    assert said(found) == [
        ("user", "text", "", "list it"),
        ("assistant", "thinking", "", "hm"),
        ("assistant", "text", "", "ok"),
        ("assistant", "tool_use", "Bash", '{"command": "ls"}'),
        ("tool", "tool_result", "Bash", "a"),
    ]
    assert report.skipped == {}


def test_what_funes_returned_is_not_remembered_again(tmp_path: Path) -> None:
    messages = [
        {"role": "assistant", "tool_calls": [call("c1", "mcp__funes__recall", query="x")]},
        {"role": "tool", "tool_call_id": "c1", "name": "unknown_tool", "content": "old words"},
    ]
    columns = {"session_id": ["s"], "messages": pa.array([[json.dumps(m) for m in messages]])}
    found, report = read(write(tmp_path / "x.parquet", columns))
    assert [block for _, block, _, _ in said(found)] == ["tool_use"]
    assert report.skipped == {"own recall output": 1}


def test_text_of_the_harness_is_left_out_of_messages(tmp_path: Path) -> None:
    texts = {
        "claude_code": "<local-command-stdout>ok</local-command-stdout>",
        "codex": "<environment_context><cwd>/x</cwd></environment_context>",
        "hermes": "[Continuing toward your standing goal]\nGoal: x",
    }
    columns = {
        "harness": list(texts),
        "session_id": list(texts),
        "messages": pa.array([[json.dumps({"role": "user", "content": text})] for text in texts.values()]),
    }
    found, report = read(write(tmp_path / "x.parquet", columns))
    assert found == []
    assert report.skipped == {"harness text": 3}


def test_a_session_without_an_id_is_named_by_its_file_or_its_content(tmp_path: Path) -> None:
    messages = pa.array([[json.dumps(message) for message in MESSAGES]] * 2)
    path = write(tmp_path / "x.parquet", {"messages": messages, "file_name": ["a/b-1.jsonl", None]})
    first, second = session_ids(read(path)[0])
    assert first == "b-1"
    assert second.startswith("parquet-")
    assert session_ids(read(path)[0]) == [first, second]


# Damage


def test_a_bad_row_costs_that_row(tmp_path: Path) -> None:
    good = [json.dumps(message) for message in MESSAGES]
    columns = {
        "harness": ["claude_code", "claude_code", "codex", "codex", "codex"],
        "session_id": ["a", CLAUDE_ID, "c", "d", "e"],
        "trace": ['"unfinished', CLAUDE_TEXT[:-30], None, None, None],
        "messages": pa.array([None, None, good, ["{", good[1], "3"], []]),
    }
    found, report = read(write(tmp_path / "x.parquet", columns))
    assert session_ids(found) == [CLAUDE_ID, "c", "d"]
    assert [sentence.partition(":")[0] for sentence in report.damaged] == [
        "row 1",
        "row 1",
        *["row 2"],
        *["row 4"] * 2,
        "row 5",
    ]
    assert report.failed == ""


@pytest.mark.parametrize("keep", [4, 100, 0.5, 0.99])
def test_a_file_that_was_cut_off_fails_in_one_sentence(tmp_path: Path, keep: float) -> None:
    path = write(tmp_path / "x.parquet", {"trace": [CLAUDE_TEXT], "session_id": [CLAUDE_ID]})
    data = path.read_bytes()
    path.write_bytes(data[: int(keep * len(data)) if keep < 1 else int(keep)])
    assert ParquetSource().matches(read_head(path))
    found, report = read(path)
    assert found == []
    assert report.failed.startswith("it is not a Parquet file that can be read: ")
    assert "\n" not in report.failed


def test_a_damaged_page_costs_its_column_or_its_rows(tmp_path: Path) -> None:
    messages = [json.dumps(message) for message in MESSAGES]
    columns = {
        "harness": ["claude_code"] * 3,
        "session_id": [f"{number}" for number in range(3)],
        "trace": [CLAUDE_TEXT + " " * number for number in range(3)],
        "messages": pa.array([messages] * 3),
    }
    path = write(tmp_path / "x.parquet", columns, row_group_size=1, compression="zstd", use_dictionary=False)
    about = pq.ParquetFile(path).metadata.row_group(1)
    column = next(about.column(i) for i in range(about.num_columns) if about.column(i).path_in_schema == "trace")
    data = bytearray(path.read_bytes())
    end = column.data_page_offset + column.total_compressed_size
    data[end - 60 : end - 20] = b"\xff" * 40
    path.write_bytes(data)
    found, report = read(path)
    assert session_ids(found) == [CLAUDE_ID, "1"]
    assert len([turn for session, turn in found if session.id == "1"]) == 4  # from the messages
    assert len([turn for session, turn in found if session.id != "1"]) == 6
    assert len(report.damaged) == 1
    assert report.damaged[0].startswith("row 2: ")


def test_a_file_without_traces_is_not_a_trace(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", {"text": ["a"], "label": [1]})
    assert not ParquetSource().matches(read_head(path))
    assert "without agent traces" in read(path)[1].failed
    chat = write(tmp_path / "chat.parquet", {"messages": pa.array([[{"role": "user", "content": "x"}]])})
    assert not ParquetSource().matches(read_head(chat))


def test_an_empty_table_gives_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", {"trace": pa.array([], pa.string()), "session_id": pa.array([], pa.string())})
    found, report = read(path)
    assert (found, report.failed, report.damaged) == ([], "", [])


def test_a_file_is_not_loaded_as_a_whole(tmp_path: Path) -> None:
    big = json.dumps(CLAUDE[0] | {"message": {"role": "user", "content": "x" * 1_000_000}}) + "\n"
    rows = [big + f'{{"n": {number}}}\n' for number in range(30)]
    path = write(tmp_path / "x.parquet", {"trace": rows}, row_group_size=4)
    pool = pa.default_memory_pool()
    before, peak, count = pool.bytes_allocated(), 0, 0
    for _ in ParquetSource().read(path, ReadReport()):
        peak = max(peak, pool.bytes_allocated() - before)
        count += 1
    assert count == 30
    assert peak < 20_000_000  # of 30 MB, 4 MB a row group


@given(
    value=st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=20)),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(
                st.sampled_from(
                    ["role", "content", "tool_calls", "function", "name", "arguments", "type", "text", "id"]
                ),
                inner,
                max_size=5,
            ),
        ),
        max_leaves=15,
    ),
    role=st.sampled_from(["user", "assistant", "tool", "system", "x"]),
    harness=st.sampled_from(["claude_code", "codex", "hermes", "pi", "other"]),
)
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_message_is_read(tmp_path: Path, value: Any, role: str, harness: str) -> None:
    message = {"role": role, "content": value, "tool_calls": value}
    columns = {"harness": [harness], "session_id": ["s"], "messages": pa.array([[json.dumps(message)]])}
    found, report = read(write(tmp_path / "x.parquet", columns))
    assert report.records == 1
    for _, turn in found:
        for block in turn.blocks:
            block.text.encode()
