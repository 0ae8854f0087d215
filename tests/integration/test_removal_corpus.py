"""Scrubbing and forgetting leave what an index run under the new rules makes from the traces, row by row."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from funes.commands.forget import Wanted, forget
from funes.commands.index import IndexOptions, IndexReport, run_index
from funes.commands.indexing import pool, reading
from funes.commands.scrub import scrub
from funes.memory.reader import MemoryReader
from funes.memory.schema import CHUNKS
from funes.paths import funes_home, memory_folder
from funes.secrets import Redaction
from tests.support.corpus import shared_corpus
from tests.support.index_process import NoRedactor

pytestmark = pytest.mark.real_corpus
HARNESSES = ["claude", "codex", "hermes", "hf", "pi"]

Place = tuple[str, str, int, int]


class CommonWords:
    """Rules under which much is a credential, and some blocks cannot be made clean."""

    missing_engine = ""
    word = re.compile(r"(?<![\[:])\b(the|to|is|of|src|line|file|error|a|and)\b")

    def redact(self, text: str) -> Redaction:
        if "cannot" in text:
            return Redaction(None, Counter({"block dropped: never clean": 1}))
        found = len(self.word.findall(text))
        return Redaction(self.word.sub("[REDACTED:word]", text), Counter({"word": found} if found else {}))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FUNES_MODELS", str(tmp_path / "no models"))
    monkeypatch.setattr(pool, "SMALL_RUN_BYTES", 1 << 40)
    monkeypatch.setenv("FUNES_HOME", str(tmp_path / "home"))
    return tmp_path


def use(monkeypatch: pytest.MonkeyPatch, redactor: type, ruleset: str) -> None:
    for module in (reading, "funes.secrets"):
        prefix = module if isinstance(module, str) else module.__name__
        monkeypatch.setattr(f"{prefix}.Redactor", redactor)
        monkeypatch.setattr(f"{prefix}.ruleset_id", lambda: ruleset)


def index(path: Path) -> IndexReport:
    return run_index(IndexOptions(path=path, budget=0))


def rows() -> tuple[dict[Place, tuple[str, str, str]], dict[str, str]]:
    """What stands where (id, text, ruleset), and the titles; nothing is stored twice or lacks its text."""
    import lance

    table = lance.dataset(str(memory_folder() / CHUNKS)).to_table().to_pylist()
    passages = [row for row in table if row["seq"] >= 0]
    texts = {row["id"]: row["text"] for row in passages if row["text"] is not None}
    assert len(texts) == sum(row["text"] is not None for row in passages)
    found = {
        (row["session_id"], row["turn_uuid"], row["block_idx"], row["split_idx"]): (
            row["id"],
            texts[row["id"]],
            row["ruleset"],
        )
        for row in passages
    }
    assert len(found) == len(passages)
    return found, {row["session_id"]: row["text"] for row in table if row["seq"] < 0}


def forget_state() -> None:
    for path in funes_home().glob("state.sqlite*"):
        path.unlink()


@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.parametrize("harness", HARNESSES)
def test_scrubbing_is_indexing_with_the_new_rules(
    home: Path, monkeypatch: pytest.MonkeyPatch, harness: str, gone: bool
) -> None:
    traces = home / "traces"
    shutil.copytree(shared_corpus() / harness, traces)
    use(monkeypatch, NoRedactor, "old")
    index(traces)
    use(monkeypatch, CommonWords, "new")
    if gone:
        traces.rename(home / "away")
    report = scrub()
    assert report.redacted
    if gone:
        (home / "away").rename(traces)
    scrubbed, titles = rows()
    forget_state()
    again = index(traces)
    assert (again.stored, again.copies) == (0, 0)
    assert rows() == (scrubbed, titles)
    shutil.rmtree(memory_folder())
    forget_state()
    index(traces)
    fresh, fresh_titles = rows()
    if gone:  # the ids are those of the places then
        both = scrubbed.keys() & fresh.keys()
        assert {place: scrubbed[place][1:] for place in both} == {place: fresh[place][1:] for place in both}
        assert sorted(scrubbed[place][1:] for place in scrubbed.keys() - both) == sorted(
            fresh[place][1:] for place in fresh.keys() - both
        )
    else:
        assert scrubbed == fresh
    assert {session: title for session, title in titles.items() if title} == {
        session: title for session, title in fresh_titles.items() if title
    }


@pytest.mark.parametrize("harness", HARNESSES)
def test_forgetting_is_indexing_without_the_sessions(home: Path, monkeypatch: pytest.MonkeyPatch, harness: str) -> None:
    traces = shared_corpus() / harness
    use(monkeypatch, NoRedactor, "old")
    index(traces)
    ids = sorted(session.id for session in MemoryReader.open().sessions())
    report = forget(Wanted(sessions=tuple(ids[::2])), do=True)
    left, titles = rows()
    assert not {place[0] for place in left} & {session.id for session in report.sessions}
    forget_state()
    again = index(traces)
    assert (again.stored, again.copies) == (0, 0)
    assert rows() == (left, titles)
    shutil.rmtree(memory_folder())
    forget_state()
    index(traces)
    assert rows() == (left, titles)
