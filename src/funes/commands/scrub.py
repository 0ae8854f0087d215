"""`funes scrub`: what is stored is scanned again with the current rules, and what they find is removed for good."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from funes.commands.scrubbing.blocks import Scan, StoredBlock, stored_blocks, with_texts
from funes.commands.scrubbing.names import plan_names
from funes.commands.scrubbing.plan import Change, Plan, plan_blocks, plan_titles
from funes.commands.stored import change_counts, change_decisions, drop_working_copies, forget_places
from funes.errors import NoMemoryError
from funes.memory.identity import newest_version, unfinished_rewrite
from funes.paths import memory_folder
from funes.secrets.markers import has_markers

if TYPE_CHECKING:
    from funes.commands.indexing.report import Progress
    from funes.secrets import Redactor

VECTORS_BUDGET = 60.0
BOTH = "kf-"
"""What the ids of rules begin with that include Kingfisher's."""


@dataclass(slots=True)
class ScrubReport:
    """What was found and done.

    Attributes:
        done: whether anything was changed; False for a dry run.
        scanned: blocks scanned.
        redacted: blocks in which credentials were replaced.
        dropped: blocks that went, since they could not be made clean.
        titles: session titles in which credentials were replaced.
        names: folders, repositories, branches and tools in whose names credentials were replaced.
        counts: findings by rule.
        sessions: sessions concerned.
        renamed: turns that got another id, since theirs may have been made of a credential.
        restamped: rows that were clean and only got the id of the current rules.
        ruleset: that id.
        embedded: new passages that got their vector.
        waiting: new passages that wait for one.
        completed: whether a killed run was completed.
        notes: whatever else the user should know, a sentence each.
    """

    done: bool = False
    scanned: int = 0
    redacted: int = 0
    dropped: int = 0
    titles: int = 0
    names: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    sessions: set[str] = field(default_factory=set)
    renamed: int = 0
    restamped: int = 0
    ruleset: str = ""
    embedded: int = 0
    waiting: int = 0
    completed: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def found(self) -> bool:
        """Whether there was any credential."""
        return bool(self.redacted or self.dropped or self.titles or self.names)


Told = Callable[[int, int], None]


def scrub(
    *, stale: bool = False, dry: bool = False, told: Told | None = None, progress: Progress | None = None
) -> ScrubReport:
    """Scan the local memory again and remove what the current rules find.

    Args:
        stale: only blocks that were scanned with other rules.
        dry: only say what would be done.
        told: called with the number of blocks scanned, and of all that are to be.
        progress: told while the rules are compiled.

    Raises:
        NoMemoryError: when there is no memory.
        LockedError: when another process is writing.
    """
    folder = memory_folder()
    if not newest_version(folder):
        raise NoMemoryError(f"There is no memory in {folder} yet, so there is nothing to scrub.")
    from funes.commands.indexing.rules import prepare_rules
    from funes.secrets import Redactor, ruleset_id

    prepare_rules(progress)
    report = ScrubReport(ruleset=ruleset_id())
    redactor = Redactor()
    if redactor.missing_engine:
        report.notes.append(redactor.missing_engine)
    if dry:
        from funes.memory.handle import TableHandle
        from funes.memory.schema import CHUNKS

        table = TableHandle(folder, CHUNKS)
        _plan(
            lambda columns, condition: table.scan(columns, condition, with_row_address=True),
            redactor,
            report,
            stale,
            told,
        )
        return report
    fresh = _change(redactor, report, stale, told)
    if fresh:
        _embed(fresh, report)
    return report


def _change(redactor: Redactor, report: ScrubReport, stale: bool, told: Told | None) -> list[str]:
    """Change the tables and what knows of them; returns the ids of the new passages."""
    from funes.memory.extents import session_extents
    from funes.memory.reader import MemoryReader
    from funes.memory.rewriting import MemoryRewriter

    folder = memory_folder()
    report.completed = unfinished_rewrite(folder)
    with MemoryRewriter(folder, doing="scrubbing") as rewriter:
        plan = _plan(rewriter.scan, redactor, report, stale, told)
        forget_places(plan.changes)
        before = session_extents(folder, {session for session, _ in plan.renamed})
        rewriter.replace(plan.rows, plan.restamped, report.ruleset)
        report.notes += change_decisions(MemoryReader.open(), before=before)
        change_counts(plan.changes)
        rewriter.finish()
        if report.found or report.renamed:
            report.notes += drop_working_copies()
    report.done = True
    return plan.fresh


def _plan(scan: Scan, redactor: Redactor, report: ScrubReport, stale: bool, told: Told | None) -> Plan:
    """Scan, and plan what takes the place of what was found."""
    blocks = stored_blocks(scan)
    current = {report.ruleset}
    scope = [block for block in blocks if not stale or block.rulesets != current]
    changes: list[Change] = []
    marked: list[StoredBlock] = []
    for number, (block, text) in enumerate(with_texts(scan, scope)):
        if told is not None:
            told(number, len(scope))
        redaction = redactor.redact(text)
        report.scanned += 1
        if redaction.counts:
            changes.append(Change(block, redaction.text, redaction.counts))
            report.counts += redaction.counts
            report.sessions |= {place.session for place in block.places}
            report.dropped += redaction.text is None
            report.redacted += redaction.text is not None
        elif has_markers(text):
            marked.append(block)
    plan = Plan()
    stamps = _Stamps(report.ruleset, redactor)
    for block in scope:
        if stamps.apply(block):
            plan.restamped.update(block.addresses)
    plan_blocks(plan, scan, blocks, changes, marked, report.ruleset)
    report.renamed = len(plan.renamed)
    report.sessions |= {session for session, _ in plan.renamed}
    restamp = not redactor.missing_engine
    report.titles, found = plan_titles(plan, scan, redactor, report.ruleset, stale=stale, restamp=restamp)
    report.counts += found
    report.names, sessions, found = plan_names(plan, scan, redactor, report.ruleset)
    report.sessions |= sessions
    report.counts += found
    plan.restamped -= plan.rows.keys()
    report.restamped = len(plan.restamped)
    return plan


class _Stamps:
    """Decides which clean blocks get the id of the current rules.

    Args:
        ruleset: the id.
        redactor: what scanned; without Kingfisher, blocks that were scanned with it keep what says so.
    """

    def __init__(self, ruleset: str, redactor: Redactor) -> None:
        self._current = {ruleset}
        self._weaker = bool(redactor.missing_engine)

    def apply(self, block: StoredBlock) -> bool:
        if block.rulesets == self._current:
            return False
        return not (self._weaker and any(ruleset.startswith(BOTH) for ruleset in block.rulesets))


def _embed(fresh: list[str], report: ScrubReport) -> None:
    """Make vectors for the new passages, as far as the model is on this machine."""
    from funes.commands.index import run_vectors
    from funes.errors import FunesError
    from funes.memory.handle import TableHandle
    from funes.memory.schema import VECTORS, quoted_list

    folder = memory_folder()
    try:
        done = run_vectors(budget=VECTORS_BUDGET, stop=lambda: False, passages=fresh)
        report.notes += done.notes
    except FunesError as error:
        report.notes.append(error.message)
    if newest_version(folder, VECTORS):
        table = TableHandle(folder, VECTORS)
        for start in range(0, len(fresh), 1000):
            part = quoted_list(fresh[start : start + 1000])
            report.embedded += table.scan(["id"], f"id IN ({part})").num_rows
    report.waiting = len(fresh) - report.embedded
