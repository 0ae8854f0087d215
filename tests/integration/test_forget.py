"""Forgotten sessions are gone from every file, stay out, and come back when that is undone."""

from __future__ import annotations

import os
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from funes import hook
from funes.commands.curation import Curation
from funes.commands.forget import Wanted, forget, undo
from funes.commands.index import IndexOptions, IndexReport, run_index
from funes.commands.indexing.state import IndexState
from funes.commands.opened import OpenMemory
from funes.commands.publishing.ledger import Ledger
from funes.commands.status import status
from funes.commands.tombstones import read_tombstones, tombstones_file
from funes.errors import CorruptMemoryError, FunesError
from funes.memory.filters import Filter
from funes.memory.identity import unfinished_rewrite
from funes.memory.reader import MemoryReader
from funes.memory.rewriting import MemoryRewriter
from funes.memory.schema import CHUNKS
from funes.memory.vector_store import VectorWriter
from funes.paths import funes_home, memory_folder, state_file
from tests.support.claude_sessions import ClaudeSession, talk
from tests.support.disk import files_with
from tests.support.hermes import HermesDatabase


@pytest.fixture
def projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FUNES_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FUNES_MODELS", str(tmp_path / "no models"))
    folder = tmp_path / "claude" / "projects"
    folder.mkdir(parents=True)
    return folder


def index(path: Path) -> IndexReport:
    return run_index(IndexOptions(path=path, budget=0))


def stored() -> set[str]:
    return {session.id for session in MemoryReader.open().sessions()}


def embed_everything() -> None:
    with VectorWriter(memory_folder(), "m") as writer:
        rows = writer.passages(writer.waiting().places)
        dense = np.full((rows.num_rows, 384), 384**-0.5, np.float32)
        writer.append(rows, dense, [None] * rows.num_rows, [np.array([7], np.uint16)] * rows.num_rows)


def two_sessions(projects: Path) -> tuple[ClaudeSession, ClaudeSession]:
    cache, parser = ClaudeSession(projects, "cache"), ClaudeSession(projects, "parser", cwd="/home/dev/api")
    talk(cache, 3, "cachequokka")
    cache.title("About the cachequokka")
    talk(parser, 2, "parser")
    return cache, parser


def test_a_dry_run_changes_nothing(projects: Path) -> None:
    cache, _ = two_sessions(projects)
    index(projects)
    before = {path: path.stat().st_mtime_ns for path in memory_folder().rglob("*") if path.is_file()}
    report = forget(Wanted(sessions=(cache.id[:8],)), do=False)
    assert [session.id for session in report.sessions] == [cache.id]
    assert (report.done, report.kept) == (False, 0)
    assert report.passages == len(MemoryReader.open().session_chunks(cache.id))
    after = {path: path.stat().st_mtime_ns for path in memory_folder().rglob("*") if path.is_file()}
    assert before == after
    assert not tombstones_file().exists()


def test_a_forgotten_session_is_gone_from_every_file(projects: Path) -> None:
    cache, parser = two_sessions(projects)
    index(projects)
    embed_everything()
    assert files_with(funes_home(), "cachequokka")
    report = forget(Wanted(sessions=(cache.id,)), do=True)
    assert report.done
    assert stored() == {parser.id}
    assert files_with(funes_home(), "cachequokka") == []
    assert files_with(funes_home(), cache.id) == ["forgotten.txt", "state.sqlite"]
    reader = MemoryReader.open()
    assert reader.words("cachequokka", Filter(), 5) == []
    assert reader.statistics().embedded == len(reader.session_chunks(parser.id))
    assert reader.statistics().waiting == 0


def test_the_next_runs_leave_it_out(projects: Path) -> None:
    cache, parser = two_sessions(projects)
    index(projects)
    forget(Wanted(sessions=(cache.id,)), do=True)
    report = index(projects)
    assert (report.read, report.stored) == (0, 0)
    assert report.waiting == len(MemoryReader.open().session_chunks(parser.id))
    totals = status(OpenMemory()).traces
    assert totals is not None
    assert totals.skipped["forgotten session"] == 1
    assert totals.parsed == totals.stored == len(MemoryReader.open().session_chunks(parser.id))
    cache.prompt("One more word about the cachequokka.")
    for again in range(3):
        report = index(projects)
        assert report.stored == 0, again
    assert stored() == {parser.id}
    assert files_with(funes_home(), "cachequokka") == []
    totals = status(OpenMemory()).traces
    assert totals is not None
    assert totals.skipped["forgotten session"] == 1


def test_a_rebuilt_memory_leaves_it_out_too(projects: Path) -> None:
    cache, parser = two_sessions(projects)
    index(projects)
    forget(Wanted(sessions=(cache.id,)), do=True)
    shutil.rmtree(memory_folder())
    for path in funes_home().glob("state.sqlite*"):
        path.unlink()
    report = index(projects)
    assert report.skipped["forgotten session"] == 1
    assert stored() == {parser.id}


def test_undoing_brings_it_back(projects: Path) -> None:
    cache, parser = two_sessions(projects)
    first = index(projects)
    before = [chunk.id for chunk in MemoryReader.open().session_chunks(cache.id)]
    forget(Wanted(sessions=(cache.id,)), do=True)
    index(projects)
    assert undo([cache.id[:6]]) == [cache.id]
    assert not tombstones_file().exists()
    report = index(projects)
    assert stored() == {cache.id, parser.id}
    assert [chunk.id for chunk in MemoryReader.open().session_chunks(cache.id)] == before
    totals = status(OpenMemory()).traces
    assert totals is not None
    assert totals.skipped.get("forgotten session") is None
    assert totals.stored == first.stored
    assert report.read == 1


def test_all_can_be_undone(projects: Path) -> None:
    cache, parser = two_sessions(projects)
    index(projects)
    forget(Wanted(sessions=(cache.id, parser.id)), do=True)
    assert stored() == set()
    with pytest.raises(FunesError, match="No forgotten session begins with"):
        undo(["nothing"])
    assert sorted(undo(["all"])) == sorted([cache.id, parser.id])
    index(projects)
    assert stored() == {cache.id, parser.id}


def test_a_shared_passage_moves_to_the_session_that_stays(projects: Path) -> None:
    cache, _ = two_sessions(projects)
    fork = ClaudeSession(projects, "fork")
    for line in cache.path.read_text().splitlines():
        with fork.path.open("a") as stream:
            stream.write(line.replace(cache.id, fork.id) + "\n")
    os.utime(cache.path, (1, 1))
    fork.last, fork.count, fork.clock = cache.last, 100, cache.clock
    fork.prompt("And only here: the wombat.")
    index(projects)
    embed_everything()
    reader = MemoryReader.open()
    texts = [chunk.text for chunk in reader.session_chunks(fork.id)]
    ids = [chunk.id for chunk in reader.session_chunks(fork.id)]
    owner = reader.rows(ids)[ids[0]].session_id
    other = ({cache.id, fork.id} - {owner}).pop()
    own = [chunk.text for chunk in reader.session_chunks(other)]
    copies = len(reader.copies(other))
    assert copies > 10
    dry = forget(Wanted(sessions=(owner,)), do=False)
    report = forget(Wanted(sessions=(owner,)), do=True)
    assert (dry.kept, dry.passages) == (report.kept, report.passages)
    assert report.kept == copies
    reader = MemoryReader.open()
    assert [chunk.text for chunk in reader.session_chunks(other)] == own
    assert set(own) <= set(texts)
    assert reader.copies(other) == []
    assert {chunk.session_id for chunk in reader.rows(ids).values()} == {other}
    assert {chunk.workdir for chunk in reader.rows(ids).values()} == {"/home/dev/shop"}
    vector = np.full(384, 384**-0.5, np.float32)
    assert {identifier for identifier, _ in reader.nearest(vector, Filter(session=other), 500)} == set(
        reader.rows([chunk.id for chunk in reader.session_chunks(other)])
    )
    totals = status(OpenMemory()).traces
    assert totals is not None
    assert totals.copies == 0
    assert totals.stored == reader.statistics().passages


def test_conditions_choose_sessions(projects: Path) -> None:
    old = ClaudeSession(projects, "old", cwd="/home/dev/api/sub", start=datetime(2025, 1, 1, tzinfo=UTC))
    talk(old, 1, "old")
    cache, parser = two_sessions(projects)
    index(projects)

    def chosen(**conditions: object) -> set[str]:
        return {session.id for session in forget(Wanted(**conditions), do=False).sessions}  # type: ignore[arg-type]

    assert chosen(workdir="/home/dev/api") == {old.id, parser.id}
    assert chosen(workdir="/home/dev/ap") == set()
    assert chosen(before=datetime(2026, 1, 1, tzinfo=UTC)) == {old.id}
    assert chosen(before=datetime(2026, 1, 1, tzinfo=UTC), workdir="/home/dev/shop") == set()
    (funes_home() / "ignore").write_text("shop\n")
    assert chosen(ignored=True) == {cache.id}
    for wanted in (Wanted(), Wanted(sessions=(old.id,), ignored=True)):
        with pytest.raises(FunesError, match="Name either"):
            forget(wanted, do=False)
    with pytest.raises(FunesError, match="No session begins with"):
        forget(Wanted(sessions=("nothing",)), do=False)


def test_a_repository_is_chosen_by_its_name(projects: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / ".git").mkdir(parents=True)
    (work / ".git" / "config").write_text('[remote "origin"]\nurl = https://example.org/acme/api.git\n')
    session = ClaudeSession(projects, "in a repository", cwd=str(work))
    talk(session, 1, "topic")
    two_sessions(projects)
    index(projects)
    for repo in ("acme/api", "Acme/API", "api"):
        assert [item.id for item in forget(Wanted(repo=repo), do=False).sessions] == [session.id]
    assert forget(Wanted(repo="pi"), do=False).sessions == []


def test_sub_agents_go_with_their_session(projects: Path) -> None:
    cache, parser = two_sessions(projects)
    folder = cache.path.parent / cache.id / "subagents"
    folder.mkdir(parents=True)
    helper = ClaudeSession(projects, "helper")
    helper.prompt("Look for the callers of the cachequokka.")
    helper.answer("There are none.")
    text = helper.path.read_text().replace(helper.id, cache.id).replace('"isSidechain": false', '"isSidechain": true')
    text = text.replace('"userType"', '"agentId": "abc123", "userType"')
    helper.path.unlink()
    (folder / "agent-abc123.jsonl").write_text(text)
    index(projects)
    assert "agent-abc123" in stored()
    report = forget(Wanted(sessions=(cache.id,)), do=True)
    assert {session.id for session in report.sessions} == {cache.id, "agent-abc123"}
    assert files_with(funes_home(), "cachequokka") == []
    later = text.replace("abc123", "def456").replace("callers", "more callers")
    (folder / "agent-def456.jsonl").write_text(later)
    index(projects)
    assert stored() == {parser.id}


def test_decisions_and_waiting_events_do_not_quote_it(projects: Path, tmp_path: Path) -> None:
    work = tmp_path / "shop"
    (work / ".git").mkdir(parents=True)
    (work / ".git" / "config").write_text('[remote "origin"]\nurl = https://example.org/acme/shop.git\n')
    cache = ClaudeSession(projects, "cache", cwd=str(work))
    talk(cache, 1, "cachequokka")
    other = ClaudeSession(projects, "other", cwd=str(work))
    talk(other, 1, "wombat")
    index(projects)
    curation = Curation("acme/memory", "acme/shop", MemoryReader.open())
    path = curation.decide(curation.candidates(), {cache.id: "include", other.id: "include"})
    assert "cachequokka" in path.read_text()
    spool = funes_home() / hook.FOLDER
    spool.mkdir(parents=True)
    head = f"time {time.time()}\nharness claude\nevent Stop\n\n"
    payload = f'{{"session_id": "{cache.id}", "last_assistant_message": "the cachequokka"}}'
    (spool / f"0001{hook.SUFFIX}").write_text(head + payload)
    (spool / f"0002{hook.SUFFIX}").write_text(head + payload.replace(cache.id, other.id).replace("cachequokka", "x"))
    forget(Wanted(sessions=(cache.id,)), do=True)
    assert files_with(funes_home(), "cachequokka") == []
    assert "wombat" in path.read_text()
    assert [item.name for item in spool.glob(f"*{hook.SUFFIX}")] == [f"0002{hook.SUFFIX}"]


@pytest.mark.parametrize("completes", ["index", "forget"])
def test_a_killed_run_can_be_repeated_or_completed(
    projects: Path, monkeypatch: pytest.MonkeyPatch, completes: str
) -> None:
    cache, parser = two_sessions(projects)
    index(projects)
    for step in ("replace", "finish"):
        with monkeypatch.context() as patch:

            def die(*_: object) -> None:
                raise KeyboardInterrupt

            patch.setattr(MemoryRewriter, step, die)
            with pytest.raises(KeyboardInterrupt):
                forget(Wanted(sessions=(cache.id,)), do=True)
        assert list(read_tombstones()) == [cache.id]
    assert stored() == {parser.id}
    assert unfinished_rewrite(memory_folder())
    if completes == "index":
        index(projects)
    else:
        report = forget(Wanted(sessions=(cache.id,)), do=True)
        assert (report.sessions, report.notes) == ([], [f"Session {cache.id} is forgotten already."])
    assert not unfinished_rewrite(memory_folder())
    assert files_with(funes_home(), "cachequokka") == []


def test_what_killed_pushes_left_goes_too(projects: Path) -> None:
    cache, parser = two_sessions(projects)
    index(projects)
    left, running = (Ledger(label) for label in ("acme/memory", "acme/other"))
    for name in (left, running):
        shutil.copytree(memory_folder() / CHUNKS, name.work() / CHUNKS)
    with running.lock(0):
        report = forget(Wanted(sessions=(cache.id,)), do=True)
    assert [note.startswith("A push is running") for note in report.notes] == [True]
    report = forget(Wanted(sessions=(parser.id,)), do=True)
    assert report.notes == []
    assert files_with(funes_home(), "cachequokka") == []
    assert not list((funes_home() / "sharing").glob("*/work"))


def test_the_state_of_an_other_memory_is_left_alone(projects: Path) -> None:
    cache, _ = two_sessions(projects)
    index(projects)
    with IndexState(state_file()) as state:
        state.adopt("another", 0)
    forget(Wanted(sessions=(cache.id,)), do=True)
    with IndexState(state_file()) as state:
        assert state.traces() == {}


@pytest.mark.parametrize("text", ["a b c\n", "\xff"])
def test_a_damaged_list_stops_indexing(projects: Path, text: str) -> None:
    two_sessions(projects)
    tombstones_file().parent.mkdir(parents=True)
    tombstones_file().write_bytes(text.encode("latin-1"))
    with pytest.raises(FunesError, match=r"forgotten\.txt"):
        index(projects)


def test_the_list_can_be_written_by_hand(projects: Path) -> None:
    cache, parser = two_sessions(projects)
    tombstones_file().parent.mkdir(parents=True)
    tombstones_file().write_text(f"# mine\n{cache.id}\r\n\n")
    index(projects)
    assert stored() == {parser.id}


def test_a_database_of_sessions_is_still_read_on(projects: Path) -> None:
    database = HermesDatabase(projects / "state.db")
    for name in ("keep", "drop"):
        database.session(name, cwd="/home/dev/shop", title=f"About {name}")
        database.add(name, "user", f"The {name}quokka is here.")
    index(projects)
    forget(Wanted(sessions=("drop",)), do=True)
    assert index(projects).read == 0
    for number in range(3):
        database.add("drop", "user", f"More of the dropquokka, {number}.")
        database.add("keep", "user", f"More of the keepquokka, {number}.")
        assert index(projects).stored == 1
    assert stored() == {"keep"}
    assert files_with(memory_folder(), "dropquokka") == []
    totals = status(OpenMemory()).traces
    assert totals is not None
    assert (totals.skipped["forgotten session"], totals.stored) == (1, 4)
    undo(["drop"])
    assert index(projects).stored == 4
    assert stored() == {"keep", "drop"}


def test_a_memory_of_another_program_is_refused(projects: Path) -> None:
    import lance

    two_sessions(projects)
    index(projects)
    lance.dataset(str(memory_folder() / CHUNKS)).drop_columns(["ruleset"])
    with pytest.raises(CorruptMemoryError, match="another program"):
        forget(Wanted(workdir="/home/dev/shop"), do=True)
