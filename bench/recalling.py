"""What a recall costs: a new process for each question, and a server that stays."""

from __future__ import annotations

from functools import partial

import mcp_client
from big_memory import BigMemory
from measure import Row, cpu_seconds, funes, percentile, resident_peak, run, spread, timed, verdict

COLD_TARGET = 1.0
WARM_TARGET = 0.12
WARM_UP = 3


def cold(memory: BigMemory, runs: int) -> Row:
    """`funes recall` as a person or a script runs it."""
    costs = [run(funes("recall", "--", question), memory.home) for question in _questions(memory, runs)]
    if silent := sum(not cost.output.startswith("[") for cost in costs):
        raise SystemExit(f"{silent} of {runs} recalls found nothing")
    wall, cpu = spread([cost.wall for cost in costs]), spread([cost.cpu for cost in costs])
    return Row(
        f"recall, cold process, {memory.chunks:,} chunks",
        f"{wall['median']:.2f} s",
        "1.0 s",
        verdict(wall["median"], cpu["median"], COLD_TARGET),
        f'`funes recall "…"`, late interaction included; wall time, median of {runs} questions, '
        f"p95 {wall['p95']:.2f} s; CPU is the median, all threads; files in the page cache",
        {"wall": wall, "cpu": cpu, "peak": max(cost.peak for cost in costs)},
        f"{cpu['median']:.2f} s",
    )


def warm(memory: BigMemory, calls: int) -> Row:
    """Calls of the tool recall to one `funes mcp` process."""
    questions = _questions(memory, calls + WARM_UP)
    with mcp_client.Server(memory.home) as server:
        server.handshake()
        first = timed(lambda: server.recall(questions[0]))
        for question in questions[1:WARM_UP]:
            server.recall(question)
        cpu = cpu_seconds(server.process)
        walls = [timed(partial(server.recall, question)) for question in questions[WARM_UP:]]
        cpu = (cpu_seconds(server.process) - cpu) / calls
        peak = resident_peak(server.process)
    wall = spread(walls)
    return Row(
        f"recall, warm server, {memory.chunks:,} chunks",
        f"{1e3 * wall['median']:.0f} ms",
        "120 ms",
        verdict(wall["median"], cpu, WARM_TARGET),
        f"the tool recall of `funes mcp`, late interaction included; wall time, median of {calls} questions, "
        f"p95 {1e3 * percentile(walls, 0.95):.0f} ms; CPU is the mean of a call, all threads; the first call "
        f"{first:.2f} s",
        {"wall": wall, "cpu": cpu, "first": first, "peak": peak},
        f"{1e3 * cpu:.0f} ms",
    )


def _questions(memory: BigMemory, count: int) -> list[str]:
    asked = memory.questions
    return [asked[number % len(asked)] for number in range(count)]
