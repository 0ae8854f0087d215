"""`funes scan`: an exact text in one session."""

from __future__ import annotations

import re

from funes.commands.get import session_summary, to_turns
from funes.commands.opened import OpenMemory
from funes.errors import FunesError
from funes.ui.views import Match, ScanResult, TurnView

DEFAULT_LIMIT = 50
CONTEXT = 120


def scan(
    memory: OpenMemory, session: str, literal: str, *, ignore_case: bool = False, limit: int = DEFAULT_LIMIT
) -> ScanResult:
    """Find every place where a text stands in a session; blocks are searched whole, so nothing hides at a split.

    Args:
        memory: where the session is.
        session: its id, or the beginning of it.
        literal: the text, taken exactly.
        ignore_case: whether upper and lower case are the same.
        limit: most matches to return, 0 for all; the rest are counted.

    Raises:
        FunesError: for an empty text, an unknown or ambiguous session, or a negative limit.
    """
    if not literal:
        raise FunesError("The text to look for is empty.")
    if limit < 0:
        raise FunesError(f"The limit is {limit}; it has to be 0 (all) or more.")
    session_id = memory.session(session)
    reader = memory.reader()
    result = ScanResult(reader.label, session_summary(memory, session_id), literal, [], 0)
    pattern = re.compile(re.escape(literal), re.IGNORECASE if ignore_case else 0)
    for turn in to_turns(reader.session_chunks(session_id)):
        _scan_turn(turn, pattern, result, limit)
    return result


def _scan_turn(turn: TurnView, pattern: re.Pattern[str], result: ScanResult, limit: int) -> None:
    for block in turn.blocks:
        for found in pattern.finditer(block.text):
            result.total += 1
            if limit and len(result.matches) >= limit:
                continue
            before, after = _around(block.text, found.start(), found.end())
            result.matches.append(
                Match(
                    turn.uuid,
                    turn.seq,
                    turn.ts,
                    turn.role,
                    block.type,
                    block.tool_name,
                    found.start(),
                    before,
                    found[0],
                    after,
                )
            )


def _around(text: str, start: int, end: int) -> tuple[str, str]:
    """The rest of the lines that a match stands on, at most `CONTEXT` characters on each side."""
    before = text[max(start - CONTEXT, 0) : start].rpartition("\n")[2]
    after = text[end : end + CONTEXT].partition("\n")[0]
    return before, after
