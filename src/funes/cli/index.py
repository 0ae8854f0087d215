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
@click.argument("place", required=False, metavar="[PATH|ORG/NAME]")
@click.option("--harness", metavar="NAME", help="Only this agent: claude, codex, pi, hermes.")
@click.option("--limit", type=int, metavar="N", help="Only the N newest traces.")
@click.option("--no-thinking", is_flag=True, help="Leave the agent's thinking out.")
@click.option("--yes", is_flag=True, help="Do not ask before indexing everything found.")
@click.option("--budget", type=float, metavar="SECONDS", help="Time for vectors. [default: 60; no limit with a PATH]")
def index(
    place: str | None, harness: str | None, limit: int | None, no_thinking: bool, yes: bool, budget: float | None
) -> int:
    """Read agent sessions into the memory: those of every agent on this machine, or those at PATH.

    ORG/NAME (or hf://datasets/ORG/NAME) is a dataset of traces on the Hub; an existing path of that name wins.

    A rerun reads only what is new and goes on with the vectors. Ctrl-C loses nothing that is stored.
    """
    from funes.commands.index import IndexOptions, run_index
    from funes.ui.progress import terminal_or_lines
    from funes.ui.summary import summary_text

    path, dataset = _path_or_dataset(place)
    interactive = sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
    options = IndexOptions(
        path=path,
        dataset=dataset,
        harness=harness,
        limit=limit,
        thinking=not no_thinking,
        yes=yes,
        budget=budget,
        interactive=interactive,
    )
    progress = terminal_or_lines()
    try:
        report = run_index(options, progress, _confirm)
    finally:
        if progress:
            progress.finish()
    click.echo(summary_text(report), nl=False)
    return INTERRUPTED if report.interrupted else 0


def _path_or_dataset(place: str | None) -> tuple[Path | None, str | None]:
    """Which of the two the argument is."""
    from funes.memory.uri import resolve

    if place is None:
        return None, None
    path = Path(place)
    if path.exists():
        return path, None
    found = resolve(place)
    if found.kind == "hub":
        return None, place
    if found.kind == "store":
        raise click.UsageError(f"{place} is in an object store; copy the traces to this machine to index them.")
    raise click.UsageError(f"There is nothing at {place}; name a trace file, or a folder that holds some.")


def _confirm(found: list[FoundHarness]) -> bool:
    """Ask whether what was found is to be indexed."""
    from funes.ui.status_text import megabytes

    for harness in found:
        roots = ", ".join(str(root) for root in harness.roots)
        click.echo(f"{harness.name}: {harness.traces:,} traces, {megabytes(harness.bytes)}, in {roots}", err=True)
    return click.confirm("Index these?", default=True, err=True)
