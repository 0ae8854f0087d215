"""Claude Code 2.1: one JSONL file a session, each content block a record of its own."""

from __future__ import annotations

import json
import re
from typing import Any

from rendering.script import BRIEFING, Clock, Script, Step, digest, iso, milliseconds, uuid4

_PREVIEW = 2048


class Renderer:
    """Renders one Claude Code session.

    Args:
        script: the session.
        scripts: all sessions by slug, to look up parents and sub-agents.
    """

    def __init__(self, script: Script, scripts: dict[str, Script]) -> None:
        self.script = script
        self.scripts = scripts
        self.clock = Clock(script.slug, script.start)
        self.parent_script = scripts.get(script.header.get("subagent-of", ""))
        self.id = session_id(self.parent_script or script)
        self.folder = f"claude/projects/{re.sub('[^A-Za-z0-9]', '-', script.cwd)}"
        self.records: list[dict[str, Any]] = []
        self.files: dict[str, str] = {}
        self.last: str | None = None
        self.message = ""
        self.prompt_id = ""
        self.prompts = 0
        self.count = 0

    def render(self) -> dict[str, str]:
        """All files of the session: path below `examples/` to content."""
        if base := self.scripts.get(self.script.header.get("fork-of", "")):
            self._copy_parent(base)
        else:
            self._preamble()
        for step in self.script.steps:
            getattr(self, f"_{step.kind}")(step)
        if self.parent_script is None:
            self._plain("last-prompt", lastPrompt=self._prompts()[-1], leafUuid=self.last)
            if title := self.script.header.get("title"):
                self._plain("ai-title", aiTitle=title)
        name = f"{self.id}.jsonl"
        if self.parent_script:
            name = f"{self.id}/subagents/agent-{agent_id(self.script)}.jsonl"
            meta = {"agentType": "general-purpose", "isBuiltIn": True, "description": self.script.header["description"]}
            meta |= {"toolUseId": f"toolu_{digest(self.script.slug, 'spawn')[:24]}", "spawnDepth": 1, "finished": True}
            self.files[f"{self.folder}/{name.removesuffix('.jsonl')}.meta.json"] = json.dumps(meta)
        self.files[f"{self.folder}/{name}"] = "".join(
            json.dumps(r, ensure_ascii=False, separators=(",", ":")) + "\n" for r in self.records
        )
        return self.files

    # Records

    def _copy_parent(self, base: Script) -> None:
        """Start as `--fork-session` does: the parent's records, same uuids and times, under a new session id."""
        parent = Renderer(base, self.scripts)
        parent.render()
        self.records = [{**r, "sessionId": self.id} for r in parent.records if "uuid" in r]
        self.last = parent.last
        self.prompts = parent.prompts

    def _plain(self, kind: str, **fields: Any) -> None:
        self.records.append({"type": kind, **fields, "sessionId": self.id})

    def _chain(self, fields: dict[str, Any], low: float = 0.0, high: float = 0.02) -> str:
        """Append a record of the conversation chain and return its uuid."""
        self.count += 1
        uuid = uuid4(self.script.slug, self.count)
        record: dict[str, Any] = {"parentUuid": self.last, "isSidechain": self.parent_script is not None}
        if self.parent_script:
            record["agentId"] = agent_id(self.script)
        record |= fields
        record |= {"uuid": uuid, "timestamp": iso(self.clock.tick(low, high)), "userType": "external"}
        record |= {"entrypoint": "cli", "cwd": self.script.cwd, "sessionId": self.id}
        record |= {"version": self.script.header.get("version", "2.1.318"), "gitBranch": self.script.header["branch"]}
        self.records.append(record)
        self.last = uuid
        return uuid

    def _attachment(self, kind: str, text: str, **fields: Any) -> None:
        rendered = [{"content": f"<system-reminder>\n{text}\n</system-reminder>"}]
        self._chain(
            {
                "type": "attachment",
                "attachment": {"type": kind, **fields},
                "rendered": rendered,
                "renderedRole": "system",
            }
        )

    def _preamble(self) -> None:
        if self.parent_script is None:
            self._plain("mode", mode="normal")
            self._plain("permission-mode", permissionMode="default")
        self._attachment("environment", f"# Environment\n{BRIEFING}", snapshot={"workingDirectory": self.script.cwd})
        self._attachment("skill_listing", f"The following skills are available.\n{BRIEFING}", content=BRIEFING)
        self._attachment("date", f"Today's date is {self.script.start:%Y-%m-%d}.", date=f"{self.script.start:%Y-%m-%d}")
        self._attachment("prompt_snapshot", BRIEFING, systemPrompt=[BRIEFING])
        # The chain starts at the first prompt in a real file; the attachments hang behind it.
        self.last = None

    def _user_record(self, content: Any, **fields: Any) -> str:
        self.message = ""
        return self._chain(
            {"promptId": self.prompt_id, "type": "user", "message": {"role": "user", "content": content}, **fields},
            1,
            4,
        )

    def _assistant(self, block: dict[str, Any]) -> str:
        if not self.message:
            self.message = f"msg_01{digest(self.script.slug, 'message', self.count)[:22]}"
        stop = "tool_use" if block["type"] == "tool_use" else "end_turn"
        message = {"id": self.message, "type": "message", "role": "assistant", "model": "claude-opus-5-5"}
        message |= {"content": [block], "stop_reason": stop, "stop_sequence": None}
        message |= {"usage": {"input_tokens": 12, "cache_read_input_tokens": 18240, "output_tokens": 212}}
        request = f"req_01{digest(self.message)[:22]}"
        return self._chain({"message": message, "requestId": request, "type": "assistant"}, 2, 12)

    def _tool(
        self, name: str, tool_input: dict[str, Any], output: str, result: Any, error: bool = False, slug: str = ""
    ) -> None:
        key = digest(slug, "spawn")[:24] if slug else digest(self.script.slug, "tool", self.count)[:24]
        use = f"toolu_{key}"
        call = self._assistant({"type": "tool_use", "id": use, "name": name, "input": tool_input})
        content = [{"tool_use_id": use, "type": "tool_result", "content": output, "is_error": error}]
        self._user_record(content, toolUseResult=result, sourceToolAssistantUUID=call)

    def _prompts(self) -> list[str]:
        return [s.body for s in self.script.steps if s.kind == "user"]

    # Steps

    def _user(self, step: Step) -> None:
        self.clock.tick(40, 260)
        self.prompts += 1
        self.prompt_id = uuid4(self.script.slug, "prompt", self.prompts)
        if self.parent_script:
            self._user_record(step.body, rowSource="recorded")
            return
        self._plain("api-request-blob", hash=digest(step.body), message={"role": "user", "content": step.body})
        self._user_record(
            step.body,
            permissionMode="default",
            origin={"kind": "human"},
            promptSource="typed",
            turnOrigin="human",
            turnPosition={"promptIndex": self.prompts, "turnIndex": self.prompts},
        )
        self._plain(
            "file-history-snapshot", messageId=self.last, snapshot={"trackedFileBackups": {}}, isSnapshotUpdate=False
        )

    def _queued(self, step: Step) -> None:
        self.clock.tick(5, 20)
        attachment = {"type": "queued_command", "prompt": step.body, "commandMode": "prompt"}
        self._chain({"type": "attachment", "attachment": attachment})
        self.message = ""

    def _reminder(self, step: Step) -> None:
        text = f"<system-reminder>\n{BRIEFING}\n{step.body}\n</system-reminder>"
        self._user_record(text, isMeta=True, rowSource="harness")

    def _bang(self, step: Step) -> None:
        self._user_record(f"<bash-input>{step.body}</bash-input>")
        self._user_record(f"<bash-stdout>{step.output}</bash-stdout><bash-stderr></bash-stderr>")

    def _wait(self, step: Step) -> None:
        self.clock.wait(step.arg)

    def _thinking(self, step: Step) -> None:
        self._assistant({"type": "thinking", "thinking": step.body, "signature": ""})

    def _agent(self, step: Step) -> None:
        self._assistant({"type": "text", "text": step.body})

    def _run(self, step: Step) -> None:
        output = step.output
        if step.flag("spill"):
            output = self._spill(output)
        elif step.flag("fail"):
            output = f"Exit code 1\n{output}"
        result: Any = {"stdout": step.output[:30000], "stderr": "", "interrupted": False, "isImage": False}
        result = f"Error: {output}" if step.flag("fail") else result
        self._tool(
            "Bash", {"command": step.body, "description": _description(step.body)}, output, result, step.flag("fail")
        )

    def _spill(self, output: str) -> str:
        """Write the output beside the transcript, as Claude Code does with a long one, and return the preview."""
        name = f"b{digest(output)[:8]}.txt"
        self.files[f"{self.folder}/{self.id}/tool-results/{name}"] = output + "\n"
        home = self.script.cwd.partition("/src/")[0]
        where = f"{home}/.claude/{self.folder.removeprefix('claude/')}/{self.id}/tool-results/{name}"
        size = f"{len(output.encode()) / 1024:.1f}KB"
        preview = output[:_PREVIEW]
        return (
            f"<persisted-output>\nOutput too large ({size}). Full output saved to: {where}\n\n"
            f"Preview (first 2KB):\n{preview}\n...\n</persisted-output>"
        )

    def _read(self, step: Step) -> None:
        path = f"{self.script.cwd}/{step.arg}"
        numbered = "\n".join(f"{i}\t{line}" for i, line in enumerate(step.body.split("\n"), 1))
        lines = step.body.count("\n") + 1
        file = {"filePath": path, "content": step.body, "numLines": lines, "startLine": 1, "totalLines": lines}
        self._tool("Read", {"file_path": path}, numbered, {"type": "text", "file": file})

    def _edit(self, step: Step) -> None:
        path = f"{self.script.cwd}/{step.arg}"
        answer = f"The file {path} has been updated successfully. (file state is current in your context)"
        result = {"filePath": path, "oldString": step.body, "newString": step.output, "replaceAll": False}
        self._tool("Edit", {"file_path": path, "old_string": step.body, "new_string": step.output}, answer, result)

    def _write(self, step: Step) -> None:
        path = f"{self.script.cwd}/{step.arg}"
        result = {"type": "create", "filePath": path, "content": step.body}
        self._tool("Write", {"file_path": path, "content": step.body}, f"File created successfully at: {path}", result)

    def _call(self, step: Step) -> None:
        name = step.arg.split()[0]
        self._tool(name, json.loads(step.body), step.output, step.output, step.flag("fail"))

    def _spawn(self, step: Step) -> None:
        child = self.scripts[step.arg]
        prompt = next(s.body for s in child.steps if s.kind == "user")
        call = {"description": child.header["description"], "prompt": prompt, "subagent_type": "general-purpose"}
        answer = f"Async agent launched successfully.\nagentId: {agent_id(child)} (internal ID)"
        self._tool(
            "Agent",
            call,
            answer,
            {"isAsync": True, "status": "async_launched", "agentId": agent_id(child)},
            slug=child.slug,
        )

    def _finished(self, step: Step) -> None:
        child = self.scripts[step.arg]
        result = [s.body for s in child.steps if s.kind == "agent"][-1]
        text = (
            f"<task-notification>\n<task-id>{agent_id(child)}</task-id>\n<status>completed</status>\n"
            f'<summary>Agent "{child.header["description"]}" finished</summary>\n'
            f"<result>{result}</result>\n</task-notification>"
        )
        self.clock.tick(60, 200)
        self._user_record(
            text, origin={"kind": "task-notification"}, promptSource="system", turnOrigin="task_notification"
        )

    def _compact(self, step: Step) -> None:
        logical, self.last = self.last, None
        boundary = {"logicalParentUuid": logical, "type": "system", "subtype": "compact_boundary"}
        boundary |= {"content": "Conversation compacted", "isMeta": False, "level": "info"}
        boundary |= {"compactMetadata": {"trigger": "auto", "preTokens": 154210, "durationMs": 41210}}
        self._chain(boundary)
        text = (
            "This session is being continued from a previous conversation that ran out of context. "
            f"The summary below covers the earlier portion of the conversation.\n\nSummary:\n{step.body}"
        )
        self._user_record(text, isCompactSummary=True, isVisibleInTranscriptOnly=True)
        self._attachment("skill_listing", BRIEFING, content=BRIEFING)


def session_id(script: Script) -> str:
    """Session id of a Claude Code session."""
    return uuid4("claude", script.slug, milliseconds(script.start))


def agent_id(script: Script) -> str:
    """Id of a sub-agent."""
    return f"a{digest('agent', script.slug)[:16]}"


def _description(command: str) -> str:
    return f"Run {command.split()[0]}"
