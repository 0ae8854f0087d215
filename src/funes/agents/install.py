"""Adding funes to an agent and removing it: whole or not at all, and every file put back as it was.

`add` writes a receipt: for each file the hash of what it left there and the stretch to put back. A file that still has
that hash is restored byte by byte; from one that has changed since, the agent's module takes funes's parts out. While
either is at work a journal says the same, so that the next one completes what a killed one began.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from funes.agents import files
from funes.agents.files import Snapshot
from funes.agents.journal import Journal, Original, journal_file, sweep
from funes.agents.model import Agent, Binding, Change, Outcome, Watch
from funes.agents.receipt import Receipt
from funes.errors import FunesError
from funes.paths import shown


def add_agent(agent: Agent, binding: Binding, server: Mapping[str, Any], *, trust: bool = False) -> Outcome:
    """Add funes to an agent, or change its binding. When a step fails, everything is put back.

    Args:
        agent: the agent.
        binding: what to write.
        server: what the MCP server says of itself.
        trust: whether the user asked to trust the hooks without the agent's own dialog.

    Raises:
        FunesError: when it cannot be done; nothing is changed then.
    """
    agent.check()
    outcome = Outcome(agent.name, _title(agent))
    if not trust and _receipt_file(agent).is_file() and agent.registered(binding, server):
        files.delete(_journal_file(agent))  # of a run that was killed when all was done
        outcome.done = False
        return outcome
    _complete(agent)
    bases = _bases(agent)
    start = Snapshot.take(_watch(agent, bases))
    known_before = _receipt_file(agent).is_file()
    made = [folder for folder in (agent.base / "agents", agent.base) if not folder.exists()]
    journal = _journal(agent, bases, start)
    try:
        journal.save()
        with journal.active():
            _take_out_of(agent, bases)
            before = Snapshot.take(agent.watch())
            _note(journal, before)
            known, notes = agent.register(binding, server, trust=trust)
            after = Snapshot.take(agent.watch())
            Receipt.compare(before, after, known).write(_receipt_file(agent))
    except BaseException:
        start.restore()
        journal.discard()
        files.delete_empty(made)
        raise
    journal.discard()
    outcome.changes = _changes(agent, start, after)
    outcome.notes = notes if known_before else [*notes, *agent.advice()]
    return outcome


def remove_agent(agent: Agent) -> Outcome:
    """Take funes out of an agent. Memory, traces and caches stay. When a step fails, everything is put back.

    Raises:
        FunesError: when it cannot be done; nothing is changed then.
    """
    outcome = Outcome(agent.name, agent.title)
    _mend(agent)
    bases = _bases(agent)
    known = any(file.is_file() for base in bases for file in (_receipt_file(agent, base), _journal_file(agent)))
    if not known and not agent.parts() and not agent.has_server():
        _sweep(agent)
        outcome.done = False
        outcome.notes = _kept(agent)
        return outcome
    watch = _watch(agent, bases)
    start = Snapshot.take(watch)
    if not _complete(agent):
        journal = _journal(agent, bases, start)
        try:
            journal.save()
            with journal.active():
                _take_out_of(agent, bases, always=True)
        except BaseException:
            start.restore()
            journal.discard()
            raise
        journal.discard()
        _sweep(agent)
    outcome.changes = _changes(agent, start, Snapshot.take(watch))
    outcome.notes = _kept(agent)
    return outcome


def _journal(agent: Agent, bases: list[Path], start: Snapshot) -> Journal:
    """The journal: what is to be put back should this process be killed, as far as it is known already."""
    journal = Journal(_journal_file(agent))
    receipts = [receipt for base in bases if (receipt := Receipt.read(_receipt_file(agent, base))) is not None]
    if receipts or agent.parts() or agent.has_server():
        made = {folder for receipt in receipts for folder in receipt.folders}
        journal.folders = sorted(start.folders - made)
        journal.files = {path: Original(None) for path in agent.watch().files if path not in start.files}
        journal.files |= {path: original for receipt in receipts for path, original in receipt.originals().items()}
    else:
        _fill(journal, start)
    return journal


def _note(journal: Journal, before: Snapshot) -> None:
    """Write into the journal what is there now, when nothing of funes is."""
    _fill(journal, before)
    journal.save()


def _fill(journal: Journal, before: Snapshot) -> None:
    there = {path: Original(*before.files[path]) for path in before.files}
    journal.files = {path: there.get(path, Original(None)) for path in before.watch.files if path != journal.path}
    journal.folders = sorted(before.folders)


def _complete(agent: Agent) -> bool:
    """Take out what a killed `add` or `remove` left, if one did; says whether.

    Raises:
        FunesError: when something cannot be taken out; the journal stays.
    """
    journal = Journal.load(_journal_file(agent))
    if journal is None:
        return False
    sweep(agent.watch().files)
    with journal.active():
        _take_out_of(agent, _bases(agent), always=True, journal=journal)
    journal.discard()
    _sweep(agent)
    return True


def _mend(agent: Agent) -> None:
    """Put back what is broken because a command of the agent's was killed together with funes."""
    journal = Journal.load(_journal_file(agent))
    if journal is None:
        return
    try:
        agent.parts()
    except FunesError:
        for path, original in journal.untouched().items():
            files.put_back(path, original)


def _sweep(agent: Agent) -> None:
    """Delete what a killed process left of funes's own files, and their folders when they are empty."""
    sweep((_receipt_file(agent), _journal_file(agent)))
    files.delete_empty((agent.base / "agents", agent.base))


def _kept(agent: Agent) -> list[str]:
    """A sentence about what has the name of funes and stays."""
    clause = agent.foreign()
    return [f"{clause}; it stays."] if clause else []


def _bases(agent: Agent) -> list[Path]:
    """The FUNES_HOMEs with files about the agent: first the one that it names, if `add` ran with another, then ours."""
    named = agent.named_base()
    if named is None or named == agent.base:
        return [agent.base]
    own = _receipt_file(agent, named).is_file() or _folder(agent, named).is_dir()
    return [named, agent.base] if own else [agent.base]


def _watch(agent: Agent, bases: list[Path]) -> Watch:
    """What may be touched, in all of them."""
    watch = agent.watch()
    others = [base for base in bases if base != agent.base]
    return Watch(
        (*watch.files, *(_receipt_file(agent, base) for base in bases)),
        (*watch.trees, *(_folder(agent, base) for base in others)),
        watch.folders,
    )


def _take_out_of(agent: Agent, bases: list[Path], *, always: bool = False, journal: Journal | None = None) -> None:
    """Take funes out, with what each FUNES_HOME knows of it.

    Args:
        agent: the agent.
        bases: as `_bases` gives them.
        always: whether to do it for the first one, though nothing of funes is seen.
        journal: what a killed run left.
    """
    ours = agent.base
    try:
        for base in bases:
            agent.base = base
            receipt = Receipt.read(_receipt_file(agent))
            if receipt or agent.parts() or (always and base == bases[0]):
                _take_out(agent, receipt or Receipt(), journal)
            files.delete(_receipt_file(agent))
            if always or base != ours:
                files.delete_empty((base / "agents", base))
    finally:
        agent.base = ours


def _take_out(agent: Agent, receipt: Receipt, journal: Journal | None) -> None:
    """Put back what is unchanged since `add`, and take funes's parts out of the rest."""
    whole = receipt.originals()
    known = receipt.known
    if journal is not None:
        whole |= journal.untouched()
        known = journal.known | known | {"untouched": [str(path) for path in whole]}
    agent.unregister(known)
    for path, original in whole.items():
        files.put_back(path, original)
    files.delete_empty(receipt.folders)
    if journal is not None:
        files.delete_empty(Snapshot.take(agent.watch()).folders - set(journal.folders))
    left = agent.parts()
    if left or (agent.has_server() and not receipt.known.get("server")):
        places = ", ".join(shown(path) for path in left) or f"the MCP servers of {agent.title}"
        by_hand = f"docs/agent-{agent.name}.md says how to do it by hand"
        raise FunesError(f"funes cannot be taken out of {places}; {by_hand}.")


def _changes(agent: Agent, before: Snapshot, after: Snapshot) -> list[Change]:
    """What differs; files of one folder that is funes's own are told as the folder."""
    found: dict[Path, Change] = {}
    for path, earlier, later in files.changed(before, after):
        if path.name == f"{agent.name}.json" and path.parent.name == "agents":
            continue  # the receipt
        kind: Any = "created" if earlier is None else "removed" if later is None else "edited"
        place = next((tree for tree in before.watch.trees if path.is_relative_to(tree)), path)
        if place != path and (place in before.folders) == (place in after.folders):
            kind = "edited"
        if place != path and place.name == agent.name:
            path = _folder(agent, agent.base) / path.relative_to(place)  # the same in another FUNES_HOME
        found.setdefault(place, Change(kind, place, agent.describe(path)))
    return list(found.values())


def _title(agent: Agent) -> str:
    return f"{agent.title} {agent.version()}".strip()


def _folder(agent: Agent, base: Path) -> Path:
    return base / "agents" / agent.name


def _receipt_file(agent: Agent, base: Path | None = None) -> Path:
    return (base or agent.base) / "agents" / f"{agent.name}.json"


def _journal_file(agent: Agent) -> Path:
    return journal_file(agent.base, agent.name)
