"""What a finished turn costs after the hook: CPU time of the worker that makes it recallable, vectors included."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import bench_hook
from big_memory import BigMemory
from funes import hook
from measure import Row, environment, spread

TURN_TARGET = 1.5
WARM_UP = 1
"""The first turn meets a memory without a state file, which an agent's second turn does not."""


def turn(memory: BigMemory, turns: int) -> Row:
    """Finish turns of one session, one after the other, on a copy of a memory, each with a worker started for it."""
    row = _row(memory, turns, bench_hook.finish_turns)
    row.name = "one finished turn indexed, after the hook"
    row.conditions = f"user and system time of the worker, imports included, {row.conditions}"
    return row


def next_turn(memory: BigMemory, turns: int) -> Row:
    """The same with the worker that the turn before has left waiting, as it does for five minutes."""
    row = _row(memory, turns, bench_hook.finish_turns_staying)
    row.name = "the same, within five minutes of the turn before"
    row.conditions = f"user and system time that one worker takes for each of several turns, {row.conditions}"
    return row


def _row(memory: BigMemory, turns: int, finish: Callable[..., Iterator[bench_hook.Cost]]) -> Row:
    with tempfile.TemporaryDirectory(dir=memory.home.parent) as name:
        folder = Path(name)
        home = folder / "home"
        shutil.copytree(memory.home, home, copy_function=_link)
        session = bench_hook.Turns(folder / "projects" / "-bench")
        variables = environment(home) | {"CLAUDE_CONFIG_DIR": name}
        costs = list(finish(session, home, variables, turns + WARM_UP))[WARM_UP:]
        last = json.loads((home / "logs" / hook.LOG).read_text(encoding="utf-8").splitlines()[-1])
    cpu = spread([cost.cpu for cost in costs])
    if last.get("error"):
        raise SystemExit(f"the worker failed: {last['error']}")
    return Row(
        "",
        f"{cpu['median']:.2f} s of CPU",
        "1.5 s of CPU",
        "yes" if cpu["median"] <= TURN_TARGET else "no",
        f"median of {turns} turns as long as the median turn of the team sessions (the last one: {last['stored']} "
        f"passages, {last.get('embedded', 0)} of them embedded), most {cpu['most']:.2f} s; a memory of "
        f"{memory.chunks:,} chunks",
        {"cpu": cpu, "wall": spread([cost.wall for cost in costs])},
    )


def _link(source: str, target: str) -> str:
    """Link a table's file, which is never changed once it is written; copy any other."""
    if source.endswith((".lance", ".idx", ".manifest", ".txn")):
        os.link(source, target)
    else:
        shutil.copy2(source, target)
    return target
