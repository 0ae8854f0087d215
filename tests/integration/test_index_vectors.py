"""The vectors phase: order, budget, reuse, and an encoder that is asked for each text once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import lance
import numpy as np
import pytest

from funes.commands import index as command
from funes.commands.index import IndexOptions, IndexReport, run_index
from funes.commands.indexing import vectors
from funes.errors import LockedError
from funes.memory.identity import newest_version
from funes.memory.lock import VECTORS_LOCK, WriterLock
from funes.memory.reader import MemoryReader
from funes.memory.schema import PROSE, VECTORS
from funes.models import encoder
from funes.paths import memory_folder
from tests.support.claude_sessions import START, ClaudeSession, talk
from tests.support.index_process import FakeEncoder


class Recorder(FakeEncoder):
    """A fake encoder that keeps the texts it was asked for, and can stop the run."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.with_codes: list[bool] = []
        self.loads = 0

    def encode_passages(self, texts: Sequence[str], with_codes: bool = True) -> encoder.PassageEncodings:
        self.texts += texts
        self.with_codes += [with_codes] * len(texts)
        return super().encode_passages(texts, with_codes)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder()

    def load(**_: object) -> Recorder:
        recorder.loads += 1
        return recorder

    monkeypatch.setattr(encoder, "load_encoder", load)
    return recorder


@pytest.fixture
def projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FUNES_HOME", str(tmp_path / "home"))
    folder = tmp_path / "projects"
    for number in range(3):
        session = ClaudeSession(folder, f"s{number}")
        talk(session, 3, f"topic{number}")
    return folder


def index(path: Path, **options: object) -> IndexReport:
    return run_index(IndexOptions(path=path, **options))  # type: ignore[arg-type]


def test_everything_is_embedded_once(projects: Path, fake: Recorder) -> None:
    report = index(projects)
    assert report.embedded == report.stored > 0
    assert report.waiting == 0
    assert len(fake.texts) == len(set(fake.texts))
    before = newest_version(memory_folder(), VECTORS)
    again = index(projects)
    assert (again.embedded, again.waiting) == (0, 0)
    assert fake.loads == 1
    assert newest_version(memory_folder(), VECTORS) == before


def test_prose_comes_first_and_tool_output_has_no_codes(projects: Path, fake: Recorder) -> None:
    index(projects)
    rows = (
        lance.dataset(str(memory_folder() / VECTORS))
        .to_table(columns=["id", "block_type", "codes", "pieces"])
        .to_pylist()
    )
    tiers = [
        0 if row["block_type"] in ("text", "thinking") else 1 + (row["block_type"] == "tool_result") for row in rows
    ]
    assert tiers == sorted(tiers)
    assert set(tiers) == {0, 1, 2}
    for row in rows:
        assert (row["codes"] is None) == (row["block_type"] == "tool_result")
        assert row["pieces"] is not None


def test_equal_texts_are_encoded_once(projects: Path, fake: Recorder) -> None:
    session = ClaudeSession(projects, "repeats")
    for _ in range(5):
        session.prompt("continue")
        session.answer("Done.")
    report = index(projects)
    assert report.embedded == report.stored
    assert fake.texts.count("continue") == fake.texts.count("Done.") == 1
    table = lance.dataset(str(memory_folder() / VECTORS)).to_table()
    texts = MemoryReader.open().rows(table.column("id").to_pylist())
    same = [row["vector"] for row in table.to_pylist() if texts[row["id"]].text == "continue"]
    assert len(same) == 5
    assert all(vector == same[0] for vector in same)


def test_the_vectors_belong_to_their_texts(projects: Path, fake: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "WINDOW", 7)
    monkeypatch.setattr(vectors, "STEP_CHARACTERS", 150)
    monkeypatch.setattr(vectors, "COMMIT_SECONDS", 0.0)
    index(projects)
    reader = MemoryReader.open()
    rows = lance.dataset(str(memory_folder() / VECTORS)).to_table().to_pylist()
    texts = reader.rows([row["id"] for row in rows])
    assert len(rows) == len(texts) == reader.statistics().passages
    for row in rows:
        expected = fake.encode_passages([texts[row["id"]].text or ""])
        np.testing.assert_allclose(np.array(row["vector"], np.float32), expected.dense[0], atol=1e-3)
        assert row["pieces"] == expected.pieces[0].tobytes()
        assert row["model"] == "fake"
    frequencies, counted = reader.piece_counts()
    assert counted == sum(row["block_type"] in PROSE for row in rows) == frequencies.sum() < len(rows)


def test_no_time_means_no_vectors_and_no_model(projects: Path, fake: Recorder) -> None:
    report = index(projects, budget=0)
    assert (report.embedded, report.waiting, fake.loads) == (0, report.stored, 0)
    assert index(projects, budget=0).waiting == report.stored
    rest = index(projects)
    assert (rest.stored, rest.embedded) == (0, report.stored)


def test_a_budget_ends_the_phase_and_the_next_run_goes_on(
    projects: Path, fake: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "STEP_CHARACTERS", 1)
    monkeypatch.setattr(vectors, "time", SimpleNamespace(monotonic=lambda: float(len(fake.texts))))  # a second a text
    first = index(projects, budget=3)
    assert first.embedded == 3 < first.stored
    assert first.waiting == first.stored - first.embedded
    second = index(projects)
    assert second.embedded == first.waiting
    assert len(fake.texts) == len(set(fake.texts)) == first.stored


def test_the_newest_session_comes_first(projects: Path, fake: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "WINDOW", 1)  # inside a window the longest text comes first
    newest = ClaudeSession(projects, "newest", start=START + timedelta(days=3))
    newest.prompt("the newest prompt")
    newest.answer("the newest answer")
    os.utime(newest.path, (1, 1))  # the time of its turns counts, not that of the file
    index(projects)
    assert fake.texts[:2] == ["the newest prompt", "the newest answer"]


def test_a_busy_vectors_table_is_an_error_only_when_nothing_else_was_done(
    projects: Path, fake: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "WAIT_SECONDS", 0.0)
    memory_folder().mkdir(parents=True)
    with WriterLock(memory_folder(), VECTORS_LOCK):
        report = index(projects)
        assert report.stored == report.waiting > 0
        assert any("wait for their vectors" in note for note in report.notes)
        with pytest.raises(LockedError):
            index(projects)
    assert index(projects).waiting == 0
