"""What the scripted model does: steps, and the one that a request gets.

The step taken depends on nothing but the request: it is the number of tool results since the last prompt. So repeats,
side requests (titles, suggestions) and resumed sessions need no bookkeeping.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_GET_LINE = re.compile(r"→ get (\S+) (\S+)")
SHOWN = 400
"""Characters of a prompt or result that stand for it in an answer."""


@dataclass(frozen=True)
class Call:
    """Call a tool.

    Attributes:
        tool: the end of its name: `recall` means `mcp__funes__recall` too.
        arguments: its arguments; `$PROMPT`, `$SESSION` and `$TURN` in their strings are replaced.
    """

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Say:
    """Answer with a text; `$PROMPT` and `$RESULT` in it are replaced."""

    text: str


@dataclass(frozen=True)
class Stall:
    """Never answer, as a model server that hangs."""


Step = Call | Say | Stall


@dataclass
class Request:
    """What the three protocols have in common.

    Attributes:
        protocol: `messages`, `responses` or `chat`.
        prompt: the last thing the user said.
        results: results of the tools called since then.
        tools: `(namespace, name)` of the tools offered; the namespace is empty in most protocols.
        deferred: names of tools that can be had through a tool search.
        body: the request as it was sent.
        reply: what was answered.
    """

    protocol: str
    body: dict[str, Any]
    prompt: str = ""
    results: list[str] = field(default_factory=list)
    tools: list[tuple[str, str]] = field(default_factory=list)
    deferred: list[str] = field(default_factory=list)
    searches: int = 0
    reply: ToolCall | Say | Stall | None = None

    def start_prompt(self, text: str) -> None:
        """Note what the user said; results belong to the last prompt only."""
        self.prompt, self.results, self.searches = text, [], 0

    def find_tool(self, end: str) -> tuple[str, str] | None:
        """The offered tool whose name is `end` or ends so after a separator."""
        for namespace, name in self.tools:
            if name == end or re.search(rf"[_.]{re.escape(end)}$", name):
                return namespace, name
        return None


@dataclass(frozen=True)
class ToolCall:
    """A call in the names of the agent that asked."""

    namespace: str
    name: str
    arguments: dict[str, Any]


def decide(request: Request, script: Sequence[Step]) -> ToolCall | Say | Stall:
    """The reply to a request: its step, or the next later one that can be taken (a call needs its tool on offer)."""
    for step in script[len(request.results) :] or script[-1:]:
        if isinstance(step, Stall):
            return step
        if isinstance(step, Say):
            return Say(_fill(step.text, request))
        if call := _call(step, request):
            return call
    return Say("There is nothing to say.")


def _call(step: Call, request: Request) -> ToolCall | None:
    if found := request.find_tool(step.tool):
        return ToolCall(*found, _fill(dict(step.arguments), request))
    # Claude Code keeps tools behind a search when they are many and not marked to be always loaded.
    names = [name for name in request.deferred if name.endswith(f"__{step.tool}")]
    if names and not request.searches and request.find_tool("ToolSearch"):
        return ToolCall("", "ToolSearch", {"query": f"select:{names[0]}"})
    return None


def _fill(value: Any, request: Request) -> Any:
    if isinstance(value, dict):
        return {key: _fill(entry, request) for key, entry in value.items()}
    if not isinstance(value, str):
        return value
    result = request.results[-1] if request.results else ""
    found = _GET_LINE.search(result)
    session, turn = found.groups() if found else ("none", "none")
    return (
        value.replace("$PROMPT", request.prompt[:SHOWN])
        .replace("$RESULT", result[:SHOWN])
        .replace("$SESSION", session)
        .replace("$TURN", turn)
    )
