"""`scrub` and `forget`: what leaves the memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from funes.cli import options

if TYPE_CHECKING:
    from collections.abc import Callable

    from funes.ui.progress import TerminalProgress


@click.command()
@click.option("--stale", is_flag=True, help="Only what was scanned with other rules than the current ones.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@options.as_json
def scrub(stale: bool, dry_run: bool, as_json: bool) -> int:
    """Scan the local memory for credentials again, with the current rules, and remove what they find for good.

    Whole blocks and titles are scanned. What is replaced or removed goes from every session that contains it, from the
    indexes and from the disk.
    """
    from funes.commands.scrub import scrub as run_scrub
    from funes.ui.progress import terminal_or_lines, terminal_progress
    from funes.ui.removal_text import scrub_json, scrub_text

    progress = terminal_progress()
    try:
        report = run_scrub(stale=stale, dry=dry_run, told=_told(progress), progress=progress or terminal_or_lines())
    finally:
        if progress:
            progress.finish()
    if as_json:
        from funes.ui.json_output import dumps

        click.echo(dumps(scrub_json(report)), nl=False)
    else:
        click.echo(scrub_text(report), nl=False)
    return 0


@click.command()
@click.argument("sessions", nargs=-1, metavar="[SESSION]...")
@click.option("--repo", metavar="OWNER/NAME", help="Sessions that began in this repository.")
@click.option("--before", metavar="TIME", help="Sessions without a turn since: 2026-05-02, 90d, 26w.")
@click.option("--workdir", metavar="DIR", help="Sessions that began in this folder or below it.")
@click.option("--ignored", is_flag=True, help="Sessions that the ignore file names.")
@click.option("--yes", is_flag=True, help="Remove them; without it they are only listed.")
@click.option("--undo", is_flag=True, help="Have the next index run read SESSION, or `all`, again.")
@click.option("--list", "listed", is_flag=True, help="List the forgotten sessions.")
@options.as_json
def forget(
    sessions: tuple[str, ...],
    repo: str | None,
    before: str | None,
    workdir: str | None,
    ignored: bool,
    yes: bool,
    undo: bool,
    listed: bool,
    as_json: bool,
) -> int:
    """Remove sessions from the local memory for good, and keep them out.

    Without --yes they are only listed. Sessions are named by their ids, or by conditions that all have to hold.
    """
    from funes.ui import removal_text as layouts

    conditions = bool(repo or before or workdir or ignored or yes)
    if (listed and (sessions or undo or conditions)) or (undo and (conditions or not sessions)):
        raise click.UsageError("--list stands alone, and --undo takes ids of sessions or `all`")
    if listed:
        from funes.commands.tombstones import read_tombstones

        tombstones = read_tombstones()
        documents = [{"id": session, "day": day} for session, day in tombstones.items()]
        _show({"forgotten": documents}, layouts.tombstones_text(tombstones), as_json)
        return 0
    if undo:
        from funes.commands.forget import undo as run_undo

        found = run_undo(sessions)
        _show({"undone": found}, layouts.undone_text(found), as_json)
        return 0
    import os

    from funes.commands.forget import Wanted
    from funes.commands.forget import forget as run_forget
    from funes.dates import parse_when

    wanted = Wanted(
        sessions=sessions,
        repo=repo,
        before=parse_when(before) if before else None,
        workdir=os.path.abspath(os.path.expanduser(workdir)) if workdir else None,
        ignored=ignored,
    )
    report = run_forget(wanted, do=yes)
    _show(layouts.forget_json(report), layouts.forget_text(report), as_json)
    return 0


def _show(document: dict[str, object], text: str, as_json: bool) -> None:
    if as_json:
        from funes.ui.json_output import dumps

        text = dumps(document)
    click.echo(text, nl=False)


def _told(progress: TerminalProgress | None) -> Callable[[int, int], None] | None:
    """Show how many blocks have been scanned."""
    if progress is None:
        return None

    def told(done: int, total: int) -> None:
        if done == 0:
            progress.start("Scanning", total)
        progress.advance(1)

    return told
