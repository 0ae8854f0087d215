"""`funes get`: turns of a session, whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from funes.commands.opened import OpenMemory, one_of
from funes.errors import FunesError
from funes.memory.filters import Filter
from funes.ui.views import BlockView, Reading, TurnView

if TYPE_CHECKING:
    from funes.chunking import Chunk
    from funes.memory.sessions import SessionSummary

TURNS_AT_ONCE = 200
_LONGEST_OVERLAP = 400


def get(
    memory: OpenMemory,
    session: str,
    turn: str | None = None,
    *,
    first: int | None = None,
    last: int | None = None,
    window: int = 0,
    offset: int = 0,
    enough: int | None = None,
) -> Reading:
    """Read a turn with its surroundings, or a stretch of a session.

    Args:
        memory: where the session is.
        session: its id, or the beginning of it.
        turn: a turn's uuid, or the beginning of it; None for a stretch.
        first: seq of the first turn; None for the beginning of the session.
        last: seq of the last turn, inclusive; None for its end.
        window: turns to show before and after `turn`.
        offset: characters of the first turn to leave out.
        enough: stop reading once this many characters have been read; None to read everything.

    Raises:
        FunesError: for an unknown or ambiguous id, contradicting bounds, or a stretch that lies outside the session.
    """
    _check(turn, first, last, window, offset)
    session_id = memory.session(session)
    reader = memory.reader()
    summary = session_summary(memory, session_id)
    target = ""
    if turn:
        seqs = {chunk.turn_uuid: chunk.seq for chunk in reader.session_chunks(session_id)}
        target = one_of(
            turn, lambda prefix: _starting(seqs, prefix), "turn", f"`funes get {session_id}` shows the session"
        )
        first, last = max(seqs[target] - window, 0), seqs[target] + window
    start = first or 0
    end = summary.turns - 1 if last is None else last
    turns = list(_read(memory, session_id, start, end, enough))
    if not turns and (first or last is not None or offset):
        raise FunesError(f"Session {session_id} has turns 0 to {summary.turns - 1}; none lies in the range asked for.")
    end = min(end, max(summary.turns - 1, turns[-1].seq if turns else 0))
    if offset and turns and offset >= turns[0].size:
        raise FunesError(f"Turn {turns[0].seq} has {turns[0].size} characters, so nothing is left after {offset}.")
    return Reading(reader.label, summary, turns, end, offset, target)


def session_summary(memory: OpenMemory, session_id: str) -> SessionSummary:
    """What the session is, by its full id."""
    found = memory.reader().sessions(Filter(session=session_id), limit=1)
    if not found:
        raise FunesError(f"Session {session_id} has no passages.")
    return found[0]


def to_turns(chunks: Iterable[Chunk]) -> list[TurnView]:
    """Turns from passages in session order, the splits of each block stitched."""
    turns = []
    for (seq, uuid), in_turn in groupby(chunks, key=lambda chunk: (chunk.seq, chunk.turn_uuid)):
        group = list(in_turn)
        turn = TurnView(uuid, seq, group[0].ts, group[0].role)
        for _, splits in groupby(group, key=lambda chunk: chunk.block_idx):
            parts = list(splits)
            turn.blocks.append(BlockView(parts[0].block_type, stitch(parts), parts[0].tool_name))
        turns.append(turn)
    return turns


def stitch(splits: list[Chunk]) -> str:
    """The whole text of a block from its overlapping splits, in order.

    Splits of a memory that does not record offsets are joined where the end of one repeats as the start of the next.
    """
    text = ""
    shift = 0  # where the block's characters stand in `text`, relative to where they stood in the block
    for number, split in enumerate(splits):
        piece = split.text or ""
        if number and split.offset <= 0:
            text += piece[_repeated(text, piece) :]
            continue
        missing = split.offset + shift - len(text)
        if missing > 0:
            text += f"\n[{missing} characters are missing]\n"
            shift = len(text) - split.offset
        text = text[: max(split.offset, 0) + shift] + piece
    return text


def _repeated(text: str, piece: str) -> int:
    """Length of the longest beginning of `piece` that `text` ends with."""
    for length in range(min(len(piece), len(text), _LONGEST_OVERLAP), 0, -1):
        if text.endswith(piece[:length]):
            return length
    return 0


def _read(memory: OpenMemory, session_id: str, start: int, end: int, enough: int | None) -> Iterator[TurnView]:
    """Turns of a stretch, read part by part so that an answer of bounded length does not read a whole long session."""
    reader = memory.reader()
    if enough is None:
        yield from to_turns(reader.session_chunks(session_id, start, end))
        return
    read = 0
    while start <= end and read <= enough:
        part_end = min(start + TURNS_AT_ONCE - 1, end)
        for turn in to_turns(reader.session_chunks(session_id, start, part_end)):
            yield turn
            read += turn.size
        start = part_end + 1


def _starting(names: Iterable[str], prefix: str) -> list[str]:
    found = [name for name in names if name.startswith(prefix)]
    return [prefix] if prefix in found else found


def _check(turn: str | None, first: int | None, last: int | None, window: int, offset: int) -> None:
    if turn and (first is not None or last is not None):
        raise FunesError("Give either a turn or a range with --from and --to, not both.")
    if window and not turn:
        raise FunesError(
            "--window needs a turn to show the surroundings of; for a stretch of a session give --from and --to."
        )
    for name, value in (("--from", first), ("--to", last), ("--window", window), ("--offset", offset)):
        if value is not None and value < 0:
            raise FunesError(f"{name} is {value}; it has to be 0 or more.")
    if first is not None and last is not None and first > last:
        raise FunesError(f"--from {first} lies behind --to {last}; swap the two.")
