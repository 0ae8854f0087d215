"""`curate`: a memory of one project."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from funes.cli import options

if TYPE_CHECKING:
    from funes.commands.curate import Curating
    from funes.ui.views import ReviewItem, SessionPreview

_DECISIONS = ("--include", "--exclude", "--pending")


class _SeveralValues(click.Command):
    """A command some of whose options take several values: `--include ID ID`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat the option before each further value."""
        spread: list[str] = []
        option, filled = "", True
        for argument in args:
            if argument.startswith("-"):
                if argument in _DECISIONS:
                    option, filled = argument, False
                else:
                    option, filled = "", True
                spread.append(argument)
            elif option and filled:
                spread += [option, argument]
            else:
                filled = True
                spread.append(argument)
        return super().parse_args(ctx, spread)


@click.command(cls=_SeveralValues)
@click.argument("memory")
@click.argument("repo", required=False, metavar="[OWNER/REPO]")
@click.option("--include", multiple=True, metavar="ID...", help="Publish these sessions.")
@click.option("--exclude", multiple=True, metavar="ID...", help="Do not publish these.")
@click.option("--pending", multiple=True, metavar="ID...", help="Decide about these later.")
@click.option("--list", "listed", is_flag=True, help="Only list the sessions and what was decided.")
@click.option("--off", is_flag=True, help="Stop curating: everything may be published again.")
@options.as_json
def curate(
    memory: str,
    repo: str | None,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    pending: tuple[str, ...],
    listed: bool,
    off: bool,
    as_json: bool,
) -> int:
    """Make MEMORY a project memory: only sessions of OWNER/REPO that you reviewed and included are published to it.

    In a terminal it opens a screen to review them; with a decision or --list, or without a terminal, it does not. A
    session that grows after its review is pending again.
    """
    from funes.commands.curate import Curating, stop
    from funes.commands.curate import curate as run_curate
    from funes.ui.curation_text import curate_json, curate_text

    decides = bool(include or exclude or pending)
    if (off and (decides or listed or repo)) or (listed and decides):
        raise click.UsageError("--off and --list stand alone")
    if off:
        done = stop(memory)
        text = f"{memory} is not curated any more" if done else f"{memory} was not curated, so nothing was changed"
        _show({"memory": memory, "curated": False, "changed": done}, f"{text}\n", as_json)
        return 0
    if not (decides or listed or as_json) and sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty():
        curating = Curating(memory, repo)
        curating.begin()
        _review(curating)
        click.echo(curate_text(curating.report()).split("\n", 1)[0])
        return 0
    report = run_curate(memory, repo, include=include, exclude=exclude, pending=pending, look=listed)
    _show(curate_json(report), curate_text(report), as_json)
    return 0


def _review(curating: Curating) -> None:
    """Open the screen."""
    from funes.ui.review import ReviewApp

    ReviewApp(_Reviewer(curating)).run()


class _Reviewer:
    """What the screen asks and tells, answered by the command."""

    def __init__(self, curating: Curating) -> None:
        self._curating = curating
        self.memory = curating.curation.label
        self.repo = curating.curation.repo

    def items(self) -> Sequence[ReviewItem]:
        """The sessions with their status."""
        from funes.ui.curation_text import review_items

        return review_items(self._curating.report())

    def preview(self, session: str) -> SessionPreview:
        """What people said in a session."""
        return self._curating.preview(session)

    def decide(self, sessions: Sequence[str], verdict: str | None) -> None:
        """Store a decision."""
        self._curating.decide(sessions, "include" if verdict == "include" else "exclude" if verdict else None)


def _show(document: dict[str, object], text: str, as_json: bool) -> None:
    if as_json:
        from funes.ui.json_output import dumps

        text = dumps(document)
    click.echo(text, nl=False)
