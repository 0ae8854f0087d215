"""The whole benchmark: the rows of the design's table of speeds (section 12) next to their targets, then each table.

    python bench/run.py                      # or `make bench`; half an hour on two quiet cores
    python bench/run.py --quick              # smaller everything; most figures are then not comparable with the targets
    python bench/run.py --only recall,size   # some rows
    python bench/run.py --only long-session  # a table
    python bench/run.py --only rows          # all rows, no table

docs/benchmarks.md says what each row and each table means. The numbers go to bench/results/ as JSON. Each table is a
script of its own with more options; here they run one after the other at sizes that fit into the half hour.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import corpus
import indexing
from funes.errors import FunesError
from measure import Row, busy, machine
from tables import RESULTS, WIDTH, WORK, markdown

if TYPE_CHECKING:
    from big_memory import BigMemory
    from funes.models.encoder import Encoder

SIZED = ("recall", "turn", "size")
"""Rows whose target is for a memory of 100,000 chunks."""

TABLES: dict[str, tuple[str, ...]] = {
    "retrieval": ("retrieval.py", "--sets", "team,day-zero", "--sessions", "300"),
    "first-minute": ("first_minute.py", "--sessions", "300,1000,10000", "--embed", "300", "--questions", "40"),
    "latency": ("latency.py", "--cold", "10"),
    "keeping-current": ("keeping_current.py", "--appends", "150"),
    "long-session": ("long_session.py", "--budget", "300"),
    "peers": ("side_by_side.py", "--count", "60"),
    "sharing": ("sharing.py", "--chunks", "10000", "--rounds", "5"),
}
"""Scripts of the tables and the sizes at which they run here."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    commands: int
    starts: int
    traces: int
    chunks: int
    rounds: int
    cold: int
    warm: int
    turns: int
    budget: float


FULL = Sizes(commands=50, starts=20, traces=0, chunks=100_000, rounds=12, cold=20, warm=100, turns=20, budget=30)
QUICK = Sizes(commands=10, starts=5, traces=6_000_000, chunks=5_000, rounds=4, cold=3, warm=20, turns=3, budget=5)


class Bench:
    """The measurements, with what several of them need made once.

    Args:
        arguments: the command line.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.sizes = QUICK if arguments.quick else FULL
        self.work: Path = arguments.work.resolve()
        self.work.mkdir(parents=True, exist_ok=True)
        self.groups: dict[str, Callable[[], Iterable[Row]]] = {
            "commands": self._commands,
            "mcp": self._mcp,
            "words": self._words,
            "embedding": self._embedding,
            "recall": self._recall,
            "turn": self._turn,
            "size": self._size,
            "memory": self._memory,
        }

    @cached_property
    def corpus(self) -> corpus.Corpus:
        """The traces."""
        whole = corpus.find(self.arguments.traces, self.work, self.arguments.quick)
        wanted = self.sizes.traces
        return corpus.sample(whole, self.work, wanted) if wanted and whole.size > 2 * wanted else whole

    @cached_property
    def indexed(self) -> indexing.IndexRun:
        """A run that indexes the traces by words."""
        return indexing.words(self.corpus, self.work / f"words-{self.corpus.size}")

    @cached_property
    def encoder(self) -> Encoder:
        """The model."""
        from funes.models.encoder import load_encoder

        return load_encoder(fetch=True)

    @cached_property
    def memory(self) -> BigMemory:
        """The memory of 100,000 chunks."""
        import big_memory

        def words() -> Path:
            return self.indexed.home

        return big_memory.build(words, self.encoder, self.sizes.chunks, self.work, self.corpus.describe())

    def _commands(self) -> Iterable[Row]:
        import startup

        return startup.command_line(self.sizes.commands)

    def _mcp(self) -> Iterable[Row]:
        import startup

        yield startup.handshake(self.sizes.starts, self.work / "empty")

    def _words(self) -> Iterable[Row]:
        yield indexing.words_row(self.corpus, self.indexed)

    def _embedding(self) -> Iterable[Row]:
        import embedding

        yield embedding.against_onnxruntime(self.memory.home, self.encoder, self.sizes.rounds)

    def _recall(self) -> Iterable[Row]:
        import recalling

        yield recalling.cold(self.memory, self.sizes.cold)
        yield recalling.warm(self.memory, self.sizes.warm)

    def _turn(self) -> Iterable[Row]:
        import following

        yield following.turn(self.memory, self.sizes.turns)
        yield following.next_turn(self.memory, self.sizes.turns)

    def _size(self) -> Iterable[Row]:
        import sizes

        yield sizes.bytes_per_chunk(self.memory)

    def _memory(self) -> Iterable[Row]:
        yield indexing.memory_row(self.corpus, self.indexed, self.sizes.budget, self.arguments.big, self.work)


def main() -> None:
    os.environ.pop("FUNES_HOME", None)  # never the user's own memory
    bench = Bench(_arguments())
    asked = bench.arguments.only or ["rows", *TABLES]
    if unknown := set(asked) - {"rows", *bench.groups, *TABLES}:
        sys.exit(f"There is no {', '.join(sorted(unknown))}; there are rows, {', '.join([*bench.groups, *TABLES])}.")
    wanted = [name for name in bench.groups if name in asked or "rows" in asked]
    failed = _rows(bench, wanted) if wanted else []
    failed += [name for name in TABLES if name in asked and not _run_table(name, bench.arguments)]
    if failed:
        sys.exit(f"Not measured: {', '.join(failed)}.")


def _run_table(name: str, arguments: argparse.Namespace) -> bool:
    """Run a table's script; whether it came to its end."""
    script, *sizes = TABLES[name]
    if arguments.quick:
        sizes = ["--quick"]
    command = [sys.executable, str(Path(__file__).parent / script), *sizes, "--work", str(arguments.work)]
    command += ["--out", str(arguments.out)]
    if arguments.traces is not None and name != "first-minute":
        command += ["--traces", str(arguments.traces)]
    print(f"\n=== {name}: {' '.join([f'python bench/{script}', *sizes])}", flush=True)
    began = time.monotonic()
    done = subprocess.run(command, check=False).returncode
    print(f"=== {name}: {time.monotonic() - began:.0f} s", flush=True)
    return done == 0


def _rows(bench: Bench, wanted: list[str]) -> list[str]:
    """Measure rows, print them, and write their numbers; returns which could not be measured."""
    began, rows, failed = machine(), [], []
    started = time.monotonic()
    for name in wanted:
        try:
            made = list(bench.groups[name]())
        except (FunesError, SystemExit) as error:  # what a command that fails ends with; the others are measured
            made = [Row(name, "not measured", "", "", str(error))]
            failed.append(name)
        for row in made:
            if bench.arguments.quick and name in SIZED and row.met == "yes":
                row.met = ""  # smaller than the target asks for
            rows.append(row)
            print(f"[{time.monotonic() - started:4.0f} s] {row.name}: {row.figure}", flush=True)
    print()
    print(_table(rows))
    print()
    for number, row in enumerate(rows, start=1):
        print(textwrap.fill(f"{number}. {row.conditions}", WIDTH, subsequent_indent="   "))
    print(f"\n{began.describe()}")
    if busy():
        print("Other work kept this machine busy: wall times are longer than on a quiet one.")
    if bench.arguments.quick:
        print("Quick: memory and traces are smaller than the targets ask for, and the samples are small.")
    target = _write(began.as_dict(), rows, bench.arguments)
    print(f"Numbers: {target}")
    if bench.arguments.profile:
        from profile_recall import profile

        print()
        print(profile(bench.memory.home, bench.memory.questions[: bench.sizes.warm]).table())
    return failed


def _table(rows: list[Row]) -> str:
    cells = [(row.name, row.figure, row.cpu or "–", row.target, row.met or "–") for row in rows]
    return markdown(("", "measured", "CPU", "target", "met"), cells)


def _write(about: dict[str, object], rows: list[Row], arguments: argparse.Namespace) -> Path:
    now = datetime.now(UTC)
    content = {
        "time": now.isoformat(timespec="seconds"),
        "arguments": sys.argv[1:],
        "quick": arguments.quick,
        "machine": about,
        "load_after": os.getloadavg() if hasattr(os, "getloadavg") else None,
        "rows": [asdict(row) for row in rows],
    }
    target: Path = arguments.json or arguments.out / f"rows-{now:%Y%m%dT%H%M%SZ}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(content, indent=1), encoding="utf-8")
    return target.relative_to(Path.cwd()) if target.is_relative_to(Path.cwd()) else target


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a version of a few minutes")
    parser.add_argument("--only", type=lambda text: text.split(","), metavar="NAMES", help="some rows or tables")
    parser.add_argument("--traces", type=Path, metavar="DIR", help="traces to index, instead of the team sessions")
    parser.add_argument("--work", type=Path, default=WORK, help="where what is made is kept")
    parser.add_argument("--big", type=int, default=0, metavar="MB", help="index one trace of this size for its memory")
    parser.add_argument("--profile", action="store_true", help="say where a warm recall's time goes")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="DIR", help="where the numbers go")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the numbers of the rows go, instead")
    return parser.parse_args()


if __name__ == "__main__":
    main()
