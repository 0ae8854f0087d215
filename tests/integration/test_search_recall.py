"""Recall over a small real memory: time words, and passages read in context."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from funes.chunking import Chunk
from funes.memory.filters import Filter
from funes.memory.reader import MemoryReader
from funes.memory.store import MemoryWriter
from funes.models.encoder import Encoder
from funes.search import ranking
from funes.search.model import RecallOptions
from funes.search.pipeline import recall
from tests.support.models import pinned_model
from tests.support.small_memory import blocks

JANUARY, MARCH = datetime(2026, 1, 14, 9, tzinfo=UTC), datetime(2026, 3, 20, 9, tzinfo=UTC)


def conversation(session: str, start: datetime, *texts: str) -> list[Chunk]:
    """Prompts and answers in turns."""
    rows: list[Chunk] = []
    for seq, text in enumerate(texts):
        rows += blocks(session, seq, [("text", "", text)], "assistant" if seq % 2 else "user")
        rows[-1].ts = start + timedelta(minutes=seq)
    return rows


def memory(folder: Path, *conversations: list[Chunk]) -> MemoryReader:
    with MemoryWriter(folder) as writer:
        writer.append([row for rows in conversations for row in rows])
        writer.finish()
    return MemoryReader.open(str(folder))


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder(pinned_model())


@pytest.fixture
def two_outages(tmp_path: Path) -> MemoryReader:
    return memory(
        tmp_path,
        conversation("january-session", JANUARY, "The nightly export failed.", "The export ran out of disk."),
        conversation("marching-session", MARCH, "The nightly export failed again.", "The export met a revoked key."),
    )


def test_the_time_that_a_question_names_decides_between_equals(two_outages: MemoryReader) -> None:
    options = RecallOptions(k=4, neighbors=0, rerank="off")
    for when, session in (("In mid January 2026", "january-session"), ("around 20 March 2026", "marching-session")):
        result = recall(two_outages, None, f"{when}, why did the nightly export fail?", options)
        assert len(result.hits) == 4  # the other time's are preferred less, not left out
        assert result.hits[0].chunk.session_id == session
    (note,) = result.notes
    assert note.startswith('"around 20 March 2026" is read as 2026-03-20, and passages of that time come first')


def test_an_exact_range_is_not_softened_by_time_words(two_outages: MemoryReader) -> None:
    where = Filter(since=datetime(2026, 3, 1, tzinfo=UTC))
    result = recall(
        two_outages, None, "in mid January 2026 the nightly export", RecallOptions(where=where, rerank="off")
    )
    assert {hit.chunk.session_id for hit in result.hits} == {"marching-session"}
    assert result.notes == []


def test_an_answer_without_the_questions_words_is_found_through_its_prompt(tmp_path: Path, encoder: Encoder) -> None:
    answer = "Yes: it blocks the writer, and nobody reads it before Monday."
    talk = conversation(
        "answering-session", MARCH, "Should the vacuum job of the warehouse leave the weekend schedule?", answer
    )
    noise = [
        conversation(
            f"noise-{number:04}", JANUARY, f"Plan {number} of the warehouse.", f"The weekend schedule has job {number}."
        )
        for number in range(30)
    ]
    reader = memory(tmp_path, talk, *noise)
    question = "does the warehouse vacuum job leave the weekend schedule"
    hits = recall(reader, encoder, question, RecallOptions(k=3, neighbors=0)).hits
    assert answer in [hit.chunk.text for hit in hits[:2]]


def test_what_stands_around_obeys_the_filters(tmp_path: Path, encoder: Encoder) -> None:
    talk = conversation("only-session", MARCH, "Why was the vacuum job moved?", "It blocks the writer.")
    reader = memory(tmp_path, talk)
    where = Filter(roles=("user",))
    hits = recall(reader, encoder, "why was the vacuum job moved", RecallOptions(where=where)).hits
    assert [hit.chunk.role for hit in hits] == ["user"]


@pytest.mark.parametrize("kind", ["thinking", "summary", "tool_use"])
def test_what_was_said_comes_before_what_was_not(
    tmp_path: Path, encoder: Encoder, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    unsaid = blocks("unsaid-session", 0, [(kind, "", "The nightly export failed: the disk was full.")], "assistant")
    said = blocks(
        "saying-session", 0, [("text", "", "The nightly export failed, since its disk was full.")], "assistant"
    )
    reader = memory(tmp_path, unsaid, said)

    def types() -> list[str]:
        result = recall(reader, encoder, "Why did the nightly export fail?", RecallOptions(k=2, neighbors=0))
        return [hit.chunk.block_type for hit in result.hits]

    assert types() == ["text", kind]
    monkeypatch.setattr(ranking, "HANDICAPS", {"text": 0.05})
    assert types() == [kind, "text"]  # nothing else tells them apart


def test_a_turn_takes_one_place_while_others_wait(tmp_path: Path) -> None:
    parts = [("text", "", f"The nightly export failed, part {number} of the story.") for number in range(3)]
    rows = blocks("long-session", 0, parts, "assistant") + blocks(
        "long-session", 1, [("text", "", "The export.")], "user"
    )
    result = recall(memory(tmp_path, rows), None, "nightly export failed", RecallOptions(k=2, neighbors=0))
    assert sorted(hit.chunk.seq for hit in result.hits) == [0, 1]
