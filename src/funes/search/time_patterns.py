"""Time patterns: the forms in which a question names a time, and how each is read.

Times are naive and local here: a day begins at its own midnight, whatever the clocks do in between.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

DAY = timedelta(days=1)

_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
           "november", "december")  # fmt: skip
_SHORT = {name[:3]: number for number, name in enumerate(_MONTHS, 1)} | {"sept": 9}
_NUMBERS = {
    "a": 1,
    "an": 1,
    "one": 1,
    "two": 2,
    "couple of": 2,
    "a couple of": 2,
    "three": 3,
    "few": 3,
    "a few": 3,
    "four": 4,
    "five": 5,
    "six": 6,
}
_UNITS = {"day": 1, "week": 7, "month": 30, "year": 365}
_COUNT = rf"(?P<count>\d{{1,3}}|{'|'.join(sorted(_NUMBERS, key=len, reverse=True))})"
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_ORDINALS = {"first": 0, "second": 1, "third": 2, "fourth": 3}

_MONTH = rf"(?P<month>{'|'.join(_MONTHS)}|(?:{'|'.join(_SHORT)})\b\.?)"
_LEAD = re.compile(
    r"(?:\b(?P<word>in|on|around|about|during|between|by|at|from|of|last|this|since|after|before|until) )?"
    r"(?:around |about )?(?:the )?$",
    re.IGNORECASE,
)
_LONGEST_LEAD = 24
_FIRM = frozenset(
    ["in", "on", "around", "during", "between", "by", "from", "last", "since", "after", "before", "until"]
)
"""Words that stand before a time and not before a verb."""

_PART_BEFORE = re.compile(r"(?:[/\\_.=@#-]|\d:)$")
_PART_AFTER = re.compile(r"[/\\_=]|[.:-]\w")
"""What makes numbers and names a part of a path, a version or an identifier."""

_GOES_ON = re.compile(r" \w")
_VERB = re.compile(
    r" (?:also|always|be|break|cause|fail|have|i|it|need|never|not|only|still|they|we|well|you)\b", re.IGNORECASE
)
_YEAR = r"(?:,? (?:of )?(?P<year>(?:19|20)\d\d)\b)?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_TO = r" ?(?:-|–|to|and|or) ?(?P<last>\d{1,2})(?:st|nd|rd|th)?"


@dataclass(frozen=True, slots=True)
class Found:
    """A stretch of time in naive local time, and where its own words stand.

    Attributes:
        as_end_only: whether the words mean a time only where another one leads up to them.
    """

    start: datetime
    end: datetime
    words: tuple[int, int]
    as_end_only: bool = False


def spans(question: str, today: datetime) -> Iterator[Found]:
    """Find the times that a question names, in no order; they may overlap.

    Args:
        question: the question, any text.
        today: local midnight, naive.
    """
    for pattern, read in _PATTERNS:
        for match in pattern.finditer(question):
            before = question[max(0, match.start() - 2) : match.start()]
            if _PART_BEFORE.search(before) or _PART_AFTER.match(question, match.end()):
                continue
            if (match.groupdict().get("month") or "").lower() == "may" and not _is_month_of_may(match):
                continue
            try:
                start, end = read(match, today)
            except (ValueError, OverflowError):  # a date that no calendar has
                continue
            yield Found(start, end, match.span(), read is _bare_month and not lead(question, match.start())[0])


def lead(question: str, start: int) -> tuple[str, int]:
    """The preposition before a time, empty for none, and where the time's words begin with it."""
    found = _LEAD.search(question, max(0, start - _LONGEST_LEAD), start)
    if found is None:
        return "", start
    return (found["word"] or "").lower(), found.start()


def _is_month_of_may(match: re.Match[str]) -> bool:
    """Whether "may" in a match is the month, and not the verb: "retry 3 may fail", "it may 5 times", "this may be"."""
    groups = match.groupdict()
    question, (first, last) = match.string, match.span()
    if groups.get("year") or groups.get("which") or re.search(r"\d(?:st|nd|rd|th)|\bof ", match[0], re.IGNORECASE):
        return True
    if lead(question, first)[0] in _FIRM:
        return True
    before = question[max(0, match.start("month") - 2) : match.start("month")].rstrip(" ")
    if match["month"] == "May" and before and before[-1] not in ".?!:\n":
        return True
    if groups.get("part"):
        return not _VERB.match(question, last)
    return not _GOES_ON.match(question, last)


_Span = tuple[datetime, datetime]


def _month(match: re.Match[str], today: datetime) -> datetime:
    """First day of the month that a match names."""
    name = match["month"].lower().rstrip(".")
    number = _SHORT.get(name) or _SHORT[name[:3]]
    if match["year"]:
        return datetime(int(match["year"]), number, 1)
    return datetime(today.year - (number > today.month), number, 1)


def _days(match: re.Match[str], today: datetime) -> _Span:
    month = _month(match, today)
    day, last = int(match["day"]), int(match["last"] or match["day"])
    if last < day:
        raise ValueError("the days are in the wrong order")
    # The latest such day; 29 February comes every four years, or eight.
    for year in [month.year] if match["year"] else range(month.year, month.year - 9, -1):
        if last <= monthrange(year, month.month)[1]:
            first = datetime(year, month.month, day)
            if match["year"] or first <= today:
                return first, first + (last - day + 1) * DAY
    raise ValueError("there is no such day")


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


def _bare_month(match: re.Match[str], today: datetime) -> _Span:
    """A month without a day or year. Some are words of other kinds, too, so by itself it needs a preposition."""
    start, end = _whole_month(match, today)
    if end > today and lead(match.string, match.start())[0] == "last":
        start = start.replace(year=start.year - 1)
        return start, start + monthrange(start.year, start.month)[1] * DAY
    return start, end


def _iso_day(match: re.Match[str], today: datetime) -> _Span:
    day = datetime(int(match["year"]), int(match["number"]), int(match["day"]))
    return day, day + DAY


def _count(match: re.Match[str]) -> int:
    text = (match["count"] or "one").lower()
    return int(text) if text.isdigit() else _NUMBERS[text]


def _ago(match: re.Match[str], today: datetime) -> _Span:
    days = _UNITS[match["unit"].lower()]
    middle = today - _count(match) * days * DAY
    slack = (days // 2) * DAY
    return middle - slack, middle + slack + DAY


def _past(match: re.Match[str], today: datetime) -> _Span:
    return today - _count(match) * _UNITS[match["unit"].lower()] * DAY, today + DAY


def _last(match: re.Match[str], today: datetime) -> _Span:
    monday = today - today.weekday() * DAY
    month = today.replace(day=1)
    match match["unit"].lower():
        case "week":
            return monday - 7 * DAY, monday
        case "month":
            return (month - DAY).replace(day=1), month
        case "year":
            return datetime(today.year - 1, 1, 1), datetime(today.year, 1, 1)
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


_PATTERNS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], datetime], _Span]], ...] = (
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
    (_compile(rf"\b{_COUNT} (?P<unit>day|week|month)s? ago\b"), _ago),
    (_compile(rf"\b(?:last|past|previous) {_COUNT} (?P<unit>day|week|month)s\b"), _past),
    (_compile(r"\bpast (?P<count>)(?P<unit>week|month|year)\b"), _past),
    (_compile(rf"\b(?:last|previous) (?P<unit>week|month|year|night|{'|'.join(_WEEKDAYS)})\b"), _last),
    (_compile(rf"\bon (?P<unit>{'|'.join(_WEEKDAYS)})\b"), _last),
    (_compile(r"\bthis (?P<unit>week|month|morning|afternoon)\b"), _this),
    (_compile(r"\b(?P<unit>today)\b"), _this),
    (_compile(r"\b(?P<unit>yesterday)\b"), lambda match, today: (today - DAY, today)),
)
