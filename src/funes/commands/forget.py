"""`funes forget`: sessions leave the memory for good, and stay out until that is undone."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from funes.commands.indexing.exclusions import Exclusions
from funes.commands.removal import COLUMNS, Removal, inherited
from funes.commands.stored import change_counts, change_decisions, drop_working_copies, forget_places
from funes.commands.tombstones import bury, raise_again, read_tombstones
from funes.errors import FunesError
from funes.memory.identity import unfinished_rewrite
from funes.paths import funes_home, memory_folder

if TYPE_CHECKING:
    from funes.memory.reader import MemoryReader
    from funes.memory.sessions import SessionSummary


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be forgotten: named sessions, or those that meet all of the conditions.

    Attributes:
        sessions: ids or beginnings of ids.
        repo: repository in which the session began.
        before: the session's latest turn is older.
        workdir: the session began in this folder or below it.
        ignored: the ignore file names the session.
    """

    sessions: tuple[str, ...] = ()
    repo: str | None = None
    before: datetime | None = None
    workdir: str | None = None
    ignored: bool = False

    @property
    def conditions(self) -> bool:
        """Whether there is any condition."""
        return bool(self.repo or self.before or self.workdir or self.ignored)


@dataclass(slots=True)
class ForgetReport:
    """What goes, or went.

    Attributes:
        sessions: the sessions, the sub-agents' among them.
        done: whether it was done.
        passages: passages that are removed.
        kept: passages whose text another session contains too, where it stays.
        bytes_freed: bytes on the disk before, minus after.
        notes: whatever else the user should know, a sentence each.
    """

    sessions: list[SessionSummary] = field(default_factory=list)
    done: bool = False
    passages: int = 0
    kept: int = 0
    bytes_freed: int = 0
    notes: list[str] = field(default_factory=list)


def forget(wanted: Wanted, *, do: bool) -> ForgetReport:
    """Find the sessions that are to be forgotten and, if asked to, remove them from the local memory.

    Their sub-agents' sessions go with them. A passage that another session contains too stays there. A tombstone is
    left for each, first, so that no index run brings it back.

    Args:
        wanted: which sessions.
        do: whether to remove them; otherwise nothing is changed.

    Raises:
        FunesError: when nothing was named, a name is unknown or ambiguous.
        LockedError: when another process is writing.
        NoMemoryError: when there is no memory.
    """
    from funes.memory.reader import MemoryReader

    if bool(wanted.sessions) == wanted.conditions:
        raise FunesError("Name either sessions, or conditions: --repo, --before, --workdir, --ignored.")
    if do:
        _complete()
    reader = MemoryReader.open()
    report = ForgetReport()
    report.sessions = _select(reader, wanted, report)
    report.notes += _kept_forks(reader, report.sessions)
    if not report.sessions:
        return report
    doomed = {session.id for session in report.sessions}
    if do:
        _remove(doomed, report)
    else:
        _count(doomed, report)
    return report


def undo(names: Iterable[str]) -> list[str]:
    """Take sessions off the list of the forgotten ones, so that the next index run reads their traces again.

    Args:
        names: ids or beginnings of ids; `all` for every one.

    Returns:
        The full ids.

    Raises:
        FunesError: for a name that is not on the list, or ambiguous.
    """
    from funes.commands.opened import one_of

    known = list(read_tombstones())

    def find(prefix: str) -> list[str]:
        return [prefix] if prefix in known else [session for session in known if session.startswith(prefix)]

    wanted = list(names)
    remedy = "`funes forget --list` shows what is forgotten"
    found = known if wanted == ["all"] else [one_of(name, find, "forgotten session", remedy) for name in wanted]
    raise_again(found)
    return found


def _complete() -> None:
    """Finish what a killed run has left to do."""
    from funes.memory.rewriting import MemoryRewriter

    if unfinished_rewrite(memory_folder()):
        with MemoryRewriter(memory_folder(), doing="forgetting sessions") as rewriter:
            rewriter.finish()


def _select(reader: MemoryReader, wanted: Wanted, report: ForgetReport) -> list[SessionSummary]:
    """Sessions that are wanted, and the sub-agents' sessions below them; latest activity first."""
    from funes.commands.opened import one_of

    everything = reader.sessions()
    if wanted.sessions:
        remedy = "`funes sessions` lists them"
        buried = read_tombstones()
        chosen = set()
        for name in wanted.sessions:
            if name in buried and not reader.find_sessions(name):
                report.notes.append(f"Session {name} is forgotten already.")
            else:
                chosen.add(one_of(name, reader.find_sessions, "session", remedy))
    else:
        chosen = {session.id for session in _meeting(everything, wanted)}
    while more := {item.id for item in everything if item.kind == "subagent" and item.parent_id in chosen} - chosen:
        chosen |= more
    return [session for session in everything if session.id in chosen]


def _meeting(sessions: list[SessionSummary], wanted: Wanted) -> list[SessionSummary]:
    """Sessions that meet all conditions."""
    if wanted.ignored:
        from funes.commands.ignoring import read_ignore_rules
        from funes.commands.indexing.leaving_out import matching

        sessions = matching(read_ignore_rules(), sessions)
    if wanted.repo:
        repo = wanted.repo.lower()
        sessions = [item for item in sessions if item.repo.lower() == repo or item.repo.lower().endswith(f"/{repo}")]
    if wanted.workdir:
        sessions = [item for item in sessions if _below(item.workdir, wanted.workdir)]
    if wanted.before:
        sessions = [item for item in sessions if item.last_ts is not None and item.last_ts < wanted.before]
    return sessions


def _below(workdir: str, folder: str) -> bool:
    stem = folder.rstrip("/\\")
    return workdir == stem or workdir.startswith((f"{stem}/", f"{stem}\\"))


def _kept_forks(reader: MemoryReader, sessions: Collection[SessionSummary]) -> list[str]:
    """Say which sessions were forked from those that go: they repeat what was said."""
    gone = {session.id for session in sessions}
    forks = [item.id for item in reader.sessions() if item.parent_id in gone and item.id not in gone]
    if not forks:
        return []
    return [f"Forked from these, and kept unless you name them too: {', '.join(forks)}."]


def _count(doomed: set[str], report: ForgetReport) -> None:
    from funes.memory.handle import TableHandle
    from funes.memory.schema import CHUNKS

    rows = TableHandle(memory_folder(), CHUNKS).scan(COLUMNS, with_row_address=True)
    removal = Removal(rows, doomed)
    report.passages, report.kept = removal.passages, len(removal.heirs)


def _remove(doomed: set[str], report: ForgetReport) -> None:
    from funes.memory.reader import MemoryReader
    from funes.memory.rewriting import MemoryRewriter

    folder = memory_folder()
    with MemoryRewriter(folder, doing="forgetting sessions") as rewriter:
        rules = Exclusions.load().fingerprint()
        bury(doomed)
        before = _bytes(folder)
        removal = Removal(rewriter.scan(COLUMNS), doomed)
        report.passages, report.kept = removal.passages, len(removal.heirs)
        # The rows come last: as long as they are there, the command can be run again.
        report.notes += change_decisions(MemoryReader.open(), doomed)
        _drop_events(doomed)
        forget_places(removal.changes)
        rewriter.replace({**dict.fromkeys(removal.addresses, ()), **inherited(rewriter, removal)})
        change_counts(removal.changes, (rules, Exclusions.load().fingerprint()))
        rewriter.finish()
        report.notes += drop_working_copies()
        report.bytes_freed = before - _bytes(folder)
    report.done = True


def _drop_events(doomed: set[str]) -> None:
    """Take events of the sessions out of the spool: they quote the last answer."""
    from funes.commands.following.events import Spool, read_event

    spool = Spool(funes_home())
    for name in spool.waiting():
        event = read_event(spool.folder / name)
        if event.session in doomed:
            event.done()


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
