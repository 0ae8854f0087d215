"""Codex 0.171: a rollout file a session, `response_item` records with their `event_msg` twins."""

from __future__ import annotations

import json
from typing import Any

from rendering.script import BRIEFING, Clock, Script, Step, digest, iso, milliseconds, uuid7


class Renderer:
    """Renders one Codex session; the arguments are those of the Claude renderer."""

    def __init__(self, script: Script, scripts: dict[str, Script]) -> None:
        self.script = script
        self.clock = Clock(script.slug, script.start)
        self.id = session_id(script)
        self.records: list[dict[str, Any]] = []
        self.turn = ""
        self.history = 0
        self.texts: list[dict[str, Any]] = []

    def render(self) -> dict[str, str]:
        """Return the rollout file and the session's line in the index of names: path to content."""
        when = self.script.start
        meta: dict[str, Any] = {"session_id": self.id, "id": self.id, "timestamp": iso(when), "cwd": self.script.cwd}
        meta |= {
            "originator": "codex-tui",
            "cli_version": self.script.header.get("version", "0.171.0"),
            "source": "cli",
        }
        meta |= {"thread_source": "user", "model_provider": "local", "base_instructions": {"text": BRIEFING}}
        meta |= {"history_mode": "paginated", "git": self._git()}
        self._record("session_meta", meta)
        for step in self.script.steps:
            getattr(self, f"_{step.kind}")(step)
        lines = (json.dumps(r, ensure_ascii=False, separators=(",", ":")) + "\n" for r in self.records)
        rollout = f"codex/sessions/{when:%Y/%m/%d}/rollout-{when:%Y-%m-%dT%H-%M-%S}-{self.id}.jsonl"
        name = {"id": self.id, "thread_name": self.script.header["title"], "updated_at": iso(self.clock.now)}
        return {rollout: "".join(lines), "codex/session_index.jsonl": json.dumps(name, ensure_ascii=False) + "\n"}

    def _git(self) -> dict[str, str]:
        commit = digest("commit", self.script.slug)[:40]
        branch = self.script.header["branch"]
        return {
            "commit_hash": commit,
            "branch": branch,
            "repository_url": "https://git.example.org/harbour/tidewatch.git",
        }

    # Records

    def _record(self, kind: str, payload: dict[str, Any]) -> None:
        when = iso(self.clock.tick(0, 0.02))
        self.records.append({"timestamp": when, "ordinal": len(self.records), "type": kind, "payload": payload})

    def _key(self, prefix: str) -> str:
        return f"{prefix}_{digest(self.script.slug, prefix, len(self.records))[:20]}"

    def _item(self, payload: dict[str, Any], kinds: list[str] | None = None, who: str = "") -> None:
        """Append a `response_item` with the bookkeeping of 0.171."""
        self.history += 1
        passthrough: dict[str, Any] = {"turn_id": self.turn}
        if kinds:
            passthrough |= {"content_item_kinds": kinds, "content_item_metadata": [{"provenance": {"type": who}}]}
        payload["internal_chat_message_metadata_passthrough"] = passthrough
        payload["metadata"] = {"history_sequence": self.history, "client_authored": False}
        self._record("response_item", payload)
        if payload["type"] == "message" and payload["role"] != "developer":
            self.texts.append(payload)

    def _completed(self, item: dict[str, Any]) -> None:
        at = milliseconds(self.clock.now)
        event = {"type": "item_completed", "thread_id": self.id, "turn_id": self.turn, "item": item}
        self._record("event_msg", {**event, "started_at_ms": at, "completed_at_ms": at})

    def _message(self, role: str, text: str, kind: str, who: str) -> None:
        part = {"type": "output_text" if role == "assistant" else "input_text", "text": text}
        self._item({"type": "message", "id": self._key("msg"), "role": role, "content": [part]}, [kind], who)

    def _output(self, kind: str, call: str, output: str) -> None:
        self.clock.tick(0.2, 6)
        self._item({"type": kind, "id": self._key("fco"), "call_id": call, "output": output})

    # Steps

    def _user(self, step: Step) -> None:
        self.clock.tick(40, 260)
        self.turn = uuid7(self.clock.now, self.script.slug, "turn", len(self.records))
        self._record("event_msg", {"type": "task_started", "turn_id": self.turn, "model_context_window": 258400})
        if not self.history:
            self._resume(step)
        self._record("turn_context", {"turn_id": self.turn, "cwd": self.script.cwd, "approval_policy": "on-request"})
        self._message("user", step.body, "user.text", "user")
        self._completed(
            {"type": "UserMessage", "id": self._key("item"), "content": [{"type": "text", "text": step.body}]}
        )

    def _resume(self, _step: Step) -> None:
        """Add the context that Codex sends at the start and again whenever a session is resumed."""
        self._message(
            "developer",
            f"<permissions instructions>\n{BRIEFING}\n</permissions instructions>",
            "permissions.instructions",
            "harness",
        )
        context = (
            f"<environment_context>\n  <cwd>{self.script.cwd}</cwd>\n  <note>{BRIEFING}</note>\n</environment_context>"
        )
        self._message("user", context, "environments.environment_context", "harness")
        self._record(
            "world_state", {"full": True, "state": {"model": "gpt-5.2-codex", "host_skills": {"body": BRIEFING}}}
        )

    def _wait(self, step: Step) -> None:
        self.clock.wait(step.arg)

    def _thinking(self, step: Step) -> None:
        self.clock.tick(2, 9)
        key = self._key("rs")
        summary = [{"type": "summary_text", "text": step.body}]
        self._completed({"type": "Reasoning", "id": key, "summary_text": [step.body], "raw_content": []})
        self._item({"type": "reasoning", "id": key, "summary": summary, "content": None, "encrypted_content": None})

    def _agent(self, step: Step) -> None:
        self.clock.tick(3, 14)
        self._completed(
            {"type": "AgentMessage", "id": self._key("item"), "content": [{"type": "Text", "text": step.body}]}
        )
        self._message("assistant", step.body, "unknown", "model")

    def _run(self, step: Step) -> None:
        self._shell(step.body, step.output, 1 if step.flag("fail") else 0)

    def _shell(self, command: str, output: str, code: int) -> None:
        self.clock.tick(1, 6)
        call = self._key("call")
        arguments = json.dumps({"cmd": command, "workdir": self.script.cwd}, ensure_ascii=False)
        self._item(
            {
                "type": "function_call",
                "id": self._key("fc"),
                "name": "exec_command",
                "arguments": arguments,
                "call_id": call,
            }
        )
        item = {"type": "CommandExecution", "id": call, "command": ["/bin/bash", "-lc", command], "status": "completed"}
        self._completed({**item, "cwd": f"file://{self.script.cwd}", "aggregated_output": output, "exit_code": code})
        head = f"Chunk ID: {digest(call)[:6]}\nWall time: 0.4112 seconds\nProcess exited with code {code}\nOutput:\n"
        self._output("function_call_output", call, f"{head}{output}\n")

    def _read(self, step: Step) -> None:
        self._shell(f"sed -n '1,200p' {step.arg}", step.body, 0)

    def _edit(self, step: Step) -> None:
        old = "\n".join(f"-{line}" for line in step.body.split("\n"))
        new = "\n".join(f"+{line}" for line in step.output.split("\n"))
        self._patch(f"*** Update File: {step.arg}\n@@\n{old}\n{new}", f"M {step.arg}")

    def _write(self, step: Step) -> None:
        new = "\n".join(f"+{line}" for line in step.body.split("\n"))
        self._patch(f"*** Add File: {step.arg}\n{new}", f"A {step.arg}")

    def _patch(self, change: str, files: str) -> None:
        self.clock.tick(2, 8)
        call = self._key("call")
        patch = f"*** Begin Patch\n{change}\n*** End Patch"
        item = {"type": "custom_tool_call", "id": self._key("ctc"), "status": "completed", "call_id": call}
        self._item({**item, "name": "apply_patch", "input": patch})
        done = f"Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess. Updated the following files:\n{files}\n"
        self._output("custom_tool_call_output", call, done)

    def _call(self, step: Step) -> None:
        self.clock.tick(1, 6)
        call = self._key("call")
        namespace, _, name = step.arg.split()[0].rpartition("__")
        item: dict[str, Any] = {"type": "function_call", "id": self._key("fc"), "name": name, "call_id": call}
        if namespace:
            item["namespace"] = namespace
        self._item({**item, "arguments": step.body})
        self._output("function_call_output", call, step.output)

    def _compact(self, step: Step) -> None:
        copies = [{k: v for k, v in t.items() if k in {"type", "id", "role", "content"}} for t in self.texts[-4:]]
        self._record("compacted", {"message": step.body, "replacement_history": copies, "window_number": 2})


def session_id(script: Script) -> str:
    """Thread id of a Codex session."""
    return uuid7(script.start, "codex", script.slug)
