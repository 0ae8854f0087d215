"""The summary of an index run: what came in, what waits, what was left out and why."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from funes.ui.reasons import decided_first
from funes.ui.safe import one_line
from funes.ui.status_text import counts

if TYPE_CHECKING:
    from funes.commands.indexing.report import IndexReport

NAMED = 10
"""Traces named for each kind of fault; `funes status` names more."""


def summary_text(report: IndexReport) -> str:
    """The summary as text; the first line says everything when nothing was new."""
    lines = [_first(report)]
    if report.parsed:
        fates = [f"{report.stored:,} stored", f"{report.copies:,} stored by another session"]
        fates.append(f"{report.known:,} already there")
        lines.append(f"passages: {report.parsed:,} parsed, {', '.join(fates)}")
    if report.embedded or report.waiting:
        lines.append(f"vectors: {report.embedded:,} made{_in_seconds(report.vectors_seconds)}, {_waiting(report)}")
    if report.skipped:
        lines.append(f"left out: {counts(decided_first(report.skipped))}")
    if report.redactions:
        lines.append(f"redacted: {counts(dict(report.redactions.most_common()))}")
    lines += _named("skipped", [(path, reason) for path, reason in report.failed])
    lines += _named("skipped", [(path, "not a trace of any harness known here") for path in report.unrecognised])
    lines += _named("partly read", report.damaged)
    lines += [f"note: {note}" for note in report.notes]
    if report.interrupted:
        lines.append("interrupted: what is stored stays, and the next run goes on from here")
    return "".join(f"{one_line(line)}\n" for line in lines)


def _first(report: IndexReport) -> str:
    traces = f"{report.traces:,} {_plural(report.traces, 'trace')}"
    if not report.read and not report.failed and report.traces and not report.interrupted:
        return f"{traces}: nothing new"
    sessions = f"{report.sessions:,} {_plural(report.sessions, 'session')}"
    if report.new_sessions:
        sessions += f", {report.new_sessions:,} of them new"
    read = f"{report.read:,} read, {report.unchanged:,} unchanged"
    return f"{traces}: {read}; {sessions}, {report.turns:,} turns{_in_seconds(report.words_seconds)}"


def _waiting(report: IndexReport) -> str:
    if report.waiting is None:
        return "the rest waits"
    if not report.waiting:
        return "none waiting"
    return f"{report.waiting:,} waiting (they are found by words; the next `funes index` goes on)"


def _named(what: str, faults: Sequence[tuple[Path | str, str]]) -> list[str]:
    lines = [f"{what}: {path}: {reason}" for path, reason in faults[:NAMED]]
    if len(faults) > NAMED:
        lines.append(f"{what}: and {len(faults) - NAMED:,} more; `funes status` lists them")
    return lines


def _in_seconds(seconds: float) -> str:
    return f" in {seconds:.1f} s" if seconds else ""


def _plural(count: int, word: str) -> str:
    return word if count == 1 else f"{word}s"
