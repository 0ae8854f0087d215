"""Time words: when a question says that something happened.

"What did we decide in mid January?" names a stretch of time. It is understood here, in English, and used softly:
passages of that time are preferred, none is excluded. A date without a year is the latest such date that is not in the
future.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt

TIME_SHARE = 0.12
"""What a passage of the time gains, on the scale of the scores (0 to 1)."""

DAY = timedelta(days=1)

_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
           "november", "december")  # fmt: skip
_SHORT = {name[:3]: number for number, name in enumerate(_MONTHS, 1)} | {"sept": 9}
_NUMBERS = {
    "a": 1,
    "an": 1,
    "one": 1,
    "two": 2,
    "a couple of": 2,
    "three": 3,
    "a few": 3,
    "four": 4,
    "five": 5,
    "six": 6,
}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_ORDINALS = {"first": 0, "second": 1, "third": 2, "fourth": 3}

_MONTH = rf"(?P<month>{'|'.join(_MONTHS)}|(?:{'|'.join(_SHORT)})\b\.?)"
_LEAD = re.compile(
    r"(?:\b(?P<word>in|on|around|about|during|at|from|of|last|this|since|after|before|until) )?"
    r"(?:around |about )?(?:the )?$",
    re.IGNORECASE,
)
_YEAR = r"(?:,? (?:of )?(?P<year>(?:19|20)\d\d)\b)?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_TO = r" ?(?:-|–|to|and|or) ?(?P<last>\d{1,2})(?:st|nd|rd|th)?"


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A stretch of time that a question names.

    Attributes:
        start: its first moment, aware, in UTC.
        end: the moment after its last, aware, in UTC.
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
        now: the present, aware; the current time when None.

    Returns:
        The span; None when the question names no time, or one that does not exist (31 April).

    >>> from datetime import UTC, datetime
    >>> span = find_time_span("what broke in mid January?", datetime(2026, 5, 2, tzinfo=UTC))
    >>> span.start.date().isoformat(), span.end.date().isoformat()
    ('2026-01-10', '2026-01-21')
    """
    today = (now or datetime.now(UTC)).astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    found = sorted(_spans(question, today), key=lambda span: (span.words[0], -span.words[1]))
    if not found:
        return None
    span = found[0]
    lead = _LEAD.search(question, 0, span.words[0])
    word = lead["word"].lower() if lead and lead["word"] else ""
    if word in ("before", "until"):
        return None  # says where it ends, and next to nothing about where it begins
    end = max(today + DAY, span.end) if word in ("since", "after") else span.end
    return TimeSpan(span.start, end, (lead.start() if lead else span.words[0], span.words[1]))


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


def _spans(question: str, today: datetime) -> Iterator[TimeSpan]:
    for pattern, read in _PATTERNS:
        for match in pattern.finditer(question):
            try:
                span = read(match, today)
            except (ValueError, OverflowError):  # a date that no calendar has
                continue
            if span is not None:
                yield TimeSpan(*span, match.span())


_Span = tuple[datetime, datetime]


def _month(match: re.Match[str], today: datetime) -> datetime:
    """First day of the month that a match names."""
    name = match["month"].lower().rstrip(".")
    number = _SHORT.get(name) or _SHORT[name[:3]]
    if match["year"]:
        return datetime(int(match["year"]), number, 1, tzinfo=UTC)
    return datetime(today.year - (number > today.month), number, 1, tzinfo=UTC)


def _days(match: re.Match[str], today: datetime) -> _Span:
    month = _month(match, today)
    groups = match.groupdict()
    first = month.replace(day=int(match["day"]))
    last = month.replace(day=int(groups["last"])) if groups.get("last") else first
    if not match["year"] and first > today:
        first, last = first.replace(year=first.year - 1), last.replace(year=last.year - 1)
    return (first, last + DAY) if last >= first else (first, first + DAY)


def _part_of_month(match: re.Match[str], today: datetime) -> _Span:
    month = _month(match, today)
    length = monthrange(month.year, month.month)[1]
    part = match["part"].lower()
    if part.startswith(("early", "begin", "start")):
        first, last = 1, 10
    elif part.startswith("mid"):
        first, last = 10, 20
    else:
        first, last = 20, length
    return month.replace(day=first), month.replace(day=last) + DAY


def _week_of_month(match: re.Match[str], today: datetime) -> _Span:
    month = _month(match, today)
    if match["which"].lower() == "last":
        end = month + monthrange(month.year, month.month)[1] * DAY
        return end - 7 * DAY, end
    start = month + 7 * _ORDINALS[match["which"].lower()] * DAY
    return start, start + 7 * DAY


def _whole_month(match: re.Match[str], today: datetime) -> _Span:
    month = _month(match, today)
    return month, month + monthrange(month.year, month.month)[1] * DAY


def _bare_month(match: re.Match[str], today: datetime) -> _Span | None:
    """A month without a day or year: some are words of other kinds, too, so the name needs a preposition."""
    lead = _LEAD.search(match.string, 0, match.start())
    return _whole_month(match, today) if lead and lead["word"] else None


def _iso_day(match: re.Match[str], today: datetime) -> _Span:
    day = datetime(int(match["year"]), int(match["number"]), int(match["day"]), tzinfo=UTC)
    return day, day + DAY


def _ago(match: re.Match[str], today: datetime) -> _Span:
    text = match["count"].lower()
    count = int(text) if text.isdigit() else _NUMBERS[text]
    days = {"day": 1, "week": 7, "month": 30}[match["unit"].lower()]
    middle = today - count * days * DAY
    slack = (days // 2) * DAY
    return middle - slack, middle + slack + DAY


def _last(match: re.Match[str], today: datetime) -> _Span:
    monday = today - today.weekday() * DAY
    month = today.replace(day=1)
    match match["unit"].lower():
        case "week":
            return monday - 7 * DAY, monday
        case "month":
            return (month - DAY).replace(day=1), month
        case "year":
            return datetime(today.year - 1, 1, 1, tzinfo=UTC), datetime(today.year, 1, 1, tzinfo=UTC)
        case "night":
            return today - DAY, today + DAY
        case name:
            back = (today.weekday() - _WEEKDAYS.index(name)) % 7 or 7
            return today - back * DAY, today - (back - 1) * DAY


def _this(match: re.Match[str], today: datetime) -> _Span:
    first = {"week": today - today.weekday() * DAY, "month": today.replace(day=1)}.get(match["unit"].lower(), today)
    return first, today + DAY


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_PATTERNS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], datetime], _Span | None]], ...] = (
    (_compile(r"\b(?P<year>(?:19|20)\d\d)-(?P<number>\d\d)-(?P<day>\d\d)\b"), _iso_day),
    (_compile(rf"\b{_DAY}(?:{_TO})? (?:of )?{_MONTH}(?!\w){_YEAR}"), _days),
    (_compile(rf"\b{_MONTH} (?:the )?{_DAY}(?:{_TO})?(?!\d|[.:]\d){_YEAR}"), _days),
    (
        _compile(
            r"\b(?P<part>early|mid(?:dle)?|late|(?:the )?(?:beginning|start|middle|end))(?:[ -]| in | of )"
            rf"{_MONTH}(?!\w){_YEAR}"
        ),
        _part_of_month,
    ),
    (_compile(rf"\b(?P<which>first|second|third|fourth|last) week (?:of|in) {_MONTH}(?!\w){_YEAR}"), _week_of_month),
    (_compile(rf"\b{_MONTH} (?P<year>(?:19|20)\d\d)\b"), _whole_month),
    (_compile(rf"\b{_MONTH}(?!\w)(?P<year>)"), _bare_month),
    (
        _compile(
            rf"\b(?P<count>\d{{1,3}}|{'|'.join(sorted(_NUMBERS, key=len, reverse=True))})"
            r" (?P<unit>day|week|month)s? ago\b"
        ),
        _ago,
    ),
    (_compile(rf"\b(?:last|previous) (?P<unit>week|month|year|night|{'|'.join(_WEEKDAYS)})\b"), _last),
    (_compile(rf"\bon (?P<unit>{'|'.join(_WEEKDAYS)})\b"), _last),
    (_compile(r"\bthis (?P<unit>week|month|morning|afternoon)\b"), _this),
    (_compile(r"\b(?P<unit>today)\b"), _this),
    (_compile(r"\b(?P<unit>yesterday)\b"), lambda match, today: (today - DAY, today)),
)
