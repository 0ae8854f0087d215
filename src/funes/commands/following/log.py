"""The hooks' log: one JSON object a line, so that `funes status` and a person with `grep` can both read it."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from funes import hook


@dataclass(slots=True)
class Entry:
    """What came of an event, or of several that were handled together.

    Attributes:
        time: when it was done, ISO 8601, UTC.
        harness: the agent's name.
        event: the agent's names for the events.
        events: their number.
        traces: traces that had changed.
        stored: passages stored.
        embedded: passages that got a vector.
        seconds: from the last event to the end of the work.
        recallable: from the last event until its passages could be found.
        cpu: CPU seconds of the worker since the entry before this one.
        note: what is worth knowing about a success.
        error: why it did not succeed, empty when it did.
    """

    time: str = ""
    harness: str = ""
    event: str = ""
    events: int = 1
    traces: int = 0
    stored: int = 0
    embedded: int = 0
    seconds: float = 0.0
    recallable: float = 0.0
    cpu: float = 0.0
    note: str = ""
    error: str = ""

    def write(self, home: Path) -> None:
        """Append it to the log; on a full disk there is nowhere to say so."""
        self.time = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        values = {name: value for name, value in asdict(self).items() if value or name in ("harness", "event")}
        with contextlib.suppress(OSError):
            hook.write_log(str(home), json.dumps(values))


def last_entries(home: Path) -> tuple[Entry | None, Entry | None]:
    """Find the last success and the last error in the log.

    Args:
        home: FUNES_HOME.

    Returns:
        The two, each None when the log has none.
    """
    success = error = None
    for name in (hook.LOG, f"{hook.LOG}.1"):
        try:
            lines = (home / "logs" / name).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        for line in reversed(lines):
            entry = _entry(line)
            if entry is None:
                continue
            if entry.error:
                error = error or entry
            else:
                success = success or entry
            if success and error:
                return success, error
    return success, error


def _entry(line: str) -> Entry | None:
    try:
        values: Any = json.loads(line)
    except ValueError:  # a line that a full disk cut
        return None
    if not isinstance(values, dict) or "time" not in values:
        return None
    return Entry(**{name: values[name] for name in Entry.__slots__ if name in values})
