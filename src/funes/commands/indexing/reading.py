"""One trace to rows: parse, elide, redact, cut. Runs in worker processes, so nothing here imports Lance or Arrow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from funes.chunking import elide_data_uris, passage_id, split_text
from funes.commands.indexing.exclusions import Exclusions
from funes.commands.indexing.messages import Batch, BlockRows, Finished, ReadJob, SessionInfo
from funes.commands.indexing.state import TraceOutcome
from funes.secrets import Redaction, Redactor, ruleset_id
from funes.secrets.markers import same_but_markers
from funes.traces.jsonl import resume_point
from funes.traces.model import Block, ReadReport, Session, Turn
from funes.traces.registry import source_named
from funes.traces.repo import repo_identity
from funes.traces.text import ASK_PROMPT
from funes.ui.reasons import FORGOTTEN, IGNORED_TURN

BATCH_CHARACTERS = 1 << 20
"""About how much text goes into one batch: bounds the memory, whatever the size of a trace or of one block."""


RECENT_CHARACTERS = 4 << 20
RECENT_TEXTS = 64

ASKED = "asked"
"""Key of a resume point: the sessions in which `funes ask` had an agent answer."""

LEFT_OUT = "left out"
"""Key of a resume point: the sessions that were counted as left out by the user's will."""

_PLAIN = re.compile(r"[\w.-]{0,40}")


class TraceReader:
    """Reads traces one after the other, keeping the secret scanner and what was learned about folders.

    Args:
        remembered: repositories of working directories, from earlier runs.
        exclusions: what to leave out.
    """

    def __init__(self, remembered: dict[str, str], exclusions: Exclusions | None = None) -> None:
        self.exclusions = exclusions or Exclusions()
        self._remembered = dict(remembered)
        self._repos: dict[str, str] = {}
        self._clean: dict[str, bool] = {}
        self._recent: dict[str, Redaction] = {}
        self._recent_characters = 0

    def read(self, job: ReadJob) -> Iterator[Batch | Finished]:
        """Read one trace; whatever is wrong with it ends up in the outcome of the `Finished` that comes last."""
        reading = _Reading(job, self)
        try:
            yield from reading.batches()
        except OSError as error:
            reading.fail(f"it cannot be read: {error.strerror or error}")
        except Exception as error:
            # A fault of one parser on one trace (also another package's) must not stop the others; it is reported.
            reading.fail(f"the reader failed: {type(error).__name__}: {str(error)[:200]}")
        self._recent.clear()
        self._recent_characters = 0
        yield reading.finish()

    def redact(self, text: str, outcome: TraceOutcome) -> str | None:
        """Replace credentials; None, and counted as skipped, when the text cannot be made clean."""
        redaction = self._recent.get(text) or self._redactor.redact(text)
        if redaction.text is None:
            outcome.skipped[f"credentials could not be removed: {redaction.dropped}"] += 1
        else:
            outcome.redactions.update(redaction.counts)
        return redaction.text

    def nameable(self, text: str) -> str:
        """Return what of a text an identifier may be made of: all of it, or what is left without its credentials.

        Rules may have several names for one credential, and no identifier depends on them. What was scanned for its
        identifier is stored next, as a rule, and not scanned twice.
        """
        if not text:
            return text
        redaction = self._recent.get(text)
        if redaction is None:
            redaction = self._recent[text] = self._redactor.redact(text)
            self._recent_characters += len(text)
            while len(self._recent) > RECENT_TEXTS or (
                len(self._recent) > 1 and self._recent_characters > RECENT_CHARACTERS
            ):
                oldest = next(iter(self._recent))
                self._recent_characters -= len(oldest)
                del self._recent[oldest]
        return same_but_markers(redaction.text or "") if redaction.counts else text

    def keeps(self, resume: dict[str, Any], earlier: dict[str, Any] | None) -> bool:
        """Whether a resume point may be stored: what it quotes of the trace, a title say, has no credential in it.

        Args:
            resume: the new one.
            earlier: the one that is stored; what that quotes was looked at then.
        """
        known = set(_strings(earlier))
        quoted = [text for text in _strings(resume) if text not in known and not _PLAIN.fullmatch(text)]
        return not quoted or not self._redactor.redact("\n".join(quoted)).counts

    def repo(self, workdir: str) -> str:
        """Find the repository of a working directory, asking the disk once."""
        if workdir not in self._repos:
            found = repo_identity(workdir, self._remembered) if workdir else ""
            self._repos[workdir] = found or self._remembered.get(workdir, "")
        return self._repos[workdir]

    def learned(self) -> dict[str, str]:
        """Return repositories that earlier runs did not know, of folders without a credential in their name."""
        new = {workdir: repo for workdir, repo in self._repos.items() if repo and self._remembered.get(workdir) != repo}
        for workdir in new.keys() - self._clean.keys():
            self._clean[workdir] = not self._redactor.redact(workdir).counts
        return {workdir: repo for workdir, repo in new.items() if self._clean[workdir]}

    @cached_property
    def _redactor(self) -> Redactor:
        # Loading the engines takes half a second, which a trace without any text does not need.
        return Redactor()

    @cached_property
    def ruleset(self) -> str:
        """Id of the secret rules."""
        return ruleset_id()

    @property
    def warning(self) -> str:
        """Sentence about a missing scanning engine, empty when none is missing or none was needed."""
        return self._redactor.missing_engine if "_redactor" in self.__dict__ else ""


class _Reading:
    """The reading of one trace."""

    def __init__(self, job: ReadJob, reader: TraceReader) -> None:
        self.job = job
        self.reader = reader
        self.report = ReadReport(redact=reader.nameable)
        self.outcome = TraceOutcome()
        self.sessions: dict[str, Session] = {}
        self.asked: set[str] = set((job.resume or {}).get(ASKED, ()))
        self.counted: set[str] = set((job.resume or {}).get(LEFT_OUT, ()))
        self.excluded: dict[str, str] = {}
        self.names: dict[str, str] = {}
        self.source_path = clean(job.origin or str(job.path))
        self.stopped = False
        self.resumed = False

    def batches(self) -> Iterator[Batch]:
        source = source_named(self.job.source)
        self.resumed = _continues(self.job)
        rows: list[BlockRows] = []
        characters = 0
        for session, turn in source.read(self.job.path, self.report, self.job.resume):
            if session.id in self.asked or (session.id not in self.sessions and _is_ask(turn)):
                self._leave_out(session)
                continue
            if self._is_excluded(session) or self._is_elsewhere(session, turn):
                continue
            if session.id not in self.sessions:
                if self.job.limit is not None and len(self.sessions) >= self.job.limit:
                    self.stopped = True
                    break
                self.sessions[session.id] = session
            for part in self._turn(session, turn):
                rows.append(part)
                characters += sum(len(text) for _, text in part.pieces)
                if characters >= BATCH_CHARACTERS:
                    yield Batch(rows, characters, self.reader.ruleset)
                    rows, characters = [], 0
        if rows:
            yield Batch(rows, characters, self.reader.ruleset)

    def fail(self, reason: str) -> None:
        self.report.failed = self.report.failed or reason
        self.report.resume = None
        self.stopped = True

    def finish(self) -> Finished:
        report, outcome = self.report, self.outcome
        outcome.records, outcome.turns = report.records, report.turns
        for session in report.sessions:
            if session.id not in self.asked and not self._is_excluded(session):
                self.sessions.setdefault(session.id, session)
        self._remember()
        outcome.sessions = len(self.sessions)
        outcome.skipped += report.skipped
        outcome.damaged = [clean(sentence) for sentence in report.damaged]
        outcome.torn_tail = report.torn_tail
        outcome.failed = clean(report.failed)
        return Finished(
            outcome,
            resumed=self.resumed and not report.anew,
            complete=not self.stopped,
            resume=None if self.stopped else report.resume,
            sessions=[self._info(session) for session in self.sessions.values()],
            repos=self.reader.learned(),
            ruleset=self.reader.ruleset if self.sessions else "",
            note=self.reader.warning,
        )

    def _leave_out(self, session: Session) -> None:
        """Skip a turn of a session in which `funes ask` had an agent answer; a later read has to know of it."""
        self.asked.add(session.id)
        self.outcome.skipped["run of funes ask"] += 1

    def _remember(self) -> None:
        """Complete the resume point; there is none when it would store what must not be stored."""
        resume = self.report.resume
        if resume is None:
            return
        if self.asked:
            resume[ASKED] = sorted(self.asked)
        if self.counted:
            resume[LEFT_OUT] = sorted(self.counted)
        # Of a session with a file of its own the resume point has the title, among others.
        forgotten = "offset" in resume and FORGOTTEN in self.excluded.values()
        if forgotten or not self.reader.keeps(resume, self.job.resume):
            self.report.resume = None

    def _is_excluded(self, session: Session) -> bool:
        """Whether the user does not want the session, which is counted once."""
        reason = self.excluded.get(session.id)
        if reason is None:
            rules = self.reader.exclusions
            repo = (session.repo or self.reader.repo(session.workdir)) if rules.rules.lines else ""
            identifier, parent = clean(session.id), clean(session.parent_id)
            reason = rules.session(identifier, parent, session.kind, session.workdir, repo)
            self.excluded[session.id] = reason
        if reason and session.id not in self.counted:
            self.counted.add(session.id)
            self.outcome.skipped[reason] += 1
        return bool(reason)

    def _is_elsewhere(self, session: Session, turn: Turn) -> bool:
        """Whether a turn was made in a folder that the user does not want, by a session that began in another one."""
        rules = self.reader.exclusions.rules
        if not rules.lines or not turn.workdir or turn.workdir == session.workdir:
            return False
        if not rules.ignores(turn.workdir, self.reader.repo(turn.workdir)):
            return False
        self.outcome.skipped[IGNORED_TURN] += 1
        return True

    def _turn(self, session: Session, turn: Turn) -> Iterator[BlockRows]:
        workdir = turn.workdir or session.workdir
        repo = session.repo or self.reader.repo(workdir) or self.reader.repo(session.workdir)
        for block_idx, block in enumerate(turn.blocks):
            text = self._text(block)
            if text is None:
                continue
            pieces = split_text(text)
            self.outcome.passages += len(pieces)
            identifier = passage_id(session, turn, block, text, block_idx)
            for first, part in _parts(pieces):
                yield BlockRows(
                    id=identifier,
                    session_id=clean(session.id),
                    harness=clean(session.harness),
                    workdir=self._name(workdir),
                    repo=self._name(repo),
                    branch=self._name(turn.branch or session.branch),
                    turn_uuid=clean(turn.uuid),
                    former_turn=clean(turn.former),
                    parent_uuid=clean(turn.parent_uuid),
                    ts=turn.timestamp,
                    role=turn.role,
                    origin=turn.origin,
                    block_idx=block_idx,
                    block_type=block.type,
                    tool_name=self._name(block.tool_name),
                    source_path=self.source_path,
                    first=first,
                    pieces=part,
                )

    def _text(self, block: Block) -> str | None:
        """Return the text to store, None for a block that is left out."""
        skipped = self.outcome.skipped
        if block.type == "thinking" and not self.job.thinking:
            skipped["thinking, as asked"] += 1
            return None
        text = self.reader.redact(elide_data_uris(block.text), self.outcome)
        if text is None:
            return None
        if not text.strip():
            skipped["blank text"] += 1
            return None
        return clean(text)

    def _name(self, value: str) -> str:
        """A folder, a branch or a tool's name to store, without credentials; looked at once in a trace."""
        if value not in self.names:
            self.names[value] = clean(self.reader.redact(value, self.outcome) or "") if value else ""
        return self.names[value]

    def _info(self, session: Session) -> SessionInfo:
        title = self.reader.redact(session.title, self.outcome) if session.title else ""
        return SessionInfo(
            id=clean(session.id),
            harness=clean(session.harness),
            workdir=self._name(session.workdir),
            repo=self._name(session.repo or self.reader.repo(session.workdir)),
            branch=self._name(session.branch),
            title=clean(title or ""),
            parent_id=clean(session.parent_id),
            kind=session.kind,
            source_path=self.source_path,
        )


def _is_ask(turn: Turn) -> bool:
    return turn.role == "user" and any(block.text.startswith(ASK_PROMPT) for block in turn.blocks)


def _continues(job: ReadJob) -> bool:
    """Whether the read starts where an earlier one stopped: the file still begins with the same bytes."""
    if not job.resume or "prefix" not in job.resume:
        return bool(job.resume)
    return resume_point(job.path, job.resume) is not None


def clean(text: str) -> str:
    """Make a string storable: lone surrogates, which a path or a parser may let through, become question marks."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _strings(value: Any) -> Iterator[str]:
    """Every string in a JSON-able value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(key)
            yield from _strings(item)


def _parts(pieces: list[tuple[int, str]]) -> Iterator[tuple[int, list[tuple[int, str]]]]:
    """Cut the pieces of a very long block into runs of about one batch: `(position of the first, pieces)`."""
    first, size = 0, 0
    for position, (_, text) in enumerate(pieces):
        if size >= BATCH_CHARACTERS:
            yield first, pieces[first:position]
            first, size = position, 0
        size += len(text)
    yield first, pieces[first:]
