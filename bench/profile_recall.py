"""Where a recall's time goes, stage by stage.

    python bench/profile_recall.py HOME [--questions FILE] [--runs 30]

HOME is a `FUNES_HOME` whose memory has vectors, e.g. one that bench/run.py made. The stages are timed from inside, on
the thread that runs them; where stages run at the same time their sum is more than the whole. CPU time is that of the
whole process, storage threads included, and is given for the stages that run alone.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import os
import statistics
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class Stages:
    """Collects the times of the stages of each recall."""

    def __init__(self) -> None:
        self.walls: defaultdict[str, list[float]] = defaultdict(list)
        self.cpus: defaultdict[str, list[float]] = defaultdict(list)
        self._now: defaultdict[str, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
        self._lock = threading.Lock()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time what happens inside; several times in one recall add up."""
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        with self._lock:
            before = self._now[name]
            self._now[name] = (before[0] + wall, before[1] + cpu)

    def watch(self, owner: Any, attribute: str, name: str | Callable[..., str]) -> None:
        """Time every call of a function; `name` may depend on its arguments. One that is not there is left out."""
        function = getattr(owner, attribute, None)
        if function is None:
            return

        @functools.wraps(function)
        def timed(*arguments: Any, **options: Any) -> Any:
            with self.stage(name if isinstance(name, str) else name(*arguments, **options)):
                return function(*arguments, **options)

        setattr(owner, attribute, timed)

    def next(self) -> None:
        """Begin another recall."""
        for name, (wall, cpu) in self._now.items():
            self.walls[name].append(wall)
            self.cpus[name].append(cpu)
        self._now.clear()

    def table(self) -> str:
        """Medians in ms, in the order in which the stages first ended."""
        lines = [f"{'stage':34}{'wall':>8}{'CPU':>8}  ms, medians of {len(next(iter(self.walls.values())))}"]
        for name, walls in self.walls.items():
            cpu = statistics.median(self.cpus[name])
            lines.append(f"{name:34}{1e3 * statistics.median(walls):8.1f}{1e3 * cpu:8.1f}")
        return "\n".join(lines)

    def medians(self) -> dict[str, dict[str, float]]:
        """Median seconds of each stage, `wall` and `cpu`."""
        return {
            name: {"wall": statistics.median(walls), "cpu": statistics.median(self.cpus[name])}
            for name, walls in self.walls.items()
        }


def profile(location: Path, questions: list[str], warm_up: int = 3) -> Stages:
    """Recall in this process, the stages watched.

    Args:
        location: the memory, or its home.
        questions: what to ask; each once.
        warm_up: questions asked before, untimed.
    """
    from funes.memory.reader import MemoryReader
    from funes.models.encoder import Encoder, load_encoder
    from funes.search import late, ranking
    from funes.search.model import RecallOptions

    # Not `from funes.search import pipeline`: the names that are watched are looked up in the module when it runs.
    pipeline = importlib.import_module("funes.search.pipeline")
    reader, encoder = MemoryReader.open(str(location)), load_encoder(fetch=False)
    stages = Stages()
    for question in questions[:warm_up]:
        pipeline.recall(reader, encoder, question, RecallOptions())
    stages.watch(Encoder, "encode_query", "encode the question")
    stages.watch(MemoryReader, "words", lambda _, query, where, limit: f"  words, {where.types[0]} ({limit})")
    stages.watch(MemoryReader, "nearest", lambda _, vector, where, limit: f"  nearest, {where.types[0]} ({limit})")
    stages.watch(pipeline, "find_candidates", "candidates, all lists")
    stages.watch(MemoryReader, "codes", "  codes fetched")
    stages.watch(MemoryReader, "pieces", "  word pieces fetched")
    stages.watch(MemoryReader, "passages", "passages looked up")
    stages.watch(MemoryReader, "texts", "  texts fetched")
    stages.watch(MemoryReader, "rows", "rows fetched")
    stages.watch(MemoryReader, "piece_counts", "  piece counts")
    stages.watch(late.token_codes, "best_matches", "  scored with codes")
    stages.watch(late, "_static", "  scored with word pieces")
    stages.watch(late.LateInteraction, "matches", "late interaction")
    stages.watch(ranking, "surroundings", "surroundings")
    stages.watch(ranking, "completed", "completed by context")
    stages.watch(ranking, "session_bonus", "session evidence")
    stages.watch(pipeline, "select", "selection")
    stages.watch(pipeline, "add_neighbours", "neighbours")
    for question in questions:
        with stages.stage("whole recall"):
            pipeline.recall(reader, encoder, question, RecallOptions())
        stages.next()
    return stages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("home", type=Path)
    parser.add_argument("--questions", type=Path, help="JSON lines with a field `question`")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--json", action="store_true", help="medians in seconds, as JSON")
    arguments = parser.parse_args()
    if arguments.questions:
        lines = arguments.questions.read_text(encoding="utf-8").splitlines()
        questions = [str(json.loads(line)["question"]) for line in lines if line.strip()]
    elif (made := arguments.home / "made.json").exists():
        questions = json.loads(made.read_text())["questions"]
    else:
        sys.exit("Name a file of questions: this memory was not made by bench/run.py.")
    if arguments.json:
        print(json.dumps(profile(arguments.home, questions[: arguments.runs]).medians()))
        return
    print(profile(arguments.home, questions[: arguments.runs]).table())
    print(f"load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
