"""Time words: when a question says that something happened.

"What did we decide in mid January?" names a stretch of time. It is understood here, in English, and used softly:
passages of that time are preferred, none is excluded. A date without a year is the latest such date that is not in the
future. Days are those of this machine's time zone, as for `--since`.

Numbers in paths, versions and identifiers are no dates, and "may" is a month only where it can hardly be a verb.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt

from funes.search.time_patterns import DAY, Found, lead, spans

TIME_SHARE = 0.12
"""What a passage of the time gains, on the scale of the scores (0 to 1)."""

_JOIN = re.compile(r" ?(?P<word>-|–|to|and|until|till|through) ?(?:the )?", re.IGNORECASE)
"""What stands between the two ends of a stretch."""


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A stretch of time that a question names.

    Attributes:
        start: its first moment, aware.
        end: the moment after its last, aware.
        words: where the words stand in the question, prepositions included, as an index range.
    """

    start: datetime
    end: datetime
    words: tuple[int, int]

    def rest(self, question: str) -> str:
        """The question without the words; whole, where nothing would be left to look for."""
        first, last = self.words
        left = f"{question[:first].rstrip()} {question[last:].lstrip(' ,:;')}".strip()
        return left if any(character.isalnum() for character in left) else question

    @property
    def margin(self) -> timedelta:
        """How far outside a passage still counts in part: people remember dates roughly."""
        return max(2 * DAY, (self.end - self.start) / 2)

    def closeness(self, moment: datetime | None) -> float:
        """1 within the span, falling to 0 over its margin on both sides; 0 for None."""
        if moment is None:
            return 0.0
        outside = max(self.start - moment, moment - self.end, timedelta())
        return max(0.0, 1.0 - outside / self.margin)


def find_time_span(question: str, now: datetime | None = None) -> TimeSpan | None:
    """Find the first stretch of time that a question names.

    Args:
        question: the question, any text.
        now: the present; the current time when None.

    Returns:
        The span; None when the question names no time, or one that does not exist (31 April).

    >>> from datetime import datetime
    >>> span = find_time_span("what broke in mid January?", datetime(2026, 5, 2))
    >>> span.start.date().isoformat(), span.end.date().isoformat()
    ('2026-01-10', '2026-01-21')
    """
    today = (now or datetime.now()).astimezone().replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    found = sorted(spans(question, today), key=lambda span: (span.words[0], -span.words[1]))
    first = next((span for span in found if not span.as_end_only), None)
    if first is None:
        return None
    span = _joined(question, first, found)
    word, begin = lead(question, span.words[0])
    if word in ("before", "until"):
        return None  # says where it ends, and next to nothing about where it begins
    end = max(today + DAY, span.end) if word in ("since", "after") else span.end
    # Every day begins at its own midnight, whatever the clocks did in between.
    return TimeSpan(span.start.astimezone(), end.astimezone(), (begin, span.words[1]))


def time_bonus(times: Sequence[datetime | None], span: TimeSpan | None) -> npt.NDArray[np.float32]:
    """What each passage gains from being of the time that the question names.

    Args:
        times: when each passage was said, aware.
        span: that time; None when it names none.

    Returns:
        `(n,)` float32, from 0 to `TIME_SHARE`.
    """
    if span is None:
        return np.zeros(len(times), np.float32)
    return np.array([TIME_SHARE * span.closeness(moment) for moment in times], np.float32)


def _joined(question: str, first: Found, found: Sequence[Found]) -> Found:
    """The stretch from one time to another, where the question names both ends; else the one time."""
    join = _JOIN.match(question, first.words[1])
    if join is None or (join["word"].lower() == "and" and lead(question, first.words[0])[0] != "between"):
        return first
    last = next((span for span in found if span.words[0] == join.end()), None)
    if last is None:
        return first
    start = first.start
    if start > last.start:  # the year stands with the second, or has turned in between
        try:
            start = start.replace(year=last.start.year)
            start = start.replace(year=start.year - (start > last.start))
        except ValueError:  # 29 February
            return first
    return Found(start, last.end, (first.words[0], last.words[1]))
