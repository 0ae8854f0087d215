"""Killed at any moment, an index run has lost nothing stored, and the next one completes it without a repetition."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from funes.errors import LockedError
from funes.memory.filters import Filter
from funes.memory.identity import newest_version
from funes.memory.lock import WriterLock
from funes.memory.reader import MemoryReader
from funes.memory.schema import CHUNKS, VECTORS
from funes.memory.store import MemoryWriter
from tests.support.claude_sessions import ClaudeSession, talk
from tests.support.index_process import EMBEDDED, ENCODING, STORED, hold, kill, outcome, release, start, wait_for

SESSIONS = 6


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crash") / "projects"
    for number in range(SESSIONS):
        session = ClaudeSession(folder, f"s{number}")
        talk(session, 6, f"topic{number}")
        session.tool(
            "Read", {"file": f"{number}.log"}, "".join(f"{number} line {line} of a long log\n" for line in range(300))
        )
        os.utime(session.path, (1e9 + number, 1e9 + number))
    return folder


@pytest.fixture(scope="module")
def expected(projects: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """What an uninterrupted run stores."""
    home = tmp_path_factory.mktemp("whole")
    report = outcome(start(projects, home))
    assert report["embedded"] == report["stored"]
    assert report["waiting"] == 0
    return content(home)


def content(home: Path) -> dict[str, list[Any]]:
    """All rows of both tables, in an order that does not depend on when they were stored."""
    import lance

    chunks = lance.dataset(str(home / "memory" / CHUNKS)).to_table().to_pylist()
    vectors = lance.dataset(str(home / "memory" / VECTORS)).to_table().to_pylist()
    return {
        "chunks": sorted(tuple(str(value) for name, value in row.items() if name != "ruleset") for row in chunks),
        "vectors": sorted((row["id"], str(row["vector"]), row["codes"], row["pieces"]) for row in vectors),
    }


def check_sound(home: Path) -> int:
    """The tables open, hold no row twice, and what is in them is found. Returns the number of passages."""
    import lance

    if not newest_version(home / "memory"):
        return 0
    dataset = lance.dataset(str(home / "memory" / CHUNKS))
    dataset.validate()
    rows = dataset.to_table().to_pylist()
    places = Counter(
        (row["session_id"], row["turn_uuid"], row["block_idx"], row["split_idx"], row["seq"])
        for row in rows
        if row["seq"] >= 0
    )
    assert all(count == 1 for count in places.values())
    if newest_version(home / "memory", VECTORS):
        ids = lance.dataset(str(home / "memory" / VECTORS)).to_table(columns=["id"]).column("id").to_pylist()
        assert len(ids) == len(set(ids))
    found = MemoryReader.open(str(home)).words("part topic", Filter(), 5)
    assert bool(found) == bool(places)
    return len(places)


@pytest.mark.parametrize("processes", [False, True], ids=["one process", "worker processes"])
def test_killed_while_storing_words(
    projects: Path, expected: dict[str, list[Any]], tmp_path: Path, processes: bool
) -> None:
    chance = random.Random(11 + processes)
    stored = 0
    for _ in range(6 - processes):
        process = start(projects, tmp_path, processes=processes, pause=0.05)
        if wait_for(process, "read"):
            time.sleep(chance.uniform(0, 0.8))
        kill(process)
        now = check_sound(tmp_path)
        assert now >= stored
        stored = now
    assert outcome(start(projects, tmp_path))["waiting"] == 0
    assert content(tmp_path) == expected


def test_killed_while_storing_vectors(projects: Path, expected: dict[str, list[Any]], tmp_path: Path) -> None:
    chance = random.Random(5)
    assert check_sound(tmp_path) == 0
    for _ in range(7):
        process = start(projects, tmp_path, pause=0.02)
        if wait_for(process, "vectors"):
            time.sleep(chance.uniform(0, 0.5))
        kill(process)
        assert check_sound(tmp_path) > 0
    assert outcome(start(projects, tmp_path))["waiting"] == 0
    assert content(tmp_path) == expected
    encoded = Counter((tmp_path / "encoded.log").read_text().split())
    # A kill loses the step that was being computed, nothing else is computed again.
    assert sum(encoded.values()) - len(encoded) <= 7 * 20


def test_workers_of_a_killed_run_end(tmp_path: Path) -> None:
    if not Path("/proc/self/stat").exists():
        pytest.skip("needs /proc")
    for number in range(4):
        # More than a pipe holds, so that no worker is done while the run stays where it is.
        ClaudeSession(tmp_path / "projects", f"s{number}").tool("Read", {}, f"{number} a line of a long log\n" * 20_000)
    hold(tmp_path, STORED)
    process = start(tmp_path / "projects", tmp_path, processes=True)
    children: list[int] = []
    while not children:
        assert process.poll() is None
        children = [
            int(stat.name) for stat in Path("/proc").iterdir() if stat.name.isdigit() and parent_of(stat) == process.pid
        ]
        time.sleep(0.02)
    kill(process)
    for _ in range(6000):
        alive = [child for child in children if parent_of(Path(f"/proc/{child}")) is not None]
        if not alive:
            break
        time.sleep(0.05)
    assert not alive


def parent_of(process: Path) -> int | None:
    """Parent of a process that has not ended."""
    try:
        fields = (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[1])


@pytest.mark.parametrize("phase", ["read", "vectors"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_runs_say_what_they_did(
    projects: Path, expected: dict[str, list[Any]], tmp_path: Path, phase: str, number: signal.Signals
) -> None:
    hold(tmp_path, STORED if phase == "read" else EMBEDDED)
    process = start(projects, tmp_path, processes=phase == "read")
    assert wait_for(process, phase)
    table = CHUNKS if phase == "read" else VECTORS
    while not newest_version(tmp_path / "memory", table):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(number)
    release(tmp_path)
    report = outcome(process)
    assert report["interrupted"] is True
    assert process.returncode == 130
    passages = MemoryReader.open(str(tmp_path)).statistics()
    assert passages.passages == report["stored"]
    if phase == "vectors":
        assert 0 < passages.waiting == report["waiting"]
    assert outcome(start(projects, tmp_path))["waiting"] == 0
    assert content(tmp_path) == expected


def test_the_second_writer_is_told_who_writes_and_readers_go_on(projects: Path, tmp_path: Path) -> None:
    hold(tmp_path, STORED)
    process = start(projects, tmp_path)
    assert wait_for(process, "read")
    while not (newest_version(tmp_path / "memory") and MemoryReader.open(str(tmp_path)).sessions()):
        assert process.poll() is None
        time.sleep(0.02)
    with pytest.raises(LockedError, match=str(process.pid)), WriterLock(tmp_path / "memory", wait=0):
        pass
    with pytest.raises(LockedError, match="indexing"), MemoryWriter(tmp_path / "memory", wait=0):
        pass
    assert MemoryReader.open(str(tmp_path)).words("topic", Filter(), 5)
    kill(process)


def test_new_text_is_stored_while_another_process_computes_vectors(projects: Path, tmp_path: Path) -> None:
    hold(tmp_path, ENCODING)
    process = start(projects, tmp_path)
    assert wait_for(process, "vectors")
    extra = tmp_path / "extra" / "projects"
    session = ClaudeSession(extra, "late")
    session.prompt("A quokka came by while the vectors were computed.")
    other = start(extra, tmp_path)
    report = outcome(other)
    assert report["stored"] == 1
    assert "computing vectors" in str(report["notes"])
    assert MemoryReader.open(str(tmp_path)).words("quokka", Filter(), 1)
    release(tmp_path)
    assert outcome(process)["waiting"] == 0  # the passage got its vector from the process that was at it


def test_two_runs_at_once_store_everything_once(projects: Path, expected: dict[str, list[Any]], tmp_path: Path) -> None:
    first, second = start(projects, tmp_path), start(projects, tmp_path)
    outputs = [process.communicate(timeout=300)[0] for process in (first, second)]
    assert 0 in (first.returncode, second.returncode), outputs
    assert outcome(start(projects, tmp_path))["waiting"] == 0
    assert content(tmp_path) == expected
