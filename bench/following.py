"""What a finished turn costs after the hook: CPU time of the worker that makes it recallable, vectors included."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

import bench_hook
from big_memory import BigMemory
from funes import hook
from measure import Row, environment, spread

TURN_TARGET = 1.5
WARM_UP = 1
"""The first turn meets a memory without a state file, which an agent's second turn does not."""


def turn(memory: BigMemory, turns: int) -> Row:
    """Finish turns of one session, one after the other, on a copy of a memory."""
    with tempfile.TemporaryDirectory(dir=memory.home.parent) as name:
        folder = Path(name)
        home = folder / "home"
        shutil.copytree(memory.home, home, copy_function=_link)
        session = bench_hook.Turns(folder / "projects" / "-bench")
        variables = environment(home) | {"CLAUDE_CONFIG_DIR": name}
        costs = list(bench_hook._follow(session, home, variables, turns + WARM_UP))[WARM_UP:]
        last = json.loads((home / "logs" / hook.LOG).read_text(encoding="utf-8").splitlines()[-1])
    cpu = spread([seconds for _, seconds in costs])
    if last.get("error"):
        raise SystemExit(f"the worker failed: {last['error']}")
    return Row(
        "one finished turn indexed, after the hook",
        f"{cpu['median']:.2f} s of CPU",
        "1.5 s of CPU",
        "yes" if cpu["median"] <= TURN_TARGET else "no",
        f"user and system time of the worker, imports included, median of {turns} turns as long as the median turn of "
        f"the team sessions (the last one: {last['stored']} passages, {last['embedded']} of them embedded), most "
        f"{cpu['most']:.2f} s; a memory of {memory.chunks:,} chunks",
        {"cpu": cpu, "wall": spread([seconds for seconds, _ in costs])},
    )


def _link(source: str, target: str) -> str:
    """Link a table's file, which is never changed once it is written; copy any other."""
    if source.endswith((".lance", ".idx", ".manifest", ".txn")):
        os.link(source, target)
    else:
        shutil.copy2(source, target)
    return target
