"""`funes remove`: take funes out of an agent; the memory stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from funes.agents.model import Outcome


def remove(name: str) -> Outcome:
    """Take funes out of an agent.

    Args:
        name: the agent.

    Raises:
        FunesError: when there is no such agent, or a file of its cannot be read or written; nothing is changed then.
    """
    from funes.agents.detect import agent_named
    from funes.agents.install import remove_agent

    return remove_agent(agent_named(name))
