"""Hermes Agent: one line a session, as `hermes sessions export` writes them."""

from __future__ import annotations

import json
from typing import Any

from rendering.script import BRIEFING, Clock, Script, Step, digest

_NO_VALUE = (
    "token_count",
    "reasoning",
    "reasoning_details",
    "codex_reasoning_items",
    "codex_message_items",
    "platform_message_id",
)


class Renderer:
    """Renders one Hermes session; the arguments are those of the Claude renderer."""

    def __init__(self, script: Script, scripts: dict[str, Script]) -> None:
        self.script = script
        self.clock = Clock(script.slug, script.start)
        self.id = session_id(script)
        self.messages: list[dict[str, Any]] = []
        self.thought = ""
        self.first_id = sorted(scripts).index(script.slug) * 1000 + 1

    def render(self) -> dict[str, str]:
        """Return the session's line, under the path of the export file that all Hermes sessions share."""
        for step in self.script.steps:
            getattr(self, f"_{step.kind}")(step)
        calls = sum(len(m["tool_calls"] or []) for m in self.messages)
        session: dict[str, Any] = {"id": self.id, "source": self.script.header.get("source", "cli"), "user_id": None}
        session |= {"session_key": None, "chat_id": None, "display_name": None, "model": "local-coder-2"}
        session |= {"model_config": None, "system_prompt": BRIEFING, "parent_session_id": None}
        session |= {
            "started_at": self.script.start.timestamp(),
            "ended_at": self.clock.now.timestamp(),
            "end_reason": "user_exit",
        }
        session |= {"message_count": len(self.messages), "tool_call_count": calls, "cwd": self.script.cwd}
        session |= {"git_branch": self.script.header["branch"], "git_repo_root": self.script.cwd}
        session |= {"title": self.script.header.get("title"), "archived": 0, "messages": self.messages}
        return {"hermes/sessions-export.jsonl": json.dumps(session, ensure_ascii=False) + "\n"}

    def _message(self, role: str, content: str, **fields: Any) -> None:
        message: dict[str, Any] = {"id": self.first_id + len(self.messages), "session_id": self.id, "role": role}
        message |= {"content": content, "tool_call_id": None, "tool_calls": None, "tool_name": None}
        message |= {"timestamp": self.clock.tick(1, 9).timestamp(), "finish_reason": None, "reasoning_content": None}
        message |= dict.fromkeys(_NO_VALUE)
        message |= {"observed": 0, "active": 1, "compacted": 0, "api_content": None, **fields}
        self.messages.append(message)

    def _assistant(self, content: str, **fields: Any) -> None:
        self._message("assistant", content, reasoning_content=self.thought or None, **fields)
        self.thought = ""

    def _tool(self, name: str, arguments: dict[str, Any], result: dict[str, Any]) -> None:
        call = f"call_{digest(self.script.slug, 'call', len(self.messages))[:12]}"
        function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
        calls = [{"id": call, "call_id": call, "type": "function", "function": function}]
        self._assistant("", tool_calls=calls, finish_reason="tool_calls")
        self._message("tool", json.dumps(result, ensure_ascii=False), tool_call_id=call, tool_name=name)

    # Steps

    def _user(self, step: Step) -> None:
        self.clock.tick(40, 260)
        injected = f"<memory-context>{BRIEFING}</memory-context>\n{step.body}"
        self._message("user", step.body, api_content=injected)

    def _wait(self, step: Step) -> None:
        self.clock.wait(step.arg)

    def _thinking(self, step: Step) -> None:
        self.thought = step.body

    def _agent(self, step: Step) -> None:
        self._assistant(step.body, finish_reason="stop")

    def _run(self, step: Step) -> None:
        code = 1 if step.flag("fail") else 0
        self._tool("terminal", {"command": step.body}, {"output": step.output, "exit_code": code, "error": None})

    def _read(self, step: Step) -> None:
        numbered = "\n".join(f"{i}|{line}" for i, line in enumerate(step.body.split("\n"), 1))
        self._tool("read_file", {"path": step.arg}, {"content": numbered})

    def _edit(self, step: Step) -> None:
        arguments = {"path": step.arg, "old_string": step.body, "new_string": step.output}
        self._tool("patch", arguments, {"success": True, "files_modified": [step.arg]})

    def _write(self, step: Step) -> None:
        self._tool("write_file", {"path": step.arg, "content": step.body}, {"bytes_written": len(step.body.encode())})

    def _call(self, step: Step) -> None:
        self._tool(step.arg.split()[0], json.loads(step.body), {"output": step.output})


def session_id(script: Script) -> str:
    """Id of a Hermes session."""
    return f"{script.start:%Y%m%d_%H%M%S}_{digest('hermes', script.slug)[:6]}"
