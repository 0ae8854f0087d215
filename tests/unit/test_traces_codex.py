from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from funes.traces.codex import CodexSource
from funes.traces.model import Head, ReadReport
from tests.support.codex import (
    CALL,
    PARENT,
    SESSION,
    TURN,
    assistant,
    event,
    item,
    items_of_all_kinds,
    meta,
    passages,
    read,
    record,
    rollout_name,
    said,
    started,
    user,
    write,
)

ALL_KINDS = [
    ("user", "human", "text", "Fire the kiln."),
    ("assistant", "agent", "thinking", "Check the cone."),
    ("assistant", "agent", "tool_use", '{"command": ["ls"]}'),
    ("tool", "tool", "tool_result", "pot.txt\n"),
    ("assistant", "agent", "tool_use", '{"type": "exec", "command": ["pwd"]}'),
    ("tool", "tool", "tool_result", "/kiln"),
    ("assistant", "agent", "tool_use", "*** Begin Patch\n"),
    ("tool", "tool", "tool_result", "Exit code: 0\nOutput:\nDone"),
    ("assistant", "agent", "tool_use", '{"type": "search", "query": "cone 6"}'),
    ("assistant", "agent", "text", "It is hot."),
]


@pytest.mark.parametrize("order", [("session", "items"), ("items", "session")])
@pytest.mark.parametrize("indent", [None, 2])
def test_the_single_document_of_the_first_version(order: tuple[str, str], indent: int | None, tmp_path: Path) -> None:
    values = {"session": {"id": SESSION, "timestamp": "2025-05-07T17:24:21.123Z"}, "items": items_of_all_kinds()}
    path = tmp_path / rollout_name(suffix=".json")
    path.write_text(json.dumps({key: values[key] for key in order}, indent=indent))
    session, turns, report = read(path)
    assert said(turns) == ALL_KINDS
    assert (session.id, report.resume, report.turns) == (SESSION, None, 10)
    assert turns[0].timestamp is not None
    assert turns[0].timestamp.isoformat() == "2025-05-07T17:24:21.123000+00:00"


def test_a_cut_document_gives_what_stands_before_the_cut(tmp_path: Path) -> None:
    text = json.dumps({"session": {"id": SESSION}, "items": items_of_all_kinds()}, indent=1)
    path = tmp_path / rollout_name(suffix=".json")
    path.write_text(text[: text.index('"call_3"')])
    session, turns, report = read(path)
    assert said(turns) == ALL_KINDS[:6]
    assert session.id == SESSION
    assert report.damaged == ["the document is damaged behind its item 6"]


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", '{"session": {"id": 5}', '{"a": 1}\n{"b": 2}', "\x00" * 50])
def test_a_file_that_is_no_document_does_not_raise(text: str, tmp_path: Path) -> None:
    path = tmp_path / rollout_name(suffix=".json")
    path.write_text(text)
    assert read(path)[1] == []


def test_lines_without_envelope_and_without_times(tmp_path: Path) -> None:
    head = {"id": SESSION, "timestamp": "2025-08-01T09:00:00Z", "instructions": None, "git": {"branch": "glaze"}}
    context = "<environment_context>\n  <cwd>/home/dev/kiln</cwd>\n</environment_context>"
    bare = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": context}]}
    session, turns, report = read(write(tmp_path, [head, {"record_type": "state"}, bare, *items_of_all_kinds()]))
    assert said(turns) == ALL_KINDS
    assert (session.workdir, session.branch) == ("/home/dev/kiln", "glaze")
    assert {turn.timestamp.isoformat() for turn in turns if turn.timestamp} == {"2025-08-01T09:00:00+00:00"}
    assert report.skipped == {"metadata": 2, "harness text": 1}


def test_enveloped_lines_with_their_repeating_events(tmp_path: Path) -> None:
    records = [
        meta(git={"branch": "main", "repository_url": "git@github.com:acme/kiln.git"}),
        user("Fire the kiln."),
        event({"type": "user_message", "message": "Fire the kiln."}),
        record("turn_context", {"cwd": "/home/dev/kiln/lid", "model": "m"}),
        event({"type": "agent_reasoning", "text": "Check the cone."}),
        event({"type": "agent_message", "message": "It is hot."}),
        event({"type": "token_count", "info": None}),
        item({"type": "reasoning", "summary": [{"type": "summary_text", "text": "Check the cone."}]}, 2),
        assistant("It is hot.", 3),
        record("a_type_of_next_year", {"x": 1}),
    ]
    session, turns, report = read(write(tmp_path, records))
    assert [(block, text) for *_, block, text in said(turns)] == [
        ("text", "Fire the kiln."),
        ("thinking", "Check the cone."),
        ("text", "It is hot."),
    ]
    assert (session.repo, session.branch, session.workdir) == ("acme/kiln", "main", "/home/dev/kiln")
    assert [turn.workdir for turn in turns] == ["", "/home/dev/kiln/lid", "/home/dev/kiln/lid"]
    assert [turn.parent_uuid for turn in turns] == ["", turns[0].uuid, turns[1].uuid]
    assert report.skipped == {
        "metadata": 3,
        "event that repeats the conversation": 3,
        "unknown type a_type_of_next_year": 1,
    }
    assert report.records == 10


def test_ordinals_items_and_file_addresses_of_paginated_rollouts(tmp_path: Path) -> None:
    metadata = {"turn_id": TURN, "content_item_kinds": ["user.text"]}
    records = [
        meta(session_id=SESSION, history_mode="paginated", cwd="file:///home/dev/my%20kiln"),
        user(
            "Fire the kiln.",
            id="msg_01a25001-aaaa-7000-8000-000000000001",
            internal_chat_message_metadata_passthrough=metadata,
        ),
        event(
            {
                "type": "item_completed",
                "item": {"type": "UserMessage", "content": [{"type": "text", "text": "Fire the kiln."}]},
            }
        ),
        event(
            {"type": "item_completed", "item": {"type": "AgentMessage", "content": [{"type": "Text", "text": "Hot."}]}}
        ),
        assistant("Hot.", id="msg_01a25001-aaaa-7000-8000-000000000002"),
        record("world_state", {"full": True}),
        record("token_usage_record", {"usage": {}}),
    ]
    records = [{**r, "ordinal": n} for n, r in enumerate(records)]
    session, turns, report = read(write(tmp_path, records))
    assert [text for *_, text in said(turns)] == ["Fire the kiln.", "Hot."]
    assert turns[0].uuid == "msg_01a25001-aaaa-7000-8000-000000000001"
    assert session.workdir == "/home/dev/my kiln"
    assert report.skipped["event that repeats the conversation"] == 2


def test_a_file_with_events_only_is_read_from_its_events(tmp_path: Path) -> None:
    records = [
        meta(),
        user("<environment_context><cwd>/x</cwd></environment_context>"),
        event({"type": "user_message", "message": "Fire the kiln."}, 1),
        event({"type": "agent_reasoning", "text": "Check the cone."}, 2),
        event(
            {"type": "exec_command_end", "call_id": CALL, "command": ["bash", "-lc", "ls"], "aggregated_output": "pot"},
            3,
        ),
        event(
            {
                "type": "mcp_tool_call_end",
                "call_id": "call_mcp",
                "invocation": {"server": "wiki", "tool": "ask", "arguments": {"q": "cone"}},
                "result": {"Ok": {"content": [{"type": "text", "text": "1222 °C"}]}},
            },
            4,
        ),
        event(
            {
                "type": "patch_apply_end",
                "call_id": "call_p",
                "changes": {"a.py": {"add": {"content": "x = 1"}}},
                "stdout": "ok",
            },
            5,
        ),
        event({"type": "agent_message", "message": "It is hot."}, 6),
    ]
    _, turns, _ = read(write(tmp_path, records))
    assert said(turns) == [
        ("user", "human", "text", "Fire the kiln."),
        ("assistant", "agent", "thinking", "Check the cone."),
        ("assistant", "agent", "tool_use", "ls"),
        ("tool", "tool", "tool_result", "pot"),
        ("assistant", "agent", "tool_use", '{"q": "cone"}'),
        ("tool", "tool", "tool_result", "1222 °C"),
        ("assistant", "agent", "tool_use", "a.py\nx = 1"),
        ("tool", "tool", "tool_result", "ok"),
        ("assistant", "agent", "text", "It is hot."),
    ]
    assert turns[4].blocks[0].tool_name == "wiki__ask"


def test_events_are_used_for_one_role_and_items_for_another(tmp_path: Path) -> None:
    records = [
        meta(),
        event({"type": "user_message", "message": "Fire."}),
        event({"type": "agent_message", "message": "Hot."}),
        assistant("Hot."),
    ]
    assert [text for *_, text in said(read(write(tmp_path, records))[1])] == ["Fire.", "Hot."]


@pytest.mark.parametrize("folder", ["sessions/2026/03/04", "archived_sessions"])
def test_compressed_rollouts_are_the_same_session(folder: str, tmp_path: Path) -> None:
    import zstandard

    plain = write(tmp_path, [meta(), started(), user("Fire the kiln."), assistant("Hot.")])
    packed = tmp_path / folder / rollout_name(suffix=".jsonl.zst")
    packed.parent.mkdir(parents=True)
    packed.write_bytes(zstandard.compress(plain.read_bytes()))
    session, turns, report = read(packed)
    assert (session.id, passages(turns)) == (SESSION, passages(read(plain)[1]))
    assert report.resume is None


def head_of(path: Path) -> Head:
    lines = path.read_bytes().splitlines()[:50]
    records = []
    for line in lines:
        try:
            records.append(json.loads(line))
        except ValueError:
            continue
    return Head(path, path.read_bytes()[:4096], [r for r in records if isinstance(r, dict)])


def test_files_of_other_programs_do_not_match(tmp_path: Path) -> None:
    source = CodexSource()
    for records in (
        [{"type": "user", "uuid": "u", "sessionId": "s", "message": {"role": "user", "content": "x"}}],
        [
            {"type": "session", "id": "x", "cwd": "/"},
            {"type": "message", "id": "1", "message": {"role": "user", "content": "x"}},
        ],
        [{"session_id": "s", "ts": 1, "text": "history.jsonl"}],
        [{"id": "s", "thread_name": "n", "updated_at": "t"}],
        [{"role": "session_meta", "tools": []}, {"role": "user", "content": "x"}],
    ):
        assert not source.matches(head_of(write(tmp_path, records)))
    for records in ([meta()], [user("x")], [{"id": "s", "timestamp": "t", "instructions": None}], items_of_all_kinds()):
        assert source.matches(head_of(write(tmp_path, records)))
    document = tmp_path / "x.json"
    document.write_text(json.dumps({"session": {"id": "s"}, "items": []}, indent=2))
    assert source.matches(head_of(document))


def test_roots_and_files_follow_the_codex_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    source = CodexSource()
    live, archive = source.roots()
    assert (live, archive) == (tmp_path / "sessions", tmp_path / "archived_sessions")
    assert list(source.files(live)) == []
    kept = write(live / "2026/03/05", [meta()], rollout_name())
    for name in (rollout_name() + ".zst", rollout_name(PARENT) + ".zst", "history.jsonl", "notes.txt"):
        write(live / "2026/03/04", [meta()], name)
    os.symlink(live, live / "2026/loop")
    assert list(source.files(live)) == [live / "2026/03/04" / (rollout_name(PARENT) + ".zst"), kept]
    write(archive, [meta()])
    assert len(list(source.files(archive))) == 1


def test_a_session_has_its_name_from_the_index_or_from_its_own_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "unused"))
    path = write(
        tmp_path / "sessions/2026/03/04",
        [meta(), user("On."), event({"type": "thread_name_updated", "thread_name": "Own"})],
    )
    source = CodexSource()
    before = source.stamp(path)
    session, _, report = read(path)
    assert session.title == "Own"
    index = tmp_path / "session_index.jsonl"
    index.write_text(
        "".join(json.dumps({"id": SESSION, "thread_name": name}) + "\n" for name in ("Old", "Kiln repair"))
    )
    assert source.stamp(path) != before
    session, turns, _ = read(path, report.resume)
    assert (session.title, len(turns)) == ("Kiln repair", 1)


def test_stamp_changes_with_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, [meta()])
    before = CodexSource().stamp(path)
    write(tmp_path, [meta(), user("On.")])
    assert CodexSource().stamp(path) != before


@pytest.mark.real_corpus
def test_real_rollouts_give_the_prompts_that_were_typed() -> None:
    from tests.support.corpus import shared_corpus

    folder = shared_corpus() / "codex"
    prompts = {}
    for path in sorted(folder.rglob("rollout-*")):
        session, turns, report = read(path)
        assert not report.damaged
        assert not report.failed
        assert not any(reason.startswith("unknown") for reason in report.skipped)
        prompts[str(path.relative_to(folder))] = [t.blocks[0].text for t in turns if t.role == "user"]
        assert all(turn.origin == "human" for turn in turns if turn.role == "user")
        if turns:
            assert session.id in path.name.replace("-", "") or session.id in path.name
    typed = sorted({text for texts in prompts.values() for text in texts})
    assert typed == [
        "Compact test. SCEN-compact",
        "Describe the picture. SCEN-pic",
        "Follow up. SCEN-followup",
        "Forked question. SCEN-forked",
        "Please fix the flaky test in parser.py. SCEN-basic",
        "Search it. SCEN-search",
        "Second question. SCEN-followup",
        "To be archived. SCEN-arch",
        "hello from the TypeScript CLI",
    ]


@pytest.mark.real_corpus
def test_a_real_rollout_and_its_compressed_and_archived_copies_share_their_passages() -> None:
    from tests.support.corpus import shared_corpus

    folder = shared_corpus() / "codex"
    name = "rollout-2026-11-30T04-35-03-01a22abc-2888-7640-b38f-ea232c98fd47.jsonl"
    days = folder / "zst/sessions/2026/11"
    plain, packed = read(days / "21" / name)[1], read(days / "20" / f"{name}.zst")[1]
    assert len(plain) == 17
    assert passages(plain) == passages(packed)
    assert [path.parent.name for path in CodexSource().files(folder / "zst/sessions")] == ["21"]


@pytest.mark.real_corpus
def test_the_complete_output_of_a_real_command() -> None:
    from tests.support.corpus import shared_corpus

    (path,) = (shared_corpus() / "codex/real-0.171.0").rglob("rollout-2026-11-30T04-26-29-*.jsonl")
    longest = max((b.text for turn in read(path)[1] for b in turn.blocks), key=len)
    assert longest.startswith("Chunk ID: 311e45\n")
    assert len(longest) > 65000


def test_reading_streams(tmp_path: Path) -> None:
    path = write(tmp_path, [meta(), *(user(f"Prompt {n}") for n in range(50))])
    pairs = CodexSource().read(path, report := ReadReport())
    next(pairs)
    assert report.turns == 1
    pairs.close()
