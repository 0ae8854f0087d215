"""A memory of the team sessions with the vectors of their prose, made once and kept between runs."""

from __future__ import annotations

import json
import time
from pathlib import Path

import corpus
import indexing
import kept
from corpus import Corpus
from measure import funes, run

PROSE = ("text", "thinking", "summary")
STEP = 60.0
"""Seconds of a run of `funes index` that makes vectors: an index run would go on with the tools' passages, of which
there are three times as many, so it is asked between two of them whether the prose is done."""


def build(traces: Path | None, work: Path, budget: float) -> tuple[Path, Corpus]:
    """Index the sessions by words, then embed their prose.

    Args:
        traces: the unpacked sessions; None to find them beside the checkout, or else the examples.
        work: where the memory is kept.
        budget: most seconds for vectors in this call; they are made only as long as prose lacks some.

    Returns:
        The `FUNES_HOME`, and what was indexed.
    """
    found = corpus.find(traces, work, quick=False)
    home = work / f"team-{found.size}"
    if not kept.current(home):
        indexing.words(found, home)
    deadline = time.monotonic() + budget
    before = None
    while (left := deadline - time.monotonic()) > 0 and (waiting := waiting_prose(home)) not in (0, before):
        print(f"team memory: {waiting:,} passages of prose have no vector yet", flush=True)
        run(funes("index", str(found.folder), "--yes", "--budget", f"{min(STEP, left):.0f}"), home)
        before = waiting
    return home, found


def waiting_prose(home: Path) -> int:
    """Passages of prose without a vector."""
    waiting = json.loads(run(funes("status", "--json"), home).output)["waiting_by_type"]
    return sum(waiting.get(kind, 0) for kind in PROSE)
