"""Points in time as people type them: `--since 7d`, `--until 2026-05-02`, `yesterday`.

Dates and times without an offset are in this machine's time zone; results are aware and in UTC.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from funes.errors import FunesError

_AGO = re.compile(r"(?P<count>\d{1,9}) ?(?P<unit>h|d|w|hours?|days?|weeks?)(?: ago)?")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}|\d{8}")
_MONTH = re.compile(r"(?P<year>\d{4})-(?P<month>\d{2})")
_HOURS = {"h": 1, "d": 24, "w": 24 * 7}
_TICK = timedelta(microseconds=1)
_EARLIEST, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2262, 1, 1, tzinfo=UTC)
"""What a 64-bit count of nanoseconds, the tables' comparisons among them, can hold; no trace is older."""

FORMS = "a date (2026-05-02), a date and time (2026-05-02T14:30), an age (12h, 7d, 2w), today or yesterday"


def parse_when(text: str, *, now: datetime | None = None, end: bool = False) -> datetime:
    """Read one point in time.

    Args:
        text: an ISO date, month (`2026-05`) or date-time, an age (`12h`, `7d`, `2w`), `now`, `today` or `yesterday`.
        now: aware time that ages count back from; the current time when None.
        end: whether a day or month means its last microsecond (for an upper limit) and not its first.

    Returns:
        Aware time in UTC.

    Raises:
        FunesError: the text is none of these, or names a time outside the years 1970 to 2261.
    """
    word = text.strip().lower()
    now = (now or datetime.now(UTC)).astimezone()
    try:
        found = (_relative(word, now, end) or _absolute(text.strip(), word, end)).astimezone(UTC)
    except OverflowError:
        found = None
    except ValueError as error:
        raise FunesError(f"Cannot read {text!r} as a time; give {FORMS}.") from error
    if found is None or not _EARLIEST <= found < _LATEST:
        raise FunesError(f"The time {text!r} is out of range; give {FORMS}.")
    return found


def parse_range(
    since: str | None, until: str | None, *, now: datetime | None = None
) -> tuple[datetime | None, datetime | None]:
    """Read both ends of a time range; a day given as its end includes the whole day.

    Raises:
        FunesError: one of the two cannot be read, or the range is empty.
    """
    first = parse_when(since, now=now) if since else None
    last = parse_when(until, now=now, end=True) if until else None
    if first and last and first > last:
        raise FunesError(
            f"--since {since} is later than --until {until}, so nothing can lie between them; swap the two."
        )
    return first, last


def _relative(word: str, now: datetime, end: bool) -> datetime | None:
    """An age or a word that names a time relative to `now`; None when it is neither."""
    if match := _AGO.fullmatch(word):
        # Hours are counted on the UTC line, so that a change of the clocks does not shift them.
        return now.astimezone(UTC) - timedelta(hours=int(match["count"]) * _HOURS[match["unit"][0]])
    if word == "now":
        return now
    if word in ("today", "yesterday"):
        day = datetime(now.year, now.month, now.day) - timedelta(days=word == "yesterday")
        return _day(day, end)
    return None


def _absolute(text: str, word: str, end: bool) -> datetime:
    """An ISO date, month or date-time."""
    if _DATE.fullmatch(word):
        return _day(datetime.fromisoformat(word), end)
    if match := _MONTH.fullmatch(word):
        first = datetime(int(match["year"]), int(match["month"]), 1)
        return ((first + timedelta(days=31)).replace(day=1) - _TICK if end else first).astimezone()
    return datetime.fromisoformat(text).astimezone()


def _day(day: datetime, end: bool) -> datetime:
    """First or last microsecond of a local day."""
    return (day + timedelta(days=1) - _TICK if end else day).astimezone()
