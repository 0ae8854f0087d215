"""What comes before a read: the user's rules about what to leave out, and what a killed `scrub` or `forget` left."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from funes.commands.ignoring import IgnoreRules, ignore_file
from funes.commands.indexing.exclusions import Exclusions
from funes.commands.indexing.report import IndexReport
from funes.commands.indexing.state import IndexState
from funes.errors import LockedError
from funes.memory.identity import newest_version, unfinished_rewrite
from funes.memory.lock import WriterLock
from funes.paths import shown
from funes.ui.reasons import is_decided

if TYPE_CHECKING:
    from funes.memory.sessions import SessionSummary


def apply_exclusions(state: IndexState, folder: Path, report: IndexReport) -> Exclusions:
    """Read the user's rules; when they have changed, have the traces read again of which something was left out.

    Args:
        state: the indexing state.
        folder: the memory's folder.
        report: told of sessions that are stored although the rules name them now.

    Raises:
        FunesError: when the rules cannot be understood.
        LockedError: when they have changed and another process is writing.
    """
    exclusions = Exclusions.load()
    fingerprint = exclusions.fingerprint()
    if fingerprint != state.exclusions:
        with WriterLock(folder, doing="indexing"):
            traces = state.traces().items()
            again = [path for path, trace in traces if any(is_decided(reason) for reason in trace.outcome.skipped)]
            state.read_again(again)
            state.exclusions = fingerprint
        if exclusions.rules.lines and newest_version(folder):
            from funes.memory.reader import MemoryReader

            report.note(stored_note(exclusions.rules, MemoryReader.open(str(folder)).sessions()))
    return exclusions


def finish_rewrite(folder: Path) -> None:
    """Remove what a killed `scrub` or `forget` left on the disk, unless another process is writing."""
    if unfinished_rewrite(folder):
        from funes.memory.rewriting import MemoryRewriter

        try:
            with MemoryRewriter(folder, wait=0) as rewriter:
                rewriter.finish()
        except LockedError:
            return  # The next run comes to it.


def matching(rules: IgnoreRules, sessions: Iterable[SessionSummary]) -> list[SessionSummary]:
    """Sessions that the ignore file names."""
    return [session for session in sessions if rules.ignores(session.workdir, session.repo)]


def stored_note(rules: IgnoreRules, sessions: Iterable[SessionSummary]) -> str:
    """A sentence about stored sessions that the ignore file names, empty when there are none."""
    count = len(matching(rules, sessions))
    if not count:
        return ""
    are = "1 stored session is" if count == 1 else f"{count:,} stored sessions are"
    return f"{are} named by {shown(ignore_file())} and will stay until you run `funes forget --ignored`."
