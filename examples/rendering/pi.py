"""pi 1.x, session file version 3: a tree of entries."""

from __future__ import annotations

import json
import re
from typing import Any

from rendering.script import BRIEFING, Clock, Script, Step, digest, iso, milliseconds, uuid7


class Renderer:
    """Renders one pi session; the arguments are those of the Claude renderer."""

    def __init__(self, script: Script, scripts: dict[str, Script]) -> None:
        self.script = script
        self.clock = Clock(script.slug, script.start)
        self.records: list[dict[str, Any]] = []
        self.last: str | None = None
        self.pending: list[dict[str, Any]] = []

    def render(self) -> dict[str, str]:
        """Return the session file: path below `examples/` to content."""
        when = self.script.start
        session = session_id(self.script)
        self.records.append(
            {"type": "session", "version": 3, "id": session, "timestamp": iso(when), "cwd": self.script.cwd}
        )
        self._entry("model_change", provider="local", modelId="local-coder-2")
        self._entry("thinking_level_change", thinkingLevel="medium")
        sections = {"preamble": BRIEFING, "cwd": f"<cwd>\n{self.script.cwd}\n</cwd>"}
        self._message({"role": "system", "content": "", "sections": sections, "toolsAdded": []})
        for step in self.script.steps:
            getattr(self, f"_{step.kind}")(step)
        self._flush("stop")
        if title := self.script.header.get("title"):
            self._entry("session_info", name=title)
        folder = re.sub(r"[/\\:]", "-", self.script.cwd.lstrip("/"))
        name = re.sub("[:.]", "-", iso(when)) + f"_{session}.jsonl"
        lines = (json.dumps(r, ensure_ascii=False, separators=(",", ":")) + "\n" for r in self.records)
        return {f"pi/sessions/--{folder}--/{name}": "".join(lines)}

    def _entry(self, kind: str, **fields: Any) -> None:
        key = digest(self.script.slug, "entry", len(self.records))[:8]
        when = iso(self.clock.tick(0, 0.05))
        self.records.append({"type": kind, "id": key, "parentId": self.last, "timestamp": when, **fields})
        self.last = key

    def _message(self, message: dict[str, Any]) -> None:
        self._entry("message", message={**message, "timestamp": milliseconds(self.clock.now)})

    def _flush(self, stop: str) -> None:
        """Write the assistant's blocks collected so far as one entry."""
        if not self.pending:
            return
        self.clock.tick(2, 12)
        message: dict[str, Any] = {"role": "assistant", "content": self.pending, "api": "openai-completions"}
        message |= {"provider": "local", "model": "local-coder-2", "stopReason": stop}
        message |= {"usage": {"input": 2210, "output": 184, "totalTokens": 2394}}
        self._message(message)
        self.pending = []

    def _tool(self, name: str, arguments: dict[str, Any], output: str, error: bool = False) -> None:
        call = f"call_{digest(self.script.slug, 'call', len(self.records))[:16]}"
        self.pending.append({"type": "toolCall", "id": call, "name": name, "arguments": arguments})
        self._flush("toolUse")
        self.clock.tick(0.2, 6)
        content = [{"type": "text", "text": output}]
        self._message(
            {"role": "toolResult", "toolCallId": call, "toolName": name, "content": content, "isError": error}
        )

    # Steps

    def _user(self, step: Step) -> None:
        self._flush("stop")
        self.clock.tick(40, 260)
        self._message({"role": "user", "content": [{"type": "text", "text": step.body}]})

    def _wait(self, step: Step) -> None:
        self._flush("stop")
        self.clock.wait(step.arg)

    def _thinking(self, step: Step) -> None:
        self.pending.append({"type": "thinking", "thinking": step.body, "thinkingSignature": "reasoning_content"})

    def _agent(self, step: Step) -> None:
        self.pending.append({"type": "text", "text": step.body})

    def _run(self, step: Step) -> None:
        failed = step.flag("fail")
        output = f"{step.output}\n\n\nCommand exited with code 1" if failed else step.output
        self._tool("bash", {"command": step.body}, output, failed)

    def _bang(self, step: Step) -> None:
        self._flush("stop")
        self.clock.tick(20, 90)
        shell = {"command": step.body, "output": step.output, "exitCode": 0, "cancelled": False, "truncated": False}
        self._message({"role": "bashExecution", **shell})

    def _read(self, step: Step) -> None:
        self._tool("read", {"path": step.arg}, step.body)

    def _edit(self, step: Step) -> None:
        edits = [{"oldText": step.body, "newText": step.output}]
        self._tool("edit", {"path": step.arg, "edits": edits}, f"Successfully replaced 1 block(s) in {step.arg}.")

    def _write(self, step: Step) -> None:
        size = len(step.body.encode())
        self._tool("write", {"path": step.arg, "content": step.body}, f"Successfully wrote {size} bytes to {step.arg}")

    def _call(self, step: Step) -> None:
        self._tool(step.arg.split()[0], json.loads(step.body), step.output, step.flag("fail"))

    def _compact(self, step: Step) -> None:
        self._flush("stop")
        self._entry("compaction", summary=step.body, firstKeptEntryId=self.last, tokensBefore=121800, fromHook=False)


def session_id(script: Script) -> str:
    """Id of a pi session."""
    return uuid7(script.start, "pi", script.slug)
