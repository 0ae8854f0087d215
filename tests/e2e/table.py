"""The table that `make e2e` prints: a row for each agent, a cell for each thing that was seen to work."""

from __future__ import annotations

COLUMNS = (
    "version",
    "add",
    "recall called",
    "hook indexed",
    "cross-agent recall",
    "ask",
    "remove",
    "handshake",
    "hook",
)
_NOTES = (
    "hook indexed: from the model's last word until its text was recallable. handshake: the agent's own, from the",
    "start of `funes mcp` until the tools were listed. hook: what the agent waits for, median of 50 events.",
)


class Table:
    """Cells by agent and column."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, str]] = {}
        self._skipped: dict[str, str] = {}

    def set(self, agent: str, column: str, value: str) -> None:
        """Fill a cell."""
        assert column in COLUMNS
        self._rows.setdefault(agent, {})[column] = value

    def skip(self, agent: str, reason: str) -> None:
        """Note why an agent was not tested."""
        self._skipped[agent] = reason

    def lines(self) -> list[str]:
        """The table as text; nothing when nothing was tested."""
        if not self._rows and not self._skipped:
            return []
        cells = [("agent", *COLUMNS)]
        cells += [(agent, *(row.get(column, "-") for column in COLUMNS)) for agent, row in self._rows.items()]
        widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
        lines = ["", *("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)]
        lines += [f"{agent}: SKIPPED, {reason}" for agent, reason in self._skipped.items()]
        return [*lines, *_NOTES]
