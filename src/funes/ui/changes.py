"""What `add` and `remove` changed, file by file, and how to undo it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from funes.paths import shown
from funes.ui.safe import one_line

if TYPE_CHECKING:
    from funes.agents.model import Outcome
    from funes.commands.add import FoundAgent


def added_text(outcome: Outcome) -> str:
    """What adding did, for a person to read."""
    if not outcome.done:
        return _lines([f"{outcome.agent}: funes is added already, nothing was changed", *map(one_line, outcome.notes)])
    undo = f"undo all of it: funes remove {outcome.name}"
    return _lines([f"{outcome.agent}: funes is added", *_changes(outcome), undo, *map(one_line, outcome.notes)])


def removed_text(outcome: Outcome) -> str:
    """What removing did, for a person to read."""
    if not outcome.done:
        return _lines([f"{outcome.agent}: funes was not added, so nothing was changed", *map(one_line, outcome.notes)])
    return _lines(
        [f"{outcome.agent}: funes is removed; the memory stays", *_changes(outcome), *map(one_line, outcome.notes)]
    )


def found_text(found: Sequence[FoundAgent], offered: bool) -> str:
    """The agents on this machine.

    Args:
        found: the agents.
        offered: whether they are about to be offered, so that nobody has to be told what to run.
    """
    if not found:
        looked = "No agent was found on this machine: claude, codex, pi and hermes are looked for on PATH."
        return _lines([looked, "`funes index` reads the sessions that are here all the same."])
    lines = [f"{entry.title}{' (funes is added)' if entry.added else ''}" for entry in found]
    if not offered:
        lines += ["To add funes to one or all:", *(f"  funes add {entry.name}" for entry in found), "  funes add --yes"]
    return _lines(lines)


def _changes(outcome: Outcome) -> list[str]:
    rows = [(change.kind, one_line(shown(change.path)), one_line(change.what)) for change in outcome.changes]
    width = max((len(path) for _, path, _ in rows), default=0)
    return [f"  {kind:8} {path:{width}}  {what}" for kind, path, what in rows]


def _lines(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
