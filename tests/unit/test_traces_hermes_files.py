"""Hermes's `state.db` as a file: live, without its sidecars, in a folder that cannot be written, damaged, continued."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from funes.traces import sqlite_files
from funes.traces.detect import read_head
from funes.traces.hermes import HermesSource
from funes.traces.model import ReadReport
from funes.traces.sqlite_files import UnreadableError, open_for_reading
from tests.support.hermes import HermesDatabase, read, turns


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def filled(path: Path, *, sessions: int = 1, messages: int = 3, **options: bool) -> HermesDatabase:
    database = HermesDatabase(path, **options)
    for session in range(sessions):
        database.session(f"s{session}")
        for number in range(messages):
            database.add(f"s{session}", "user", f"message {number} of session {session}")
    return database


def way(path: Path) -> str:
    with open_for_reading(path) as (_, found):
        return found


# Opening


def test_a_live_database_is_read_in_place_with_its_log(tmp_path: Path) -> None:
    database = filled(tmp_path / "state.db")
    before = names(tmp_path)
    assert before == {"state.db", "state.db-wal", "state.db-shm"}
    assert way(database.path) == "in place"
    assert len(turns(database.path)) == 3
    assert names(tmp_path) == before
    database.add("s0", "user", "later")  # the writer is not disturbed
    assert len(turns(database.path)) == 4


def test_a_closed_database_is_read_without_leaving_files(tmp_path: Path) -> None:
    path = filled(tmp_path / "state.db").close()
    assert names(tmp_path) == {"state.db"}
    assert way(path) == "immutable"
    assert len(turns(path)) == 3
    assert names(tmp_path) == {"state.db"}


def test_a_log_without_its_index_is_read_from_a_copy(tmp_path: Path) -> None:
    database = filled(tmp_path / "live" / "state.db")
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("state.db", "state.db-wal"):
        shutil.copy(database.path.with_name(name), copy / name)
    assert way(copy / "state.db") == "copy"
    assert len(turns(copy / "state.db")) == 3
    assert names(copy) == {"state.db", "state.db-wal"}


def test_the_log_of_a_linked_database_is_found(tmp_path: Path) -> None:
    database = filled(tmp_path / "real" / "state.db")
    link = tmp_path / "link.db"
    link.symlink_to(database.path)
    source = HermesSource()
    before = source.stamp(link)
    database.add("s0", "user", "later")
    assert source.stamp(link) != before
    assert len(turns(link)) == 4


def test_a_copy_without_its_log_says_so(tmp_path: Path) -> None:
    database = filled(tmp_path / "live" / "state.db")
    copy = tmp_path / "state.db"
    shutil.copy(database.path, copy)
    assert copy.stat().st_size == 4096
    assert HermesSource().matches(read_head(copy))
    assert read(copy)[1].failed == "it has no tables; it was copied without its state.db-wal, or never written to"


def test_a_database_without_a_log_mode_is_read_in_place(tmp_path: Path) -> None:
    database = filled(tmp_path / "state.db", wal=False)
    assert way(database.path) == "in place"
    assert len(turns(database.path)) == 3
    assert names(tmp_path) == {"state.db"}


def test_a_transaction_that_a_crash_left_is_rolled_back_in_a_copy(tmp_path: Path) -> None:
    database = filled(tmp_path / "live" / "state.db", wal=False)
    database.execute("PRAGMA cache_size=1")
    database.execute("BEGIN")
    for number in range(200):
        database.add("s0", "user", "half " * 200 + str(number))
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for name in ("state.db", "state.db-journal"):
        shutil.copy(database.path.with_name(name), crashed / name)
    assert (crashed / "state.db-journal").stat().st_size > 0
    assert len(turns(crashed / "state.db")) == 3


def test_nothing_is_read_while_another_program_holds_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_files, "BUSY_SECONDS", 0.01)
    database = filled(tmp_path / "state.db", wal=False)
    database.execute("BEGIN EXCLUSIVE")
    found, report = read(database.path)
    assert found == []
    assert report.failed == "another program has locked it; the next run reads it"
    assert report.resume is None


@pytest.mark.parametrize("live", [True, False])
def test_a_folder_that_cannot_be_written_is_no_obstacle(tmp_path: Path, live: bool) -> None:
    folder = tmp_path / "home"
    database = filled(folder / "state.db")
    if not live:
        database.close()
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)
    try:
        with without_rights(tmp_path):
            assert not os.access(folder, os.W_OK, effective_ids=True)
            assert len(turns(database.path)) == 3
    finally:
        folder.chmod(0o755)


@contextmanager
def without_rights(folder: Path) -> Iterator[None]:
    """Act as a user for whom not every folder is writable, as they all are for root."""
    if os.geteuid() != 0:
        yield
        return
    for parent in (folder, *folder.parents):
        if parent.is_relative_to(tempfile.gettempdir()) and parent.stat().st_uid == 0:
            parent.chmod(parent.stat().st_mode | 0o011)
    os.setegid(65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


# Damage


@pytest.mark.parametrize(
    ("content", "failed"),
    [
        (b"", "it is empty"),
        (b"not a database at all" * 10, "it is not an SQLite database"),
        (b"SQLite format 3\x00" + b"\xff" * 4096, "the database is damaged (file is not a database)"),
        (b"SQLite format 3\x00", "the database is damaged (file is not a database)"),
    ],
)
def test_a_file_that_is_no_database_fails_in_one_sentence(tmp_path: Path, content: bytes, failed: str) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(content)
    found, report = read(path)
    assert found == []
    assert report.failed == failed
    assert HermesSource().matches(read_head(path))


def test_a_file_that_is_not_there_fails_in_one_sentence(tmp_path: Path) -> None:
    report = read(tmp_path / "state.db")[1]
    assert report.failed == "it cannot be opened: No such file or directory"
    assert "directory" in read(tmp_path)[1].failed


def test_another_programs_database_is_not_hermess(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE sessions (id, user)")
    connection.execute("CREATE TABLE messages (id, body)")
    connection.close()
    assert not HermesSource().matches(read_head(path))
    assert "not one of Hermes's" in read(path)[1].failed


def damaged(path: Path, fraction: float, size: int = 4096) -> None:
    """Overwrite the pages in the middle of a database's messages."""
    data = bytearray(path.read_bytes())
    start = int(len(data) * fraction) // size * size
    data[start : start + size] = b"\xa5" * size
    path.write_bytes(data)


@pytest.mark.parametrize("index", [True, False])
def test_what_can_be_read_of_a_damaged_database_is_read(tmp_path: Path, index: bool) -> None:
    path = filled(tmp_path / "state.db", messages=2000, index=index).close()
    damaged(path, 0.3)
    found, report = read(path)
    assert 1500 < len(found) < 2000
    assert found[0][1].blocks[0].text == "message 0 of session 0"
    assert found[-1][1].blocks[0].text == "message 1999 of session 0"
    assert len(report.damaged) >= 1
    assert "cannot be read (database disk image is malformed)" in report.damaged[0]
    assert report.failed == ""
    assert "s0" not in (report.resume or {"sessions": {}})["sessions"]


def test_a_broken_entry_of_the_schema_does_not_hide_the_messages(tmp_path: Path) -> None:
    database = filled(tmp_path / "state.db")
    database.execute("CREATE TABLE search (x)")
    database.execute("PRAGMA writable_schema=ON")
    database.execute("UPDATE sqlite_master SET sql = 'CREATE TABL search' WHERE name = 'search'")
    path = database.close()
    assert len(turns(path)) == 3


def test_a_truncated_database_gives_its_beginning(tmp_path: Path) -> None:
    path = filled(tmp_path / "state.db", messages=2000, index=False).close()
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    found, report = read(path)
    assert report.failed or (found and report.damaged)


def test_versions_before_the_flags_and_the_workspace_are_read(tmp_path: Path) -> None:
    database = HermesDatabase(tmp_path / "state.db", legacy=True)
    database.session("s1", end_reason="compression")
    database.add("s1", "assistant", "ok", reasoning="because")
    ((session, turn),), report = read(database.path)
    assert session.workdir == ""
    assert [block.text for block in turn.blocks] == ["because", "ok"]
    assert report.damaged == []


# Change detection and continuing


def test_the_stamp_follows_the_log(tmp_path: Path) -> None:
    database = filled(tmp_path / "state.db")
    source = HermesSource()
    before, size = source.stamp(database.path), database.path.stat()
    assert source.stamp(database.path) == before
    database.add("s0", "user", "one more")
    assert database.path.stat() == size
    assert source.stamp(database.path) != before


def test_only_sessions_that_changed_are_read_again(tmp_path: Path) -> None:
    database = filled(tmp_path / "state.db", sessions=3)
    first = read(database.path)[1].resume
    assert read(database.path, first)[0] == []
    database.add("s1", "user", "one more")
    found, report = read(database.path, first)
    assert {session.id for session, _ in found} == {"s1"}
    assert len(found) == 4
    database.execute("UPDATE sessions SET title = 'Named' WHERE id = 's2'")
    found, report = read(database.path, report.resume)
    assert {(session.id, session.title) for session, _ in found} == {("s2", "Named")}
    assert read(database.path, report.resume)[0] == []


def test_rewritten_sessions_are_read_again(tmp_path: Path) -> None:
    database = filled(tmp_path / "state.db")
    resume = read(database.path)[1].resume
    database.replace("s0", [{"role": "user", "content": f"message {number} of session 0"} for number in range(3)])
    assert len(read(database.path, resume)[0]) == 3


@pytest.mark.parametrize("resume", [{}, {"reader": 0, "sessions": {}}, {"reader": 1}, {"reader": 1, "sessions": 3}])
def test_a_state_of_another_version_is_ignored(tmp_path: Path, resume: dict[str, object]) -> None:
    assert len(read(filled(tmp_path / "state.db").path, resume)[0]) == 3


def test_a_session_that_could_not_be_read_whole_is_tried_again(tmp_path: Path) -> None:
    database = filled(tmp_path / "state.db", sessions=2)
    database.add("s1", "assistant", "hm", tool_calls="[{")
    resume = read(database.path)[1].resume
    assert resume is not None
    assert set(resume["sessions"]) == {"s0"}


def test_a_database_that_comes_alive_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    path = filled(tmp_path / "state.db", messages=100).close()
    report = ReadReport()
    stream = HermesSource().read(path, report)
    next(stream)
    writer = sqlite3.connect(path)
    writer.execute("UPDATE sessions SET title = 'x'")
    writer.commit()
    assert len(list(stream)) == 99
    writer.close()
    assert report.resume is None
    assert report.damaged == ["Hermes wrote to the database while it was read; the next run reads it again"]


def test_memory_stays_bounded_by_a_few_messages(tmp_path: Path) -> None:
    database = HermesDatabase(tmp_path / "state.db", wal=False)
    database.session("s1")
    for number in range(400):
        database.add("s1", "tool", f"{number} " + "x" * 200_000)
    tracemalloc.start()
    count = sum(1 for _ in HermesSource().read(database.path, ReadReport()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 400
    assert peak < 30_000_000  # of 80 MB


# Where the files are


def test_the_files_of_all_profiles_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    filled(tmp_path / "state.db").close()
    filled(tmp_path / "profiles" / "coder" / "state.db").close()
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions" / "20251130_1.jsonl").touch()
    (tmp_path / "sessions" / "request_dump_1.json").touch()
    (tmp_path / "sessions" / "session_1.json").touch()
    (tmp_path / "profiles" / "old" / "sessions").mkdir(parents=True)
    (tmp_path / "profiles" / "old" / "sessions" / "session_2.json").touch()
    source = HermesSource()
    (root,) = source.roots()
    assert root == tmp_path
    assert [path.relative_to(tmp_path).as_posix() for path in source.files(root)] == [
        "state.db",
        "sessions/20251130_1.jsonl",
        "profiles/coder/state.db",
        "profiles/old/sessions/session_2.json",
    ]


def test_the_default_home_is_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HERMES_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert HermesSource().roots() == [tmp_path / ".hermes"]
    assert list(HermesSource().files(tmp_path / ".hermes")) == []


def test_a_file_whose_name_needs_quoting_is_opened(tmp_path: Path) -> None:
    path = filled(tmp_path / "a b?c#d%20" / "state.db").close()
    assert len(turns(path)) == 3
    with pytest.raises(UnreadableError), open_for_reading(tmp_path / "none.db"):
        pass
