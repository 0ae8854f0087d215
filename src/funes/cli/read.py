"""`recall`, `get`, `sessions`, `scan`, `status`: the commands that read a memory."""

from __future__ import annotations

from typing import Any

import click

from funes.cli import options
from funes.search.model import DEFAULT_CANDIDATES, DEFAULT_K, DEFAULT_NEIGHBORS, Rerank


@click.command()
@click.argument("query", nargs=-1, required=True)
@click.option("-k", "k", type=int, default=DEFAULT_K, show_default=True, help="Most hits.")
@click.option("--candidates", type=int, default=DEFAULT_CANDIDATES, show_default=True, help="Passages to rerank.")
@click.option(
    "--half-life",
    type=float,
    default=None,
    metavar="DAYS",
    help="Prefer what is recent: the gain halves with each such age; 0 for none.",
)
@click.option(
    "--neighbors", type=int, default=DEFAULT_NEIGHBORS, show_default=True, help="Passages to show around each hit."
)
@click.option(
    "--rerank",
    type=click.Choice(["cross-encoder", "late", "off"]),
    default=None,
    help="Last stage of the ranking. [default: cross-encoder when it is on this machine, else late]",
)
@options.filters
@options.memory
@options.as_json
@options.output_format
@options.fail_empty
def recall(
    query: tuple[str, ...],
    k: int,
    candidates: int,
    half_life: float | None,
    neighbors: int,
    rerank: Rerank | None,
    memory: str | None,
    as_json: bool,
    output_format: str | None,
    fail_empty: bool,
    **conditions: Any,
) -> int:
    """Find the passages that answer a question: `funes recall "why did we drop the cache"`."""
    from funes.commands.filtering import make_filter
    from funes.commands.recall import recall as run_recall
    from funes.search.model import RecallOptions

    asked = " ".join(query)
    recall_options = RecallOptions(
        k=k,
        candidates=candidates,
        half_life_days=half_life,
        neighbors=neighbors,
        where=make_filter(**conditions),
        rerank=rerank,
    )
    opened = options.opened(memory)
    result = run_recall(opened, asked, recall_options)
    label = opened.label()
    if as_json:
        from funes.ui.json_output import dumps, recall_json

        click.echo(dumps(recall_json(result, label, asked)), nl=False)
    elif options.for_person(output_format):
        from funes.ui.human import console, print_recall

        options.tell(result.notes)
        print_recall(console(), result, label)
    else:
        from funes.ui.agent import recall_text

        options.tell(result.notes)
        click.echo(recall_text(result, label), nl=False)
    return options.NOTHING_FOUND if fail_empty and not result.hits else 0


@click.command()
@click.argument("session")
@click.argument("turn", required=False)
@click.option("--from", "first", type=int, default=None, metavar="SEQ", help="First turn of a stretch.")
@click.option("--to", "last", type=int, default=None, metavar="SEQ", help="Last turn of a stretch.")
@click.option("--window", type=int, default=0, metavar="N", help="Show N turns before and after TURN.")
@click.option("--offset", type=int, default=0, metavar="CHARS", help="Leave out this much of the first turn.")
@click.option("--highlight", default="", metavar="TEXT", help="Mark this text (human layout).")
@options.memory
@options.as_json
@options.output_format
def get(
    session: str,
    turn: str | None,
    first: int | None,
    last: int | None,
    window: int,
    offset: int,
    highlight: str,
    memory: str | None,
    as_json: bool,
    output_format: str | None,
) -> int:
    """Show turns of a session, whole: one TURN, a stretch by number, or the session from its start.

    The beginning of an id is enough where it is unique.
    """
    from funes.commands.get import get as run_get
    from funes.ui.agent import GET_CHARACTERS, get_text

    person = options.for_person(output_format)
    enough = None if as_json or person else GET_CHARACTERS
    opened = options.opened(memory)
    reading = run_get(opened, session, turn, first=first, last=last, window=window, offset=offset, enough=enough)
    options.tell(opened.notes)
    if as_json:
        from funes.ui.json_output import dumps, reading_json

        click.echo(dumps(reading_json(reading)), nl=False)
    elif person:
        from funes.ui.human import console, print_reading

        print_reading(console(), reading, highlight)
    else:
        click.echo(get_text(reading), nl=False)
    return 0


@click.command()
@options.filters
@click.option("--limit", type=int, default=20, show_default=True, help="Most sessions; 0 for all.")
@options.memory
@options.as_json
@options.output_format
@options.fail_empty
def sessions(
    limit: int, memory: str | None, as_json: bool, output_format: str | None, fail_empty: bool, **conditions: Any
) -> int:
    """List the sessions in the memory, latest first."""
    from funes.commands.filtering import make_filter
    from funes.commands.sessions import sessions as run_sessions

    opened = options.opened(memory)
    listing = run_sessions(opened, make_filter(**conditions), limit)
    options.tell(opened.notes)
    if as_json:
        from funes.ui.json_output import dumps, sessions_json

        click.echo(dumps(sessions_json(listing)), nl=False)
    elif options.for_person(output_format):
        from funes.ui.human import console, print_sessions

        print_sessions(console(), listing)
    else:
        from funes.ui.agent import sessions_text

        click.echo(sessions_text(listing), nl=False)
    return options.NOTHING_FOUND if fail_empty and not listing.sessions else 0


@click.command()
@click.argument("session")
@click.argument("literal")
@click.option("-i", "--ignore-case", is_flag=True, help="Upper and lower case are the same.")
@click.option("--limit", type=int, default=50, show_default=True, help="Most matches to show; 0 for all.")
@options.memory
@options.as_json
@options.output_format
@options.fail_empty
def scan(
    session: str,
    literal: str,
    ignore_case: bool,
    limit: int,
    memory: str | None,
    as_json: bool,
    output_format: str | None,
    fail_empty: bool,
) -> int:
    """Find an exact text in one session: `funes scan 1a2b3c4d "ECONNRESET"`."""
    from funes.commands.scan import scan as run_scan

    opened = options.opened(memory)
    result = run_scan(opened, session, literal, ignore_case=ignore_case, limit=limit)
    options.tell(opened.notes)
    if as_json:
        from funes.ui.json_output import dumps, scan_json

        click.echo(dumps(scan_json(result)), nl=False)
    elif options.for_person(output_format):
        from funes.ui.human import console, print_scan

        print_scan(console(), result)
    else:
        from funes.ui.agent import scan_text

        click.echo(scan_text(result), nl=False)
    return options.NOTHING_FOUND if fail_empty and not result.matches else 0


@click.command()
@click.argument("place", required=False, metavar="[MEMORY]")
@options.memory
@options.as_json
@options.output_format
def status(place: str | None, memory: str | None, as_json: bool, output_format: str | None) -> int:
    """Say what a memory holds, what waits for a vector, and what was skipped and why."""
    from funes.commands.status import status as run_status
    from funes.ui import status_text as layouts

    if place and memory and place != memory:
        raise click.UsageError(f"Two memories are named, {place} and {memory}; name one.")
    opened = options.opened(place or memory)
    report = run_status(opened)
    options.tell(opened.notes)
    if as_json:
        from funes.ui.json_output import dumps

        click.echo(dumps(layouts.status_json(report)), nl=False)
    elif options.for_person(output_format):
        from funes.ui.human import console

        layouts.print_status(console(), report)
    else:
        click.echo(layouts.status_text(report), nl=False)
    return 0
