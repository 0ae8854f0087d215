"""`funes bind`: agents recall from a memory that others read too, and their sessions are published to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from funes.commands.publishing.destination import destination
from funes.commands.publishing.ledger import Ledger
from funes.errors import FunesError, NoMemoryError

if TYPE_CHECKING:
    from funes.agents.model import Agent, Outcome
    from funes.commands.indexing.report import Progress
    from funes.commands.push import Confirm, PushReport


@dataclass(slots=True)
class BindReport:
    """What came of a binding.

    Attributes:
        label: the memory.
        pushed: what was published at once; None when nothing was.
        publishes: whether the hooks publish to the memory from now on.
        notes: what else the user should know, a sentence each.
    """

    label: str
    pushed: PushReport | None = None
    publishes: bool = False
    notes: list[str] = field(default_factory=list)


def bind(
    memory: str,
    told: Callable[[Outcome], None],
    *,
    yes: bool = False,
    words: bool = False,
    trust_hooks: bool = False,
    progress: Progress | None = None,
    confirm: Confirm | None = None,
) -> BindReport:
    """Bind every agent that funes was added to.

    Args:
        memory: the memory; `local` undoes a binding.
        told: called with what was done, agent by agent.
        yes: publish without asking.
        words: publish passages that have no vector yet, too, now and later.
        trust_hooks: trust the hooks in Codex without its own dialog.
        progress: told how far the first push is.
        confirm: asked before it; None where there is nobody to ask.

    Raises:
        FunesError: when there is no agent to bind, the memory cannot be read or written, or nobody can be asked.
    """
    from funes.agents.detect import agents_here
    from funes.commands.add import bound_memory, is_added
    from funes.memory.uri import LOCAL

    agents = [agent for agent in agents_here() if is_added(agent)]
    if not agents:
        add, bound = ("", "") if memory == LOCAL else (f" {memory}", f", bound to {memory}")
        raise FunesError(f"funes is added to no agent on this machine; `funes add AGENT{add}` adds it to one{bound}.")
    for agent in agents:
        agent.check()
    target = bound_memory(memory)
    report = BindReport("local")
    if target:
        if confirm is None and not yes and not Ledger(destination(memory)[0]).state().approved:
            raise FunesError(f"Binding publishes this machine's sessions to {memory}; add --yes to agree to that.")
        report = first_push(memory, yes=yes, words=words, progress=progress, confirm=confirm)
    _register(agents, target, told, trust_hooks)
    return report


def first_push(
    memory: str, *, yes: bool, words: bool, progress: Progress | None = None, confirm: Confirm | None = None
) -> BindReport:
    """Publish what there is, if somebody agrees, which then holds for what comes later.

    Args:
        memory: the memory.
        yes: do not ask.
        words: publish passages that have no vector yet, too, now and later.
        progress: told how far it is.
        confirm: asked; without it and `yes` nothing is published.

    Returns:
        The report; `publishes` says whether there was an agreement, now or earlier.

    Raises:
        FunesError: when the memory cannot be read or written.
    """
    from funes.commands.push import DeclinedError, PushOptions, push

    label, place = destination(memory)
    ledger = Ledger(label)
    before = ledger.state()
    report = BindReport(label)
    if place.revision:
        _can_be_read(memory)
        report.label = memory
        report.notes.append(f"{memory} names a revision, which stays as it is, so nothing is published to it.")
        return report
    if not (yes or before.approved or confirm):
        report.notes.append(f"Nothing is published to {label} until somebody agrees: `funes bind {label}` asks.")
        return report
    agreed = yes or before.approved
    try:
        options = PushOptions(memory, words=words or before.words, yes=yes, ask=not agreed)
        report.pushed = push(options, progress, confirm)
        agreed = agreed or report.pushed.asked
    except DeclinedError:
        report.notes.append(f"Nothing is published to {label}; it is only read.")
        _can_be_read(memory)
        return report
    except NoMemoryError:
        _can_be_read(memory)  # a machine without sessions of its own reads what others have published
    if not agreed and confirm is not None:
        agreed = confirm(f"Publish the sessions of this machine to {label} from now on?")
    report.publishes = agreed
    ledger.agree(agreed, words or (agreed and before.words))
    if agreed:
        report.notes += _token_note(memory)
    else:
        report.notes.append(f"Nothing is published to {label}; it is only read.")
    return report


def _can_be_read(memory: str) -> None:
    from funes.commands.opened import OpenMemory

    OpenMemory(memory).reader()


def _token_note(memory: str) -> list[str]:
    """A warning when the hooks will not find the token."""
    from funes.memory.uri import resolve

    if resolve(memory).kind != "hub":
        return []
    from funes.memory.remote.tokens import VARIABLES, find_token

    name = find_token().name
    if name in VARIABLES:
        return [f"The token comes from {name}, which agents may not pass on to hooks; `hf auth login` keeps it there."]
    return []


def _register(agents: list[Agent], target: str, told: Callable[[Outcome], None], trust_hooks: bool) -> None:
    from funes.agents.install import add_agent
    from funes.agents.programs import ask_server, make_binding

    binding = make_binding(target)
    server = ask_server(binding)
    faults = []
    for agent in agents:
        try:
            told(add_agent(agent, binding, server, trust=trust_hooks and agent.name == "codex"))
        except FunesError as error:
            faults.append(error.message)
    if faults:
        raise FunesError(" ".join(faults))
