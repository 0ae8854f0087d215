"""Which agents funes knows, and which of them are on this machine."""

from __future__ import annotations

from funes.agents.claude import Claude
from funes.agents.codex import Codex
from funes.agents.hermes import Hermes
from funes.agents.model import Agent
from funes.agents.pi import Pi
from funes.errors import FunesError

KINDS: dict[str, type[Agent]] = {kind.name: kind for kind in (Claude, Codex, Pi, Hermes)}
_OTHER_NAMES = {"claude_code": "claude", "claude-code": "claude"}


def agent_named(name: str) -> Agent:
    """The agent with this name.

    Raises:
        FunesError: when funes knows none.
    """
    kind = KINDS.get(_OTHER_NAMES.get(name.lower(), name.lower()))
    if kind is None:
        raise FunesError(f"There is no agent {name[:80]!r}; funes knows {', '.join(KINDS)}.")
    return kind()


def agents_here() -> list[Agent]:
    """The agents whose programs are on this machine."""
    return [agent for agent in (kind() for kind in KINDS.values()) if agent.program() is not None]
