"""Latency of recall by size of the memory: a new process for each question, a server that stays, stage by stage.

python bench/latency.py                                   # 1,000, 10,000 and 100,000 chunks
python bench/latency.py --chunks 1000000                  # 3 GB of disk, and half an hour to make
python bench/latency.py --home DIR                        # the memory of this FUNES_HOME
python bench/latency.py --quick
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import recalling
from big_memory import BigMemory, made
from measure import environment
from tables import Table, markdown, parser, publish, sizes, start

COLUMNS = [
    "chunks", "disk", "cold CLI p50 / p95", "CPU", "peak", "warm MCP p50 / p95", "CPU", "first call", "peak",
]  # fmt: skip


def measure(memory: BigMemory, cold: int, warm: int) -> dict[str, Any]:
    """Numbers of one memory.

    Args:
        memory: what is searched.
        cold: questions that get a process each.
        warm: questions to one server.
    """
    script = str(Path(__file__).parent / "profile_recall.py")
    command = [sys.executable, script, str(memory.home), "--json", "--runs", str(min(warm, 30))]
    profiled = subprocess.run(command, env=environment(memory.home), capture_output=True, text=True, check=False)
    stages = json.loads(profiled.stdout) if profiled.returncode == 0 else {}
    if not stages:
        print(f"stages not measured: {profiled.stderr.strip()[-300:]}", file=sys.stderr)
    return {
        "chunks": memory.chunks,
        "origin": memory.origin,
        "bytes": sum(path.stat().st_size for path in memory.folder.rglob("*") if path.is_file()),
        "cold": recalling.cold(memory, cold).data,
        "warm": recalling.warm(memory, warm).data,
        "stages": stages,
    }


def table(measured: list[dict[str, Any]], cold: int, warm: int) -> Table:
    """Make the table of `measure`'s numbers."""
    result = Table("latency", "Latency of recall by size of the memory", COLUMNS)
    for one in measured:
        process, server = one["cold"], one["warm"]
        result.rows.append(
            [
                f"{one['chunks']:,}",
                f"{one['bytes'] / 1e6:,.0f} MB",
                f"{process['wall']['median']:.2f} / {process['wall']['p95']:.2f} s",
                f"{process['cpu']['median']:.2f} s",
                f"{process['peak'] / 1e6:,.0f} MB",
                f"{1e3 * server['wall']['median']:.0f} / {1e3 * server['wall']['p95']:.0f} ms",
                f"{1e3 * server['cpu']:.0f} ms",
                f"{server['first']:.2f} s",
                f"{server['peak'] / 1e6:,.0f} MB",
            ]
        )
    memories = (
        f"Memories made by bench/big_memory.py ({measured[0]['origin']}), or the one that was named: real text, "
        "made-up vectors above two thousand passages, so what is found says nothing and what it costs does."
    )
    calls = (
        f"Cold: `funes recall QUESTION`, a process for each of {cold} questions, files in the page cache; peak is the "
        f"most resident memory of any. Warm: the tool recall of one `funes mcp`, {warm} questions after three to warm "
        "up; peak is that process's resident memory, mapped files included. Late interaction is on."
    )
    result.conditions = [memories, calls]
    result.data = {"memories": measured}
    return result


def stages_text(measured: list[dict[str, Any]]) -> str:
    """Medians of the stages in milliseconds, a column for each size."""
    with_stages = [one for one in measured if one["stages"]]
    names = list(dict.fromkeys(name for one in with_stages for name in one["stages"]))
    rows = []
    for name in names:
        found = [one["stages"].get(name) for one in with_stages]
        rows.append([name, *(f"{1e3 * one['wall']:.1f} / {1e3 * one['cpu']:.1f}" if one else "" for one in found)])
    return markdown(["stage, ms wall / CPU", *(f"{one['chunks']:,}" for one in with_stages)], rows)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--chunks", type=sizes, default=[1000, 10_000, 100_000], metavar="N,…")
    options.add_argument("--cold", type=int, default=20, metavar="N", help="questions that get a process each")
    options.add_argument("--warm", type=int, default=100, metavar="N", help="questions to the server")
    options.add_argument("--home", type=Path, metavar="DIR", help="measure this FUNES_HOME, whose memory has vectors")
    options.add_argument("--traces", type=Path, metavar="DIR", help="traces to make the memories of")
    arguments = options.parse_args()
    began = start()
    quick = arguments.quick
    counts = [1000, 5000] if quick else [0] if arguments.home else arguments.chunks
    cold, warm = (3, 20) if quick else (arguments.cold, arguments.warm)
    measured = []
    for chunks in counts:
        memory = made(arguments.home, chunks, arguments.work, arguments.traces, quick)
        measured.append(measure(memory, cold, warm))
        print(f"{measured[-1]['chunks']:,} chunks measured", flush=True)
    result = table(measured, cold, warm)
    publish(result, began, arguments)
    print(f"\nStages, medians of one process:\n\n{stages_text(measured)}")


if __name__ == "__main__":
    main()
