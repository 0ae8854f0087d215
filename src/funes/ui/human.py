"""What a person reads in a terminal: colours, local times, and the same content as the agent format."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from funes.ui.agent import shown_id
from funes.ui.safe import clean, one_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from funes.search.model import Hit, Neighbour, RecallResult
    from funes.ui.views import Reading, ScanResult, SessionList, TurnView

NEIGHBOUR_CHARACTERS = 160
_ROLE_STYLES = {"user": "bold cyan", "assistant": "bold green", "tool": "bold yellow", "system": "bold magenta"}


def console(*, stderr: bool = False) -> Console:
    """A console that prints data as it is: no markup, no emoji codes, no guessing of highlights."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=True)


def print_recall(out: Console, result: RecallResult, label: str) -> None:
    """Print the hits of a recall."""
    if not result.hits:
        out.print("Nothing found.", style="yellow")
        return
    if all(hit.weak for hit in result.hits):
        out.print("Nothing is close to the question; these are the nearest passages.\n", style="yellow")
    for number, hit in enumerate(result.hits, 1):
        if number > 1:
            out.print()
        _print_hit(out, number, hit, label)


def _print_hit(out: Console, number: int, hit: Hit, label: str) -> None:
    from rich.text import Text

    chunk = hit.chunk
    head = Text(f"{number:>2}  ", style="bold")
    head.append(f"{hit.score:.3f}", style="yellow" if hit.weak else "green")
    if hit.weak:
        head.append(" weak", style="yellow")
    if chunk.role != "tool":
        head.append(f"  {chunk.role}", style=_ROLE_STYLES.get(chunk.role, "bold"))
    head.append(f" {_kind(chunk.block_type, chunk.tool_name)}")
    head.append(
        f"  {_place(chunk.harness, chunk.repo or chunk.workdir, chunk.branch)}  {local_time(chunk.ts)}", style="dim"
    )
    out.print(head)
    for neighbour in hit.before:
        out.print(_neighbour("↑", neighbour))
    out.print(_indented(chunk.text or ""))
    for neighbour in hit.after:
        out.print(_neighbour("↓", neighbour))
    out.print(
        Text(f"    funes get {shown_id(chunk.session_id)} {shown_id(chunk.turn_uuid)}{memory_flag(label)}", style="dim")
    )


def _neighbour(arrow: str, neighbour: Neighbour) -> Text:
    from rich.text import Text

    who = "" if neighbour.role == "tool" else f"{neighbour.role} "
    what = _kind(neighbour.block_type, "").rstrip()
    text = f"    {arrow} {who}{what}: {one_line(neighbour.text, NEIGHBOUR_CHARACTERS)}"
    return Text(text, style="dim italic")


def print_reading(out: Console, reading: Reading, highlight: str = "") -> None:
    """Print turns of a session; every place of `highlight`, in upper or lower case, is marked."""
    from rich.text import Text

    session = reading.session
    head = Text(one_line(session.title or session.first_prompt, 120) or "(no title)", style="bold")
    out.print(head)
    place = _place(session.harness, session.repo or session.workdir, session.branch)
    facets = f"{place}  {session.turns} turns  {shown_id(session.id)}"
    out.print(Text(facets, style="dim"))
    if not reading.turns:
        out.print("Nothing found.", style="yellow")
    for number, turn in enumerate(reading.turns):
        out.print()
        _print_turn(out, turn, reading.offset if number == 0 else 0, highlight, turn.uuid == reading.target)


def _print_turn(out: Console, turn: TurnView, offset: int, highlight: str, is_target: bool) -> None:
    from rich.text import Text

    head = Text("▶ " if is_target else "", style="bold")
    head.append(turn.role, style=_ROLE_STYLES.get(turn.role, "bold"))
    head.append(f"  #{turn.seq}  {local_time(turn.ts)}  {shown_id(turn.uuid)}", style="dim")
    out.print(head)
    for block in turn.blocks:
        if offset and offset >= len(block.text):
            offset -= len(block.text)
            continue
        if block.type != "text":
            out.print(Text(f"  {_kind(block.type, block.tool_name)}", style="magenta"))
        out.print(_marked(_indented(block.text[offset:], "  "), highlight))
        offset = 0


def print_sessions(out: Console, listing: SessionList) -> None:
    """Print sessions, two lines each: what and when, and the title."""
    from rich.text import Text

    if not listing.sessions:
        out.print("Nothing found.", style="yellow")
        return
    ids = shortest_prefixes([session.id for session in listing.sessions])
    width = max(len(shown_id(identifier)) for identifier in ids)
    for session, identifier in zip(listing.sessions, ids, strict=True):
        line = Text(f"{shown_id(identifier):<{width}}", style="cyan")
        line.append(f"  {local_time(session.last_ts)}  ", style="default")
        line.append(_place(session.harness, session.repo or session.workdir, session.branch), style="default")
        line.append(f"  {session.turns} turns", style="dim default")
        if session.parent_id:
            line.append(f"  of {shown_id(session.parent_id[:8])}", style="dim default")
        out.print(line)
        title = one_line(session.title or session.first_prompt, 120) or "(no title)"
        out.print(Text(f"{' ' * width}  {title}", style="bold"))
    if listing.more:
        out.print("There are more; raise --limit or narrow the search.", style="dim")


def print_scan(out: Console, result: ScanResult) -> None:
    """Print the places where an exact text stands."""
    from rich.text import Text

    if not result.matches:
        out.print("Nothing found.", style="yellow")
        return
    for match in result.matches:
        head = Text(match.role, style=_ROLE_STYLES.get(match.role, "bold"))
        where = f"#{match.seq}  {local_time(match.ts)}  {shown_id(match.turn_uuid)}"
        head.append(f" {_kind(match.block_type, match.tool_name)}  {where}", style="dim")
        out.print(head)
        line = Text("  ")
        line.append(_indented(match.before, "  ").plain.removeprefix("  "))
        line.append(clean(match.match).replace("\n", "\n  "), style="bold reverse")
        line.append(clean(match.after))
        out.print(line)
    shown = f"{len(result.matches)} of {result.total}" if len(result.matches) < result.total else str(result.total)
    out.print(f"\n{shown} {'match' if result.total == 1 else 'matches'}", style="dim")


def local_time(moment: datetime | None) -> str:
    """Date and time in this machine's zone, to the minute."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M") if moment else "no time"


def memory_flag(label: str) -> str:
    """` --memory …` for a command line, nothing for the local memory."""
    return "" if label == "local" else f" --memory {shlex.quote(one_line(label))}"


def shortest_prefixes(ids: Sequence[str], least: int = 8) -> list[str]:
    """For each id its shortest beginning, of at least `least` characters, that no other id of the list has."""
    ordered = sorted(set(ids))
    shortest = {}
    for before, identifier, after in zip(["", *ordered], ordered, [*ordered[1:], ""], strict=False):
        length = least
        while length < len(identifier) and identifier[:length] in (before[:length], after[:length]):
            length += 1
        shortest[identifier] = identifier[:length]
    return [shortest[identifier] for identifier in ids]


def _kind(block_type: str, tool_name: str) -> str:
    """What a block is; a tool's own blocks need no role beside it."""
    return one_line(f"{block_type.replace('_', ' ')} {tool_name}", 100)


def _place(harness: str, place: str, branch: str) -> str:
    return " · ".join(part for part in (one_line(harness), one_line(place), one_line(branch)) if part)


def _indented(text: str, indent: str = "    ") -> Text:
    from rich.text import Text

    lines = clean(text).rstrip("\n").split("\n")
    return Text("\n".join(indent + line for line in lines))


def _marked(text: Text, highlight: str) -> Text:
    import re

    if highlight:
        text.highlight_regex(re.compile(re.escape(highlight), re.IGNORECASE), style="bold reverse")
    return text
