"""What each agent needs to answer one question from a prompt alone, and how it says its answer.

No tools, no MCP servers, no hooks, no extensions, no files of instructions, no saved session. The options were found by
running the programs (Claude Code 2.1.197 and 2.1.332, Codex 0.171.0, pi 0.74.2 and 1.6.0); `make e2e` checks them.
"""

from __future__ import annotations

import json
import os
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from funes.agents.detect import agent_named

MARK = "FUNES_ASK"
"""Set in the environment of an agent that is asked; the hooks leave such a run alone."""
_LIST_SECONDS = 20


class Asking(ABC):
    """One agent that can be asked.

    An object serves one question: it reads the agent's output as it comes.

    Attributes:
        name: of the program.
        fault: what the agent itself said went wrong, empty if nothing.
    """

    name: str
    _variables: ClassVar[dict[str, str]] = {}

    def __init__(self, program: str) -> None:
        self.program = program
        self.fault = ""

    def command(self, environment: Mapping[str, str]) -> list[str]:
        """The command line. It may run the program to learn what has to be switched off.

        Raises:
            OSError, subprocess.SubprocessError, ValueError: when that fails.
        """
        return [self.program, *self._arguments(environment)]

    def environment(self) -> dict[str, str]:
        """The environment: the user's own, marked."""
        # Claude Code sets it for what it runs, and some versions refuse to start inside themselves.
        inherited = {name: value for name, value in os.environ.items() if name != "CLAUDECODE"}
        return inherited | self._variables | {MARK: "1"}

    def text(self, line: str) -> str:
        """The part of the answer that a line of output carries, empty for none."""
        if not line.lstrip().startswith("{"):
            return ""  # a program may print anything, and much of it
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            return ""
        return self._event(event) if isinstance(event, dict) else ""

    @abstractmethod
    def _arguments(self, environment: Mapping[str, str]) -> list[str]: ...

    @abstractmethod
    def _event(self, event: dict[str, Any]) -> str:
        """The part of the answer in an event; `fault` is set by one that reports an error."""


class AskClaude(Asking):
    """Claude Code."""

    name = "claude"
    # Safe mode leaves CLAUDE.md, plugins and skills out and makes no folder for the project. As a variable and not an
    # option, since a version that does not know it would refuse the option.
    _variables: ClassVar[dict[str, str]] = {"CLAUDE_CODE_SAFE_MODE": "1"}

    def __init__(self, program: str) -> None:
        super().__init__(program)
        self._streamed = False

    def _arguments(self, environment: Mapping[str, str]) -> list[str]:
        return [
            "-p",
            "--tools",
            "",
            "--no-session-persistence",
            "--strict-mcp-config",
            "--disable-slash-commands",
            "--settings",
            '{"disableAllHooks": true}',
            "--output-format",
            "stream-json",
            "--verbose",
            "--include-partial-messages",
        ]

    def _event(self, event: dict[str, Any]) -> str:
        kind = event.get("type")
        if kind == "stream_event" and not event.get("parent_tool_use_id"):
            inner = _dict(event.get("event"))
            if inner.get("type") == "message_start":
                self._streamed = False
            delta = _dict(inner.get("delta"))
            text = _string(delta.get("text")) if delta.get("type") == "text_delta" else ""
            self._streamed |= bool(text)
            return text
        if kind == "assistant" and not self._streamed and not event.get("error"):
            content = _dict(event.get("message")).get("content")
            parts = content if isinstance(content, list) else []
            return "".join(_string(part.get("text")) for part in map(_dict, parts) if part.get("type") == "text")
        if kind == "result" and event.get("is_error"):
            self.fault = _string(event.get("result")) or _string(event.get("subtype"))
        return ""


class AskCodex(Asking):
    """Codex."""

    name = "codex"
    _FEATURES = (
        "hooks",
        "shell_tool",
        "unified_exec",
        "multi_agent",
        "goals",
        "apps",
        "plugins",
        "memories",
        "view_image",
    )

    def _arguments(self, environment: Mapping[str, str]) -> list[str]:
        # Features as configuration, since a version that does not know one of them would refuse `--disable`.
        off = [f"features.{name}=false" for name in self._FEATURES]
        off += [f"mcp_servers.{name}.enabled=false" for name in self._servers(environment)]
        off += ['web_search="disabled"', "project_doc_max_bytes=0", "notify=[]"]
        overrides = [part for setting in off for part in ("-c", setting)]
        switches = ["--json", "--ephemeral", "--skip-git-repo-check", "--sandbox", "read-only"]
        return ["exec", *switches, *overrides, "-"]

    def _servers(self, environment: Mapping[str, str]) -> list[str]:
        """Names of the MCP servers that are configured; nothing silences them all at once."""
        done = subprocess.run(
            [self.program, "mcp", "list", "--json"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=dict(environment),
            timeout=_LIST_SECONDS,
            check=True,
        )
        listed = json.loads(done.stdout)
        return [str(_dict(entry).get("name")) for entry in listed] if isinstance(listed, list) else []

    def _event(self, event: dict[str, Any]) -> str:
        kind = event.get("type")
        if kind == "item.completed":
            item = _dict(event.get("item"))
            return _string(item.get("text")) + "\n" if item.get("type") == "agent_message" else ""
        if kind == "turn.failed":
            self.fault = _string(_dict(event.get("error")).get("message"))
        elif kind == "error":
            self.fault = _string(event.get("message"))
        elif kind == "turn.completed":
            self.fault = ""  # what came before were attempts
        return ""


class AskPi(Asking):
    """pi."""

    name = "pi"

    def _arguments(self, environment: Mapping[str, str]) -> list[str]:
        # In this order: no session, tools, extensions, context files, skills, prompt templates.
        return ["-p", "--mode", "json", "--no-session", "-nt", "-ne", "-nc", "-ns", "-np"]

    def _event(self, event: dict[str, Any]) -> str:
        kind = event.get("type")
        if kind == "message_update":
            inner = _dict(event.get("assistantMessageEvent"))
            return _string(inner.get("delta")) if inner.get("type") == "text_delta" else ""
        message = _dict(event.get("message"))
        if kind == "message_end" and message.get("role") == "assistant":
            # Its exit code is 0 all the same.
            failed = message.get("stopReason") in ("error", "aborted")
            self.fault = (_string(message.get("errorMessage")) or "no reason given") if failed else ""
        return ""


AGENTS: dict[str, type[Asking]] = {kind.name: kind for kind in (AskClaude, AskCodex, AskPi)}
"""In the order in which they are looked for."""


def find_agent(name: str | None = None) -> Asking | None:
    """The agent with this name, or the first there is; None when its program is not on this machine."""
    for candidate in [name] if name else AGENTS:
        if program := agent_named(candidate).program():
            return AGENTS[candidate](str(program))
    return None


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""
