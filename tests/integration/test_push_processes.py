"""Pushes in processes of their own: two at once, and ones that are killed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from funes.memory.remote.hub import HubClient
from funes.memory.remote.snapshot import open_snapshot
from funes.memory.uri import resolve
from tests.support.hub_faults import Fault
from tests.support.hub_memory import REPO
from tests.support.hub_server import HubServer
from tests.support.push_process import expected
from tests.support.sharing import Machine, environment, rows_in, vectors_in

CHECKOUT = Path(__file__).parents[2]
ROUNDS = 3


@pytest.fixture
def hub(tmp_path, monkeypatch):
    with HubServer(tmp_path / "hub") as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("HF_TOKEN", server.token)
        yield server


def start(machine, *arguments):
    source = next(path for path in map(str, sys.path) if path.endswith("src"))
    return subprocess.Popen(
        [sys.executable, "-m", *arguments],
        env=environment(machine, PYTHONPATH=f"{source}:{CHECKOUT}"),
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def newest(machine, monkeypatch):
    machine.use(monkeypatch)
    return open_snapshot(resolve(REPO), HubClient()).folder


def test_two_machines_at_once_lose_nothing_and_repeat_nothing(hub, tmp_path, monkeypatch):
    machines = [Machine(tmp_path, "one"), Machine(tmp_path, "two")]
    running = [start(machine, "tests.support.push_process", REPO, machine.name, str(ROUNDS)) for machine in machines]
    for process in running:
        output, errors = process.communicate(timeout=600)
        assert process.returncode == 0, errors
        assert json.loads(output)["rounds"] == ROUNDS
    folder = newest(Machine(tmp_path, "reader"), monkeypatch)
    rows = rows_in(folder)
    wanted = expected(["one", "two"], ROUNDS)
    assert {(row.session_id, row.text) for row in rows} == wanted
    assert len(rows) == len(wanted)
    assert len(vectors_in(folder)) == len(wanted)


@pytest.mark.parametrize(
    "where",
    [
        "GET /api/datasets/.*/tree/",
        "POST /api/datasets/.*/preupload/",
        "PUT /_lfs/",
        "POST /api/datasets/.*/commit/",
    ],
)
def test_a_killed_push_leaves_the_old_version_or_the_new_one(hub, tmp_path, monkeypatch, where):
    machine = Machine(tmp_path, "one").use(monkeypatch)
    machine.remember("a", ["words of a"])
    first = start(machine, "funes", "push", REPO)
    assert first.wait(timeout=600) == 0, first.stderr.read() if first.stderr else ""
    machine.remember("b", ["words of b"])
    hub.traffic.served.clear()
    slow = Fault(where, "slow", seconds=600.0, times=1)
    hub.faults.append(slow)
    process = start(machine, "funes", "push", REPO)
    while slow.times:  # until the request is there
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.kill()
    process.communicate()
    hub.faults.clear()
    held = {row.text for row in rows_in(newest(machine, monkeypatch))}
    assert held in ({"words of a"}, {"words of a", "words of b"})
    again = start(machine, "funes", "push", REPO)
    assert again.wait(timeout=600) == 0, again.stderr.read() if again.stderr else ""
    rows = rows_in(newest(machine, monkeypatch))
    assert sorted(row.text or "" for row in rows) == ["words of a", "words of b"]
    left = [path for path in (machine.home / "sharing").rglob("*") if path.name == "work"]
    assert left == []
