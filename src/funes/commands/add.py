"""`funes add`: give agents the memory, and build the first one from what they have left on disk."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from funes.errors import FunesError
from funes.paths import memory_folder, state_file

if TYPE_CHECKING:
    from funes.agents.model import Agent, Outcome
    from funes.commands.bind import BindReport
    from funes.commands.indexing.report import FoundHarness, IndexReport, Progress
    from funes.commands.push import Confirm


CROSS_ENCODER_OFFER = (
    "Optional: `funes models pull cross-encoder` fetches a second model (92 MB), which reads the best passages of a "
    "recall and puts them in its own order."
)


@dataclass(frozen=True, slots=True)
class AddOptions:
    """What to add, and how.

    Attributes:
        agents: names of the agents.
        memory: the memory they are to read, and to publish to; None or `local` for the local one.
        index: whether their sessions are indexed when the memory has none of them yet.
        yes: index and publish without asking.
        interactive: whether a person at a terminal can be asked.
        trust_hooks: trust the hooks in Codex without its own dialog.
    """

    agents: tuple[str, ...]
    memory: str | None = None
    index: bool = True
    yes: bool = False
    interactive: bool = False
    trust_hooks: bool = False


@dataclass(slots=True)
class FoundAgent:
    """An agent on this machine: its name on the command line, what people call it, whether funes is added to it."""

    name: str
    title: str
    added: bool


@dataclass(slots=True)
class AddReport:
    """What came of the indexing.

    Attributes:
        indexed: the reports of the index runs, none when nothing was indexed.
        bound: what came of binding them to a memory other than the local one.
        notes: what else the user should know, a sentence each.
    """

    indexed: list[IndexReport] = field(default_factory=list)
    bound: BindReport | None = None
    notes: list[str] = field(default_factory=list)


def find_agents() -> list[FoundAgent]:
    """The agents on this machine."""
    from funes.agents.detect import agents_here

    return [FoundAgent(agent.name, agent.title, is_added(agent)) for agent in agents_here()]


def add(
    options: AddOptions,
    told: Callable[[Outcome], None],
    confirm: Callable[[list[FoundHarness]], bool],
    progress: Progress | None = None,
    agree: Confirm | None = None,
) -> AddReport:
    """Add funes to agents, then index their sessions if the memory has none of them yet.

    Bound to another memory than the local one, what this machine has is published to it, if somebody agrees.

    Registering comes first: it takes seconds, and an interrupted index run goes on by itself after the next turn.

    Args:
        options: what to add.
        told: called with what was done, agent by agent, before the indexing begins.
        confirm: asked, with the sessions found, before they are indexed; needed for an interactive run without `yes`.
        progress: told how far the indexing is; None to work silently.
        agree: asked before anything is published; None where there is nobody to ask.

    Raises:
        FunesError: when an agent is unknown, missing, or cannot be registered with; what was done for others stays.
    """
    from funes.agents.detect import agent_named
    from funes.agents.install import add_agent
    from funes.agents.programs import ask_server, make_binding, passing_note

    agents = [agent_named(name) for name in options.agents]
    if options.trust_hooks and not any(agent.name == "codex" for agent in agents):
        raise FunesError("--trust-hooks is for Codex, the one agent that has a dialog for trusting hooks.")
    faults = _check(agents)
    binding = make_binding(bound_memory(options.memory))
    server = ask_server(binding)
    found = _first_sessions([agent.name for agent in agents if agent.name not in faults]) if options.index else []
    wanted = bool(found) and (options.yes or (options.interactive and confirm(found)))
    new = False
    for agent in agents:
        if agent.name in faults:
            continue
        try:
            outcome = add_agent(agent, binding, server, trust=options.trust_hooks and agent.name == "codex")
        except FunesError as error:
            faults[agent.name] = error.message
            continue
        if outcome.done and (note := passing_note(binding)):
            outcome.notes.append(note)
        told(outcome)
        new = new or outcome.done
    left = [harness for harness in found if harness.name not in faults]
    report = AddReport(_index(left, progress) if wanted else [])
    if new and not _has_cross_encoder():
        report.notes.append(CROSS_ENCODER_OFFER)
    if left and not wanted:
        report.notes.append(_not_indexed(left))
    if binding.memory and len(faults) < len(agents) and not any(run.interrupted for run in report.indexed):
        from funes.commands.bind import first_push

        report.bound = first_push(binding.memory, yes=options.yes, words=False, progress=progress, confirm=agree)
        report.notes += report.bound.notes
    if faults:
        raise FunesError(" ".join(faults.values()))
    return report


def bound_memory(memory: str | None) -> str:
    """What to write into an agent's configuration for a memory: empty for the local one.

    Returns:
        A folder as an absolute path, a repository on the Hub as `<org>/<name>` with its revision if one was given, a
        store as its address. Whether there is a memory is found out for a folder only; for the others it takes a
        network.

    Raises:
        FunesError: for a folder without a memory.
    """
    from funes.memory.uri import LOCAL, resolve

    if memory is None or memory in ("", LOCAL):
        return ""
    place = resolve(memory)
    if place.kind == "hub":
        return f"{place.repo}@{place.revision}" if place.revision else place.repo
    if place.kind == "store":
        return place.url
    if place.folder is None or not (place.folder / "chunks.lance").is_dir():
        raise FunesError(f"There is no memory at {memory}; leave it out for the local one.")
    return os.path.abspath(Path(memory).expanduser())


def _check(agents: list[Agent]) -> dict[str, str]:
    """What keeps funes from being added, by agent; for a single one it is raised at once."""
    faults = {}
    for agent in agents:
        try:
            agent.check()
        except FunesError as error:
            if len(agents) == 1:
                raise
            faults[agent.name] = error.message
    return faults


def _first_sessions(names: list[str]) -> list[FoundHarness]:
    """Those of the agents that have sessions of which the memory knows nothing yet."""
    from funes.commands.indexing.discovery import find_harnesses
    from funes.commands.indexing.state import read_traces
    from funes.memory.identity import newest_version, read_identity

    folder = memory_folder()
    version = newest_version(folder)
    known = read_traces(state_file(), read_identity(folder), version) if version else {}
    sources = {trace.source for trace in known.values()}
    return [found for name in names if name not in sources for found in find_harnesses(name)]


def _index(found: list[FoundHarness], progress: Progress | None) -> list[IndexReport]:
    """Words of all agents at once; vectors, within the usual time, with the last."""
    from funes.commands.index import IndexOptions, run_index

    reports = []
    for number, harness in enumerate(found, start=1):
        budget = None if number == len(found) else 0.0
        reports.append(run_index(IndexOptions(harness=harness.name, yes=True, budget=budget), progress))
        if reports[-1].interrupted:
            break
    return reports


def _has_cross_encoder() -> bool:
    from funes.models.cross_encoder import find_cross_encoder

    try:
        return find_cross_encoder() is not None
    except FunesError:
        return True  # one was chosen; recall says what is wrong with the note of it


def _not_indexed(found: list[FoundHarness]) -> str:
    commands = " and ".join(f"`funes index --harness {harness.name}`" for harness in found)
    count = sum(harness.traces for harness in found)
    traces = f"{count:,} earlier traces are" if count != 1 else "1 earlier trace is"
    return f"{traces} not indexed; {commands} does that."


def is_added(agent: Agent) -> bool:
    """Whether funes is added to an agent, as far as its files tell."""
    try:
        return bool(agent.parts())
    except FunesError:
        return False  # a file of the agent's cannot be read; adding says so
