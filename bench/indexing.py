"""What an index run costs: time until everything is searchable by words, and memory in both phases."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import corpus as traces
import kept
from bench_hook import Turns
from corpus import Corpus
from measure import Cost, Row, cores, funes, run, verdict

WORDS_TARGET = 60.0
MEMORY_TARGET = 1e9
LARGE = 150_000_000
"""Bytes of traces from which on the words row is comparable with its target, which is for 190 MB."""


@dataclass(slots=True)
class IndexRun:
    """An index run that was measured, and the home that it left behind."""

    home: Path
    cost: Cost
    passages: int
    sessions: int


def words(corpus: Corpus, home: Path) -> IndexRun:
    """Index traces by words, from nothing."""
    shutil.rmtree(home, ignore_errors=True)
    cost = run(funes("index", str(corpus.folder), "--yes", "--budget", "0"), home, watch=True)
    status = json.loads(run(funes("status", "--json"), home).output)
    kept.mark(home)
    return IndexRun(home, cost, status["passages"], status["sessions"])


def words_row(corpus: Corpus, indexed: IndexRun) -> Row:
    """Make the row of `words`."""
    cost = indexed.cost
    comparable = corpus.size >= LARGE
    return Row(
        f"words-searchable, {corpus.size / 1e6:,.0f} MB of traces ({indexed.sessions} sessions)",
        f"{cost.wall:.0f} s",
        "60 s, redaction included" + ("" if comparable else ", for 190 MB"),
        verdict(cost.wall, cost.cpu / cores(), WORDS_TARGET) if comparable else "",
        f"`funes index TRACES --yes --budget 0`, one run from nothing, both secret scanners; {corpus.describe()}; "
        f"{indexed.passages:,} passages; CPU is that of all processes together",
        {"wall": cost.wall, "cpu": cost.cpu, "passages": indexed.passages, "bytes": corpus.size},
        f"{cost.cpu:.0f} s",
    )


def memory_row(corpus: Corpus, indexed: IndexRun, budget: float, big: int, work: Path) -> Row:
    """Peak memory of the words phase, of the vectors phase, and of one long trace.

    Args:
        corpus: what was indexed.
        indexed: the run that indexed it by words.
        budget: seconds for vectors.
        big: size of the long trace in MB, 0 for none.
        work: where the long trace and its memory are made; both are removed.
    """
    vectors = run(funes("index", str(corpus.folder), "--yes", "--budget", f"{budget:g}"), indexed.home, watch=True)
    peaks = {"words": indexed.cost.peak, "vectors": vectors.peak}
    if big:
        peaks[f"words of one trace of {big:,} MB"] = _long_trace(big, work)
    most = max(peaks.values())
    each = ", ".join(f"{name} {peak / 1e6:,.0f} MB" for name, peak in peaks.items())
    return Row(
        "memory of an index run",
        f"{most / 1e9:.2f} GB",
        "under 1 GB, whatever the trace size",
        "no" if most >= MEMORY_TARGET else "yes" if big else "",
        f"most memory of the process tree (PSS), looked at every 0.3 s: {each}; {corpus.describe()}"
        + ("" if big else "; `--big 1200` tries one trace of 1.2 GB"),
        peaks,
    )


def _long_trace(megabytes: int, work: Path) -> int:
    folder, home = work / "long", work / "long-home"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(home, ignore_errors=True)
    session = Turns(folder / "part")
    while not session.path.exists() or session.path.stat().st_size < 4_000_000:
        session.add()
    part = session.path.read_text(encoding="utf-8")
    target = folder / "projects" / "-bench" / session.path.name
    target.parent.mkdir(parents=True)
    with target.open("w", encoding="utf-8") as stream:
        for number in range(1 + megabytes * 1_000_000 // len(part.encode())):
            renamed = traces.renamed(part, number)
            stream.write(renamed.replace(traces.renamed(session.session, number), session.session))
    peak = run(funes("index", str(target), "--yes", "--budget", "0"), home, watch=True).peak
    shutil.rmtree(folder)
    shutil.rmtree(home)
    return peak
