"""`push` and `bind`: memories that others read too."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from funes.cli import options

if TYPE_CHECKING:
    from collections.abc import Callable


@click.command()
@click.argument("memory")
@click.argument("more", nargs=-1, metavar="")
@click.option("--yes", is_flag=True, help="Do not ask, whatever MEMORY holds.")
@click.option(
    "--sessions", "named", multiple=True, metavar="ID...", help="Only these; the beginning of an id is enough."
)
@click.option("--words", is_flag=True, help="Also passages that have no vector yet.")
@click.option("--compact", is_flag=True, help="Merge and index all of MEMORY again.")
@options.as_json
def push(
    memory: str, more: tuple[str, ...], yes: bool, named: tuple[str, ...], words: bool, compact: bool, as_json: bool
) -> int:
    """Publish the local memory to MEMORY: ORG/NAME on the Hugging Face Hub, s3://, gs://, az://, or a folder.

    What MEMORY lacks is scanned for credentials once more and sent. Exits with 2 when all of it is held back.
    """
    from funes.commands.push import PushOptions
    from funes.commands.push import push as run_push
    from funes.ui.progress import terminal_or_lines
    from funes.ui.sharing_text import push_json, push_text

    if more and not named:
        raise click.UsageError(f"Got unexpected extra argument ({more[0]})")
    wanted = PushOptions(memory, sessions=(*named, *more), words=words, compact=compact, yes=yes)
    report = run_push(wanted, terminal_or_lines(), confirmation())
    if as_json:
        from funes.ui.json_output import dumps

        click.echo(dumps(push_json(report)), nl=False)
    else:
        click.echo(push_text(report), nl=False)
    return report.exit_code


@click.command()
@click.argument("memory")
@click.option("--yes", is_flag=True, help="Agree to publishing without being asked.")
@click.option("--words", is_flag=True, help="Also passages that have no vector yet, now and later.")
@click.option("--trust-hooks", is_flag=True, help="Codex: trust the hooks without its own dialog.")
def bind(memory: str, yes: bool, words: bool, trust_hooks: bool) -> int:
    """Bind every agent that funes was added to: they recall from MEMORY, and their sessions are published to it.

    What this machine has is published at once, and what is new whenever a session begins or ends. The same command on
    another machine makes the memory follow you. `funes bind local` undoes it.
    """
    from funes.commands.bind import bind as run_bind
    from funes.ui.changes import added_text
    from funes.ui.progress import terminal_or_lines
    from funes.ui.sharing_text import bound_text

    report = run_bind(
        memory,
        lambda outcome: click.echo(added_text(outcome), nl=False),
        yes=yes,
        words=words,
        trust_hooks=trust_hooks,
        progress=terminal_or_lines(),
        confirm=confirmation(),
    )
    click.echo(bound_text(report), nl=False)
    return 0


def confirmation() -> Callable[[str], bool] | None:
    """A way to ask, None where nobody is at a terminal."""
    if sys.stdin is None or not sys.stdin.isatty() or not sys.stderr.isatty():
        return None
    return lambda question: click.confirm(question, default=False, err=True)
