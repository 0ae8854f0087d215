"""What it costs to keep a memory current: the hook, the worker of a finished turn, disk, and growth over many appends.

python bench/keeping_current.py                        # a memory of 100,000 chunks, 1,500 appends
python bench/keeping_current.py --chunks 10000 --appends 300
python bench/keeping_current.py --home DIR             # a copy of this FUNES_HOME instead of a made memory
python bench/keeping_current.py --quick
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import following
import sizes as weights
import startup
from big_memory import BigMemory, made
from measure import environment
from tables import Table, parser, publish, start

COLUMNS = ["what", "figure", "how"]


def growth(memory: BigMemory, appends: int) -> list[dict[str, Any]]:
    """Append turns to a copy of a memory; what `appending.append` yields, at fifteen points."""
    with tempfile.TemporaryDirectory(dir=memory.home.parent) as name:
        home = Path(name) / "home"
        shutil.copytree(memory.home, home, copy_function=following._link)
        script = str(Path(__file__).parent / "appending.py")
        command = [sys.executable, script, str(appends), "--every", str(max(1, appends // 15))]
        done = subprocess.run(command, env=environment(home), stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def table(memory: BigMemory, hooks: int, turns: int, appends: int) -> Table:
    """Measure everything on one memory."""
    hook = startup.command_line(hooks)[1].data
    cpu = following.turn(memory, turns).data
    parts = weights.bytes_per_chunk(memory).data
    grown = growth(memory, appends)
    last = grown[-1]
    added = sum(line["passages"] for line in grown)
    # What was merged into other files goes with the first clean-up, and is no part of what the appends add.
    before = sum(size for name, size in parts.items() if name not in weights.UNUSED) * memory.chunks
    made = Table("keeping-current", f"Keeping a memory of {memory.chunks:,} chunks current", COLUMNS)
    made.rows = [
        ["hook, foreground", f"{1e3 * hook['wall']['median']:.0f} ms wall, {1e3 * hook['cpu']['median']:.0f} ms CPU",
         f"median of {hooks}; a bare interpreter {1e3 * hook['bare']['median']:.0f} ms wall"],
        ["worker, one finished turn", f"{cpu['cpu']['median']:.2f} s CPU, {cpu['wall']['median']:.2f} s wall",
         f"median of {turns}, most {cpu['cpu']['most']:.2f} s CPU; imports, words, and vectors of prose and calls"],
        ["disk", f"{sum(parts.values()):,.0f} bytes a chunk", "every file of the memory; of that:"],
    ]  # fmt: skip
    made.rows += [[f"  {name}", f"{size:,.0f} bytes a chunk", ""] for name, size in parts.items() if size >= 10]
    for line in grown:
        disk = (
            f"{line['bytes'] / 1e6:,.0f} MB in {line['files']} files, {' + '.join(map(str, line['versions']))} versions"
        )
        cost = f"{line['cpu']:.2f} s CPU a turn, most {line['most']:.2f} s"
        made.rows.append([f"after {line['turns']:,} appends", cost, f"{disk}; a recall {1e3 * line['recall']:.0f} ms"])
    grew = (last["bytes"] - before) / max(1, added)
    made.rows.append(
        [
            "growth",
            f"{grew:,.0f} bytes a passage",
            f"{added:,} passages stored by {last['turns']:,} appends; versions and old files that they leave included",
        ]
    )
    size = (
        "A turn is as long as the median one of the team sessions (docs/benchmarks.md); CPU time is user and system, "
        "of the worker's process and those that it waits for."
    )
    appended = (
        f"Appends: {last['turns']:,} turns, one after the other, in one process, so without the half second that a "
        "worker takes to start; the indexes and the clean-up that writers do are in the figures. Each line is the "
        "mean of the turns since the line before. Recall: in the same process, the best of three."
    )
    made.conditions = [
        f"A memory of {memory.chunks:,} chunks made by bench/big_memory.py ({memory.origin}).",
        size,
        appended,
    ]
    made.data = {"hook": hook, "turn": cpu, "disk": parts, "growth": grown}
    return made


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--chunks", type=int, default=100_000, metavar="N")
    options.add_argument("--appends", type=int, default=1500, metavar="N")
    options.add_argument("--home", type=Path, metavar="DIR", help="a FUNES_HOME to copy instead of making a memory")
    options.add_argument("--traces", type=Path, metavar="DIR", help="traces to make the memory of")
    arguments = options.parse_args()
    began = start()
    quick = arguments.quick
    memory = made(arguments.home, 2000 if quick else arguments.chunks, arguments.work, arguments.traces, quick)
    result = table(memory, 5 if quick else 50, 3 if quick else 20, 15 if quick else arguments.appends)
    publish(result, began, arguments)


if __name__ == "__main__":
    main()
