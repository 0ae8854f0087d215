from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.codex import (
    OLD_TURN,
    PARENT,
    SESSION,
    TURN,
    Record,
    assistant,
    conversation,
    item,
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


@pytest.mark.parametrize("turn", [OLD_TURN, ""])
def test_a_fork_and_its_original_share_their_passages(turn: str, tmp_path: Path) -> None:
    original = [meta(PARENT), *conversation(turn)]
    copied = [{**r, "timestamp": "2026-03-09T00:00:00Z"} for r in original]
    forked = (
        [meta(SESSION), *copied, started(TURN), user("Now the lid.", 9)]
        if turn
        else [meta(SESSION), *copied, user("Now the lid.", 9)]
    )
    first = read(write(tmp_path, original, rollout_name(PARENT)))[1]
    session, second, _ = read(write(tmp_path, forked))
    assert (session.id, session.parent_id, session.kind) == (SESSION, PARENT, "fork")
    assert passages(second)[: len(first)] == passages(first)
    assert len({anchor for anchor, kind, _ in passages(second) if kind == "text"}) == 5
    again = [meta("01a21111-0000-7000-8000-00000000000c", forked_from_id=SESSION), *forked]
    assert passages(read(write(tmp_path, again, "rollout-x.jsonl"))[1]) == passages(second)


@pytest.mark.parametrize("turns", [("", ""), (OLD_TURN, TURN), ("1", "1")])
def test_equal_messages_of_unrelated_sessions_are_different_passages(turns: tuple[str, str], tmp_path: Path) -> None:
    made = []
    for ident, turn in zip((PARENT, SESSION), turns, strict=True):
        numbered = [
            {**r, "payload": {**r["payload"], "call_id": "call_1"}} if "call_id" in r["payload"] else r
            for r in conversation(turn)
        ]
        path = write(tmp_path, [meta(ident), *numbered], rollout_name(ident))
        made.append({anchor for anchor, *_ in passages(read(path)[1])})
    assert made[0].isdisjoint(made[1])


def test_equal_messages_of_one_turn_are_different_passages(tmp_path: Path) -> None:
    records = [
        meta(),
        started(),
        assistant("Waiting.", 1),
        assistant("Waiting.", 2),
        started(),
        assistant("Waiting.", 3),
    ]
    _, turns, _ = read(write(tmp_path, records))
    assert len({anchor for anchor, *_ in passages(turns)}) == len({turn.uuid for turn in turns}) == 3


def test_a_fork_by_reference_names_its_parent(tmp_path: Path) -> None:
    records = [
        meta(forked_from_id=PARENT, history_base={"thread_id": PARENT, "end_ordinal_exclusive": 54}),
        user("On."),
    ]
    session, turns, _ = read(write(tmp_path, records))
    assert (session.kind, session.parent_id, len(turns)) == ("fork", PARENT, 1)


def test_a_reverted_thread_stays_the_same_session(tmp_path: Path) -> None:
    name = f"rollout-2026-03-04T10-20-00-{SESSION}_{PARENT}.jsonl"
    session, _, _ = read(write(tmp_path, [meta(history_base={"thread_id": SESSION}), user("On.")], name))
    assert (session.id, session.kind, session.parent_id) == (SESSION, "main", "")


@pytest.mark.parametrize(
    "fields",
    [
        {"source": {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "depth": 1}}}},
        {"thread_source": "subagent", "session_id": PARENT},
        {"parent_thread_id": PARENT},
    ],
)
def test_a_subagent_is_a_session_of_its_own_with_what_it_inherited(fields: Record, tmp_path: Path) -> None:
    original = [meta(PARENT), *conversation(OLD_TURN)]
    spawned = [meta(**fields), *original, started(TURN), user("Look at the lid.", 8), assistant("It leaks.", 9)]
    first = read(write(tmp_path, original, rollout_name(PARENT)))[1]
    session, second, _ = read(write(tmp_path, spawned))
    assert (session.id, session.kind, session.parent_id) == (SESSION, "subagent", PARENT)
    assert passages(second)[: len(first)] == passages(first)
    prompts = [(turn.origin, turn.blocks[0].text) for turn in second if turn.role == "user"]
    assert prompts == [("human", "Fire the kiln."), ("human", "continue"), ("agent", "Look at the lid.")]


@pytest.mark.parametrize(
    "fields",
    [
        {"thread_source": "memory_consolidation"},
        {"thread_source": "guardian_review", "parent_thread_id": PARENT},
        {"source": {"subagent": {"other": "guardian"}}},
        {"source": {"subagent": "memory_consolidation"}},
    ],
)
def test_sessions_that_codex_runs_for_itself_are_left_out(fields: Record, tmp_path: Path) -> None:
    _, turns, report = read(write(tmp_path, [meta(**fields), user("Judge this: rm -rf pots"), assistant("No.")]))
    assert (turns, report.skipped["session that Codex runs for itself"]) == ([], 2)


def test_ordinals_tell_what_a_subagent_inherited(tmp_path: Path) -> None:
    records = [meta(parent_thread_id=PARENT, subagent_history_start_ordinal=3), user("Typed."), user("Given.")]
    _, turns, _ = read(write(tmp_path, [{**r, "ordinal": n + 1} for n, r in enumerate(records)]))
    assert [turn.origin for turn in turns] == ["human", "agent"]


def test_a_file_that_lost_its_head_is_not_taken_for_its_parent(tmp_path: Path) -> None:
    path = write(tmp_path, [meta(SESSION), meta(PARENT), user("On.")])
    data = path.read_bytes()
    path.write_bytes(b"\x00" * 20 + data[20:])
    session, turns, report = read(path)
    assert (session.id, session.parent_id, session.kind) == (SESSION, PARENT, "fork")
    assert len(turns) == 1
    assert report.damaged


def test_messages_between_agents(tmp_path: Path) -> None:
    records = [
        meta(),
        item(
            {
                "type": "agent_message",
                "author": "/root/lid",
                "content": [{"type": "input_text", "text": "The lid leaks."}],
            }
        ),
        record("inter_agent_communication", {"author": "/root", "content": "Fix it.", "trigger_turn": True}),
    ]
    assert said(read(write(tmp_path, records))[1]) == [
        ("user", "agent", "text", "The lid leaks."),
        ("user", "agent", "text", "Fix it."),
    ]
