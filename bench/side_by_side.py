"""funes and other programs on the same sessions with the same questions, in one run.

    python bench/side_by_side.py                       # every program that is on PATH
    python bench/side_by_side.py --path DIR --path DIR # look for programs in these folders, too
    python bench/side_by_side.py --home DIR            # funes with this FUNES_HOME instead of indexing anew
    python bench/side_by_side.py --only bm25,funes

Each program runs at its defaults in a HOME of its own, and is asked the answerable questions of the retrieval set in
full. Programs show different things, sessions or passages, so what all can be graded by is the session, and besides
whether what is shown for a result contains the answer. A program that is not there is named with the reason.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

import corpus
import team_memory
from intervals import interval
from measure import ROOT, percentile
from peers.base import Found, Peer
from peers.bm25 import Bm25
from peers.code_recall import CodeRecall
from peers.convo_recall import ConvoRecall
from peers.deja import Deja
from peers.ours import Funes, FunesWords
from tables import Table, parser, publish, start

QUESTIONS = ROOT.parent / "shared" / "eval" / "team-questions.jsonl"
KINDS: dict[str, type[Peer]] = {
    "funes": Funes,
    "words": FunesWords,
    "bm25": Bm25,
    "deja": Deja,
    "code-recall": CodeRecall,
    "convo-recall": ConvoRecall,
}
COUNT = 10
COLUMNS = ["program", "index", "session @1", "session @5", "MRR", "answer shown @5", "nothing found", "p50 / p95"]


def grade(found: Sequence[Found], session: str, must: Sequence[str]) -> dict[str, float]:
    """Grade the results of one question.

    Args:
        found: results, best first.
        session: the session that answers.
        must: patterns that an answer has to match, all in one result.
    """
    sessions = list(dict.fromkeys(one.session for one in found))
    rank = sessions.index(session) + 1 if session in sessions else 0
    shown = any(all(re.search(pattern, one.text, re.IGNORECASE | re.DOTALL) for pattern in must) for one in found[:5])
    return {
        "session @1": float(rank == 1),
        "session @5": float(0 < rank <= 5),
        "MRR": 1 / rank if rank else 0.0,
        "answer shown @5": float(shown),
        "nothing found": float(not found),
    }


def measure(peer: Peer, questions: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Index, ask everything, and end the program."""
    peer.prepare()
    began = time.perf_counter()
    peer.build()
    built = time.perf_counter() - began
    grades, walls = [], []
    for question in questions:
        began = time.perf_counter()
        found = peer.search(question["question"], COUNT)
        walls.append(time.perf_counter() - began)
        grades.append(grade(found, question["session_id"], question["must"]))
    peer.close()
    return {
        "version": peer.version,
        "how": peer.how,
        "given": isinstance(peer, Funes) and peer.given is not None,
        "index": built,
        "walls": walls,
        "grades": {metric: [one[metric] for one in grades] for metric in grades[0]},
    }


def table(measured: dict[str, dict[str, Any]], absent: dict[str, str]) -> Table:
    """Make the table.

    Args:
        measured: by name of the program, what `measure` gave.
        absent: why the others are missing.
    """
    result = Table("peers", "Side by side with other programs", COLUMNS)
    for name, one in measured.items():
        walls, cells = one["walls"], []
        for metric, values in one["grades"].items():
            low, high = interval(values)
            text = f"{100 * mean(values):.1f} ({100 * low:.1f}–{100 * high:.1f})"
            cells.append(f"{mean(values):.3f} ({low:.3f}–{high:.3f})" if metric == "MRR" else text)
        cells[-1] = f"{100 * mean(one['grades']['nothing found']):.0f} %"
        made = "made before" if one["given"] else f"{one['index']:.0f} s"
        result.rows.append([name, made, *cells, f"{1e3 * median(walls):.0f} / {1e3 * percentile(walls, 0.95):.0f} ms"])
    for name, reason in absent.items():
        result.rows.append([name, f"missing: {reason}", *[""] * (len(COLUMNS) - 2)])
    result.data = {"measured": measured, "missing": absent}
    return result


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--only", type=lambda text: text.split(","), default=list(KINDS), metavar="NAMES")
    options.add_argument("--traces", type=Path, metavar="DIR", help="the unpacked team sessions")
    options.add_argument("--home", type=Path, metavar="DIR", help="a FUNES_HOME with these sessions")
    options.add_argument("--path", action="append", default=[], metavar="DIR", help="where to look for programs, too")
    options.add_argument("--budget", type=float, default=600, metavar="S", help="seconds for funes's vectors")
    options.add_argument("--count", type=int, default=0, metavar="N", help="ask only so many questions, spread evenly")
    arguments = options.parse_args()
    began = start()
    os.environ["PATH"] = os.pathsep.join([*arguments.path, os.environ.get("PATH", "")])
    if unknown := set(arguments.only) - set(KINDS):
        sys.exit(f"There is no driver {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}.")
    if not QUESTIONS.exists():
        print(f"Skipped: there is no {QUESTIONS.relative_to(ROOT.parent)} beside the checkout.")
        return
    lines = map(json.loads, QUESTIONS.read_text(encoding="utf-8").splitlines())
    questions = [line for line in lines if line["gold_turns"]]
    count = min(len(questions), 20 if arguments.quick else arguments.count or len(questions))
    questions = [questions[number * len(questions) // count] for number in range(count)]
    traces = corpus.find(arguments.traces, arguments.work, arguments.quick)
    folder = next(iter(traces.folder.rglob("projects")), traces.folder)
    measured, absent = {}, {}
    for name in arguments.only:
        peer = _peer(KINDS[name], arguments, folder)
        if reason := peer.missing():
            absent[peer.name] = reason
        else:
            measured[peer.name] = measure(peer, questions)
        print(f"{peer.name}: {reason or 'measured'}", flush=True)
    result = table(measured, absent)
    asked = (
        f"{len(questions)} answerable questions of the retrieval set, asked in full, {COUNT} results wanted, on the "
        f"{traces.describe()}; 95 % bootstrap intervals in brackets. Session: rank of the right session among the "
        "distinct sessions of the results. Answer shown: what is shown for one of the first five results matches all "
        "patterns of the answer; programs that show snippets of a session have less room for it than those that show "
        "passages."
    )
    programs = [f"{name}: {one['version']}; {one['how']}." for name, one in measured.items()]
    times = "p50 / p95 are wall times and include starting a process where there is one for each question."
    result.conditions = [asked, *programs, times]
    publish(result, began, arguments)


def _peer(kind: type[Peer], arguments: Any, folder: Path) -> Peer:
    """The driver, with the memory that funes has already."""
    work: Path = arguments.work / "peers" / kind.__name__.lower()
    if not issubclass(kind, Funes):
        return kind(work, folder)
    home: Path | None = arguments.home
    if kind is Funes and home is None:
        budget = 0 if arguments.quick else arguments.budget
        home, _ = team_memory.build(arguments.traces, arguments.work, budget)
    return kind(work, folder, home)


if __name__ == "__main__":
    main()
