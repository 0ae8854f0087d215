"""`funes curate`: a memory of one project, to which only reviewed sessions are published."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from funes.commands.curating.decisions import Verdict, decisions_file
from funes.commands.curation import Candidate, Curation, named_sessions, stop_curating, with_status
from funes.errors import FunesError
from funes.memory.uri import place_name, resolve
from funes.ui.views import SessionPreview

if TYPE_CHECKING:
    from funes.memory.reader import MemoryReader

_MARKER = re.compile(r"\[REDACTED:([^\]\s]{1,80})\]")
REPOS_NAMED = 8


@dataclass(slots=True)
class CurateReport:
    """A project memory and the sessions that could be in it.

    Attributes:
        memory: what the memory is called.
        repo: its repository.
        curated: whether the decisions count already; False for one that was only looked at.
        path: the decisions file.
        sessions: sessions of the repository, latest activity first.
        notes: whatever else the user should know, a sentence each.
    """

    memory: str
    repo: str
    curated: bool
    path: Path
    sessions: list[Candidate]
    notes: list[str] = field(default_factory=list)


class Curating:
    """One memory that is being curated.

    Args:
        memory: the memory that is published to.
        repo: the repository, None for the one that it is curated for.

    Raises:
        FunesError: for a memory that cannot be published to, an unknown one without a repository, or another
            repository than that of the decisions.
        NoMemoryError: when there is no local memory.
    """

    def __init__(self, memory: str, repo: str | None) -> None:
        from funes.memory.reader import MemoryReader

        self.reader: MemoryReader = MemoryReader.open()
        self.curation = Curation(_label(memory), repo, self.reader)
        # A decision is about a session as it was shown, however much it grows meanwhile.
        self.found = self.curation.candidates()

    def report(self) -> CurateReport:
        """The sessions and what was decided about them."""
        curation = self.curation
        found = with_status(self.found, curation.decisions)
        report = CurateReport(curation.label, curation.repo, curation.curated, decisions_file(curation.label), found)
        if not found:
            known = Counter(session.repo for session in self.reader.sessions() if session.repo)
            names = ", ".join(name for name, _ in known.most_common(REPOS_NAMED)) or "none"
            report.notes.append(f"The local memory has no session of {curation.repo}; it has sessions of: {names}.")
        return report

    def begin(self) -> None:
        """Make it a project memory: from now on only what is included is published."""
        if not self.curation.curated:
            self.curation.decide(self.found, {})

    def decide(self, sessions: Iterable[str], verdict: Verdict | None) -> None:
        """Decide about sessions, as they were when this was made.

        Args:
            sessions: full ids of sessions of the repository.
            verdict: None makes them pending.
        """
        self.curation.decide(self.found, dict.fromkeys(sessions, verdict))

    def preview(self, session: str) -> SessionPreview:
        """What to look at before deciding about a session."""
        return preview(self.reader, session)


def curate(
    memory: str,
    repo: str | None = None,
    *,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    pending: Sequence[str] = (),
    look: bool = False,
) -> CurateReport:
    """Decide about sessions without a screen.

    Args:
        memory: the memory that is published to.
        repo: the repository, None for the one that it is curated for.
        include: ids of sessions, or beginnings of them, to publish.
        exclude: those not to publish.
        pending: those to decide about later.
        look: change nothing; without it, the memory becomes a project memory.

    Raises:
        FunesError: as `Curating`; also for an id that names no session of the repository, or is named twice.
    """
    curating = Curating(memory, repo)
    if not look:
        found = curating.found
        verdicts: dict[str, Verdict | None] = {}
        wanted: tuple[tuple[Verdict | None, Sequence[str]], ...]
        wanted = (("include", include), ("exclude", exclude), (None, pending))
        for verdict, names in wanted:
            for session in named_sessions(found, names):
                if session in verdicts and verdicts[session] != verdict:
                    raise FunesError(f"Session {session} is named with two different decisions; keep one.")
                verdicts[session] = verdict
        curating.curation.decide(found, verdicts)
    return curating.report()


def stop(memory: str) -> bool:
    """Make a project memory an ordinary one again; False when it was none."""
    return stop_curating(_label(memory))


def preview(reader: MemoryReader, session: str) -> SessionPreview:
    """Read what people said in a session, and what was redacted in it."""
    from funes.commands.get import to_turns

    prompts = []
    redactions: Counter[str] = Counter()
    for turn in to_turns(reader.session_chunks(session)):
        for block in turn.blocks:
            redactions.update(_MARKER.findall(block.text))
            if turn.role == "user" and block.type == "text":
                prompts.append((turn.ts, block.text))
    return SessionPreview(prompts, dict(redactions.most_common()))


def _label(memory: str) -> str:
    place = resolve(memory)
    if place.kind == "local":
        raise FunesError(
            "The local memory holds every session; name the memory that is published to, such as ORG/NAME."
        )
    return place_name(place)
