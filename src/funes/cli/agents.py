"""`add` and `remove`: the agents that use the memory."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from funes.commands.indexing.report import FoundHarness

INTERRUPTED = 130


@click.command()
@click.argument("agent", required=False)
@click.argument("memory", required=False)
@click.option("--yes", is_flag=True, help="Do not ask before indexing; without an AGENT, before adding to all found.")
@click.option("--no-index", is_flag=True, help="Register only; leave earlier sessions unindexed.")
@click.option("--trust-hooks", is_flag=True, help="Codex: trust the hooks without its own dialog.")
def add(agent: str | None, memory: str | None, yes: bool, no_index: bool, trust_hooks: bool) -> int:
    """Give an agent (claude, codex, pi, hermes) the memory: tools to recall with, and hooks that index after each turn.

    Without AGENT: list the agents on this machine and offer them all. MEMORY is which memory the agent reads and
    publishes to, the local one by default; running it again changes that. `funes remove AGENT` takes everything back.
    """
    from funes.cli.sharing import confirmation
    from funes.commands.add import AddOptions, find_agents
    from funes.commands.add import add as run_add
    from funes.ui.changes import added_text, found_text
    from funes.ui.progress import terminal_or_lines
    from funes.ui.sharing_text import push_text
    from funes.ui.summary import summary_text

    interactive = _at_terminal()
    names: tuple[str, ...] = (agent,) if agent else ()
    if not agent:
        found = find_agents()
        click.echo(found_text(found, interactive or yes), nl=False, err=bool(found))
        if not found:
            return 1
        if not yes and not (interactive and click.confirm("Add funes to all of them?", default=True, err=True)):
            return 0
        names = tuple(entry.name for entry in found)
    options = AddOptions(names, memory, not no_index, yes, interactive, trust_hooks)
    progress = terminal_or_lines()
    try:
        report = run_add(
            options, lambda outcome: click.echo(added_text(outcome), nl=False), _confirm, progress, confirmation()
        )
    finally:
        if progress:
            progress.finish()
    for run in report.indexed:
        click.echo(summary_text(run), nl=False)
    if report.bound and report.bound.pushed:
        click.echo(push_text(report.bound.pushed), nl=False)
    for note in report.notes:
        click.echo(note)
    return INTERRUPTED if any(run.interrupted for run in report.indexed) else 0


@click.command()
@click.argument("agent")
def remove(agent: str) -> int:
    """Take funes out of an agent, whose files are then as they were. The memory stays."""
    from funes.commands.remove import remove as run_remove
    from funes.ui.changes import removed_text

    click.echo(removed_text(run_remove(agent)), nl=False)
    return 0


def _at_terminal() -> bool:
    """Whether there is a person to ask."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def _confirm(found: list[FoundHarness]) -> bool:
    """Ask whether the first sessions are to be indexed."""
    from funes.ui.status_text import megabytes

    for harness in found:
        click.echo(
            f"{harness.name}: {harness.traces:,} traces, {megabytes(harness.bytes)}, not in the memory yet", err=True
        )
    return click.confirm("Index them now?", default=True, err=True)
