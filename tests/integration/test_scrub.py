"""What the current rules find in a memory that was made with older ones leaves it for good."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from funes.commands.curation import Curation
from funes.commands.index import IndexOptions, IndexReport, run_index
from funes.commands.indexing import reading
from funes.commands.opened import OpenMemory
from funes.commands.scrub import ScrubReport, scrub
from funes.commands.status import status
from funes.errors import LockedError, NoMemoryError
from funes.memory.filters import Filter
from funes.memory.identity import newest_version
from funes.memory.lock import WriterLock
from funes.memory.reader import MemoryReader
from funes.memory.rewriting import MemoryRewriter
from funes.memory.schema import CHUNKS, VECTORS
from funes.memory.store import MemoryWriter
from funes.paths import funes_home, memory_folder
from funes.secrets import Redactor, ruleset_id
from tests.integration.test_forget import embed_everything
from tests.support.claude_sessions import ClaudeSession, talk
from tests.support.disk import files_with
from tests.support.index_process import NoRedactor
from tests.support.secret_samples import Inventor

TOKEN = Inventor(91).github()
OTHER = Inventor(92).github()
OUTPUT = "\n".join(f"line {number}: step {number} finished" for number in range(200))
TORN = OUTPUT[:1190] + f" token={TOKEN} " + OUTPUT[1190:]
"""A tool's output in which the token stands across the border of two chunks."""

Index = Callable[..., IndexReport]


@pytest.fixture
def projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FUNES_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FUNES_MODELS", str(tmp_path / "no models"))
    if Redactor().missing_engine:
        pytest.skip(Redactor().missing_engine)
    folder = tmp_path / "claude" / "projects"
    folder.mkdir(parents=True)
    return folder


def index(path: Path) -> IndexReport:
    return run_index(IndexOptions(path=path, budget=0))


@pytest.fixture
def index_without_rules(monkeypatch: pytest.MonkeyPatch) -> Index:
    """Index as a version of funes did that found nothing."""

    def run(path: Path) -> IndexReport:
        with monkeypatch.context() as patch:
            patch.setattr(reading, "Redactor", NoRedactor)
            patch.setattr(reading, "ruleset_id", lambda: "old")
            return index(path)

    return run


def places() -> list[tuple[str, str, int, int]]:
    """Every row's place, after a check that nothing is stored twice."""
    import lance

    rows = lance.dataset(str(memory_folder() / CHUNKS)).to_table().to_pylist()
    found = [
        (row["session_id"], row["turn_uuid"], row["block_idx"], row["split_idx"]) for row in rows if row["seq"] >= 0
    ]
    assert len(found) == len(set(found))
    stored = [row["id"] for row in rows if row["seq"] >= 0 and row["offset"] >= 0]
    assert len(stored) == len(set(stored))
    assert {row["id"] for row in rows if row["seq"] >= 0} == set(stored)
    return sorted(found)


def rulesets() -> set[str]:
    import lance

    return set(lance.dataset(str(memory_folder() / CHUNKS)).to_table(columns=["ruleset"]).column(0).to_pylist())


def texts(session: ClaudeSession) -> list[str]:
    return [chunk.text or "" for chunk in MemoryReader.open().session_chunks(session.id)]


def plant(projects: Path, name: str = "deploy", cwd: str = "/home/dev/shop") -> ClaudeSession:
    session = ClaudeSession(projects, name, cwd=cwd)
    session.prompt(f"Deploy it with {TOKEN} please.")
    session.answer(f"I must not repeat {OTHER}.", "thinking")
    session.answer("The deployment is done.")
    session.tool("Bash", {"command": "deploy"}, TORN)
    session.title(f"Deploying with {TOKEN}")
    talk(session, 2, "cache")
    return session


def forget_state() -> None:
    for path in funes_home().glob("state.sqlite*"):
        path.unlink()


def assert_gone() -> None:
    for secret in (TOKEN, OTHER, TOKEN[4:24]):
        assert files_with(funes_home(), secret) == []


def test_credentials_leave_every_file(projects: Path, index_without_rules: Index) -> None:
    session = plant(projects)
    index_without_rules(projects)
    embed_everything()
    assert {place.split("/")[0] for place in files_with(funes_home(), TOKEN)} >= {"memory"}
    before = places()
    report = scrub()
    assert report.done
    assert (report.redacted, report.dropped, report.titles) == (3, 0, 1)
    assert sum(report.counts.values()) == 4
    assert report.sessions == {session.id}
    assert_gone()
    found = texts(session)
    assert found[0].startswith("Deploy it with [REDACTED:")
    assert found[1].startswith("I must not repeat [REDACTED:")
    assert "[REDACTED:" in MemoryReader.open().sessions()[0].title
    assert len(places()) in (len(before), len(before) - 1)
    assert rulesets() == {ruleset_id()}
    reader = MemoryReader.open()
    assert [text for text in found if "step 199" in text]
    assert len(reader.words("repeat", Filter(), 5)) == 1
    statistics = reader.statistics()
    assert statistics.embedded + statistics.waiting == statistics.passages
    assert statistics.waiting == report.waiting > 0


def test_credentials_in_names_leave_every_file(projects: Path, index_without_rules: Index) -> None:
    session = ClaudeSession(projects, "named", cwd=f"/home/dev/{TOKEN}")
    session.path = session.path.rename(projects / session.path.name)  # its path is not ours to change
    session.prompt("Say something clean.")
    session.write({"type": "custom-title", "customTitle": f"Clean {TOKEN}", "sessionId": session.id})
    session.tool(f"mcp__{OTHER}", {"command": "deploy"}, f"Using {OTHER} now.")
    index_without_rules(projects)
    embed_everything()
    vectors = MemoryReader.open().statistics().embedded
    assert files_with(funes_home(), TOKEN)
    dry = scrub(dry=True)
    report = scrub()
    assert (
        (report.names, report.titles, report.sessions) == (dry.names, dry.titles, dry.sessions) == (2, 1, {session.id})
    )
    assert_gone()
    (stored,) = MemoryReader.open().sessions()
    assert stored.workdir.startswith("/home/dev/[REDACTED:")
    assert stored.title.startswith("Clean [REDACTED:")
    assert MemoryReader.open().statistics().embedded == vectors - report.waiting
    assert not scrub().found


def test_indexing_redacts_names(projects: Path, tmp_path: Path) -> None:
    session = ClaudeSession(projects, "named", cwd=f"/home/dev/{TOKEN}")
    session.path = session.path.rename(projects / session.path.name)
    session.prompt("Say something clean.")
    session.tool(f"mcp__{OTHER}", {"command": "deploy"}, "Fine.")
    report = index(projects)
    assert sum(report.redactions.values()) == 2
    assert_gone()
    assert not scrub().found


def test_another_run_finds_nothing_to_do(projects: Path, index_without_rules: Index) -> None:
    plant(projects)
    index_without_rules(projects)
    scrub()
    versions = [newest_version(memory_folder(), table) for table in (CHUNKS, VECTORS)]
    for stale in (True, False):
        report = scrub(stale=stale)
        assert (report.found, report.restamped) == (False, 0)
        assert (report.scanned == 0) is stale
    assert [newest_version(memory_folder(), table) for table in (CHUNKS, VECTORS)] == versions


def test_a_dry_run_changes_nothing(projects: Path, index_without_rules: Index) -> None:
    plant(projects)
    index_without_rules(projects)
    before = newest_version(memory_folder())
    with WriterLock(memory_folder(), doing="indexing"):
        report = scrub(dry=True)
        with pytest.raises(LockedError, match="indexing"):
            scrub()
    assert not report.done
    assert (report.redacted, report.titles) == (3, 1)
    assert newest_version(memory_folder()) == before
    assert rulesets() == {"old"}


def test_stale_leaves_alone_what_the_current_rules_scanned(
    projects: Path, index_without_rules: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = ClaudeSession(projects, "old")
    old.prompt("This is clean.")
    index_without_rules(projects)
    new = ClaudeSession(projects, "new")
    new.prompt(f"The token is {TOKEN}.")
    with monkeypatch.context() as patch:
        patch.setattr(reading, "Redactor", NoRedactor)  # a fault: stamped as scanned, but not clean
        index(projects)
    report = scrub(stale=True)
    assert (report.scanned, report.found, report.restamped) == (1, False, 2)  # a passage and a title
    assert rulesets() == {ruleset_id()}
    assert files_with(funes_home(), TOKEN)
    assert scrub().redacted == 1
    assert_gone()


def test_indexing_the_trace_again_stores_nothing_twice(projects: Path, index_without_rules: Index) -> None:
    session = plant(projects)
    index_without_rules(projects)
    scrub()
    before, ids = places(), [chunk.id for chunk in MemoryReader.open().session_chunks(session.id)]
    os.utime(session.path, (1, 1))
    report = index(projects)
    assert (report.read, report.stored, report.copies) == (1, 0, 0)
    assert places() == before
    assert_gone()
    forget_state()
    index(projects)
    assert [chunk.id for chunk in MemoryReader.open().session_chunks(session.id)] == ids
    assert_gone()
    session.prompt("One more turn.")
    assert index(projects).stored == 1


def test_ids_are_those_that_a_first_run_gives(projects: Path, index_without_rules: Index, tmp_path: Path) -> None:
    session = plant(projects)
    index_without_rules(projects)
    scrub()
    scrubbed = [(chunk.id, chunk.text) for chunk in MemoryReader.open().session_chunks(session.id)]
    os.environ["FUNES_HOME"] = str(tmp_path / "other home")
    index(projects)
    assert [(chunk.id, chunk.text) for chunk in MemoryReader.open().session_chunks(session.id)] == scrubbed


def test_a_trace_that_comes_back_stores_nothing_twice(projects: Path, index_without_rules: Index) -> None:
    session = plant(projects)
    index_without_rules(projects)
    away = session.path.rename(projects / "away")
    assert scrub().redacted == 3
    assert_gone()
    before = places()
    away.rename(session.path)
    os.utime(session.path, (1, 1))
    report = index(projects)
    assert (report.read, report.stored) == (1, 0)
    assert places() == before
    assert_gone()


def test_references_follow(projects: Path, index_without_rules: Index) -> None:
    session = plant(projects)
    fork = ClaudeSession(projects, "fork")
    with fork.path.open("a") as stream:
        stream.write(session.path.read_text().replace(session.id, fork.id))
    fork.last, fork.count, fork.clock = session.last, 100, session.clock
    fork.prompt(f"Only here: {OTHER}")
    index_without_rules(projects)
    reader = MemoryReader.open()
    assert reader.copies(session.id) or reader.copies(fork.id)
    before = places()
    report = scrub()
    assert report.sessions == {session.id, fork.id}
    assert_gone()
    assert abs(len(places()) - len(before)) <= 2
    assert texts(fork)[:-1] == texts(session)
    assert texts(fork)[-1].startswith("Only here: [REDACTED:")
    totals = status(OpenMemory()).traces
    assert totals is not None
    assert totals.stored == MemoryReader.open().statistics().passages
    assert totals.copies == MemoryReader.open().statistics().copies
    for trace in (session, fork):
        os.utime(trace.path, (1, 1))
    assert index(projects).stored == 0
    later = ClaudeSession(projects, "later")
    with later.path.open("a") as stream:
        stream.write(session.path.read_text().replace(session.id, later.id))
    report = index(projects)
    assert report.stored == 0
    assert report.copies == len(texts(session))
    places()


def test_a_redacted_copy_beside_the_block_stays_alone(projects: Path, index_without_rules: Index) -> None:
    session = plant(projects)
    index_without_rules(projects)
    forget_state()
    report = index(projects)  # with the current rules: the redacted blocks are stored beside the former ones
    assert report.stored > len([text for text in texts(session) if "[REDACTED:" in text]) == 3
    scrub()
    assert_gone()
    places()
    found = texts(session)
    assert len([text for text in found if text.startswith("Deploy it with")]) == 1
    assert len([text for text in found if "step 150" in text]) == 1
    forget_state()
    assert index(projects).stored == 0


def test_blocks_that_never_get_clean_are_dropped(
    projects: Path, index_without_rules: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = plant(projects)
    index_without_rules(projects)
    from funes.secrets import redactor

    monkeypatch.setattr(redactor, "splice", lambda text, findings: text)
    report = scrub()
    assert (report.redacted, report.dropped) == (0, 3)
    assert report.counts["block dropped: never clean"] == 4
    assert_gone()
    assert not [text for text in texts(session) if "Deploy it" in text or "step 10" in text]
    assert MemoryReader.open().sessions()[0].title == ""
    totals = status(OpenMemory()).traces
    assert totals is not None
    assert totals.skipped["credentials could not be removed: never clean"] == 3
    assert totals.parsed == totals.stored == MemoryReader.open().statistics().passages


def test_decisions_do_not_quote_credentials(projects: Path, index_without_rules: Index, tmp_path: Path) -> None:
    work = tmp_path / "shop"
    (work / ".git").mkdir(parents=True)
    (work / ".git" / "config").write_text('[remote "origin"]\nurl = https://example.org/acme/shop.git\n')
    session = plant(projects, cwd=str(work))
    index_without_rules(projects)
    curation = Curation("acme/memory", "acme/shop", MemoryReader.open())
    path = curation.decide(curation.candidates(), {session.id: "include"})
    assert TOKEN in path.read_text()
    scrub()
    assert_gone()
    assert Curation("acme/memory", None, MemoryReader.open()).candidates()[0].status == "included"


@pytest.mark.parametrize("step", ["replace", "_follow", "finish"])
def test_a_killed_run_is_completed(
    projects: Path, index_without_rules: Index, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    session = plant(projects)
    index_without_rules(projects)
    embed_everything()
    before = places()

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(MemoryRewriter, step, die)
        with pytest.raises(KeyboardInterrupt):
            scrub()
    assert len(places()) in (len(before), len(before) - 1)
    report = scrub()
    assert report.found is (step == "replace")
    assert_gone()
    assert any(text.startswith("Deploy it with [REDACTED:") for text in texts(session))
    statistics = MemoryReader.open().statistics()
    assert statistics.embedded + statistics.waiting == statistics.passages


def test_only_the_newest_title_is_kept(projects: Path, index_without_rules: Index) -> None:
    session = plant(projects)
    index_without_rules(projects)
    session.title("A harmless title")
    session.prompt("More.")
    index_without_rules(projects)
    report = scrub()
    assert report.titles == 0
    assert_gone()
    assert MemoryReader.open().sessions()[0].title == "A harmless title"


def test_without_a_memory_there_is_nothing_to_scrub(projects: Path) -> None:
    with pytest.raises(NoMemoryError, match="nothing to scrub"):
        scrub()


def test_places_to_continue_from_do_not_quote_credentials(projects: Path) -> None:
    plant(projects)
    index(projects)
    assert_gone()


def test_without_kingfisher_its_stamps_stay(
    projects: Path, index_without_rules: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(projects)
    index_without_rules(projects)
    scrub()
    with MemoryWriter(memory_folder()) as writer:
        assert writer.holds_rows()
    report: ScrubReport
    with monkeypatch.context() as patch:
        patch.setattr("funes.secrets.ruleset_id", lambda: "gap-9")
        patch.setattr("funes.secrets.Redactor", _WithoutKingfisher)
        report = scrub()
    assert report.restamped == 0
    assert report.notes[0] == "weak"
    assert rulesets() == {ruleset_id()}


class _WithoutKingfisher(NoRedactor):
    missing_engine = "weak"
