"""One writer at a time; the next one learns who it waits for, and a dead holder is no obstacle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from funes.errors import FunesError, LockedError
from funes.memory import lock
from funes.memory.lock import VECTORS_LOCK, WORDS_LOCK, WriterLock, read_holder

HOLD = """
import sys, time
from pathlib import Path
from funes.memory.lock import WriterLock
with WriterLock(Path(sys.argv[1]), doing="indexing"):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_the_second_writer_learns_who_holds_it(tmp_path: Path) -> None:
    process = holder(tmp_path)
    try:
        with pytest.raises(LockedError) as info, WriterLock(tmp_path, wait=0.1):
            pass
        message = info.value.message
        assert str(process.pid) in message
        assert os.uname().nodename in message
        assert "since 20" in message
        assert "indexing" in message
    finally:
        process.communicate("")
    with WriterLock(tmp_path, wait=0.1):
        pass


def test_a_killed_holder_is_no_obstacle(tmp_path: Path) -> None:
    process = holder(tmp_path)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert read_holder(tmp_path / WORDS_LOCK)["pid"] == str(process.pid)
    with WriterLock(tmp_path, wait=0.0):
        assert read_holder(tmp_path / WORDS_LOCK)["pid"] == str(os.getpid())


def test_waiting_ends_when_the_holder_does(tmp_path: Path) -> None:
    first = WriterLock(tmp_path)
    first.acquire()
    threading.Timer(0.2, first.release).start()
    with WriterLock(tmp_path, wait=30):
        pass


def test_the_two_locks_do_not_exclude_each_other(tmp_path: Path) -> None:
    with WriterLock(tmp_path, WORDS_LOCK), WriterLock(tmp_path, VECTORS_LOCK, wait=0):
        pass


def test_one_object_can_be_taken_and_given_back_repeatedly(tmp_path: Path) -> None:
    lock = WriterLock(tmp_path, wait=0)
    for _ in range(3):
        lock.acquire()
        lock.acquire()
        lock.release()
        lock.release()
    assert read_holder(lock.path) == {}


@pytest.mark.parametrize("content", [b"", b"garbage", b"[]", b'{"pid": 1}', b"\xff\xfe"])
def test_an_unreadable_signature_does_not_matter(tmp_path: Path, content: bytes) -> None:
    assert read_holder(tmp_path / "absent") == {}
    with WriterLock(tmp_path):
        (tmp_path / WORDS_LOCK).write_bytes(content)
        with pytest.raises(LockedError, match="another process"), WriterLock(tmp_path, wait=0):
            pass


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_one_sentence(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(FunesError, match="FUNES_HOME"), WriterLock(tmp_path / "memory"):
        pass


def test_a_file_in_the_way_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "memory").write_text("")
    with pytest.raises(FunesError, match="cannot be written"), WriterLock(tmp_path / "memory"):
        pass


def test_locks_exclude_between_threads_of_many_processes(tmp_path: Path) -> None:
    """Four processes count in a file, each step under the lock: no step is lost."""
    script = """
import sys
from pathlib import Path
from funes.memory.lock import WriterLock
folder = Path(sys.argv[1])
for _ in range(25):
    with WriterLock(folder, wait=60):
        counter = folder / "counter"
        value = int(counter.read_text() or 0) if counter.exists() else 0
        counter.write_text(str(value + 1))
"""
    processes = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path)]) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    assert (tmp_path / "counter").read_text() == "100"


def test_a_lock_whose_file_was_removed_meanwhile_is_taken_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try_lock = lock._try_lock
    removed: list[bool] = []

    def removing(descriptor: int) -> bool:
        if not removed:
            removed.append(True)
            (tmp_path / WORDS_LOCK).unlink()
        return try_lock(descriptor)

    monkeypatch.setattr(lock, "_try_lock", removing)
    with WriterLock(tmp_path, wait=0), pytest.raises(LockedError), WriterLock(tmp_path, wait=0):
        pass
