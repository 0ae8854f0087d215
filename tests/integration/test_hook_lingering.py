"""The worker that waits for the next event: one at a time, in nobody's way, and gone when it is of no use any more."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import funes
from funes import hook
from funes.commands.following import lingering
from funes.commands.following.lingering import Lingering
from funes.memory.lock import VECTORS_LOCK, WriterLock
from funes.paths import memory_folder
from tests.support.claude_sessions import ClaudeSession, talk
from tests.support.hooks import (
    PATIENT,
    entries,
    environment,
    fire,
    home_of_a_user,
    note,
    noted,
    until,
    wait_for_worker,
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = home_of_a_user(tmp_path, monkeypatch)
    (home / hook.FOLDER).mkdir()
    return home


@pytest.fixture
def session(tmp_path: Path, home: Path) -> ClaudeSession:
    folder = tmp_path / "user" / ".claude" / "projects"
    folder.mkdir(parents=True)
    session = ClaudeSession(folder, "a")
    talk(session, 1, "harbour")
    return session


Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start(home: Path) -> Iterator[Start]:
    """Starts workers that wait for long; they end with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(program: Path = Path(hook.__file__)) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-E", "-P", str(program), "--work"]
        started.append(subprocess.Popen(command, env=environment(home, **{hook.LINGER: "600"})))
        return started[-1]

    yield start
    for worker in started:
        worker.kill()
        worker.wait()


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of funes that a test may change."""
    copy = tmp_path / "site" / "funes"
    shutil.copytree(Path(funes.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


@pytest.fixture
def lock(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The lock of a worker that is this process."""
    monkeypatch.setenv(hook.LINGER, "600")
    descriptor = os.open(home / hook.FOLDER / hook.LOCK, os.O_RDWR | os.O_CREAT)
    assert hook.try_lock(descriptor)
    yield descriptor
    os.close(descriptor)


def stop(session: ClaudeSession, event: str = "Stop") -> dict[str, Any]:
    return {"hook_event_name": event, "session_id": session.id, "transcript_path": str(session.path)}


def turn(home: Path, session: ClaudeSession, text: str) -> None:
    """Finish a turn, as an agent does."""
    session.answer(text)
    fire(hook.hook_command("claude"), json.dumps(stop(session)).encode(), environment(home))


def logged(home: Path, lines: int) -> list[dict[str, Any]]:
    until(lambda: len(entries(home)) >= lines)
    return entries(home)


def test_one_worker_handles_turn_after_turn_and_holds_no_lock_of_the_memory(
    home: Path, session: ClaudeSession, start: Start
) -> None:
    note(home, "claude", stop(session))
    worker = start()
    assert logged(home, 1)[0]["stored"] == 5
    for number in range(2, 5):
        with WriterLock(memory_folder(), wait=PATIENT), WriterLock(memory_folder(), VECTORS_LOCK, wait=PATIENT):
            pass  # it has let go of them, or does soon
        turn(home, session, f"Answer {number}.")
        assert logged(home, number)[-1]["stored"] == 1
    assert worker.poll() is None
    assert noted(home) == []
    assert not any("error" in line for line in entries(home))


def test_the_end_of_a_session_is_the_end_of_the_worker(home: Path, session: ClaudeSession, start: Start) -> None:
    note(home, "claude", stop(session))
    worker = start()
    until((home / hook.FOLDER / hook.PIPE).exists)
    fire(hook.hook_command("claude"), json.dumps(stop(session, "SessionEnd")).encode(), environment(home))
    assert worker.wait(PATIENT) == 0
    assert [line["event"] for line in entries(home)] == ["Stop", "SessionEnd"]
    assert not (home / hook.FOLDER / hook.PIPE).exists()
    turn(home, session, "Another answer.")  # the next one starts a worker of its own
    assert wait_for_worker(home, logged=3)[-1]["stored"] == 1


def test_after_an_update_the_worker_is_the_new_program(
    home: Path, session: ClaudeSession, start: Start, package: Path
) -> None:
    note(home, "claude", stop(session))
    worker = start(package / "hook.py")
    until((home / hook.FOLDER / hook.PIPE).exists)
    assert "note" not in logged(home, 1)[0]
    log = package / "commands" / "following" / "log.py"
    time.sleep(0.05)  # clocks of file systems are coarse
    new = log.read_text() + "\n\n_write = Entry.write\nEntry.write = lambda self, home: (setattr(self, 'note', 'new'), "
    log.unlink()
    log.write_text(new + "_write(self, home))\n")
    turn(home, session, "Another answer.")
    line = logged(home, 2)[-1]
    assert (line["note"], line["stored"]) == ("new", 1)
    assert worker.poll() is None


def test_a_removed_program_leaves_the_event_to_the_next(
    home: Path, session: ClaudeSession, start: Start, package: Path
) -> None:
    note(home, "claude", stop(session))
    worker = start(package / "hook.py")
    until((home / hook.FOLDER / hook.PIPE).exists)
    shutil.rmtree(package)
    turn(home, session, "Another answer.")
    worker.wait(PATIENT)
    fire(hook.hook_command("claude"), json.dumps(stop(session)).encode(), environment(home))
    lines = wait_for_worker(home, logged=2)
    assert sum(line.get("stored", 0) for line in lines) == 6


def test_an_event_from_before_the_wait_is_seen(home: Path, lock: int) -> None:
    waiting = Lingering(home / hook.FOLDER, lock)
    assert waiting.wait(lambda: True)
    waiting.close()


def test_an_event_that_comes_meanwhile_ends_the_wait(home: Path, lock: int) -> None:
    waiting = Lingering(home / hook.FOLDER, lock)
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(waiting.wait(lambda: bool(noted(home)))))
    thread.start()
    fire(hook.hook_command("claude"), b"{}", environment(home))
    thread.join(PATIENT)
    waiting.close()
    assert found == [True]


@pytest.mark.parametrize("seconds", ["0", "-1", "0.05"])
def test_the_wait_ends(home: Path, lock: int, monkeypatch: pytest.MonkeyPatch, seconds: str) -> None:
    monkeypatch.setenv(hook.LINGER, seconds)
    waiting = Lingering(home / hook.FOLDER, lock)
    assert not waiting.wait(lambda: False)
    waiting.close()
    assert not (home / hook.FOLDER / hook.PIPE).exists()


def test_the_pipe_of_another_worker_stays(home: Path, lock: int) -> None:
    waiting = Lingering(home / hook.FOLDER, lock)
    assert waiting.wait(lambda: True)
    (home / hook.FOLDER / hook.PIPE).rename(home / hook.FOLDER / "kept")
    os.mkfifo(home / hook.FOLDER / hook.PIPE)
    waiting.close()
    assert (home / hook.FOLDER / hook.PIPE).exists()


def test_without_its_home_the_worker_ends(home: Path, lock: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lingering, "LOOK_SECONDS", 0.05)
    waiting = Lingering(home / hook.FOLDER, lock)

    def gone() -> bool:
        shutil.rmtree(home, ignore_errors=True)
        return False

    assert not waiting.wait(gone)
    waiting.close()


def test_a_home_that_was_made_anew_is_not_its_own(home: Path, lock: int) -> None:
    waiting = Lingering(home / hook.FOLDER, lock)
    kept = home / hook.FOLDER / "kept"  # so that the new file cannot get the number of the old one
    (home / hook.FOLDER / hook.LOCK).rename(kept)
    (home / hook.FOLDER / hook.LOCK).touch()
    assert not waiting.wait(lambda: True)
    waiting.close()


def test_a_program_that_has_changed_does_not_stay(home: Path, lock: int, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Lingering(home / hook.FOLDER, lock)
    monkeypatch.setattr(lingering, "_changed_since", lambda moment: True)
    assert not waiting.wait(lambda: True)
    assert not (home / hook.FOLDER / hook.PIPE).exists()
    waiting.close()


def test_what_is_no_pipe_is_left_alone(home: Path, lock: int) -> None:
    other = home / hook.FOLDER / hook.PIPE
    other.write_text("mine")
    waiting = Lingering(home / hook.FOLDER, lock)
    assert not waiting.wait(lambda: True)
    waiting.close()
    assert other.read_text() == "mine"


def test_a_wish_that_is_no_number_is_no_wish(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(hook.LINGER, "long")
    assert lingering._seconds() == lingering.LINGER_SECONDS
