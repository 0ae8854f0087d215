"""`index`: traces into the memory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from funes.commands.indexing.report import FoundHarness

INTERRUPTED = 130


@click.command()
@click.argument("path", required=False, type=click.Path(exists=True, path_type=Path))
@click.option("--harness", metavar="NAME", help="Only this agent: claude, codex, pi, hermes.")
@click.option("--limit", type=int, metavar="N", help="Only the N newest traces.")
@click.option("--no-thinking", is_flag=True, help="Leave the agent's thinking out.")
@click.option("--yes", is_flag=True, help="Do not ask before indexing everything found.")
@click.option("--budget", type=float, metavar="SECONDS", help="Time for vectors. [default: 60; no limit with a PATH]")
def index(
    path: Path | None, harness: str | None, limit: int | None, no_thinking: bool, yes: bool, budget: float | None
) -> int:
    """Read agent sessions into the memory: those of every agent on this machine, or those at PATH.

    A rerun reads only what is new and goes on with the vectors. Ctrl-C loses nothing that is stored.
    """
    from funes.commands.index import IndexOptions, run_index
    from funes.ui.progress import terminal_progress
    from funes.ui.summary import summary_text

    interactive = sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
    options = IndexOptions(
        path=path,
        harness=harness,
        limit=limit,
        thinking=not no_thinking,
        yes=yes,
        budget=budget,
        interactive=interactive,
    )
    progress = terminal_progress()
    try:
        report = run_index(options, progress, _confirm)
    finally:
        if progress:
            progress.finish()
    click.echo(summary_text(report), nl=False)
    return INTERRUPTED if report.interrupted else 0


def _confirm(found: list[FoundHarness]) -> bool:
    """Ask whether what was found is to be indexed."""
    from funes.ui.status_text import megabytes

    for harness in found:
        roots = ", ".join(str(root) for root in harness.roots)
        click.echo(f"{harness.name}: {harness.traces:,} traces, {megabytes(harness.bytes)}, in {roots}", err=True)
    return click.confirm("Index these?", default=True, err=True)
