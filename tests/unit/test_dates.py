from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funes.dates import parse_range, parse_when
from funes.errors import FunesError

NOW = datetime(2026, 5, 20, 15, 30, tzinfo=UTC)


@pytest.fixture(autouse=True)
def berlin(monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12h", NOW - timedelta(hours=12)),
        ("7d", NOW - timedelta(days=7)),
        ("2w", NOW - timedelta(weeks=2)),
        ("3 days ago", NOW - timedelta(days=3)),
        ("1 week", NOW - timedelta(weeks=1)),
        ("now", NOW),
        ("yesterday", datetime(2026, 5, 18, 22, tzinfo=UTC)),
        ("Today", datetime(2026, 5, 19, 22, tzinfo=UTC)),
        ("2026-05-02", datetime(2026, 5, 1, 22, tzinfo=UTC)),
        ("20260502", datetime(2026, 5, 1, 22, tzinfo=UTC)),
        ("2026-05", datetime(2026, 4, 30, 22, tzinfo=UTC)),
        ("2026-01-02T10:00", datetime(2026, 1, 2, 9, tzinfo=UTC)),
        ("2026-01-02 10:00:30", datetime(2026, 1, 2, 9, 0, 30, tzinfo=UTC)),
        ("2026-01-02T10:00:00Z", datetime(2026, 1, 2, 10, tzinfo=UTC)),
        ("2026-01-02T10:00:00-05:00", datetime(2026, 1, 2, 15, tzinfo=UTC)),
    ],
)
def test_forms(text, expected):
    assert parse_when(text, now=NOW) == expected
    assert parse_when(text, now=NOW).tzinfo is UTC


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-05-02", datetime(2026, 5, 2, 21, 59, 59, 999999, tzinfo=UTC)),
        ("2026-12", datetime(2026, 12, 31, 22, 59, 59, 999999, tzinfo=UTC)),
        ("yesterday", datetime(2026, 5, 19, 21, 59, 59, 999999, tzinfo=UTC)),
        ("7d", NOW - timedelta(days=7)),
        ("2026-01-02T10:00", datetime(2026, 1, 2, 9, tzinfo=UTC)),
    ],
)
def test_an_end_includes_its_day(text, expected):
    assert parse_when(text, now=NOW, end=True) == expected


@pytest.mark.parametrize(
    "text", ["", "soon", "7", "7m", "-7d", "7d7d", "2026-13-01", "2026-02-30", "05/02/2026", "0000-01", "٧x"]
)
def test_anything_else_is_one_sentence(text):
    with pytest.raises(FunesError) as fault:
        parse_when(text, now=NOW)
    assert repr(text) in fault.value.message
    assert "2026-05-02" in fault.value.message


@pytest.mark.parametrize("text", ["999999999w", "5000w", "9999-12-31", "0100-01-01", "1969-12-31", "2300-01-01T00:00Z"])
def test_times_that_no_table_can_compare_are_out_of_range(text):
    with pytest.raises(FunesError, match="out of range"):
        parse_when(text, now=NOW, end=True)


def test_a_range_that_excludes_everything_is_refused():
    assert parse_range("2026-05-02", "2026-05-02", now=NOW)[0] < NOW
    with pytest.raises(FunesError, match="later than"):
        parse_range("2d", "7d", now=NOW)
    assert parse_range(None, "", now=NOW) == (None, None)


@given(st.text(max_size=30))
def test_any_text_gives_a_time_or_a_sentence(text):
    try:
        assert parse_when(text, now=NOW).tzinfo is UTC
    except FunesError as fault:
        sentence = fault.message
    else:
        return
    assert "\n" not in sentence


@given(st.datetimes(min_value=datetime(2000, 1, 1), max_value=datetime(2100, 1, 1)))
def test_iso_forms_round_trip(moment):
    aware = moment.replace(tzinfo=UTC)
    assert parse_when(aware.isoformat()) == aware


@given(st.integers(0, 2900), st.sampled_from("hdw"))
def test_ages_count_back(count, unit):
    hours = count * {"h": 1, "d": 24, "w": 168}[unit]
    assert NOW - parse_when(f"{count}{unit}", now=NOW) == timedelta(hours=hours)


@given(st.dates(min_value=datetime(1980, 1, 1).date(), max_value=datetime(2090, 1, 1).date()))
def test_a_day_lies_between_its_ends(day):
    first, last = parse_range(day.isoformat(), day.isoformat())
    assert timedelta(hours=22) < last - first < timedelta(hours=26)
