"""Selection: from scored passages to the list a reader sees.

One passage is shown once, whatever the number of places it stands in, and one part of a long turn stands for it; a
marathon session and the tool tiers get a bounded number of places (three quarters and one quarter). Bounds are exceeded
only when nothing else is left.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import ceil

from funes.memory.register import Passage

SESSION_SHARE = 0.75
TOOL_SHARE = 0.25
TOOL_TYPES = ("tool_use", "tool_result")


@dataclass(slots=True)
class Scored:
    """A passage, its final score, and the number of its turn in the session; None where that is not known."""

    passage: Passage
    score: float
    turn: int | None = None


def select(scored: Iterable[Scored], k: int, bound_tools: bool, text: Callable[[str], str]) -> list[Scored]:
    """Choose the hits.

    Args:
        scored: passages in any order.
        k: most hits.
        bound_tools: whether tool calls and tool output may only take a quarter of the places.
        text: gives the text of a passage by its id; asked for those only that may be shown, best first.

    Returns:
        At most `k` passages, best first.
    """
    ordered = sorted(scored, key=lambda one: (-one.score, one.passage.id))
    per_session = max(2, ceil(k * SESSION_SHARE))
    tools = max(1, int(k * TOOL_SHARE)) if bound_tools else k
    seen: set[bytes] = set()
    sessions: Counter[str] = Counter()
    turns: set[tuple[str, int]] = set()
    chosen: list[Scored] = []
    spare: list[Scored] = []
    tool_hits = 0
    for one in ordered:
        is_tool = one.passage.block_type in TOOL_TYPES
        turn = None if one.turn is None else (one.passage.session_id, one.turn)
        beyond = turn in turns or sessions[one.passage.session_id] >= per_session or (is_tool and tool_hits >= tools)
        if beyond and len(spare) == k:
            continue
        mark = fingerprint(text(one.passage.id))
        if mark in seen:
            continue
        seen.add(mark)
        if beyond:
            spare.append(one)
            continue
        sessions[one.passage.session_id] += 1
        if turn is not None:
            turns.add(turn)
        tool_hits += is_tool
        chosen.append(one)
        if len(chosen) == k:
            break
    chosen += spare[: k - len(chosen)]
    return sorted(chosen, key=lambda one: (-one.score, one.passage.id))


def fingerprint(text: str) -> bytes:
    """The same for texts that differ in white space and case only."""
    return hashlib.blake2b(" ".join(text.lower().split()).encode("utf-8", "replace"), digest_size=12).digest()
