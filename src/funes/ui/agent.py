"""The read contract: plain text for agents, the same in a terminal, a pipe and the MCP server.

`docs/agent-format.md` documents it and a golden test pins it. A chunk's text is printed whole; a line of it that would
read as part of the format has a backslash in front (see `ui.safe`).
"""

from __future__ import annotations

import shlex
from datetime import UTC, datetime

from funes.memory.sessions import SessionSummary
from funes.search.model import Hit, Neighbour, RecallResult
from funes.ui.safe import body, one_line
from funes.ui.views import BlockView, Match, Reading, ScanResult, SessionList, TurnView

NO_RESULTS = "no results\n"
NEIGHBOUR_CHARACTERS = 160
TITLE_CHARACTERS = 160
GET_CHARACTERS = 40_000
"""Longest answer of `get`, in characters: what the agents' own limits let through."""
RECALL_BYTES = 48_000
"""Longest answer of `recall`, in bytes: above 50 KB Claude Code puts the answer in a file instead."""
NOTHING_CLOSE = (
    "note: nothing is close to the question; the passages below are the nearest there are, all of them weak\n"
)
_END = "---\n"


def recall_text(result: RecallResult, label: str, *, limit: int = 0, with_notes: bool = False) -> str:
    """Render the hits of a recall.

    Args:
        result: what the pipeline found.
        label: name of the memory, for the `→ get` lines.
        limit: longest answer in bytes, 0 for none. Neighbours are shortened and then left out before hits are, and
            the text says how many hits are missing.
        with_notes: whether the result's notes come first (where there is no other stream for them).
    """
    head = "".join(f"note: {one_line(note)}\n" for note in result.notes) if with_notes else ""
    if not result.hits:
        return head + NO_RESULTS
    if all(hit.weak for hit in result.hits):
        head += NOTHING_CLOSE
    for characters in (NEIGHBOUR_CHARACTERS, NEIGHBOUR_CHARACTERS // 2, 0):
        parts = [_hit(hit, label, characters) for hit in result.hits]
        if not limit or _size(head, *parts) <= limit:
            return head + "".join(parts)
    return _fewer_hits(head, parts, limit)


def _fewer_hits(head: str, parts: list[str], limit: int) -> str:
    """As many hits as fit, at least one, and a note that says how many do not."""
    room = limit - _size(head) - 120
    kept: list[str] = []
    for part in parts:
        room -= _size(part)
        if kept and room < 0:
            break
        kept.append(part)
    missing = len(parts) - len(kept)
    if missing:
        left_out = f"{missing} more {_plural(missing, 'hit')} left out, the answer would be too long"
        head += f"note: {left_out}; ask for fewer or narrow the search\n"
    return head + "".join(kept)


def _hit(hit: Hit, label: str, neighbour_characters: int) -> str:
    chunk = hit.chunk
    place = f"{one_line(chunk.workdir) or '-'}/{shown_id(chunk.session_id[:8])}"
    facets = f"{shown_id(chunk.harness)} {place} {shown_id(chunk.block_type)}"
    weak = " weak" if hit.weak else ""
    lines = [
        f"[{shown_time(chunk.ts)}] {facets}  score={hit.score:.3f}{weak}\n",
        _get_line(chunk.session_id, chunk.turn_uuid, label),
        _lines(body(chunk.text or "")),
    ]
    if neighbour_characters:
        lines += [_neighbour(neighbour, neighbour_characters) for neighbour in (*hit.before, *hit.after)]
    return "".join(lines) + _END


def _get_line(session_id: str, turn_uuid: str, label: str) -> str:
    return f"  → get {shown_id(session_id)} {shown_id(turn_uuid)} --memory {shlex.quote(one_line(label))}\n"


def _neighbour(neighbour: Neighbour, characters: int) -> str:
    facets = f"{shown_id(neighbour.role)} {shown_id(neighbour.block_type)} seq{neighbour.seq}"
    return f"  ~ [{facets}] {one_line(neighbour.text, characters)}\n"


def get_text(reading: Reading, *, limit: int = GET_CHARACTERS) -> str:
    """Render a stretch of a session, at most `limit` characters of it.

    The answer ends at a turn, or inside a block when a single turn is longer than the limit; its last line then says
    how to read on.
    """
    if not reading.turns:
        return NO_RESULTS
    parts: list[str] = []
    room = limit - 300 - 2 * len(reading.session.id)
    for number, turn in enumerate(reading.turns):
        offset = reading.offset if number == 0 else 0
        part = _turn(turn, offset)
        if len(part) > room:
            if parts:
                return "".join(parts) + _read_on(reading, reading.turns[number - 1].seq, turn.seq)
            part, reached = _cut_turn(turn, offset, room)
            return part + _read_on_inside(reading, turn, reached)
        parts.append(part)
        room -= len(part)
    last = reading.turns[-1].seq
    return "".join(parts) + (_read_on(reading, last, last + 1) if last < reading.last else "")


def _turn(turn: TurnView, offset: int = 0) -> str:
    """One whole turn, without the first `offset` characters of its blocks."""
    parts = [f"[{shown_time(turn.ts)}] {shown_id(turn.role)} seq{turn.seq} turn={shown_id(turn.uuid)}\n"]
    for block in turn.blocks:
        if offset and offset >= len(block.text):
            offset -= len(block.text)
            continue
        parts += [_block_label(block, is_first=len(parts) == 1), _lines(body(block.text[offset:]))]
        offset = 0
    return "".join(parts) + _END


def _cut_turn(turn: TurnView, offset: int, room: int) -> tuple[str, int]:
    """The beginning of a turn that is longer than the room left.

    Returns:
        The text, without an end line, and how many characters of the turn's blocks have been shown in all.
    """
    parts = [f"[{shown_time(turn.ts)}] {shown_id(turn.role)} seq{turn.seq} turn={shown_id(turn.uuid)}\n"]
    room -= len(parts[0]) + len(_END)
    reached, skip = offset, offset
    for block in turn.blocks:
        if skip and skip >= len(block.text):
            skip -= len(block.text)
            continue
        label = _block_label(block, is_first=len(parts) == 1)
        room -= len(label) + 1
        if room <= 0:
            break
        raw = block.text[skip : skip + room]
        # Escapes make the shown text longer than the raw one.
        while len(shown := body(raw)) > room:
            raw = raw[: max(len(raw) * room // len(shown) - 1, 0)]
        parts += [label, _lines(shown)]
        room -= len(shown)
        reached += len(raw)
        if skip + len(raw) < len(block.text):
            break
        skip = 0
    return "".join(parts), reached


def _read_on(reading: Reading, last: int, following: int) -> str:
    first = reading.turns[0].seq
    command = f"funes get {_reference(reading)} --from {following}"
    if reading.last < reading.session.turns - 1:
        command += f" --to {reading.last}"
    return f"turns {first}-{last} of {reading.session.turns}; continue with: {command}\n"


def _read_on_inside(reading: Reading, turn: TurnView, reached: int) -> str:
    return (
        f"turn {turn.seq} of {reading.session.turns}, cut after {reached} of its {turn.size} characters; "
        f"continue with: funes get {_reference(reading)} --from {turn.seq} --offset {reached}\n"
    )


def _reference(reading: Reading) -> str:
    memory = "" if reading.label == "local" else f" --memory {shlex.quote(one_line(reading.label))}"
    return shown_id(reading.session.id) + memory


def _block_label(block: BlockView, *, is_first: bool) -> str:
    """The line before a block: its type, and its tool's name if it has one. Text that begins a turn has none."""
    if block.type == "text" and is_first:
        return ""
    return f"  # {shown_id(block.type)} {one_line(block.tool_name, 100)}".rstrip() + "\n"


def sessions_text(listing: SessionList, *, limit: int = 0) -> str:
    """Render a list of sessions, at most `limit` characters of it (0: whole)."""
    if not listing.sessions:
        return NO_RESULTS
    parts = [_session(session, listing.label) for session in listing.sessions]
    kept = _fitting(parts, limit)
    if len(kept) < len(parts):
        kept.append(f"note: {len(parts) - len(kept)} more left out, the answer would be too long; narrow the search\n")
    elif listing.more:
        kept.append("note: there are more; raise the limit or narrow the search\n")
    return "".join(kept)


def _session(session: SessionSummary, label: str) -> str:
    place = f"{one_line(session.workdir) or '-'}/{shown_id(session.id[:8])}"
    facets = [f"[{shown_time(session.last_ts)}] {shown_id(session.harness)} {place}"]
    facets.append(f"turns={session.turns}")
    for name, value in (("repo", session.repo), ("branch", session.branch), ("parent", session.parent_id)):
        if value:
            facets.append(f"{name}={shown_id(value)}")
    if session.kind != "main":
        facets.append(shown_id(session.kind))
    memory = shlex.quote(one_line(label))
    lines = [" ".join(facets), f"  → get {shown_id(session.id)} --memory {memory}"]
    if title := one_line(session.title or session.first_prompt, TITLE_CHARACTERS):
        lines.append(body(title))
    return "\n".join(lines) + "\n" + _END


def scan_text(result: ScanResult, *, limit: int = 0) -> str:
    """Render the places where an exact text stands in a session, at most `limit` characters of them (0: all)."""
    if not result.matches:
        return NO_RESULTS
    parts = _fitting([_match(match) for match in result.matches], limit)
    shown, total = len(parts), result.total
    count = f"{total} {_plural(total, 'match', 'es')}" if shown == total else f"{shown} of {total} matches"
    return "".join(parts) + f"{count} in session {shown_id(result.session.id)} ({result.session.turns} turns)\n"


def _match(match: Match) -> str:
    tool = f" {one_line(match.tool_name, 100)}" if match.tool_name else ""
    head = f"[{shown_time(match.ts)}] {shown_id(match.role)} seq{match.seq} turn={shown_id(match.turn_uuid)}"
    text = _lines(body(match.before + match.match + match.after))
    return f"{head} {shown_id(match.block_type)}{tool} at={match.at}\n{text}{_END}"


def shown_time(moment: datetime | None) -> str:
    """ISO time in UTC, to the second; `-` when the trace has none."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment else "-"


def shown_id(name: str) -> str:
    """A facet or id as one word, so that a line of the format splits at blanks: other characters are percent-encoded.

    Commands accept an id in this form. Ids of real sessions have no such characters and stay as they are.
    """
    line = one_line(name)
    if line == name and " " not in line:
        return line or "-"
    from urllib.parse import quote

    return quote(name, safe="/:@+=,~!$&'()*;", errors="replace")


def _lines(text: str) -> str:
    """The text as whole lines: a line end is added unless it has one."""
    return text if text.endswith("\n") else text + "\n"


def _fitting(parts: list[str], limit: int) -> list[str]:
    """The first parts, at least one, that have `limit` characters together; all of them when that is 0."""
    room = limit - 200
    for number, part in enumerate(parts):
        room -= len(part)
        if limit and number and room < 0:
            return parts[:number]
    return parts


def _plural(count: int, word: str, ending: str = "s") -> str:
    return word if count == 1 else word + ending


def _size(*parts: str) -> int:
    """Bytes of the parts in UTF-8."""
    return sum(len(part.encode("utf-8", "replace")) for part in parts)
