"""Appends to a memory, one finished turn after the other, as the worker behind the hooks makes them: how it grows.

    FUNES_HOME=COPY python bench/appending.py 1500 --every 100     # JSON lines on stdout

Run on a copy: it writes to the memory. One process does all of it, so what starting a worker costs is not in it.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench_hook import Turns

TURNS_A_SESSION = 40
QUESTION = "why does the parser keep the state of the last message"


def append(turns: int, every: int, folder: Path) -> Iterator[dict[str, Any]]:
    """Finish turns, and say now and then how the memory looks.

    Args:
        turns: how many.
        every: after how many of them to look.
        folder: where the transcripts are written.

    Yields:
        `turns` so far, `passages` and `embedded` since the last look, `cpu` a turn since then in seconds, the slowest
        turn's `most`, `bytes` and `files` of the memory, `versions` kept, `recall` in seconds (a warm one, in this
        process).
    """
    from funes.commands.index import IndexOptions, run_index, run_vectors
    from funes.memory.lance import lance_module
    from funes.memory.schema import CHUNKS, VECTORS
    from funes.paths import memory_folder

    session = Turns(folder / "projects" / "-bench")
    costs: list[float] = []
    stored = embedded = 0
    for number in range(turns):
        if number and number % TURNS_A_SESSION == 0:
            session = Turns(folder / "projects" / "-bench", seed=1 + number)
        session.add()
        began = time.process_time()
        report = run_index(IndexOptions(harness="claude", traces=(session.path,), budget=0, fetch_model=False))
        embedded += run_vectors(budget=60, stop=lambda: False, passages=report.fresh).embedded
        costs.append(time.process_time() - began)
        stored += report.stored
        if (number + 1) % every == 0 or number + 1 == turns:
            memory = memory_folder()
            files = [path for path in memory.rglob("*") if path.is_file()]
            yield {
                "turns": number + 1,
                "passages": stored,
                "embedded": embedded,
                "cpu": sum(costs) / len(costs),
                "most": max(costs),
                "bytes": sum(path.stat().st_size for path in files),
                "files": len(files),
                "versions": [
                    len(lance_module().dataset(str(memory / name)).versions())
                    for name in (CHUNKS, VECTORS)
                    if (memory / name).exists()
                ],
                "recall": _recall(),
            }
            costs, stored, embedded = [], 0, 0


def _recall() -> float:
    """Seconds of a recall, the best of three."""
    from funes.commands.opened import OpenMemory
    from funes.commands.recall import recall
    from funes.search.model import RecallOptions

    memory = OpenMemory()
    walls = []
    for _ in range(4):
        began = time.perf_counter()
        recall(memory, QUESTION, RecallOptions())
        walls.append(time.perf_counter() - began)
    return min(walls[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("turns", type=int)
    parser.add_argument("--every", type=int, default=100)
    arguments = parser.parse_args()
    if not os.environ.get("FUNES_HOME"):
        parser.error("set FUNES_HOME to a copy of a memory; this never writes to the default one")
    with tempfile.TemporaryDirectory() as folder:
        for line in append(arguments.turns, arguments.every, Path(folder)):
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
