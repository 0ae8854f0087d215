"""Time words in questions, read against a fixed present."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funes.search.time_words import TimeSpan, find_time_span

NOW = datetime(2026, 5, 14, 15, 30, tzinfo=UTC)  # a Thursday


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Days are those of the machine's zone."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("What broke on 2026-03-02?", "2026-03-02", "2026-03-02"),
        ("Around 12 February, why did we drop it?", "2026-02-12", "2026-02-12"),
        ("on the 3rd of April", "2026-04-03", "2026-04-03"),
        ("February 12th", "2026-02-12", "2026-02-12"),
        ("on Feb 12, 2025 the build failed", "2025-02-12", "2025-02-12"),
        ("Around 5-7 February, why", "2026-02-05", "2026-02-07"),
        ("between 5 and 7 February", "2026-02-05", "2026-02-07"),
        ("on 30 December", "2025-12-30", "2025-12-30"),
        ("on 15 May", "2025-05-15", "2025-05-15"),  # tomorrow is not yet past
        ("on 14 May", "2026-05-14", "2026-05-14"),
        ("In mid January, how did we", "2026-01-10", "2026-01-20"),
        ("mid-January design", "2026-01-10", "2026-01-20"),
        ("Early February: why", "2026-02-01", "2026-02-10"),
        ("the late February fix", "2026-02-20", "2026-02-28"),
        ("at the end of April", "2026-04-20", "2026-04-30"),
        ("In the last week of January we", "2026-01-25", "2026-01-31"),
        ("the first week of March", "2026-03-01", "2026-03-07"),
        ("what did we do in May", "2026-05-01", "2026-05-31"),
        ("releases in August 2023", "2023-08-01", "2023-08-31"),
        ("March 2024 outage", "2024-03-01", "2024-03-31"),
        ("since mid March it is slow", "2026-03-10", "2026-05-14"),
        ("yesterday's crash", "2026-05-13", "2026-05-13"),
        ("what did I ask today", "2026-05-14", "2026-05-14"),
        ("last week we chose", "2026-05-04", "2026-05-10"),
        ("this week", "2026-05-11", "2026-05-14"),
        ("last month", "2026-04-01", "2026-04-30"),
        ("last night's run", "2026-05-13", "2026-05-14"),
        ("three days ago", "2026-05-11", "2026-05-11"),
        ("2 weeks ago", "2026-04-27", "2026-05-03"),
        ("on Monday", "2026-05-11", "2026-05-11"),
        ("last Thursday", "2026-05-07", "2026-05-07"),
        ("what changed on 3 March and on 9 April?", "2026-03-03", "2026-03-03"),
        ("between 3 March and 9 April", "2026-03-03", "2026-04-09"),
        ("between 3 March and 9 April 2025, why", "2025-03-03", "2025-04-09"),
        ("from 28 Feb to 3 March", "2026-02-28", "2026-03-03"),
        ("from 2025-01-01 to 2025-01-05", "2025-01-01", "2025-01-05"),
        ("between January and March", "2026-01-01", "2026-03-31"),
        ("from November to February", "2025-11-01", "2026-02-28"),
        ("from 3 March until today", "2026-03-03", "2026-05-14"),
        ("on 29 February", "2024-02-29", "2024-02-29"),
        ("last May we moved", "2025-05-01", "2025-05-31"),
        ("in the last 3 days", "2026-05-11", "2026-05-14"),
        ("what broke in the past two weeks", "2026-04-30", "2026-05-14"),
        ("in may we did what", "2026-05-01", "2026-05-31"),
        ("what did we drop on 3 may", "2026-05-03", "2026-05-03"),
        ("the 3rd of may release", "2026-05-03", "2026-05-03"),
        ("What about May 3 and the parser", "2026-05-03", "2026-05-03"),
        ("it was late may when we did", "2026-05-20", "2026-05-31"),
        ("what may break in march", "2026-03-01", "2026-03-31"),
    ],
)
def test_named_times(question: str, first: str, last: str) -> None:
    span = find_time_span(question, NOW)
    assert span is not None
    assert (span.start.date().isoformat(), (span.end - timedelta(seconds=1)).date().isoformat()) == (first, last)


@pytest.mark.parametrize(
    "question",
    [
        "Why may a reader see half a row?",
        "march through the list of callers",
        "does the decoder handle 12 decimals",
        "version 3.12 of the parser",
        "on 31 April",
        "2026-13-40",
        "before 12 February",
        "line 120 marks the end of the block",
        "sum of 5 and 7",
        "this may be wrong",
        "it may 3 times fail",
        "May 5 workers deadlock?",
        "retry 3 may fail",
        "late may be better than never",
        "RETRY 3 MAY FAIL",
        "upgrade to 3.12 march",
        r"C:\Users\may 12\file",
        "src/2025-01-01/log.txt",
        "backup-2025-01-01.tar.gz",
        "notes_2025-01-01_final",
        "27-2 march",
        "0 march",
        "2026-02-30",
        "",
    ],
)
def test_no_time(question: str) -> None:
    assert find_time_span(question, NOW) is None


@pytest.mark.parametrize(
    ("question", "rest"),
    [
        ("In mid January, how did we tell senders apart?", "how did we tell senders apart?"),
        ("why did it fail around 12 February", "why did it fail"),
        ("Around the 12 February 2026: what broke?", "what broke?"),
        ("what did Ana say in August 2023?", "what did Ana say ?"),
        ("yesterday?", "yesterday?"),
    ],
)
def test_the_rest_of_the_question(question: str, rest: str) -> None:
    span = find_time_span(question, NOW)
    assert span is not None
    assert span.rest(question) == rest


def test_closeness_falls_over_the_margin() -> None:
    start = datetime(2026, 1, 10, tzinfo=UTC)
    span = TimeSpan(start, start + timedelta(days=10), (0, 1))
    assert span.margin == timedelta(days=5)
    assert span.closeness(start + timedelta(days=3)) == 1
    assert span.closeness(start - timedelta(days=2.5)) == pytest.approx(0.5)
    assert span.closeness(start + timedelta(days=12.5)) == pytest.approx(0.5)
    assert span.closeness(start + timedelta(days=30)) == 0
    assert span.closeness(None) == 0


_NUMBERS = ["31", "5-7", "2026", "2026-02-30", "two", "0", "99"]
_NAMES = ["mid", "late", "last", "week", "May", "Feb.", "february", "days", "ago", "friday", "yesterday"]
_WORDS = st.sampled_from([*_NUMBERS, *_NAMES, "of", "the", "in", "on", "since", ","])


@given(st.one_of(st.text(max_size=60), st.lists(_WORDS, max_size=8).map(" ".join)))
def test_any_text_gives_a_span_of_positive_length_or_none(question: str) -> None:
    span = find_time_span(question, NOW)
    if span is not None:
        assert span.start < span.end
        assert 0 <= span.words[0] < span.words[1] <= len(question)
        assert span.rest(question).strip()


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the time zone of a process cannot be set here")
def test_days_are_those_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        late = find_time_span("what did I ask today", datetime(2026, 5, 14, 15, 30, tzinfo=UTC))
        assert late is not None
        assert late.start == datetime(2026, 5, 14, 15, tzinfo=UTC)
        monkeypatch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        turned = find_time_span("on 29 March", NOW)  # when the clocks went forward
        assert turned is not None
        assert (turned.start, turned.end) == (
            datetime(2026, 3, 28, 23, tzinfo=UTC),
            datetime(2026, 3, 29, 22, tzinfo=UTC),
        )
    finally:
        monkeypatch.undo()
        time.tzset()
