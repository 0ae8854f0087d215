"""What `add` did to an agent, kept so that `remove` can put it back."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from funes import __version__
from funes.agents import files
from funes.agents.files import FileRecord, Snapshot
from funes.agents.journal import Original

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

    @classmethod
    def read(cls, path: Path) -> Receipt | None:
        """Read a receipt; None when there is none that can be read: the agent's module finds funes's parts then."""
        data = files.read(path)
        if data is None:
            return None
        try:
            value = json.loads(data)
            if value["format"] != FORMAT:
                return None
            records = [FileRecord.from_json(record) for record in value["files"]]
            return cls(records, [Path(folder) for folder in value["folders"]], dict(value["known"]))
        except (ValueError, KeyError, TypeError, IndexError):
            return None

    def write(self, path: Path) -> None:
        """Write it, for this user's eyes alone.

        Raises:
            FunesError: when it cannot be written.
        """
        value = {
            "format": FORMAT,
            "funes": __version__,
            "files": [record.to_json() for record in self.records],
            "folders": [str(folder) for folder in self.folders],
            "known": self.known,
        }
        files.write(path, (json.dumps(value, indent=1) + "\n").encode(), files.PRIVATE)

    def originals(self) -> dict[Path, Original]:
        """The files that are as `add` left them, as they were before."""
        found = {}
        for record in self.records:
            if record.intact() and (data := files.read(record.path)) is not None:
                found[record.path] = record.original(data)
        return found
