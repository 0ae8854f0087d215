"""From nothing to the first useful recall, to everything searchable by words, to everything embedded.

    python bench/first_minute.py                                    # 1,000, 10,000 and 19,000 invented sessions
    python bench/first_minute.py --sessions 1000 --embed 1000       # embed all of 1,000
    python bench/first_minute.py --quick

For each number of sessions: `funes index SESSIONS --yes --budget 0` from nothing, while a `funes mcp` server is asked
again and again about five sessions, the oldest, the newest and three between. Recall is useful when a passage of the
session that is asked for is among the first five. Then other questions of the pile are asked, which are worded
differently from the sessions, while nothing has a vector; and as far as `--embed` says `funes index` runs until every
passage has its vector, and they are asked again.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mcp_client
from generate import Pile, Question, generate
from hits import hits
from measure import Cost, environment, funes, run, spread, timed
from tables import Table, parser, publish, sizes, start

TOP = 5
WATCHED = 5
MOST = 3
"""Of the questions that are asked meanwhile, how many make most of them."""

PAUSE = 0.5
"""Seconds between two rounds of questions while words are indexed: what is measured should not slow itself down."""


@dataclass(slots=True)
class Minute:
    """What happened with one pile.

    Attributes:
        pile: the sessions.
        passages: number of passages stored.
        first: seconds until each of the watched questions was answered, in that order; fewer when some never were.
        words: what the run that made everything searchable by words cost.
        questions: how many of the pile's questions were asked.
        found: the share of them answered in the first five, before there are vectors.
        latency: of those recalls, warm, in seconds.
        vectors: what the run that embedded cost, None when there was none.
        embedded: passages with a vector in the end.
        found_embedded: as `found`, once everything had been embedded.
    """

    pile: Pile
    passages: int
    first: list[float]
    words: Cost
    questions: int
    found: float
    latency: dict[str, float]
    vectors: Cost | None = None
    embedded: int = 0
    found_embedded: float | None = None


def minute(pile: Pile, home: Path, embed: bool, asked: int) -> Minute:
    """Measure one pile from nothing.

    Args:
        pile: the sessions.
        home: a `FUNES_HOME` that is made, replacing what is there.
        embed: whether to go on until every passage has a vector.
        asked: how many of the pile's questions to ask.
    """
    shutil.rmtree(home, ignore_errors=True)
    watched = _watched(pile.questions)
    questions = pile.questions[:: max(1, len(pile.questions) // asked)][:asked]
    with Watch(home, watched) as watch:
        words = run(funes("index", str(pile.folder), "--yes", "--budget", "0"), home, watch=True)
    found, latency = _asked(home, questions)
    made = Minute(pile, _status(home)["passages"], watch.answered, words, len(questions), found, latency)
    if embed:
        made.vectors = run(funes("index", str(pile.folder), "--yes"), home, watch=True)
        made.found_embedded, _ = _asked(home, questions)
    made.embedded = _status(home)["embedded"]
    return made


class Watch:
    """Asks a server the same questions until each has been answered once. A context manager around the index run.

    Attributes:
        answered: seconds from the beginning to each useful answer.
    """

    def __init__(self, home: Path, questions: list[Question]) -> None:
        self.answered: list[float] = []
        self._left = list(questions)
        self._home = home
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)

    def __enter__(self) -> Watch:
        self._began = time.perf_counter()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _ask(self) -> None:
        # A server that cannot have a model: before there are vectors it would only load it for nothing.
        with tempfile.TemporaryDirectory() as nothing, mcp_client.Server(self._home, FUNES_MODELS=nothing) as server:
            server.handshake()
            while self._left:
                over = self._over.is_set()
                for question in list(self._left):
                    text, failed = server.attempt("recall", query=question.plain, k=TOP)
                    if not failed and any(hit.session == question.session_id for hit in hits(text)):
                        self.answered.append(time.perf_counter() - self._began)
                        self._left.remove(question)
                if over:  # one more round was asked after the run had ended
                    return
                self._over.wait(PAUSE)


def answers(text: str, question: Question) -> bool:
    """Whether an answer of recall contains the evidence, in the right session."""
    return any(hit.session == question.session_id and question.answer in hit.text for hit in hits(text))


def _watched(questions: list[Question]) -> list[Question]:
    """Questions about sessions spread evenly over time, the oldest and the newest among them."""
    return [questions[round(place * (len(questions) - 1) / (WATCHED - 1))] for place in range(WATCHED)]


def _asked(home: Path, questions: list[Question]) -> tuple[float, dict[str, float]]:
    """Share of questions answered in the first five, and the latency of a warm server, whatever has a vector."""
    right, walls = 0, []
    with mcp_client.Server(home) as server:
        server.handshake()
        server.recall(questions[0].question)
        for question in questions:
            answer = ""

            def ask(question: Question = question) -> None:
                nonlocal answer
                answer = server.call("recall", query=question.question, k=TOP)

            walls.append(timed(ask))
            right += answers(answer, question)
    return right / len(questions), spread(walls)


def _status(home: Path) -> dict[str, Any]:
    command = funes("status", "--json")
    done = subprocess.run(command, env=environment(home), capture_output=True, text=True, check=True)
    content: dict[str, Any] = json.loads(done.stdout)
    return content


def table(made: list[Minute]) -> Table:
    """The table of some piles."""
    columns = [
        "sessions", "MB", "passages", "first useful recall", "most useful", "words searchable", "CPU, all processes",
        "peak memory", "answer in top 5, no vectors", "warm p50 / p95, no vectors", "embedded", "embedding",
        "top 5, embedded",
    ]  # fmt: skip
    rows = []
    for one in made:
        soonest = one.first[0] if one.first else None
        most = one.first[MOST - 1] if len(one.first) >= MOST else None
        vectors = one.vectors
        rate = f"{vectors.wall:,.0f} s, CPU {vectors.cpu:,.0f} s" if vectors else "not run"
        rows.append(
            [
                f"{one.pile.sessions:,}",
                f"{one.pile.size / 1e6:,.0f}",
                f"{one.passages:,}",
                "not found" if soonest is None else f"{soonest:.1f} s",
                "not found" if most is None else f"{most:.1f} s",
                f"{one.words.wall:.1f} s",
                f"{one.words.cpu:.0f} s",
                f"{one.words.peak / 1e6:,.0f} MB",
                f"{100 * one.found:.0f} %",
                f"{1e3 * one.latency['median']:.0f} / {1e3 * one.latency['p95']:.0f} ms",
                f"{one.embedded:,}",
                rate,
                "" if one.found_embedded is None else f"{100 * one.found_embedded:.0f} %",
            ]
        )
    data = [
        {
            "sessions": one.pile.sessions,
            "bytes": one.pile.size,
            "passages": one.passages,
            "first": one.first,
            "words": _cost(one.words),
            "questions": one.questions,
            "found": one.found,
            "latency": one.latency,
            "vectors": _cost(one.vectors),
            "embedded": one.embedded,
            "found_embedded": one.found_embedded,
        }
        for one in made
    ]
    corpus = (
        "Invented sessions of bench/generate.py, three quarters Claude Code's and one quarter Codex's, seed 1; one run "
        "each from an empty FUNES_HOME, both secret scanners on; traces in the page cache."
    )
    first = (
        f"First useful recall: seconds from the start of the process until one of {WATCHED} questions (about the "
        "oldest, the newest and sessions between, in the sessions' own words) has a passage of its session among the "
        f"first {TOP} hits of a running `funes mcp` server, which searches by words and was asked about twice a "
        f"second; that server's CPU time is not in the table. Most useful: until {MOST} of them had. Traces are read "
        "oldest first."
    )
    asked = (
        f"Answers: {', '.join(str(one.questions) for one in made)} questions in other words than the sessions', about "
        f"sessions spread over the year; a hit counts when it is among the first {TOP}, of the right session, and "
        "contains the cause that is asked for. They are asked once everything is searchable by words and nothing has "
        "a vector, of a server that has the model: it finds passages by words and ranks them by late interaction over "
        "their word pieces, as far as its half second for cutting them goes. Such a question is hard on purpose."
    )
    embedded = "Embedding: a second run of `funes index`, without a budget, where it was run."
    conditions = [corpus, first, asked, embedded]
    return Table("first-minute", "The first minute: from nothing to recall", columns, rows, conditions, {"runs": data})


def _cost(cost: Cost | None) -> dict[str, float] | None:
    return {"wall": cost.wall, "cpu": cost.cpu, "peak": cost.peak} if cost else None


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--sessions", type=sizes, default=[1000, 10000, 19000], metavar="N,…")
    options.add_argument("--embed", type=int, default=1000, metavar="N", help="embed everything of up to N sessions")
    options.add_argument("--keep", action="store_true", help="keep the memories that were made")
    options.add_argument("--questions", type=int, default=60, metavar="N", help="how many to ask of each pile")
    arguments = options.parse_args()
    began = start()
    counts = [200] if arguments.quick else arguments.sessions
    made = []
    for count in counts:
        pile = generate(arguments.work / f"pile-{count}", count)
        home = arguments.work / f"first-minute-{count}"
        made.append(minute(pile, home, count <= arguments.embed, arguments.questions))
        print(f"{count:,} sessions: words {made[-1].words.wall:.1f} s, embedded {made[-1].embedded:,}", flush=True)
        if not arguments.keep:
            shutil.rmtree(home)
    publish(table(made), began, arguments)


if __name__ == "__main__":
    main()
