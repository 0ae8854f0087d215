"""What an agent or a person waits for before anything is searched: the command line, the hook, the MCP handshake."""

from __future__ import annotations

import fcntl
import json
import sys
import tempfile
from pathlib import Path

import mcp_client
from funes import hook
from measure import Row, funes, run, spread, timed, verdict

COMMAND_TARGET = 0.1
HANDSHAKE_TARGET = 0.5


def command_line(runs: int) -> list[Row]:
    """`funes --help` and the hook, in turns with an interpreter that does nothing."""
    walls: dict[str, list[float]] = {"bare": [], "help": [], "hook": []}
    cpus: dict[str, list[float]] = {name: [] for name in walls}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        # The trace does not exist, so that the worker which the hook starts has nothing to do.
        event = {"hook_event_name": "Stop", "session_id": "bench", "transcript_path": f"{folder}/none.jsonl"}
        commands = {
            "bare": ([sys.executable, "-I", "-S", "-c", "pass"], ""),
            "help": (funes("--help"), ""),
            "hook": (hook.hook_command("claude"), json.dumps(event | {"prompt": "x" * 2000})),
        }
        for _ in range(runs):
            for name, (command, stdin) in commands.items():
                cost = run(command, home, stdin=stdin.encode(), CLAUDE_CONFIG_DIR=folder)
                walls[name].append(cost.wall)
                cpus[name].append(cost.cpu)
            _wait_for_worker(home)
    rows = []
    bare, bare_cpu = spread(walls["bare"]), spread(cpus["bare"])
    for name, title in (("help", "`funes --help`"), ("hook", "hook in the foreground")):
        wall, cpu = spread(walls[name]), spread(cpus[name])
        command = " ".join(commands[name][0]).replace(str(Path(sys.executable).parent) + "/", "")
        rows.append(
            Row(
                title,
                f"{1e3 * wall['median']:.0f} ms",
                "100 ms",
                verdict(wall["median"], cpu["median"], COMMAND_TARGET),
                f"medians of {runs}, most {1e3 * wall['most']:.0f} ms of wall time; a bare interpreter in the same run "
                f"{1e3 * bare['median']:.0f} ms, {1e3 * bare_cpu['median']:.0f} ms of CPU",
                {"command": command, "wall": wall, "cpu": cpu, "bare": bare, "bare cpu": bare_cpu},
                f"{1e3 * cpu['median']:.0f} ms",
            )
        )
    return rows


def _wait_for_worker(home: Path) -> None:
    """Return when the worker that a hook started has ended, so that it does not slow the next run down."""
    with (home / hook.FOLDER / hook.LOCK).open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)


def handshake(runs: int, home: Path) -> Row:
    """From the start of the process to the answer of `tools/list`."""
    walls, cpus = [], []
    for _ in range(runs):
        server = mcp_client.Server(home)
        with server:
            walls.append(timed(server.handshake) + server.started)
        cpus.append(server.cpu)
    wall, cpu = spread(walls), spread(cpus)
    return Row(
        "MCP handshake from process start",
        f"{wall['median']:.2f} s",
        "0.5 s",
        verdict(wall["median"], cpu["median"], HANDSHAKE_TARGET),
        f"`funes mcp`, initialize and tools/list answered; wall time, median of {runs} starts, "
        f"most {wall['most']:.2f} s; CPU time, user and system, is the median too",
        {"wall": wall, "cpu": cpu},
        f"{cpu['median']:.2f} s",
    )
