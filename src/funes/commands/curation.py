"""Which sessions a project memory consists of: those of one repository that a person has reviewed and included."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from funes.commands.curating.decisions import (
    Decision,
    Decisions,
    Verdict,
    check_repo,
    deciding,
    decisions_file,
    read_decisions,
    write_decisions,
)
from funes.commands.tombstones import read_tombstones
from funes.errors import FunesError

if TYPE_CHECKING:
    from pathlib import Path

    from funes.memory.extents import SessionExtent
    from funes.memory.reader import MemoryReader
    from funes.memory.sessions import SessionSummary

Status = Literal["included", "excluded", "pending", "grown"]


@dataclass(frozen=True, slots=True)
class Selection:
    """What of the local memory may go into a project memory.

    Attributes:
        sessions: full ids of the reviewed and included sessions.
        repo: the repository they are of.
    """

    sessions: frozenset[str]
    repo: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """One session of the repository and what was decided about it.

    Attributes:
        session: what it is.
        extent: how far it reaches now.
        status: `included`, `excluded`, `pending` (never reviewed) or `grown` (pending, since it grew after its review).
        reviewed: what was decided at its review, None when there was none.
    """

    session: SessionSummary
    extent: SessionExtent
    status: Status
    reviewed: Decision | None = None


def publishable(label: str) -> Selection | None:
    """Decide which sessions of the local memory a push to a memory may publish.

    Args:
        label: the destination's name as `canonical` gives it.

    Returns:
        The reviewed and included sessions, fewer than the file names when some have grown or are gone; None when the
        memory is not curated, so that everything may go.

    Raises:
        FunesError: when the decisions cannot be read; nothing may be published then.
    """
    decisions = read_decisions(label)
    if decisions is None:
        return None
    from funes.memory.reader import MemoryReader

    found = candidates(MemoryReader.open(), decisions)
    return Selection(frozenset(item.session.id for item in found if item.status == "included"), decisions.repo)


class Curation:
    """The decisions about one memory, next to the sessions they are about.

    Args:
        label: the memory's name as `canonical` gives it.
        repo: the repository, None to take the one that the memory is curated for.
        reader: the local memory.

    Raises:
        FunesError: for a memory that is not curated and no repository, or curated for another repository.
    """

    def __init__(self, label: str, repo: str | None, reader: MemoryReader) -> None:
        self.label = label
        self.reader = reader
        kept = read_decisions(self.label)
        if kept is None and repo is None:
            raise FunesError(f"{label} is not curated; name the repository too: `funes curate {label} OWNER/REPO`.")
        if kept is not None and repo is not None and kept.repo.lower() != repo.lower():
            raise FunesError(
                f"{label} is curated for {kept.repo}; leave the repository out, "
                f"or run `funes curate {label} --off` first to start again."
            )
        self.curated = kept is not None
        self.decisions = kept or Decisions(self.label, check_repo(repo or ""))

    @property
    def repo(self) -> str:
        """The repository."""
        return self.decisions.repo

    def candidates(self) -> list[Candidate]:
        """Sessions of the repository with their status, latest activity first."""
        return candidates(self.reader, self.decisions)

    def decide(self, found: Collection[Candidate], verdicts: dict[str, Verdict | None]) -> Path:
        """Store decisions; those about other sessions stay as the file has them now.

        Args:
            found: the sessions, as they were when they were reviewed.
            verdicts: by session id; None makes a session pending.

        Returns:
            The path of the decisions file.

        Raises:
            FunesError: when a session was forgotten meanwhile; what is decided about the others is stored.
        """
        by_id = {item.session.id: item for item in found}
        with deciding():
            kept = read_decisions(self.label) or self.decisions
            gone = sorted(verdicts.keys() & read_tombstones().keys())
            for session, verdict in verdicts.items():
                kept.sessions.pop(session, None)
                if verdict is not None and session not in gone:
                    extent = by_id[session].extent
                    kept.sessions[session] = Decision(verdict, extent.blocks, extent.digest)
            self.decisions, self.curated = kept, True
            path = write_decisions(kept, {item.session.id: about(item.session) for item in found})
        if gone:
            raise FunesError(f"Session {gone[0]} has been forgotten meanwhile, so nothing is decided about it.")
        return path


def candidates(reader: MemoryReader, decisions: Decisions) -> list[Candidate]:
    """Find the sessions that began in the repository, latest activity first, with what was decided about each."""
    from funes.memory.extents import session_extents
    from funes.memory.filters import Filter

    wanted = decisions.repo.lower()
    sessions = [item for item in reader.sessions(Filter(repo=wanted)) if item.repo.lower() == wanted]
    extents = session_extents(reader.folder, [item.id for item in sessions])
    found = [Candidate(item, extents[item.id], "pending") for item in sessions if item.id in extents]
    return with_status(found, decisions)


def with_status(found: Iterable[Candidate], decisions: Decisions) -> list[Candidate]:
    """The same sessions, as far as they reached when they were found, with what is decided about them."""
    result = []
    for item in found:
        reviewed = decisions.sessions.get(item.session.id)
        result.append(Candidate(item.session, item.extent, _status(reviewed, item.extent), reviewed))
    return result


def stop_curating(label: str) -> bool:
    """Remove the decisions about a memory, so that everything may be published again; False when there are none.

    Args:
        label: the memory's name as `canonical` gives it.
    """
    path = decisions_file(label)
    if not path.exists():
        return False
    path.unlink()
    return True


def named_sessions(found: Iterable[Candidate], prefixes: Iterable[str]) -> list[str]:
    """Full ids of the candidates that prefixes of ids name.

    Raises:
        FunesError: for a prefix that names none of them, or several.
    """
    from funes.commands.opened import one_of

    ids = [item.session.id for item in found]

    def find(prefix: str) -> list[str]:
        return [prefix] if prefix in ids else [identifier for identifier in ids if identifier.startswith(prefix)]

    return [one_of(prefix, find, "session of this repository", "`--list` shows them") for prefix in prefixes]


def about(session: SessionSummary) -> str:
    """Say what a session is, for a person who reads the decisions."""
    day = session.first_ts.date().isoformat() if session.first_ts else "-"
    return f"{day} {session.harness}: {session.title or session.first_prompt}"


def _status(decision: Decision | None, extent: SessionExtent) -> Status:
    if decision is None:
        return "pending"
    if decision.digest != extent.digest or decision.blocks != extent.blocks:
        return "grown"
    return "included" if decision.verdict == "include" else "excluded"
