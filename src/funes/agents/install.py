"""Adding funes to an agent and removing it: whole or not at all, and every file put back as it was.

`add` writes a receipt: for each file the hash of what it left there and the stretch to put back. A file that still has
that hash is restored byte by byte; from one that has changed since, the agent's module takes funes's parts out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from funes import __version__
from funes.agents import files
from funes.agents.files import FileRecord, Snapshot
from funes.agents.model import Agent, Binding, Change, Outcome
from funes.errors import FunesError
from funes.paths import funes_home, shown

FORMAT = 1


@dataclass(slots=True)
class Receipt:
    """What `add` did to an agent.

    Attributes:
        records: one for each file that was changed.
        folders: folders that were made.
        known: what the agent's module wants to know when it takes funes out.
    """

    records: list[FileRecord] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)
    known: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def compare(cls, before: Snapshot, after: Snapshot, known: dict[str, Any]) -> Receipt:
        """Make the receipt from what was there before and after."""
        pairs = files.changed(before, after)
        modes = {path: mode for path, (_, mode) in before.files.items()}
        records = [
            FileRecord.compare(path, earlier, later, modes.get(path, 0))
            for path, earlier, later in pairs
            if later is not None
        ]
        return cls(records, sorted(after.folders - before.folders), known)


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
        outcome.done = False
        return outcome
    start = Snapshot.take(agent.watch())
    receipt_before = files.read(_receipt_file(agent))
    home = funes_home().absolute()
    made = [folder for folder in (home / "agents", home) if not folder.exists()]
    try:
        receipt = _read_receipt(agent)
        if receipt or agent.parts():
            _take_out(agent, receipt or Receipt())
        before = Snapshot.take(agent.watch())
        known, notes = agent.register(binding, server, trust=trust)
        after = Snapshot.take(agent.watch())
        _write_receipt(agent, Receipt.compare(before, after, known))
    except BaseException:
        start.restore()
        _put_back_receipt(agent, receipt_before)
        files.delete_empty(made)
        raise
    outcome.changes = _changes(agent, start, after)
    outcome.notes = notes if receipt_before is not None else [*notes, *agent.advice()]
    return outcome


def remove_agent(agent: Agent) -> Outcome:
    """Take funes out of an agent. Memory, traces and caches stay. When a step fails, everything is put back.

    Raises:
        FunesError: when it cannot be done; nothing is changed then.
    """
    outcome = Outcome(agent.name, agent.title)
    receipt_file = _receipt_file(agent)
    if not receipt_file.is_file() and not agent.parts() and not agent.has_server():
        outcome.done = False
        return outcome
    start = Snapshot.take(agent.watch())
    try:
        _take_out(agent, _read_receipt(agent) or Receipt())
    except BaseException:
        start.restore()
        raise
    files.delete(receipt_file)
    files.delete_empty((receipt_file.parent, funes_home()))
    outcome.changes = _changes(agent, start, Snapshot.take(agent.watch()))
    return outcome


def _take_out(agent: Agent, receipt: Receipt) -> None:
    """Put back what is unchanged since `add`, and take funes's parts out of the rest."""
    whole = [(record, files.read(record.path)) for record in receipt.records if record.intact()]
    agent.unregister(receipt.known)
    for record, data in whole:
        if data is not None:
            record.put_back(data)
    files.delete_empty(receipt.folders)
    left = agent.parts()
    if left or (agent.has_server() and not receipt.known.get("server")):
        places = ", ".join(shown(path) for path in left) or f"the MCP servers of {agent.title}"
        by_hand = f"docs/agent-{agent.name}.md says how to do it by hand"
        raise FunesError(f"funes cannot be taken out of {places}; {by_hand}.")


def _changes(agent: Agent, before: Snapshot, after: Snapshot) -> list[Change]:
    """What differs; files of one folder that is funes's own are told as the folder."""
    found: dict[Path, Change] = {}
    for path, earlier, later in files.changed(before, after):
        kind: Any = "created" if earlier is None else "removed" if later is None else "edited"
        place = next((tree for tree in before.watch.trees if path.is_relative_to(tree)), path)
        if place != path and (place in before.folders) == (place in after.folders):
            kind = "edited"
        found.setdefault(place, Change(kind, place, agent.describe(path)))
    return list(found.values())


def _title(agent: Agent) -> str:
    return f"{agent.title} {agent.version()}".strip()


def _receipt_file(agent: Agent) -> Path:
    return funes_home().absolute() / "agents" / f"{agent.name}.json"


def _read_receipt(agent: Agent) -> Receipt | None:
    """The receipt; None when there is none that can be read, in which case the agent's module finds funes's parts."""
    data = files.read(_receipt_file(agent))
    if data is None:
        return None
    try:
        value = json.loads(data)
        if value["format"] != FORMAT:
            return None
        records = [FileRecord.from_json(record) for record in value["files"]]
        return Receipt(records, [Path(folder) for folder in value["folders"]], dict(value["known"]))
    except (ValueError, KeyError, TypeError, IndexError):
        return None


def _write_receipt(agent: Agent, receipt: Receipt) -> None:
    value = {
        "format": FORMAT,
        "funes": __version__,
        "files": [record.to_json() for record in receipt.records],
        "folders": [str(folder) for folder in receipt.folders],
        "known": receipt.known,
    }
    files.write(_receipt_file(agent), (json.dumps(value, indent=1) + "\n").encode(), files.PRIVATE)


def _put_back_receipt(agent: Agent, data: bytes | None) -> None:
    if data is None:
        files.delete(_receipt_file(agent))
    else:
        files.write(_receipt_file(agent), data, files.PRIVATE)
