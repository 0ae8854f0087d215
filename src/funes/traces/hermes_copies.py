"""Finding the messages that a compaction copies within one session.

A compaction puts the session's rows away and writes a new, shorter conversation behind them: the first few messages
again, a summary, the last few messages again. Then the conversation goes on. Only the sequence tells a copy from a
prompt that was typed twice: the copies before the summary repeat the beginning of the previous conversation, those
behind it repeat its end.
"""

from __future__ import annotations

from dataclasses import dataclass

from funes.traces.model import ReadReport, Turn


@dataclass(slots=True)
class Item:
    """One message on its way through the filter.

    Attributes:
        key: what it shares with its copies.
        turn: the turn it makes, None for a message that is left out.
        is_summary: whether it is a compaction's summary.
        prior: for a summary that was merged into a message, the key of that message alone.
    """

    key: bytes
    turn: Turn | None = None
    is_summary: bool = False
    prior: bytes = b""


class CopyFilter:
    """Lets every message of a session through once; holds messages back while they may still prove to be copies."""

    def __init__(self, report: ReadReport) -> None:
        """Start a session; the copies are counted in `report`."""
        self._report = report
        self._current: list[bytes] = []
        """Keys of the conversation since the last compaction, in order."""
        self._previous: list[bytes] = []
        """Keys of the conversation before it."""
        self._held: list[Item] = []
        self._ends: list[int] = []
        """Behind a summary: where in the previous conversation the next message would have to stand."""
        self._copied = 0
        """How many of the messages held behind a summary are copies for certain."""
        self._is_start = False
        """Whether the messages held repeat the beginning of the current conversation."""

    def feed(self, item: Item) -> list[Turn]:
        """Take a message and return the turns that are certain by now, in order."""
        turns: list[Turn] = []
        if self._ends:
            if self._continues_end(item):
                return turns
            turns += self._release_end()
        if item.is_summary and not self._repeats_start(item):
            return turns + self._begin(item)
        if self._repeats_start(item):
            self._is_start = True
            self._held.append(item)
            return turns
        turns += self._release_start()
        if self._repeats_start(item):  # the beginning, begun anew
            self._is_start = True
            self._held.append(item)
            return turns
        self._current.append(item.key)
        return turns + _turns([item])

    def finish(self) -> list[Turn]:
        """End the session and return the turns still held back."""
        return self._release_end() if self._ends or self._copied else self._release_start()

    def _continues_end(self, item: Item) -> bool:
        self._ends = [end + 1 for end in self._ends if self._previous[end] == item.key]
        if not self._ends:
            return False
        self._held.append(item)
        self._current.append(item.key)
        if self._ends[-1] == len(self._previous):
            self._copied = len(self._held)
            self._ends.pop()
            if not self._ends:
                self._drop(self._copied)
        return True

    def _release_end(self) -> list[Turn]:
        """Let through what was held behind a summary and is no copy after all."""
        fresh = self._held[self._copied :]
        self._drop(self._copied)
        self._held = []
        self._ends = []
        return _turns(fresh)

    def _repeats_start(self, item: Item) -> bool:
        position = len(self._held) if self._is_start else 0
        return position < len(self._current) and self._current[position] == item.key

    def _release_start(self) -> list[Turn]:
        held, self._held, self._is_start = self._held, [], False
        self._current += [item.key for item in held]
        return _turns(held)

    def _begin(self, summary: Item) -> list[Turn]:
        """Start the conversation behind a compaction; what repeats the beginning before its summary are copies."""
        start = [item.key for item in self._held]
        self._drop(len(self._held))
        self._previous, self._current, self._is_start = self._current, [*start, summary.key], False
        self._ends = list(range(len(self._previous)))
        if summary.prior:
            self._ends = [end + 1 for end in self._ends if self._previous[end] == summary.prior]
            if self._ends and summary.turn is not None and summary.turn.blocks[0].type == "text":
                summary.turn.blocks.pop(0)
            self._ends = [end for end in self._ends if end < len(self._previous)]
        return _turns([summary])

    def _drop(self, count: int) -> None:
        """Forget the first messages held: they are copies."""
        copies = sum(item.turn is not None for item in self._held[:count])
        if copies:
            self._report.skipped["copy made by a compaction"] += copies
        del self._held[:count]
        self._copied = 0


def _turns(items: list[Item]) -> list[Turn]:
    return [item.turn for item in items if item.turn is not None]
