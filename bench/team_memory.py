"""A memory of the team sessions with the vectors of their prose, made once and kept between runs."""

from __future__ import annotations

import json
from pathlib import Path

import corpus
import indexing
from corpus import Corpus
from measure import funes, run

PROSE = ("text", "thinking", "summary")


def build(traces: Path | None, work: Path, budget: float) -> tuple[Path, Corpus]:
    """Index the sessions by words, then embed, prose first, for at most `budget` seconds in all calls together.

    Args:
        traces: the unpacked sessions; None to find them beside the checkout, or else the examples.
        work: where the memory is kept.
        budget: seconds for vectors; a memory whose prose has all its vectors gets no more.

    Returns:
        The `FUNES_HOME`, and what was indexed.
    """
    found = corpus.find(traces, work, quick=False)
    home = work / f"team-{found.size}"
    if not (home / "memory" / "memory.json").exists():
        indexing.words(found, home)
    if budget and waiting_prose(home):
        run(funes("index", str(found.folder), "--yes", "--budget", f"{budget:g}"), home)
    return home, found


def waiting_prose(home: Path) -> int:
    """Passages of prose without a vector."""
    waiting = json.loads(run(funes("status", "--json"), home).output)["waiting_by_type"]
    return sum(waiting.get(kind, 0) for kind in PROSE)
