"""Messages of the role `user` in Codex: prompts, and what else is recorded in their place."""

from __future__ import annotations

from collections.abc import Sequence

from funes.traces.codex_items import Part
from funes.traces.codex_lineage import is_unique
from funes.traces.codex_text import (
    is_summary,
    is_user_action,
    review_results,
    shell_command,
    typed_text,
)
from funes.traces.codex_turns import TurnMaker
from funes.traces.model import Origin, Turn


def user_turns(parts: Sequence[Part], ident: str, origin: Origin, make: TurnMaker) -> list[Turn]:
    """Make the turns of a user's message.

    Args:
        parts: the message.
        ident: its id in the trace, empty without one.
        origin: who is behind the prompts: a person, or the agent that started a sub-agent.
        make: makes the turns.

    Returns:
        The turns; none when Codex put all of the message there itself.
    """
    turns: list[Turn] = []
    typed: list[str] = []
    for part in parts:
        if not part.text.strip():
            continue
        labelled = part.kind == "user.text"
        content = None if labelled else _content(part.text, ident if is_unique(ident) else "", make)
        if content is not None:
            turns += content
        elif not part.from_program and (text := typed_text(part.text, labelled=labelled)):
            typed.append(text)
    if typed:
        turns.append(make.speech("user", origin, typed, ident))
    return turns


def _content(text: str, ident: str, make: TurnMaker) -> list[Turn] | None:
    """Make the turns of a text that is content but no prompt; None for any other text."""
    if shell := shell_command(text):
        # The person ran it, so it is theirs; it is a command with its output, not something they said.
        ident = ident and f"{ident}:shell"
        turns = [make.call("user", "human", "user_shell", shell.command, ident)]
        if shell.result.strip():
            turns.append(make.output("user_shell", shell.result, ident))
        return turns
    if is_user_action(text):
        results = review_results(text)
        return [make.output("review", results, ident and f"{ident}:review")] if results else []
    if is_summary(text):
        return [make.speech("user", "compaction", [text], "", "summary")]
    return None
