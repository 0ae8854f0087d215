"""What is stored and published tells nothing of the credentials that were taken out, the ids included."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from funes.commands.curating.decisions import Decision, Decisions, deciding, read_decisions, write_decisions
from funes.commands.get import get
from funes.commands.index import IndexOptions, IndexReport, run_index
from funes.commands.indexing import reading
from funes.commands.indexing.state import read_traces
from funes.commands.opened import OpenMemory
from funes.commands.scrub import scrub
from funes.memory.extents import session_extents
from funes.memory.identity import newest_version, read_identity
from funes.memory.schema import CHUNKS
from funes.paths import funes_home, memory_folder, state_file
from funes.secrets import Redaction, Redactor
from funes.secrets.markers import same_but_markers
from funes.traces import codex, identity
from tests.support.index_process import NoRedactor
from tests.support.secret_traces import FORMATS, GROWING, line

Index = Callable[[Path], IndexReport]
SECRET, OTHER = "Falcon-tulip41!", "Walnut-river77!"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUNES_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FUNES_MODELS", str(tmp_path / "no models"))
    for secret in (SECRET, OTHER):
        assert secret not in (Redactor().redact(line(secret)).text or "")


def index(path: Path) -> IndexReport:
    return run_index(IndexOptions(path=path, budget=0))


@pytest.fixture
def index_as_before(monkeypatch: pytest.MonkeyPatch) -> Index:
    """Index as funes did when names were made of texts as recorded."""

    def run(path: Path) -> IndexReport:
        with monkeypatch.context() as patch:
            patch.setattr(reading.TraceReader, "nameable", lambda self, text: text)
            patch.setattr(codex, "_READER", 0)
            return index(path)

    return run


@pytest.fixture
def index_without_rules(monkeypatch: pytest.MonkeyPatch) -> Index:
    """Index with rules that find nothing."""

    def run(path: Path) -> IndexReport:
        with monkeypatch.context() as patch:
            patch.setattr(reading, "Redactor", NoRedactor)
            patch.setattr(reading, "ruleset_id", lambda: "old")
            return index(path)

    return run


def rows() -> list[dict[str, Any]]:
    import lance

    return lance.dataset(str(memory_folder() / CHUNKS)).to_table().to_pylist()


def texts() -> Counter[str]:
    return Counter(row["text"] for row in rows() if row["seq"] >= 0)


def turns() -> dict[str, int]:
    """Position of each turn by its id."""
    return {row["turn_uuid"]: row["seq"] for row in rows() if row["seq"] >= 0}


def forget_state() -> None:
    for path in funes_home().glob("state.sqlite*"):
        path.unlink()


@pytest.mark.parametrize("name", FORMATS)
def test_two_memories_whose_traces_differ_in_a_password_are_equal(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "traces").mkdir()
    found = []
    for number, secret in enumerate((SECRET, OTHER)):
        monkeypatch.setenv("FUNES_HOME", str(tmp_path / str(number)))
        path = FORMATS[name](tmp_path / "traces", secret, 2)
        index(path)
        found.append(rows())
        assert any("[REDACTED:" in (row["text"] or "") for row in found[-1])
    assert found[0] == found[1]


@pytest.mark.parametrize("again", ["grown", "from the start"])
@pytest.mark.parametrize("name", GROWING)
def test_a_session_from_before_goes_on_without_repeating_itself(
    name: str, again: str, tmp_path: Path, index_as_before: Index
) -> None:
    build = FORMATS[name]
    (tmp_path / "t").mkdir()
    index_as_before(build(tmp_path / "t", SECRET, 1))
    before, kept = rows(), turns()
    if again == "from the start":
        forget_state()
    report = index(build(tmp_path / "t", SECRET, 3))
    now = [row for row in rows() if row["seq"] >= 0]
    old = [row for row in before if row["seq"] >= 0]
    assert now[: len(old)] == old
    assert [row["text"] for row in now[len(old) :]] == ["And the bread number 1?", "And the bread number 2?"]
    assert report.stored == 2
    # The turns follow those from before, under names that no credential takes part in.
    assert [row["seq"] for row in now[len(old) :]] == [max(kept.values()) + 1, max(kept.values()) + 2]
    session = now[0]["session_id"]
    for turn, seq in kept.items():
        assert [view.seq for view in get(OpenMemory(), session, turn).turns] == [seq]
    other = tmp_path / "other"
    other.mkdir()
    fresh = {row["id"] for row in now[len(old) :]}
    assert fresh == ids_of_the_end(build(other, OTHER, 3), tmp_path / "another home")
    assert index(build(tmp_path / "t", SECRET, 3)).stored == 0
    if name.startswith("codex") and again == "grown":
        # The trace was read from its start, since its former state is that of other names; nothing counts twice.
        (trace,) = read_traces(state_file(), read_identity(memory_folder()), newest_version(memory_folder())).values()
        assert (trace.outcome.passages, trace.outcome.known) == (len(now), len(old))


def ids_of_the_end(path: Path, home: Path) -> set[str]:
    """Ids of the last two passages when the trace is indexed by another machine, at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FUNES_HOME", str(home))
        index(path)
        return {row["id"] for row in rows() if row["seq"] >= 0 and row["text"].endswith(("1?", "2?"))}


def test_names_do_not_depend_on_what_the_rules_are_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Renaming(Redactor):
        """Has other names for the same credentials."""

        def redact(self, text: str) -> Redaction:
            found = super().redact(text)
            return Redaction((found.text or "").replace("[REDACTED:", "[REDACTED:other-"), found.counts)

    path = FORMATS["hermes_database"](tmp_path, SECRET, 0)
    index(path)
    names = turns()
    assert any(identity.is_made(name) and not identity.is_plain(name) for name in names)
    monkeypatch.setenv("FUNES_HOME", str(tmp_path / "other"))
    monkeypatch.setattr(reading, "Redactor", Renaming)
    index(path)
    assert any("[REDACTED:other-" in (row["text"] or "") for row in rows())
    assert turns() == names


def test_a_text_is_scanned_once_for_its_name_and_its_storing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scanned: Counter[str] = Counter()

    class Counting(Redactor):
        def redact(self, text: str) -> Redaction:
            scanned[text] += 1
            return super().redact(text)

    monkeypatch.setattr(reading, "Redactor", Counting)
    index(FORMATS["hermes_database"](tmp_path, SECRET, 3))
    index(FORMATS["codex_without_turns"](tmp_path / "c", SECRET, 3))
    said = {text: count for text, count in scanned.items() if "bread number" in text and "\n" not in text}
    assert len(said) == 3
    assert set(said.values()) == {2}  # once in each of the two traces


def names() -> list[tuple[str, str, str, str | None]]:
    return [(row["turn_uuid"], row["parent_uuid"], row["id"], row["text"]) for row in rows() if row["seq"] >= 0]


def index_elsewhere(path: Path, home: Path) -> list[tuple[str, str, str, str | None]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FUNES_HOME", str(home))
        index(path)
        return names()


@pytest.mark.parametrize("earlier", ["named after the text as recorded", "found nothing"])
@pytest.mark.parametrize("name", GROWING)
def test_scrub_gives_turns_the_names_that_a_new_memory_has(
    name: str, earlier: str, tmp_path: Path, index_as_before: Index, index_without_rules: Index
) -> None:
    (tmp_path / "t").mkdir()
    path = FORMATS[name](tmp_path / "t", SECRET, 2)
    (index_as_before if "recorded" in earlier else index_without_rules)(path)
    expected = index_elsewhere(path, tmp_path / "another home")
    renamed = {turn for turn, *_ in names()} - {turn for turn, *_ in expected}
    assert renamed
    dry = scrub(dry=True)
    report = scrub()
    assert report.found is ("nothing" in earlier)
    assert report.renamed == dry.renamed == len(renamed)
    assert sorted(names(), key=str) == sorted(expected, key=str)
    again = scrub()
    assert (again.found, again.renamed) == (False, 0)
    assert index(FORMATS[name](tmp_path / "t", SECRET, 3)).stored == 1
    assert len(texts()) == len(texts().keys())


@pytest.mark.parametrize("name", GROWING)
def test_scrub_names_turns_by_their_place_when_the_trace_is_gone(
    name: str, tmp_path: Path, index_as_before: Index
) -> None:
    (tmp_path / "t").mkdir()
    found = []
    for number, secret in enumerate((SECRET, OTHER)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("FUNES_HOME", str(tmp_path / str(number)))
            path = FORMATS[name](tmp_path / "t", secret, 2)
            index_as_before(path)
            path.unlink()
            before = texts()
            assert scrub().renamed > 0
            assert (scrub().renamed, texts()) == (0, before)
            found.append(names())
    assert found[0] == found[1]


def test_scrub_leaves_the_names_of_a_new_memory_alone(tmp_path: Path) -> None:
    for name in GROWING:
        (tmp_path / name).mkdir()
        path = FORMATS[name](tmp_path / name, SECRET, 2)
        index(path)
        path.unlink()
    before = rows()
    report = scrub()
    assert (report.found, report.renamed) == (False, 0)
    assert rows() == before


def test_a_decision_survives_that_turns_are_renamed(tmp_path: Path, index_as_before: Index) -> None:
    index_as_before(FORMATS["hermes_database"](tmp_path, SECRET, 1))
    session = rows()[0]["session_id"]
    with deciding():
        extent = session_extents(memory_folder(), [session])[session]
        decided = Decisions("acme/shop", "acme/shop", {session: Decision("include", extent.blocks, extent.digest)})
        write_decisions(decided, {})
    assert scrub().renamed
    now = session_extents(memory_folder(), [session])[session]
    assert now.digest != extent.digest
    assert read_decisions("acme/shop").sessions[session] == Decision("include", now.blocks, now.digest)


@pytest.mark.parametrize("name", GROWING)
def test_scrub_knows_turns_by_what_they_say_when_rules_find_more(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Fewer(Redactor):
        """Finds one of two passwords."""

        def redact(self, text: str) -> Redaction:
            found = text.replace(SECRET, "[REDACTED:old]")
            return Redaction(found, Counter(old=text.count(SECRET)))

    (tmp_path / "t").mkdir()
    path = FORMATS[name](tmp_path / "t", f"{SECRET}\nMAIL_PASSWORD={OTHER}", 2)
    with monkeypatch.context() as patch:
        patch.setattr(reading, "Redactor", Fewer)
        index(path)
    assert any(not identity.is_plain(turn) for turn in turns())
    expected = index_elsewhere(path, tmp_path / "another home")
    assert {turn for turn, *_ in names()} != {turn for turn, *_ in expected}
    assert scrub().renamed
    now, new = (sorted(same_but_markers(str(row)) for row in found) for found in (names(), expected))
    assert now == new


@pytest.mark.parametrize("name", GROWING)
def test_a_trace_that_comes_back_brings_no_turn_twice(name: str, tmp_path: Path, index_as_before: Index) -> None:
    (tmp_path / "t").mkdir()
    path = FORMATS[name](tmp_path / "t", SECRET, 2)
    index_as_before(path)
    path.unlink()
    assert scrub().renamed
    before = rows()
    assert any(row["turn_uuid"] == identity.place_name(row["session_id"], row["seq"]) for row in before)
    report = index(FORMATS[name](tmp_path / "t", SECRET, 3))
    now = rows()
    assert report.stored == 1
    assert [row for row in now if row in before] == before
    assert [row["text"] for row in now if row["seq"] >= 0 and row not in before] == ["And the bread number 2?"]
    forget_state()
    assert index(path).stored == 0
