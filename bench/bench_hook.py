"""What a hook costs: the agent's wait in the foreground, and the worker's CPU time for each finished turn.

    python bench/bench_hook.py                            # foreground: median of 50 runs, beside a bare interpreter
    python bench/bench_hook.py --memory DIR --turns 300   # worker: on a copy of the FUNES_HOME in DIR
    python bench/bench_hook.py --memory DIR --turns 300 --stay   # one worker that waits for the next turn

A turn is as long as the median one of 1,193 in the team sessions (2,600 characters of prose, 4 tool calls of 900
characters together, 4,500 characters of tool output), its text is cut from the standard library's own source. CPU time
is user and system time of the worker and its children, imports included. It grows when others use the machine, so a
process that only starts the libraries (storage, secret rules, model) is measured with every ten turns.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from funes import hook

CALLS = 4
LIBRARIES = """
import os, lance
from funes.models.encoder import load_encoder
from funes.secrets import Redactor
Redactor()
load_encoder(fetch=False)
os._exit(0)
"""
PROMPT, REMARK, CALL, OUTPUT, ANSWER = 200, 150, 230, 1140, 1800


class Turns:
    """Writes a Claude Code transcript, one finished turn at a time."""

    def __init__(self, folder: Path, seed: int = 1) -> None:
        self.session = str(uuid.UUID(int=random.Random(seed).getrandbits(128), version=4))
        self.path = folder / f"{self.session}.jsonl"
        self.random = random.Random(seed)
        self.sources = sorted(Path(os.__file__).parent.glob("*.py"))
        self.now = datetime.now(UTC)
        self.parent: str | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def add(self) -> str:
        """Append one turn and return the text of its last answer."""
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(self._record("user", self._text(PROMPT)))
            for _ in range(CALLS):
                tool = f"toolu_{self._id()}"
                call = {"type": "tool_use", "id": tool, "name": "Bash", "input": {"command": self._text(CALL)}}
                stream.write(self._record("assistant", [{"type": "text", "text": self._text(REMARK)}]))
                stream.write(self._record("assistant", [call]))
                output = {"type": "tool_result", "tool_use_id": tool, "content": self._text(OUTPUT)}
                stream.write(self._record("user", [output]))
            answer = self._text(ANSWER)
            stream.write(self._record("assistant", [{"type": "text", "text": answer}]))
        return answer

    def _record(self, role: str, content: object) -> str:
        identifier = str(uuid.UUID(int=self.random.getrandbits(128), version=4))
        self.now += timedelta(seconds=5)
        message: dict[str, object] = {"role": role, "content": content}
        if role == "assistant":
            message |= {"id": f"msg_{self._id()}", "type": "message", "model": "bench"}
        record = {
            "parentUuid": self.parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": str(self.path.parent),
            "sessionId": self.session,
            "version": "2.1.332",
            "gitBranch": "main",
            "type": role,
            "message": message,
            "uuid": identifier,
            "timestamp": self.now.isoformat().replace("+00:00", "Z"),
        }
        self.parent = identifier
        return json.dumps(record) + "\n"

    def _id(self) -> str:
        return f"{self.random.getrandbits(96):024x}"

    def _text(self, characters: int) -> str:
        text = self.random.choice(self.sources).read_text(encoding="utf-8", errors="replace")
        start = self.random.randrange(max(1, len(text) - characters))
        return f"{self._id()[:8]} {text[start : start + characters]}"


def foreground(runs: int) -> None:
    """Print the wall time of the installed command."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        environment = {**os.environ, "FUNES_HOME": str(home)}
        payload = json.dumps({"hook_event_name": "Stop", "session_id": "bench", "last_assistant_message": "x" * 2000})
        bare = [sys.executable, "-I", "-S", "-c", "pass"]
        for name, command in (("bare interpreter", bare), ("hook", hook.hook_command("claude"))):
            walls, cpus = [], []
            for _ in range(runs):
                wall, cpu = _timed(command, environment, payload.encode())
                walls.append(wall)
                cpus.append(cpu)
            print(
                f"{name}: wall median {1e3 * statistics.median(walls):.0f} ms, "
                f"least {1e3 * min(walls):.0f} ms, most {1e3 * max(walls):.0f} ms; "
                f"CPU median {1e3 * statistics.median(cpus):.0f} ms"
            )


@dataclass(frozen=True, slots=True)
class Cost:
    """What a finished turn cost.

    Attributes:
        cpu: seconds of user and system time of the worker and its children.
        wall: seconds until the worker had done everything.
    """

    cpu: float
    wall: float


def worker(memory: Path | None, turns: int, stay: bool) -> None:
    """Print the CPU time of the worker for each turn of a growing session."""
    finish = finish_turns_staying if stay else finish_turns
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        if memory:
            shutil.copytree(memory, home)
        session = Turns(Path(folder) / "projects" / "-bench")
        environment = {**os.environ, "FUNES_HOME": str(home), "CLAUDE_CONFIG_DIR": folder}
        costs: list[float] = []
        libraries: list[float] = []
        for number, cost in enumerate(finish(session, home, environment, turns)):
            costs.append(cost.cpu)
            if number % 10 == 9:
                libraries.append(_timed([sys.executable, "-c", LIBRARIES], environment, b"")[1])
                spread = f"{_spread(costs[-10:])}; libraries {libraries[-1]:.2f} s"
                print(f"turns {number - 8}-{number + 1}: {spread}", flush=True)
        print(f"first ten: {_spread(costs[:10])}")
        print(f"last ten:  {_spread(costs[-10:])}")
        print(f"all:       {_spread(costs)}")
        if libraries:
            print(f"libraries alone: median {statistics.median(libraries):.2f} s")
        lines = (home / "logs" / hook.LOG).read_text(encoding="utf-8").splitlines()
        print(f"last line of the log: {lines[-1]}")


def finish_turns(session: Turns, home: Path, environment: dict[str, str], turns: int) -> Iterator[Cost]:
    """Have each turn noted as by an agent, with a worker of its own in the foreground."""
    spool = home / hook.FOLDER
    spool.mkdir(parents=True, exist_ok=True)
    alone = environment | {hook.LINGER: "0"}
    for _ in range(turns):
        event = f"time {time.time():.3f}\nharness claude\n\n{json.dumps(_finished(session))}"
        (spool / f"{time.time_ns():020}-0{hook.SUFFIX}").write_text(event, encoding="utf-8")
        wall, cpu = _timed([sys.executable, "-E", "-P", str(Path(hook.__file__)), "--work"], alone, b"")
        yield Cost(cpu, wall)


def finish_turns_staying(session: Turns, home: Path, environment: dict[str, str], turns: int) -> Iterator[Cost]:
    """Fire the hook after each turn, as an agent does; the worker of the first waits for the others.

    The figures are those of its log. It ends by itself soon after the home is gone.
    """
    log = home / "logs" / hook.LOG
    known = len(log.read_text(encoding="utf-8").splitlines()) if log.exists() else 0
    command = [sys.executable, "-I", "-S", str(Path(hook.__file__)), "claude"]
    for number in range(known + 1, known + turns + 1):
        payload = json.dumps(_finished(session)).encode()
        subprocess.run(command, input=payload, env=environment | {hook.LINGER: "600"}, check=True)
        lines: list[str] = []
        while len(lines) < number:
            time.sleep(0.05)
            lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        entry = json.loads(lines[-1])
        yield Cost(entry["cpu"], entry["seconds"])


def _finished(session: Turns) -> dict[str, str]:
    """Finish a turn; what the agent tells its hook about that."""
    answer = session.add()
    return {
        "hook_event_name": "Stop",
        "session_id": session.session,
        "transcript_path": str(session.path),
        "cwd": str(session.path.parent),
        "last_assistant_message": answer,
    }


def _timed(command: list[str], environment: dict[str, str], stdin: bytes) -> tuple[float, float]:
    """Run a command; its wall time and CPU time, of the children that it waited for too."""
    began = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert process.stdin is not None
    process.stdin.write(stdin)
    process.stdin.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{command[:4]} ended with {process.returncode}")
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime


def _spread(seconds: list[float]) -> str:
    return f"CPU median {statistics.median(seconds):.2f} s, most {max(seconds):.2f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50, help="foreground runs")
    parser.add_argument("--memory", type=Path, help="a FUNES_HOME to copy and add turns to")
    parser.add_argument("--turns", type=int, default=0, help="turns to follow")
    parser.add_argument("--stay", action="store_true", help="let one worker wait for the next turn, as hooks do")
    arguments = parser.parse_args()
    if arguments.turns:
        worker(arguments.memory, arguments.turns, arguments.stay)
    else:
        foreground(arguments.runs)


if __name__ == "__main__":
    main()
