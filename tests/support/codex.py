"""Rollouts as Codex writes them, in the shapes of its versions; the conversations are invented."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from funes.traces.codex import CodexSource
from funes.traces.model import ReadReport, Session, Turn

Record = dict[str, Any]
SESSION = "01a20000-0000-7000-8000-00000000000a"
PARENT = "01a10000-0000-7000-8000-00000000000b"
OLD_TURN = "01a15000-0000-7000-8000-0000000000f1"
TURN = "01a25000-0000-7000-8000-0000000000f2"
CALL = "call_Zk3pQ9rT7vX1bN5mL2aD8eF4"


def record(kind: str, payload: Record, second: int = 0, **fields: Any) -> Record:
    return {"timestamp": f"2026-03-04T10:20:{second:02d}.500Z", **fields, "type": kind, "payload": payload}


def item(payload: Record, second: int = 0, **fields: Any) -> Record:
    return record("response_item", payload, second, **fields)


def event(payload: Record, second: int = 0, **fields: Any) -> Record:
    return record("event_msg", payload, second, **fields)


def meta(ident: str = SESSION, **fields: Any) -> Record:
    payload = {"id": ident, "timestamp": "2026-03-04T10:20:00.000Z", "cwd": "/home/dev/kiln", "source": "cli"}
    return record("session_meta", payload | fields)


def started(turn: str = TURN) -> Record:
    return event({"type": "task_started", "turn_id": turn})


def user(text: str, second: int = 1, **fields: Any) -> Record:
    payload = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    return item(payload | fields, second)


def assistant(text: str, second: int = 2, **fields: Any) -> Record:
    payload = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    return item(payload | fields, second)


def call(name: str = "exec_command", arguments: object = None, ident: str = CALL, **fields: Any) -> Record:
    text = json.dumps({"cmd": "make glaze"} if arguments is None else arguments)
    return item({"type": "function_call", "name": name, "arguments": text, "call_id": ident} | fields, 3)


def output(value: object, ident: str = CALL, **fields: Any) -> Record:
    return item({"type": "function_call_output", "call_id": ident, "output": value} | fields, 4)


def rollout_name(ident: str = SESSION, suffix: str = ".jsonl") -> str:
    return f"rollout-2026-03-04T10-20-00-{ident}{suffix}"


def write(folder: Path, records: list[Record], name: str = "") -> Path:
    path = folder / (name or rollout_name())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(r, separators=(",", ":"), ensure_ascii=False) + "\n" for r in records), "utf-8")
    return path


def read(path: Path, resume: Record | None = None) -> tuple[Session, list[Turn], ReadReport]:
    report = ReadReport()
    pairs = list(CodexSource().read(path, report, resume))
    session = pairs[0][0] if pairs else Session("", "codex")
    return session, [turn for _, turn in pairs], report


def said(turns: list[Turn]) -> list[tuple[str, str, str, str]]:
    return [(turn.role, turn.origin, block.type, block.text) for turn in turns for block in turn.blocks]


def passages(turns: list[Turn]) -> list[tuple[str, str, str]]:
    return [(block.anchor, block.type, block.text) for turn in turns for block in turn.blocks]


def items_of_all_kinds() -> list[Record]:
    return [
        {"type": "message", "role": "user", "content": "Fire the kiln."},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Check the cone."}], "content": None},
        {"type": "function_call", "name": "shell", "arguments": '{"command": ["ls"]}', "call_id": "call_1"},
        {
            "type": "function_call_output",
            "call_id": "call_1",
            "output": '{"output":"pot.txt\\n","metadata":{"exit_code":0,"duration_seconds":0.1}}',
        },
        {"type": "local_shell_call", "call_id": "call_2", "action": {"type": "exec", "command": ["pwd"]}},
        {"type": "function_call_output", "call_id": "call_2", "output": {"content": "/kiln", "success": True}},
        {"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin Patch\n", "call_id": "call_3"},
        {"type": "custom_tool_call_output", "call_id": "call_3", "output": "Exit code: 0\nOutput:\nDone"},
        {"type": "web_search_call", "action": {"type": "search", "query": "cone 6"}},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is hot."}]},
    ]


def command_event(text: str, ident: str = CALL, **fields: Any) -> Record:
    return event(
        {
            "type": "item_completed",
            "item": {"type": "CommandExecution", "id": ident, "aggregated_output": text} | fields,
        }
    )


def conversation(turn: str) -> list[Record]:
    head = [started(turn)] if turn else []
    return [
        *head,
        user("Fire the kiln.", 1),
        item({"type": "reasoning", "summary": [{"type": "summary_text", "text": "Cone 6."}]}, 2),
        call(),
        output("hot"),
        assistant("It is hot.", 5),
        user("continue", 6),
        assistant("It is hot.", 7),
    ]
