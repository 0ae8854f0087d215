"""Agents' hooks for tests: the installed command, events in the spool, and waiting for the worker."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from funes import hook
from funes.commands.following.events import Event, read_event
from funes.paths import cache_folder

REPOSITORY = Path(__file__).parents[2]
PATIENT = 300.0


def home_of_a_user(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an empty FUNES_HOME, and have this process and its children be those of a user with an empty HOME.

    Args:
        folder: `home` is made in it, and HOME is `user` in it.
        monkeypatch: undoes it.

    Returns:
        The FUNES_HOME.
    """
    for name in (*hook.ROOT_VARIABLES, hook.OWN_ASK):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_folder().parent))  # compiled secret rules, which take long to make
    monkeypatch.setenv("HOME", str(folder / "user"))
    monkeypatch.setenv("FUNES_HOME", str(folder / "home"))
    monkeypatch.setenv("FUNES_MODELS", str(folder / "no models"))
    (folder / "home").mkdir()
    return folder / "home"


def environment(home: Path | None, **more: str) -> dict[str, str]:
    """What an agent passes on; FUNES_HOME only when it is given. The worker ends when it has nothing to do."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FUNES_")} | {hook.LINGER: "0"}
    return kept | ({"FUNES_HOME": str(home)} if home else {}) | more


def fire(command: list[str], payload: bytes, variables: Mapping[str, str]) -> subprocess.CompletedProcess[bytes]:
    """Run a hook as an agent does."""
    return subprocess.run(command, input=payload, env=dict(variables), capture_output=True, timeout=PATIENT)


def note(home: Path, harness: str, payload: Mapping[str, Any], **head: str) -> Path:
    """Put an event into the spool."""
    folder = home / hook.FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    now = time.time_ns()
    lines = [f"{name} {value}" for name, value in {"time": f"{now / 1e9}", "harness": harness, **head}.items()]
    path = folder / f"{now:020}-{os.getpid()}{hook.SUFFIX}"
    path.write_text("\n".join(lines) + "\n\n" + json.dumps(payload), encoding="utf-8")
    return path


def noted(home: Path) -> list[Event]:
    """The events in the spool."""
    folder = home / hook.FOLDER
    return [read_event(folder / name) for name in hook.waiting_events(str(folder))] if folder.is_dir() else []


def entries(home: Path) -> list[dict[str, Any]]:
    """The lines of the log."""
    try:
        return [json.loads(line) for line in (home / "logs" / hook.LOG).read_text(encoding="utf-8").splitlines()]
    except OSError:
        return []


def until(done: Callable[[], bool]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + PATIENT
    while not done():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


@contextmanager
def worker_busy(home: Path) -> Iterator[None]:
    """Hold the worker's lock, so that hooks only note their events."""
    folder = home / hook.FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / hook.LOCK).open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def wait_for_worker(home: Path, logged: int = 1) -> list[dict[str, Any]]:
    """Wait until the spool is empty, no worker is left and the log has some lines; returns them."""
    deadline = time.monotonic() + PATIENT
    while time.monotonic() < deadline:
        lines = entries(home)
        if len(lines) >= logged and not noted(home):
            with (home / hook.FOLDER / hook.LOCK).open("r+") as stream:
                if hook.try_lock(stream.fileno()):
                    return entries(home)
        time.sleep(0.05)
    raise AssertionError(f"the worker did not finish: {lines}, {noted(home)}")
