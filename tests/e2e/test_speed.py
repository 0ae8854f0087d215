"""How long agents wait for funes. The figures are printed, not asserted."""

from __future__ import annotations

import json
import shlex
import statistics
import subprocess
import time
from pathlib import Path

from funes.hook import hook_command
from tests.e2e.conftest import HomeMaker, Programs
from tests.e2e.homes import wait_for_worker
from tests.e2e.table import Table
from tests.support.model_script import Call, Say
from tests.support.model_server import ModelServer

EVENTS = 50


def test_the_tools_are_there_when_the_agent_looks(
    agent: str, programs: Programs, make_home: HomeMaker, server: ModelServer, table: Table, tmp_path: Path
) -> None:
    log = tmp_path / "handshakes"
    home = make_home("timed", [programs.get(agent)], log)
    assert home.funes("add", agent, "--yes").code == 0
    log.unlink(missing_ok=True)
    server.script = [Call("recall", {"query": "anything"}), Say("Done.")]
    assert home.turn(agent, "Recall anything.").code == 0
    assert server.requests[0].find_tool("recall")
    steps = dict(line.split() for line in reversed(log.read_text().splitlines()))
    # pi's extension knows the tools from `funes add`, and starts the server with the first call.
    seconds = float(steps["protocolVersion" if agent == "pi" else "tools"])
    table.set(agent, "handshake", f"{seconds:.2f} s")
    wait_for_worker(home)


def test_what_a_hook_costs_the_agent(agent: str, programs: Programs, make_home: HomeMaker, table: Table) -> None:
    home = make_home("hooks", [programs.get(agent)])
    command = shlex.join(hook_command(agent, event="Stop"))
    payload = json.dumps({"session_id": "s", "transcript_path": "", "cwd": "/", "hook_event_name": "Stop"}).encode()
    taken = []
    for _ in range(EVENTS):
        began = time.perf_counter()
        subprocess.run(["/bin/sh", "-c", command], input=payload, env=home.environment, check=True)
        taken.append(time.perf_counter() - began)
    table.set(agent, "hook", f"{statistics.median(taken) * 1000:.0f} ms")
    wait_for_worker(home)
