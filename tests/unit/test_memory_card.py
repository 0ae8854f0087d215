"""The card of a published memory, and READMEs that are somebody's own."""

from __future__ import annotations

from datetime import UTC, datetime

from ruamel.yaml import YAML

from funes.memory.remote import card
from funes.memory.statistics import MemoryStatistics

NOW = datetime(2026, 5, 2, 10, 0, tzinfo=UTC)


def held(passages=1234):
    return MemoryStatistics(
        "acme/decisions",
        "somewhere",
        passages=passages,
        sessions=7,
        sessions_by_harness={"claude_code": 5, "codex": 2},
        embedded=1200,
        models=["some/model"],
        first_ts=NOW,
        last_ts=NOW,
    )


def test_a_new_card_says_what_it_is_and_how_to_recall():
    text = card.updated(None, "acme/decisions", held(), NOW)
    assert text is not None
    front = YAML(typ="safe").load(text.split("---")[1])
    assert front["tags"] == ["funes", "agent-memory", "agent-traces", "lance"]
    assert "# decisions\n" in text
    assert "--memory acme/decisions" in text
    assert "| passages | 1,234 |" in text
    assert "| agents | Claude Code 5, Codex 2 |" in text
    assert "| last push | 2026-05-02 10:00 UTC |" in text


def test_only_the_statistics_are_written_again():
    first = card.updated(None, "acme/decisions", held(), NOW)
    assert first is not None
    edited = (
        first.replace("A memory of coding-agent sessions", "Everything our team ever decided") + "\nWritten by hand.\n"
    )
    second = card.updated(edited, "acme/decisions", held(2000), NOW)
    assert second == edited.replace("1,234", "2,000")


def test_a_card_that_says_it_already_stays():
    first = card.updated(None, "acme/decisions", held(), NOW)
    assert card.updated(first, "acme/decisions", held(), NOW) is None


def test_a_readme_without_our_markers_is_not_touched():
    assert card.updated("# Mine\n\nHands off.\n", "acme/decisions", held(), NOW) is None
    assert card.updated("", "acme/decisions", held(), NOW) is None
    assert card.updated(f"{card.END} the wrong way round {card.BEGIN}", "acme/decisions", held(), NOW) is None


def test_a_memory_without_times():
    statistics = held()
    statistics.first_ts = statistics.last_ts = None
    statistics.models = []
    text = card.updated(None, "s3://bucket/team", statistics, NOW)
    assert text is not None
    assert "| turns | without times |" in text
    assert "| model | none |" in text
    assert "# team\n" in text
