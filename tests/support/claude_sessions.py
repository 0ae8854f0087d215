"""Transcripts in the shape of Claude Code 2.1, written line by line."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

START = datetime(2026, 4, 1, 9, 0, tzinfo=UTC)


class ClaudeSession:
    """A transcript that is being written.

    Args:
        projects: the `projects` folder.
        name: makes the session's id and the ids of its records, so that the same calls give the same file.
        cwd: working directory of the records.
        start: time of the first record.
    """

    def __init__(self, projects: Path, name: str, cwd: str = "/home/dev/shop", start: datetime = START) -> None:
        self.id = str(uuid.uuid5(uuid.NAMESPACE_URL, name))
        self.cwd = cwd
        self.path = projects / cwd.replace("/", "-") / f"{self.id}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.touch()
        self.clock = start
        self.count = 0
        self.last: str | None = None

    def prompt(self, text: str) -> str:
        """Add what the user typed; returns the record's uuid."""
        return self._message("user", {"role": "user", "content": text})

    def answer(self, text: str, kind: str = "text") -> str:
        """Add a text or thinking block of the assistant."""
        block = {"type": kind, kind: text} | ({"signature": "sig"} if kind == "thinking" else {})
        return self._assistant(block)

    def tool(self, name: str, arguments: dict[str, Any], output: str) -> str:
        """Add a tool call and its result; returns the result's uuid."""
        call = f"toolu_{self.count:04d}{self.id[:8]}"
        self._assistant({"type": "tool_use", "id": call, "name": name, "input": arguments})
        result = {"type": "tool_result", "tool_use_id": call, "content": output}
        return self._message("user", {"role": "user", "content": [result]}, toolUseResult={"stdout": output})

    def title(self, text: str) -> None:
        """Give the session a title."""
        self.write({"type": "custom-title", "customTitle": text, "sessionId": self.id})

    def write(self, record: dict[str, Any]) -> None:
        """Append any record."""
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record, ensure_ascii=False) + "\n")

    def _assistant(self, block: dict[str, Any]) -> str:
        message = {
            "id": f"msg_{self.count:04d}{self.id[:8]}",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [block],
        }
        return self._message("assistant", message)

    def _message(self, kind: str, message: dict[str, Any], **fields: Any) -> str:
        self.count += 1
        self.clock += timedelta(seconds=7)
        record = {
            "parentUuid": self.last,
            "isSidechain": False,
            "userType": "external",
            "cwd": self.cwd,
            "sessionId": self.id,
            "version": "2.1.110",
            "gitBranch": "main",
            "type": kind,
            "message": message,
            "uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self.id} {self.count}")),
            "timestamp": self.clock.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        } | fields
        self.write(record)
        self.last = record["uuid"]
        return record["uuid"]


def talk(session: ClaudeSession, rounds: int, about: str) -> None:
    """Add some rounds of prompt, thinking, answer and a tool call."""
    for number in range(rounds):
        session.prompt(f"{about}: please look at part {number} of the {about}")
        session.answer(f"The {about} part {number} needs a closer look.", "thinking")
        session.answer(f"Part {number} of the {about} is fine, but its error handling is not.")
        session.tool("Bash", {"command": f"make {about}-{number}"}, f"{about}-{number}: ok\n" * 3)
