"""Small programs in the place of real agents: they note how they were started and say what a test wants."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_PROGRAM = """\
#!{python} -IS
import json, os, sys, time
record = {{"arguments": sys.argv[1:], "environment": dict(os.environ), "folder": os.getcwd()}}
if sys.argv[1:3] == ["mcp", "list"]:
    print({servers!r})
    sys.exit({list_code})
record["stdin"] = sys.stdin.buffer.read().decode()
with open({record!r}, "w") as stream:
    json.dump(record, stream)
for line in {lines!r}:
    print(line, flush=True)
sys.stderr.write({errors!r})
sys.stderr.flush()
{more}
sys.exit({code})
"""


class FakeAgent:
    """One program in a folder.

    Args:
        folder: where it is written, to be put on PATH.
        name: `claude`, `codex` or `pi`.
        lines: what it prints: events, or text as it is.
        errors: what it says on stderr.
        code: its exit code.
        more: Python to run before it ends.
        servers: what `mcp list --json` prints, with exit code `list_code`.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        lines: Sequence[dict[str, Any] | str] = (),
        *,
        errors: str = "",
        code: int = 0,
        more: str = "",
        servers: str = "[]",
        list_code: int = 0,
    ) -> None:
        self._record = folder / f"{name}.json"
        program = folder / name
        program.write_text(
            _PROGRAM.format(
                python=sys.executable,
                record=str(self._record),
                lines=[line if isinstance(line, str) else json.dumps(line) for line in lines],
                errors=errors,
                code=code,
                more=more,
                servers=servers,
                list_code=list_code,
            )
        )
        program.chmod(0o755)

    @property
    def ran(self) -> bool:
        """Whether it was started (to answer, not to list its servers)."""
        return self._record.exists()

    def record(self) -> dict[str, Any]:
        """Its arguments, environment, folder and stdin."""
        return dict(json.loads(self._record.read_text()))


def claude_says(*pieces: str) -> list[dict[str, Any]]:
    """Claude Code's events for an answer in pieces."""
    deltas = [{"type": "content_block_delta", "delta": {"type": "text_delta", "text": piece}} for piece in pieces]
    events = [
        {"type": "message_start"},
        {"type": "content_block_delta", "delta": {"type": "thinking_delta", "text": "hm"}},
        *deltas,
    ]
    whole = {"content": [{"type": "text", "text": "".join(pieces)}]}
    return [
        {"type": "system", "subtype": "init"},
        *({"type": "stream_event", "event": event, "parent_tool_use_id": None} for event in events),
        {"type": "assistant", "message": whole, "parent_tool_use_id": None},
        {"type": "result", "subtype": "success", "is_error": False, "result": "".join(pieces)},
    ]


def codex_says(*messages: str) -> list[dict[str, Any]]:
    """Codex's events for an answer of several messages."""
    items = [{"type": "item.completed", "item": {"type": "agent_message", "text": message}} for message in messages]
    noise = {"type": "item.completed", "item": {"type": "error", "message": "Model metadata not found."}}
    return [{"type": "thread.started"}, noise, {"type": "turn.started"}, *items, {"type": "turn.completed"}]


def pi_says(*pieces: str) -> list[dict[str, Any]]:
    """pi's events for an answer in pieces."""
    user = {"type": "message_end", "message": {"role": "user", "content": [{"type": "text", "text": "the prompt"}]}}
    deltas = [
        {"type": "message_update", "assistantMessageEvent": {"type": "text_delta", "delta": piece}} for piece in pieces
    ]
    end = {"type": "message_end", "message": {"role": "assistant", "stopReason": "stop"}}
    return [{"type": "session"}, {"type": "agent_start"}, user, *deltas, end, {"type": "agent_settled"}]


SAYS = {"claude": claude_says, "codex": codex_says, "pi": pi_says}


def alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return Path("/proc").is_dir() is False
