"""Options that several commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from funes.commands.filtering import BLOCK_TYPES, ROLES
from funes.commands.opened import OpenMemory

NOTHING_FOUND = 3
LONG_DOWNLOAD = 5_000_000
"""Bytes of a download that is announced where there is no terminal to show its progress."""

Command = TypeVar("Command", bound=Callable[..., Any])

memory = click.option(
    "--memory",
    metavar="MEMORY",
    default=None,
    help="Which memory to read: local, a folder, <org>/<name> on the Hub, an s3://, gs:// or az:// address. "
    "[default: local]",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
fail_empty = click.option("--fail-empty", is_flag=True, help="Exit with 3 when nothing is found.")
output_format = click.option(
    "--format",
    "output_format",
    type=click.Choice(["human", "agent"]),
    default=None,
    help="Layout. [default: human in a terminal, else agent]",
)

_FILTERS = (
    click.option(
        "--type", "types", multiple=True, type=click.Choice(BLOCK_TYPES), help="Only blocks of this type; repeatable."
    ),
    click.option("--role", "roles", multiple=True, type=click.Choice(ROLES), help="Only this speaker; repeatable."),
    click.option(
        "--harness",
        "harnesses",
        multiple=True,
        metavar="NAME",
        help="Only this agent (claude, codex, pi, hermes); repeatable.",
    ),
    click.option("--repo", metavar="OWNER/NAME", help="Only sessions of this repository; the bare name works too."),
    click.option("--branch", metavar="NAME", help="Only this git branch."),
    click.option("--workdir", metavar="DIR", help="Only work in this folder or below it."),
    click.option("--session", metavar="ID", help="Only this session; the beginning of its id is enough."),
    click.option("--since", metavar="TIME", help="Not before: 2026-05-02, 2026-05-02T14:30, 12h, 7d, 2w, yesterday."),
    click.option("--until", metavar="TIME", help="Not after; a day counts to its end."),
)


def filters(command: Command) -> Command:
    """Add the filter options; the command takes them as `**conditions` for `make_filter`."""
    for option in reversed(_FILTERS):
        command = option(command)
    return command


def for_person(output_format: str | None) -> bool:
    """Whether to print the human layout: asked for, or nothing asked and stdout is a terminal."""
    return output_format == "human" or (output_format is None and sys.stdout.isatty())


def tell(notes: list[str]) -> None:
    """Print notes on stderr, one line each."""
    from funes.ui.safe import one_line

    for note in notes:
        click.echo(f"note: {one_line(note)}", err=True)


def opened(memory: str | None) -> OpenMemory:
    """The memory that an option names, with a bar in the terminal when it has to be fetched."""
    return OpenMemory(memory, told=Fetching())


class Fetching:
    """Shows how far a download is: a bar in a terminal, else one line when it will take a while."""

    def __init__(self) -> None:
        self._progress: Any = None
        self._done = 0
        self._begun = False

    def __call__(self, done: int, total: int) -> None:
        """Show that so many bytes of so many are there."""
        from funes.ui.progress import terminal_progress

        if not self._begun:
            self._begun = True
            self._progress = terminal_progress()
            if self._progress is not None:
                self._progress.start("fetch", total)
            elif total >= LONG_DOWNLOAD:
                click.echo(f"note: fetching {total / 1e6:.0f} MB into the Hugging Face cache, once", err=True)
        if self._progress is not None:
            self._progress.advance(done - self._done)
            self._done = done
            if done >= total:
                self._progress.finish()
