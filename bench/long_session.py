"""The way out of a long session: a handoff, a compaction, the whole session again, or recall. Offline, deterministic.

    python bench/long_session.py                   # the team sessions beside the checkout, in a memory of all of them
    python bench/long_session.py --home DIR        # recall from this FUNES_HOME
    python bench/long_session.py --facts           # also which fact was found where

A bundle (bench/long_session/*.json) is a real session, a task that goes on from it, and five to seven facts that the
session found out and the code does not show. For each arm it is asked which of the facts the next agent would read,
and what that costs in tokens over the whole task, beyond what the task costs anyway. No model is called: what an
agent does with what it reads is not measured (docs/benchmarks.md says what that means).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import corpus
import mcp_client
import team_memory
from bundles import Bundle, find_trace, load, session_text
from handing_over import Prices, Tokens, Work, bootstrap, covered, queries, tokens
from hits import hits
from tables import Table, parser, publish, start

FEW = 3
SPARING = f"recall, {FEW} hits"
ARMS = ("nothing", "handoff", "compaction", "whole session", "recall", SPARING)
ASKING = 40
"""Tokens of the request to write a handoff or a summary, and of a tool call around its arguments."""

WINDOW = 200_000
"""Tokens that a model takes; a longer session cannot be resumed."""


@dataclass(slots=True)
class Reading:
    """What an arm gives the next agent.

    Attributes:
        text: what it reads.
        paid: tokens in addition to those of the task alone.
        produced: of them, those for writing the handoff or the summary, once.
    """

    text: str
    paid: Tokens
    produced: Tokens


def arms(bundle: Bundle, session: str, server: mcp_client.Server, work: Work) -> dict[str, Reading]:
    """Every arm of one bundle.

    Args:
        bundle: the bundle.
        session: what the session's agent had in its context in the end.
        server: serves the memory.
        work: the task's own requests.
    """
    alone = work.run()
    read = {"nothing": Reading("", Tokens(), Tokens())}
    for name, text in (("handoff", bundle.handoff), ("compaction", bundle.summary)):
        # Written at the end of the session, whose context is in the cache.
        produced = Tokens(cache_write=ASKING, cache_read=tokens(session), output=tokens(text))
        read[name] = Reading(text, work.run(tokens(text)) - alone + produced, produced)
    read["whole session"] = Reading(session, work.run(tokens(session)) - alone, Tokens())
    definitions = tokens(json.dumps(server.tools) + server.instructions)
    for name, sparing in (("recall", False), (SPARING, True)):
        calls, answers = recalled(bundle, server, sparing)
        read[name] = Reading("\n".join(answers), work.run(definitions, calls) - alone, Tokens())
    return read


def recalled(bundle: Bundle, server: mcp_client.Server, sparing: bool) -> tuple[list[tuple[float, float]], list[str]]:
    """Ask as the task suggests.

    Args:
        bundle: whose task it is.
        server: serves the memory.
        sparing: take few hits without neighbours and read nothing more; else read around the best hit of each
            question.

    Returns:
        Tokens of each call and its result, and the results.
    """
    calls, answers, reads = [], [], []

    def call(tool: str, **arguments: object) -> str:
        answer = server.call(tool, **arguments)
        calls.append((tokens(json.dumps(arguments)) + ASKING, tokens(answer)))
        answers.append(answer)
        return answer

    for query in queries(bundle.task):
        if sparing:
            call("recall", query=query, k=FEW, neighbors=0)
        else:
            reads += [(hit.session, hit.turn) for hit in hits(call("recall", query=query))[:1]]
    for session, turn in dict.fromkeys(reads):
        call("get", session=session, turn=turn, window=1)
    return calls, answers


def table(bundles: Sequence[Bundle], read: Sequence[dict[str, Reading]], prices: Prices) -> Table:
    """The table of the arms, over all bundles."""
    columns = [
        "arm", "facts read", "of the independent ones", "tokens read", "cost, thousands of input tokens",
        "of that, producing", "cost per covered fact (95 % interval)",
    ]  # fmt: skip
    rows: list[list[str]] = []
    data = {}
    for arm in ARMS:
        found = [
            [covered(fact.patterns, one[arm].text) for fact in bundle.facts]
            for bundle, one in zip(bundles, read, strict=True)
        ]
        costs = [one[arm].paid.cost(prices) for one in read]
        groups = [[cost, float(sum(marks))] for cost, marks in zip(costs, found, strict=True)]
        facts, total = sum(map(sum, found)), sum(map(len, found))
        independent = [
            hit
            for bundle, marks in zip(bundles, found, strict=True)
            for fact, hit in zip(bundle.facts, marks, strict=True)
            if fact.source == "question"
        ]
        low, high = bootstrap(groups, cost_per_fact)
        share_low, share_high = bootstrap([[float(sum(marks)), float(len(marks))] for marks in found], ratio)
        producing = sum(one[arm].produced.cost(prices) for one in read) / len(read)
        each_fact = f"{cost_per_fact(groups):,.0f} ({low:,.0f} to {high:,.0f})" if facts and sum(costs) else "–"
        rows.append(
            [
                arm,
                f"{facts} of {total}, {100 * facts / total:.0f} % ({100 * share_low:.0f} to {100 * share_high:.0f})",
                f"{sum(independent)} of {len(independent)}",
                f"{sum(tokens(one[arm].text) for one in read) / len(read):,.0f}",
                f"{sum(costs) / len(costs) / 1000:,.1f}",
                f"{producing / 1000:,.1f}",
                each_fact,
            ]
        )
        data[arm] = {
            "found": {bundle.name: each for bundle, each in zip(bundles, found, strict=True)},
            "cost": dict(zip([bundle.name for bundle in bundles], costs, strict=True)),
            "tokens": {bundle.name: tokens(one[arm].text) for bundle, one in zip(bundles, read, strict=True)},
        }
    return Table("long-session", "The way out of a long session", columns, rows, [], {"arms": data})


def cost_per_fact(groups: Sequence[Sequence[float]]) -> float:
    """Total cost over total covered facts of some bundles, NaN when none is covered."""
    facts = sum(group[1] for group in groups)
    return sum(group[0] for group in groups) / facts if facts else float("nan")


def ratio(groups: Sequence[Sequence[float]]) -> float:
    """Sum of the first numbers over the sum of the second ones."""
    return sum(group[0] for group in groups) / sum(group[1] for group in groups)


def by_chance(bundles: Sequence[Bundle], read: Sequence[dict[str, Reading]], arm: str) -> float:
    """Share of the facts that match what the arm reads for the next bundle, which is about something else."""
    total = found = 0
    for number, bundle in enumerate(bundles):
        other = read[(number + 1) % len(bundles)][arm].text
        total += len(bundle.facts)
        found += sum(covered(fact.patterns, other) for fact in bundle.facts)
    return found / total


def break_even(read: Sequence[dict[str, Reading]], prices: Prices, arm: str) -> float:
    """How many handoffs can be written for what an arm costs, when one of them is read."""
    paid = sum(one[arm].paid.cost(prices) for one in read)
    writing = sum(one["handoff"].produced.cost(prices) for one in read)
    reading = sum(one["handoff"].paid.cost(prices) for one in read) - writing
    return (paid - reading) / writing


def conditions(bundles: Sequence[Bundle], sizes: Sequence[float], memory: str, work: Work, prices: Prices) -> list[str]:
    """What a reader of the table has to know."""
    material = (
        f"{len(bundles)} bundles, {sum(len(bundle.facts) for bundle in bundles)} facts; sessions of {min(sizes):,.0f} "
        f"to {max(sizes):,.0f} tokens ({sum(sizes) / len(sizes):,.0f} on average, thinking left out); 4 characters are "
        "counted as a token. Independent facts are what questions of the retrieval set ask for, which others wrote; "
        "the rest, the tasks, handoffs and summaries are the benchmark author's."
    )
    priced = (
        f"The task: {work.base:,.0f} tokens of prompt, {work.requests} requests with {work.added:,.0f} tokens of tool "
        f"results and {work.output:,.0f} of output each; every request reads what came before from the cache. Costs "
        f"are in tokens of uncached input, with cache write {prices.cache_write}, cache read {prices.cache_read}, "
        f"output {prices.output}, and only what an arm adds to the task alone."
    )
    written = (
        "Handoff and compaction: reading the session once from the cache and writing the text, charged once; then the "
        "text is in the prompt. Whole session: resumed with a cold cache."
    )
    recalling = (
        f"Recall: `funes mcp` over {memory}; tool definitions and instructions in every request; a question for the "
        "topic and one for each sentence of the task, 8 hits each, then `get` with one turn on either side for the "
        f"best hit of each; each call is a request of its own. {SPARING.capitalize()}: the same questions, without "
        "neighbours and without `get`."
    )
    return [material, priced, written, recalling]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--home", type=Path, metavar="DIR", help="recall from this FUNES_HOME")
    options.add_argument("--traces", type=Path, metavar="DIR", help="the unpacked team sessions")
    options.add_argument("--budget", type=float, default=600, metavar="S", help="seconds for the memory's vectors")
    options.add_argument("--facts", action="store_true", help="say which fact was found by which arm")
    options.add_argument("--requests", type=int, default=Work().requests, metavar="N", help="requests of the task")
    arguments = options.parse_args()
    began = start()
    bundles, traces, home, memory = _material(arguments)
    if not bundles:
        print("Skipped: none of the sessions is here; put the shared corpus beside the checkout or name --traces.")
        return
    work, prices = Work(requests=arguments.requests), Prices()
    sessions = [session_text(trace, bundle.until) for bundle, trace in zip(bundles, traces, strict=True)]
    with mcp_client.Server(home) as server:
        server.handshake()
        read = [arms(bundle, session, server, work) for bundle, session in zip(bundles, sessions, strict=True)]
    result = table(bundles, read, prices)
    result.conditions = conditions(bundles, [tokens(session) for session in sessions], memory, work, prices)
    chance = {arm: by_chance(bundles, read, arm) for arm in ARMS[1:]}
    shares = ", ".join(f"{arm} {100 * share:.0f} %" for arm, share in chance.items())
    result.conditions.append(f"By chance, facts of one bundle in what an arm reads for another: {shares}.")
    result.data["by_chance"] = chance
    for arm in ("recall", SPARING):
        written = break_even(read, prices, arm)
        result.conditions.append(
            f"{arm.capitalize()} costs what reading one handoff and writing {written:.1f} of them costs: it is cheaper "
            "when fewer than one in so many of the sessions that get a handoff is ever gone on with."
        )
        result.data[f"break-even, {arm}"] = written
    publish(result, began, arguments)
    if arguments.facts:
        print()
        for bundle, one in zip(bundles, read, strict=True):
            for fact in bundle.facts:
                marks = "".join("x" if covered(fact.patterns, one[arm].text) else "." for arm in ARMS)
                print(f"{marks}  {bundle.name}: {fact.fact}")


def _material(arguments: argparse.Namespace) -> tuple[list[Bundle], list[Path], Path, str]:
    """Bundles whose sessions are here, their traces, the memory and what it is called."""
    if arguments.traces is None and not corpus.ARCHIVE.exists():
        return [], [], Path(), ""
    found = corpus.find(arguments.traces, arguments.work, quick=False)
    folder = found.folder
    if arguments.home is None:
        home, _ = team_memory.build(arguments.traces, arguments.work, 0 if arguments.quick else arguments.budget)
        memory = f"a memory of the {found.describe()}"
    else:
        home, memory = arguments.home, f"the memory in {arguments.home.name}"
    chosen, traces = [], []
    for bundle in load():
        trace = find_trace(bundle.session, folder)
        if trace is None:
            print(f"{bundle.name}: session {bundle.session} is not below {folder.name}", file=sys.stderr)
            continue
        chosen.append(bundle)
        traces.append(trace)
    return chosen, traces, home, f"{memory}, {_passages(home)}"


def _passages(home: Path) -> str:
    from funes.memory.reader import MemoryReader

    statistics = MemoryReader.open(str(home)).statistics()
    return f"{statistics.sessions} sessions, {statistics.passages:,} passages, {statistics.embedded:,} with vectors"


if __name__ == "__main__":
    main()
