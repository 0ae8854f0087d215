"""`funes push`: publish what a memory lacks of the local one, once it has been scanned again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from funes.commands.publishing.destination import destination, open_target
from funes.commands.publishing.ledger import Ledger, PushState
from funes.errors import FunesError, NoMemoryError
from funes.paths import memory_folder

if TYPE_CHECKING:
    from funes.commands.indexing.report import Phase, Progress
    from funes.commands.publishing.gate import Gate, HeldBack, Verdict
    from funes.memory.remote.merge import Digests, Holdings, Missing, Places
    from funes.memory.remote.publish import Publication, Target
    from funes.memory.remote.source import Source
    from funes.memory.uri import MemoryPlace

LOCK_SECONDS = 10.0
HELD_BACK = 2
"""Exit code when there was something to publish and the gate held all of it back."""

Confirm = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class PushOptions:
    """What to publish, and where.

    Attributes:
        memory: the destination.
        sessions: only these sessions, by id or the beginning of it; empty for all.
        words: also passages that have no vector yet.
        compact: index, merge and clean up all of the destination.
        yes: publish without asking, even to a memory that has nothing in common with this one.
        ask: ask before a first push, whatever the destination holds.
        wait: seconds to wait for another push of this machine to the same memory.
    """

    memory: str
    sessions: tuple[str, ...] = ()
    words: bool = False
    compact: bool = False
    yes: bool = False
    ask: bool = False
    wait: float = LOCK_SECONDS


@dataclass(slots=True)
class PushReport:
    """What came of a push.

    Attributes:
        label: the destination.
        done: what was published.
        held: blocks and titles that the gate held back.
        all_held: whether there were passages to publish and all of them were held back.
        sessions: sessions of which passages were published.
        waiting: passages that were left out because they have no vector yet.
        repo: the repository that the destination is curated for, empty when it is not curated.
        reviewed: sessions that curation lets go there.
        asked: whether somebody was asked, and agreed.
        ignored: sessions that were left out because the ignore file names them.
    """

    label: str
    done: Publication
    held: list[HeldBack] = field(default_factory=list)
    all_held: bool = False
    sessions: int = 0
    waiting: int = 0
    repo: str = ""
    reviewed: int = 0
    asked: bool = False
    ignored: int = 0

    @property
    def exit_code(self) -> int:
        """0, or `HELD_BACK`."""
        return HELD_BACK if self.all_held else 0


class DeclinedError(FunesError):
    """Somebody was asked and does not want it."""


def push(options: PushOptions, progress: Progress | None = None, confirm: Confirm | None = None) -> PushReport:
    """Publish what a memory lacks.

    Args:
        options: what and where.
        progress: told how far it is; None to work silently.
        confirm: asked a question that ends in "?"; None where there is nobody to ask.

    Raises:
        NoMemoryError: when there is no local memory.
        DeclinedError: when somebody who was asked does not want it; nothing was sent.
        FunesError: when it cannot be published; nothing was sent then, and `funes status` shows why.
    """
    label, place = destination(options.memory)
    if place.revision:  # said before it counts as a failed push to the main branch
        raise FunesError(
            f"{options.memory} names a revision, and only the main branch is published to; leave out the @ part."
        )
    ledger = Ledger(label)
    with ledger.lock(options.wait):
        state = ledger.state()
        work = ledger.work()
        try:
            return _Push(options, label, ledger, state, progress, confirm).run(place, work)
        except (DeclinedError, NoMemoryError):
            raise
        except FunesError as error:
            _note(ledger, error.message)
            raise
        except OSError as error:
            message = (
                f"Publishing to {label} failed here ({error.strerror or error}); check the free space and the "
                f"permissions of {ledger.folder}, then run the command again."
            )
            _note(ledger, message)
            raise FunesError(message) from error
        finally:
            if progress:
                progress.finish()
            ledger.clear_work()


class _Push:
    """One push."""

    def __init__(
        self,
        options: PushOptions,
        label: str,
        ledger: Ledger,
        state: PushState,
        progress: Progress | None,
        confirm: Confirm | None,
    ) -> None:
        self.options = options
        self.label = label
        self.ledger = ledger
        self.state = state
        self.progress = progress
        self.confirm = confirm
        self.source: Source
        self.target: Target
        self.offered: Places
        self._gate: Gate | None = None
        self._verdict: Verdict | None = None
        self._agreed = options.yes
        self._asked = False
        self._phase: Phase | None = None
        self._told = 0
        self._missing = self._left = 0
        self._sessions: set[str] = set()
        self._there: Holdings
        self._sent: Missing

    def run(self, place: MemoryPlace, work: Path) -> PushReport:
        from funes.commands.curation import publishable
        from funes.commands.publishing.kept_out import kept_out
        from funes.memory.remote.publish import publish
        from funes.memory.remote.source import Source
        from funes.models.pinned import VECTORS_ID

        self.source = Source(memory_folder(), work, VECTORS_ID)
        catalogue = self.source.catalogue
        # Decided after the copy was made, so that nothing is in the copy that nobody has reviewed.
        selection = publishable(self.label)
        sessions = self._named_sessions()
        if selection is not None:
            sessions = selection.sessions if sessions is None else sessions & selection.sessions
        known = frozenset(catalogue.sessions)
        ignored = kept_out() & (known if sessions is None else sessions)
        if ignored:
            sessions = (known if sessions is None else sessions) - ignored
        self.offered = catalogue.offer(sessions, words=self.options.words)
        self.target = open_target(self.label, place, work, self._tell)
        done = publish(self.target, self.source, self._choose, compact=self.options.compact)
        held = self._verdict.held if self._verdict else []
        published = self._known()
        local = [] if self.options.sessions else self.source.versions
        self.ledger.succeed(done.version, published, catalogue.passages_among(published), held, local)
        all_held = bool(self._missing and held and not self._left and not done.rows)
        report = PushReport(self.label, done, held, all_held, len(self._sessions))
        report.asked, report.ignored = self._asked, len(ignored)
        report.waiting = catalogue.waiting(sessions, self.offered)
        if selection is not None:
            report.repo, report.reviewed = selection.repo, len(selection.sessions)
        return report

    def _choose(self, there: Holdings) -> Missing:
        """Decide what is added: everything that is missing and clean, if that is what the user wants."""
        missing = self.source.catalogue.lacking(self.offered, there)
        self._there, self._sent, self._verdict = there, missing, None
        self._missing = self._left = self.source.catalogue.distinct(missing.rows)
        if not missing:
            return missing
        self._guard(there)
        self._verdict = self._scan(missing)
        left = missing.without(self._verdict.places, self.source.catalogue, there)
        self._sent, self._left = left, self.source.catalogue.distinct(left.rows)
        if left:  # else they are those of an attempt that did get through, if there are any
            self._sessions = {self.source.catalogue.sessions[place] for place in left.rows.tolist()}
        if self.options.ask and left and not self._agreed:
            what = f"{_counted(self._left, 'passage')} of {_counted(len(self._sessions), 'session')}"
            self._ask(
                f"Publish {what} to {self.label}?",
                f"{self.label} is published to for the first time, which needs somebody to agree; add --yes.",
            )
        return left

    def _guard(self, there: Holdings) -> None:
        """A first push to what anybody may read, or to what others filled with other things, may be a slip."""
        if self.state.time or self.state.approved or self._agreed:
            return
        doubts = []
        if self.target.is_public():
            doubts.append(f"{self.label} is public, so anybody can read what is published there")
        if not there.empty and not self.source.catalogue.common(there):
            doubts.append(f"{self.label} holds {len(there.texts):,} passages and none of them is in your memory")
        if doubts:
            said = ", and ".join(doubts)
            self._ask(f"{said}. Publish to it all the same?", f"{said}; add --yes if that is meant.")

    def _ask(self, question: str, refusal: str) -> None:
        if self.confirm is None:
            raise FunesError(refusal)
        if self.progress:
            self.progress.finish()
        if not self.confirm(question):
            raise DeclinedError("Nothing was published.")
        self._agreed = self._asked = True

    def _scan(self, missing: Missing) -> Verdict:
        from funes.commands.indexing.rules import prepare_rules
        from funes.commands.publishing.gate import Gate

        total = len(self.source.catalogue.blocks_of(missing.rows))
        prepare_rules(self.progress)
        self._tell("scan", 0, total)
        if self._gate is None:
            self._gate = Gate(self.source)
        return self._gate.verdict(missing, lambda blocks: self._tell("scan", self._told + blocks, total))

    def _known(self) -> Digests:
        """Digests of the local rows that the memory has now."""
        import numpy as np

        rows = self.source.catalogue.rows
        added = np.concatenate([self._sent.rows, self._sent.titles])
        return np.concatenate([rows[np.isin(rows, self._there.rows)], rows[added]])

    def _named_sessions(self) -> frozenset[str] | None:
        """Full ids of the sessions that were named, None for all."""
        if not self.options.sessions:
            return None
        from funes.commands.opened import one_of

        known = sorted(set(self.source.catalogue.sessions))

        def find(prefix: str) -> list[str]:
            return [prefix] if prefix in known else [session for session in known if session.startswith(prefix)]

        remedy = "`funes sessions` lists them"
        return frozenset(one_of(name, find, "session", remedy) for name in self.options.sessions)

    def _tell(self, phase: Phase, done: int, total: int) -> None:
        """Hand on how far the work is."""
        if self.progress is None:
            return
        if phase != self._phase:
            self.progress.start(phase, total)
            self._phase, self._told = phase, 0
        self.progress.advance(done - self._told)
        self._told = done


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _note(ledger: Ledger, message: str) -> None:
    with contextlib.suppress(FunesError, OSError):  # a full disk has no room for that either
        ledger.fail(message)
