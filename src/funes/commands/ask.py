"""`funes ask`: one answer from an agent that is on this machine, grounded in recalled passages."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field

from funes.agents.asking import AGENTS, Asking, find_agent
from funes.agents.detect import KINDS
from funes.commands.opened import OpenMemory
from funes.commands.recall import recall
from funes.errors import FunesError
from funes.search.model import DEFAULT_K, RecallOptions, RecallResult

DEFAULT_TIMEOUT = 120.0
_SHOWN_ERRORS = 5
"""Lines of an agent's stderr in the sentence that says it failed."""


@dataclass(slots=True)
class Question:
    """A question that can be asked: everything that can go wrong before an agent runs has not.

    Attributes:
        text: what is asked.
        label: the memory's name.
        result: the passages, at least one.
        agent: who is asked; None when no agent is installed.
    """

    text: str
    label: str
    result: RecallResult
    agent: Asking | None = field(default=None)


def parse_words(words: tuple[str, ...]) -> tuple[str | None, str]:
    """Agent (None: the first found) and question from the words of a command line.

    Raises:
        FunesError: when there is no question, or it is for an agent that cannot be asked.
    """
    first, rest = words[0], words[1:]
    # `ask gemini "what is …"`: the second word is a whole question, so the first is meant as an agent.
    is_agent = first in KINDS or (len(rest) == 1 and " " in rest[0].strip() and first.isidentifier())
    if not is_agent:
        return None, " ".join(words)
    if not " ".join(rest).strip():
        raise FunesError(f'The question is missing, as in `funes ask {first} "why did we drop the cache"`.')
    return first, " ".join(rest)


def prepare(
    name: str | None,
    text: str,
    memory: str | None,
    *,
    k: int = DEFAULT_K,
    told: Callable[[int, int], None] | None = None,
) -> Question:
    """Choose the agent and recall the passages; nothing is spawned.

    Args:
        name: the agent, None for the first that is installed.
        text: the question.
        memory: the memory to read, None for the local one.
        k: passages to recall.
        told: told how far the download of a memory elsewhere is.

    Raises:
        FunesError: when the named agent is missing or cannot be asked, the memory cannot be read, or nothing is found.
    """
    agent = _choose(name)
    opened = OpenMemory(memory, told=told)
    result = recall(opened, text, RecallOptions(k=k))
    label = opened.label()
    if not result.hits:
        raise FunesError("The memory holds nothing on that, so no agent was asked; `funes status` says what it holds.")
    return Question(text, label, result, agent)


def _choose(name: str | None) -> Asking | None:
    if name is None:
        return find_agent()
    askable = ", ".join(AGENTS)
    if name == "hermes":
        raise FunesError(f"Hermes cannot be asked: it always saves a session and runs hooks; use one of {askable}.")
    if name not in AGENTS:
        raise FunesError(f"There is no agent {name[:80]!r} to ask; it is one of {askable}.")
    agent = find_agent(name)
    if agent is None:
        raise FunesError(f"`{name}` is not on this machine; install it, or leave it out to ask the first agent found.")
    return agent


def answer(question: Question, on_text: Callable[[str], None], *, timeout: float = DEFAULT_TIMEOUT) -> None:
    """Ask the agent.

    Args:
        question: one with an agent.
        on_text: called with each piece of the answer as it comes.
        timeout: seconds until the agent is ended.

    Raises:
        FunesError: when the agent fails, says nothing, or takes too long. What it had said has been passed on.
    """
    from funes.agents.running import run_program
    from funes.commands.ask_prompt import build_prompt

    agent = question.agent
    assert agent is not None
    prompt = build_prompt(question.text, question.result.hits)
    environment = agent.environment()
    said = False

    def on_line(line: str) -> None:
        nonlocal said
        if text := agent.text(line):
            said = said or bool(text.strip())
            on_text(text)

    try:
        command = agent.command(environment)
        outcome = run_program(command, prompt, on_line, timeout=timeout, environment=environment)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise FunesError(f"{agent.name} could not be run: {' '.join(str(error).split())[:300]}.") from error
    if outcome.code is None:
        raise FunesError(f"{agent.name} was not done after {timeout:g} s and was ended; --timeout gives it longer.")
    if outcome.code or agent.fault or not said:
        detail = agent.fault or " ".join(outcome.errors[-_SHOWN_ERRORS:]) or "it said nothing"
        raise FunesError(f"{agent.name} gave no answer (exit code {outcome.code}): {_sentence(detail)}")


def _sentence(text: str) -> str:
    from funes.ui.safe import one_line

    return one_line(text, 600).rstrip(".") + "."
