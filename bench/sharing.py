"""What sharing a memory costs: publishing, recalling from another machine, two writers at once, the secrets gate.

python bench/sharing.py                   # a memory of 100,000 passages, two writers of 50 rounds
python bench/sharing.py --home DIR        # publish a copy of this FUNES_HOME instead
python bench/sharing.py --quick

The Hub is the test suite's own server on this machine, asked by the real client, so bytes and requests are those of the
real one and times are not. Two machines are two `FUNES_HOME`s with caches of their own. Every command is a process.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import following
from big_memory import BigMemory, made
from measure import ROOT, Cost, environment, funes, run, timed
from tables import Table, parser, publish, start

sys.path.insert(0, str(ROOT))  # the server and the invented sessions are those of the tests
from tests.support.hub_server import ALICE
from tests.support.push_process import expected
from tests.support.sharing import TOKEN, Machine, rows_in, vectors_in

REPO = "acme/memory"
COLUMNS = ["what", "requests", "to the Hub", "from the Hub", "wall", "CPU", "outcome"]
NEW = 20
"""Passages of an incremental push."""


@dataclass(slots=True)
class Step:
    """One command and what it asked of the Hub.

    Attributes:
        name: what it was.
        requests: number of requests.
        sent, received: bytes of bodies to the Hub and from it.
        cost: of the command.
        outcome: a few words.
    """

    name: str
    requests: int
    sent: int
    received: int
    cost: Cost
    outcome: str

    def row(self) -> list[str]:
        """Cells of the table."""
        return [
            self.name,
            str(self.requests),
            _size(self.sent),
            _size(self.received),
            f"{self.cost.wall:.1f} s",
            f"{self.cost.cpu:.1f} s" if self.cost.cpu else "–",
            self.outcome,
        ]

    def data(self) -> dict[str, Any]:
        """For the JSON file."""
        return {
            "requests": self.requests,
            "sent": self.sent,
            "received": self.received,
            "wall": self.cost.wall,
            "cpu": self.cost.cpu,
            "outcome": self.outcome,
        }


class Hub:
    """The server in a process of its own.

    Args:
        folder: of its repositories.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        command = [sys.executable, "-m", "tests.support.hub_server", str(folder)]
        environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        self._process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()

    def __enter__(self) -> Hub:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()

    def variables(self, cache: Path) -> dict[str, str]:
        """What a machine with its cache in that folder finds the server by."""
        names = {"HF_ENDPOINT": self.url, "HF_TOKEN": ALICE, "HF_HOME": str(cache), "HF_HUB_CACHE": str(cache / "hub")}
        return names | {"PYTHONPATH": str(ROOT / "src")}

    def traffic(self) -> dict[str, int]:
        """Requests and bytes since the last call."""
        with urllib.request.urlopen(f"{self.url}/_traffic") as answer:
            counted: dict[str, int] = json.load(answer)
        urllib.request.urlopen(urllib.request.Request(f"{self.url}/_traffic", method="DELETE")).close()
        return counted

    def holds(self, text: str) -> bool:
        """Whether a text is in any file that was ever sent to the server, committed or not."""
        return any(text.encode() in path.read_bytes() for path in self.folder.rglob("*") if path.is_file())


def step(hub: Hub, name: str, home: Path, cache: Path, *arguments: str) -> Step:
    """Run one command on a machine and count what it asks of the Hub."""
    hub.traffic()
    cost = run(funes(*arguments), home, **hub.variables(cache))
    counted = hub.traffic()
    return Step(name, counted["requests"], counted["received"], counted["sent"], cost, "")


def publishing(hub: Hub, memory: BigMemory, work: Path) -> list[Step]:
    """Publish a memory, recall from another machine, publish a little more, recall again."""
    home, cache = work / "publisher", work / "publisher-hf"
    other, other_cache = work / "reader", work / "reader-hf"
    other.mkdir()
    shutil.copytree(memory.home, home, copy_function=following._link)
    question = memory.questions[0]
    steps = [_push(hub, f"first push, {memory.chunks:,} passages", home, cache)]

    def recall(name: str, machine: Path = other, machine_cache: Path = other_cache) -> None:
        made = step(hub, name, machine, machine_cache, "recall", question, "-k", "3", "--memory", REPO)
        made.outcome = f"{made.cost.output.count('→ get')} hits"
        steps.append(made)

    recall("recall on another machine, nothing cached")
    recall("recall again, cached")
    _remember_more(memory, home, work)
    steps.append(_push(hub, f"push of {NEW} passages more", home, cache))
    recall("recall on the other machine after it")
    steps.append(_push(hub, "push of nothing new", home, cache))
    steps.append(_push(hub, "push --compact", home, cache, "--compact"))
    recall("recall on the other machine after that")
    return steps


def _remember_more(memory: BigMemory, home: Path, work: Path) -> None:
    """Store a session of 20 passages, some 600 characters each, with vectors and codes of the real model."""
    from funes.memory.vector_store import VectorWriter
    from funes.models.encoder import load_encoder

    asked = memory.questions
    texts = [" ".join(asked[(8 * number + part) % len(asked)] for part in range(8)) for number in range(NEW)]
    with _as(home):
        rows = Machine(work, home.name).remember("new-session", texts, vectors=False)
        encoder = load_encoder(fetch=True)
        with VectorWriter(home / "memory", encoder.model_id) as writer:
            waiting = writer.without_vectors([row.id for row in rows])
            made = encoder.encode_passages(waiting.column("text").to_pylist())
            assert made.codes is not None
            writer.append(waiting, made.dense, list(made.codes), made.pieces)
            writer.finish()


def two_writers(hub: Hub, rounds: int, work: Path) -> tuple[Step, dict[str, Any]]:
    """Two machines that publish at the same time, each `rounds` times; the memory must hold everything once."""
    hub.traffic()
    machines = [Machine(work, "left"), Machine(work, "right")]
    outputs: list[str] = []

    def both() -> None:
        running = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.support.push_process", "acme/two", machine.name, str(rounds)],
                env=environment(machine.home) | hub.variables(Path(machine.variables["HF_HOME"])) | _paths(),
                cwd=ROOT,
                stdout=subprocess.PIPE,
                text=True,
            )
            for machine in machines
        ]
        for process in running:
            outputs.append(process.communicate()[0])
            if process.returncode:
                sys.exit("a writer failed")

    wall = timed(both)
    reports = [json.loads(output) for output in outputs]
    counted = hub.traffic()
    folder = _snapshot(hub, work / "checker-hf", "acme/two")
    rows, wanted = rows_in(folder), expected([machine.name for machine in machines], rounds)
    found = {(row.session_id, row.text) for row in rows}
    data = {
        "rounds": rounds,
        "pushes": 2 * rounds,
        "retries": sum(report["retries"] for report in reports),
        "wanted": len(wanted),
        "rows": len(rows),
        "vectors": len(vectors_in(folder)),
        "lost": len(wanted - found),
        "repeated": len(rows) - len(found),
    }
    outcome = (
        f"{data['rows']:,} passages of {data['wanted']:,}, {data['lost']} lost, {data['repeated']} twice; "
        f"{data['retries']} pushes tried again"
    )
    cost = Cost(wall, 0.0, 0, "")
    name = f"two machines at once, {rounds} pushes each"
    return Step(name, counted["requests"], counted["received"], counted["sent"], cost, outcome), data


def gate(hub: Hub, work: Path) -> list[Step]:
    """Plant an invented key in a memory, push, scrub, push again."""
    machine, cache = Machine(work, "careless"), work / "careless-hf"
    with _as(machine.home):
        machine.remember("s", ["what was asked", f"export GITHUB_TOKEN={TOKEN}", "what was answered"])

    def checked(name: str, *arguments: str) -> Step:
        """Run a command that may end with 2, everything held back."""
        hub.traffic()
        command = [sys.executable, "-c", _ANY_CODE, *funes(*arguments)]
        cost = run(command, machine.home, **hub.variables(cache))
        counted = hub.traffic()
        made = Step(name, counted["requests"], counted["received"], counted["sent"], cost, "")
        sent = "the key is on the Hub" if hub.holds(TOKEN) else "the key is not on the Hub"
        if arguments[0] == "push":
            report = json.loads(cost.output.rpartition("\nexit ")[0])
            made.outcome = f"{report['rows']} published, {len(report['held_back'])} held back"
        else:
            made.outcome = "the key is gone from the memory" if not _local_holds(machine) else "the key is still there"
        made.outcome += f"; exit {cost.output.rpartition('exit ')[2].strip()}; {sent}"
        return made

    return [
        checked("push of a memory with a key in it", "push", "acme/gate", "--json", "--words"),
        checked("the same again", "push", "acme/gate", "--json", "--words"),
        checked("scrub", "scrub"),
        checked("push after it", "push", "acme/gate", "--json", "--words"),
    ]


_ANY_CODE = """
import subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, text=True)
print(done.stdout + f"\\nexit {done.returncode}")
"""


def table(memory: BigMemory, rounds: int) -> Table:
    """Measure everything."""
    size = sum(path.stat().st_size for path in memory.folder.rglob("*") if path.is_file())
    with tempfile.TemporaryDirectory(dir=memory.home.parent) as name:
        work = Path(name)
        with Hub(work / "hub") as hub:
            steps = publishing(hub, memory, work)
            writers, data = two_writers(hub, rounds, work)
            steps += [writers, *gate(hub, work)]
    made = Table("sharing", f"Sharing a memory of {memory.chunks:,} passages ({size / 1e6:,.0f} MB)", COLUMNS)
    made.rows = [step.row() for step in steps]
    made.conditions = [
        f"The memory: {memory.origin}.",
        "The Hub: the test suite's server on this machine, asked by the real client; times are without a network.",
        "CPU is of the command, not of the server.",
        "Bytes: bodies of requests and answers, headers not counted.",
        "Two machines at once: each round adds three passages of its own and, in the first ten, one that both have.",
    ]
    made.data = {"steps": {step.name: step.data() for step in steps}, "writers": data, "memory_bytes": size}
    return made


def _push(hub: Hub, name: str, home: Path, cache: Path, *more: str) -> Step:
    made = step(hub, name, home, cache, "push", REPO, "--json", "--words", *more)
    report = json.loads(made.cost.output)
    made.outcome = f"{report['rows'] - report['titles']:,} passages, {report['vectors']:,} vectors"
    return made


def _snapshot(hub: Hub, cache: Path, repo: str) -> Path:
    """The newest version of a memory, fetched by a machine that has nothing of it."""
    with _variables(hub.variables(cache)):
        from funes.memory.remote.hub import HubClient
        from funes.memory.remote.snapshot import open_snapshot
        from funes.memory.uri import resolve

        return open_snapshot(resolve(repo), HubClient()).folder


def _local_holds(machine: Machine) -> bool:
    return any(TOKEN.encode() in path.read_bytes() for path in machine.home.rglob("*") if path.is_file())


def _paths() -> dict[str, str]:
    return {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}


@contextmanager
def _as(home: Path) -> Iterator[None]:
    with _variables({"FUNES_HOME": str(home)}):
        yield


@contextmanager
def _variables(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 100_000 else f"{count / 1e3:,.1f} KB"


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--chunks", type=int, help="passages of the memory [100000]")
    options.add_argument("--rounds", type=int, help="pushes of each of the two writers [50]")
    options.add_argument("--home", type=Path, metavar="DIR", help="publish a copy of this FUNES_HOME's memory")
    options.add_argument("--traces", type=Path, metavar="DIR", help="the traces to build the memory of")
    given = options.parse_args()
    began = start()
    chunks = given.chunks or (2_000 if given.quick else 100_000)
    memory = made(given.home, chunks, given.work, given.traces, given.quick)
    publish(table(memory, given.rounds or (3 if given.quick else 50)), began, given)


if __name__ == "__main__":
    main()
