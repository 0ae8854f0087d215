"""The words phase: rows are compared with what is stored, and the new ones appended in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from funes.chunking import Chunk, split_id
from funes.commands.indexing.messages import Batch, BlockRows, Finished, ReadJob, SessionInfo
from funes.commands.indexing.placed import PlacedTurns
from funes.commands.indexing.report import IndexReport
from funes.commands.indexing.state import IndexState, TraceOutcome, TraceState
from funes.memory.schema import OUTPUT, REFERENCE, header_row
from funes.memory.store import MemoryWriter, StoredSession
from funes.secrets.markers import same_but_markers
from funes.traces.identity import is_made

FIRST_ROWS = 2_000
FLUSH_ROWS = 20_000
FLUSH_TRACES = 50
FLUSH_CHARACTERS = 24 << 20
ELSEWHERE = 0
"""Owner of a passage that a session not loaded in this run stores."""


@dataclass(slots=True)
class _Session:
    """What is known of one session's rows; ids and places are kept as integers to save memory.

    Attributes:
        number: what it is called in the table of owners.
        stored: its rows before this run. What follows is known of the rows that this run has met.
        references: passages that it contains but another session stores.
        blocks: id of the block at each place, `hash((turn, block_idx))`.
        seqs: position of each retained turn, by `hash(turn)`.
        next_seq: position of the next new turn.
        last: time of its latest turn.
        header: its newest header row.
        placed: turns that are named by their place, once they were looked for.
    """

    number: int
    stored: StoredSession
    references: set[int] = field(default_factory=set)
    blocks: dict[int, int] = field(default_factory=dict)
    seqs: dict[int, int] = field(default_factory=dict)
    next_seq: int = 0
    last: datetime | None = None
    header: Chunk | None = None
    placed: PlacedTurns | None = None


class WordsPhase:
    """Takes in what readers deliver and stores what is new.

    A row is known by its session, turn, block and split. A passage that its session already has is dropped (a record
    that was appended again under a new uuid, say); one that another session stores gets a row without text. Where a
    turn's block has other text than the block stored at that place, the new text becomes a further block of the turn,
    so that nothing is lost and nothing stored changes.

    Args:
        writer: the memory, locked.
        state: where finished traces are recorded once their rows are stored.
        report: counts go here.
    """

    def __init__(self, writer: MemoryWriter, state: IndexState, report: IndexReport) -> None:
        self.writer = writer
        self.state = state
        self.report = report
        self._owners: dict[int, int] = {}
        self._sessions: dict[str, _Session] = {}
        self._rows: list[Chunk] = []
        self._characters = 0
        self._enough = FIRST_ROWS  # so that the first passages can be recalled within seconds
        self._finished: list[TraceState] = []
        self._outcomes: dict[str, TraceOutcome] = {}
        self._touched: set[str] = set()
        self._ruleset = ""

    def add(self, job: ReadJob, batch: Batch) -> None:
        """Take in some rows of a trace."""
        self._ruleset = batch.ruleset
        outcome = self._outcomes.setdefault(job.key, TraceOutcome())
        ids = [[split_id(rows.id, rows.first + k) for k in range(len(rows.pieces))] for rows in batch.rows]
        self._recall(batch, ids)
        self._look_up(identifier for block in ids for identifier in block)
        for rows, block in zip(batch.rows, ids, strict=True):
            self._block(rows, block, outcome)

    def finish(self, job: ReadJob, finished: Finished) -> None:
        """Take in the end of a trace."""
        outcome = finished.outcome
        stored = self._outcomes.pop(job.key, TraceOutcome())
        outcome.stored, outcome.copies, outcome.known = stored.stored, stored.copies, stored.known
        for info in finished.sessions:
            self._header(info, finished.ruleset)
        self._tell(job, outcome, finished)
        if finished.resumed and (before := self.state.trace(job.key)) is not None:
            outcome.add(before.outcome)
        # A trace that failed has no stamp, so that it is tried again (its permissions may have changed, say).
        stamp = job.stamp if finished.complete and not outcome.failed else ""
        self._finished.append(TraceState(job.key, job.source, stamp, job.thinking, outcome, finished.resume))
        if finished.repos:
            self.state.remember_repos(finished.repos)
        if not self._rows and len(self._finished) >= FLUSH_TRACES:
            self.flush()

    def flush(self) -> None:
        """Store the rows taken in so far, then record the traces that are complete with them."""
        if self._rows:
            self.writer.append(self._rows)
            self._rows, self._characters = [], 0  # before indexing, which needs memory too
            self._enough = FLUSH_ROWS
            self.writer.index()
        if self._finished:
            self.state.record(self._finished, self.writer.version)
            self._finished = []

    def close(self) -> None:
        """Store what is left, and count what was stored of traces that were not read to their end."""
        self.flush()
        for outcome in self._outcomes.values():
            self.report.stored += outcome.stored
            self.report.copies += outcome.copies
            self.report.known += outcome.known
            self.report.parsed += outcome.stored + outcome.copies + outcome.known
        self._outcomes.clear()

    def _tell(self, job: ReadJob, outcome: TraceOutcome, finished: Finished) -> None:
        report = self.report
        report.read += 1
        report.turns += outcome.turns
        report.parsed += outcome.passages
        report.stored += outcome.stored
        report.copies += outcome.copies
        report.known += outcome.known
        report.skipped += outcome.skipped
        report.redactions += outcome.redactions
        report.damaged += [(job.origin or job.path, sentence) for sentence in outcome.damaged]
        report.note(finished.note)
        if outcome.failed:
            report.failed.append((job.origin or job.path, outcome.failed))
        for info in finished.sessions:
            if info.id not in self._touched:
                self._touched.add(info.id)
                report.sessions += 1
                session = self._session(info.id)
                report.new_sessions += session.stored.table is None and session.next_seq > 0

    def _session(self, session_id: str) -> _Session:
        """Return what is known of a session."""
        if (known := self._sessions.get(session_id)) is not None:
            return known
        stored = self.writer.stored_session(session_id)
        session = self._sessions[session_id] = _Session(len(self._sessions) + 1, stored)
        session.next_seq, session.last, session.header = stored.next_seq, stored.last, stored.header
        return session

    def _recall(self, batch: Batch, ids: list[list[str]]) -> None:
        """Load the rows that a batch may meet in its sessions: those of its turns and those of its passages."""
        turns: dict[str, dict[str, None]] = {}
        passages: dict[str, list[str]] = {}
        for rows, block in zip(batch.rows, ids, strict=True):
            turns.setdefault(rows.session_id, {})[rows.turn_uuid] = None
            if rows.former_turn:
                turns[rows.session_id][rows.former_turn] = None
            passages.setdefault(rows.session_id, []).extend(block)
        for session_id in turns:
            session = self._session(session_id)
            for identifier, turn_uuid, seq, block_idx, split_idx, offset in session.stored.rows(
                turns[session_id], passages[session_id]
            ):
                number = int(identifier, 16)
                if offset == REFERENCE:
                    session.references.add(number)
                else:
                    self._owners[number] = session.number
                if split_idx == 0:
                    session.blocks[hash((turn_uuid, block_idx))] = number
                session.seqs[hash(turn_uuid)] = seq

    def _look_up(self, ids: Iterable[str]) -> None:
        """Find out which passages sessions that are not loaded store."""
        if not self.writer.holds_rows():
            return
        new = [identifier for identifier in dict.fromkeys(ids) if int(identifier, 16) not in self._owners]
        for identifier in self.writer.stored_texts(new):
            self._owners[int(identifier, 16)] = ELSEWHERE

    def _block(self, rows: BlockRows, ids: list[str], outcome: TraceOutcome) -> None:
        session = self._session(rows.session_id)
        if is_made(rows.turn_uuid) and hash(rows.turn_uuid) not in session.seqs:
            if rows.former_turn and hash(rows.former_turn) in session.seqs:
                # An earlier version named the turn after the credential in it; the name stays until `funes scrub`.
                rows = replace(rows, turn_uuid=rows.former_turn)
            elif turn := self._placed(rows, session):
                rows = replace(rows, turn_uuid=turn)
                if self._is_stored(rows, rows.block_idx):
                    outcome.known += len(rows.pieces)
                    return
        block, block_idx = int(rows.id, 16), rows.block_idx
        while session.blocks.get(hash((rows.turn_uuid, block_idx)), block) != block:
            if self._is_stored(rows, block_idx):
                outcome.known += len(rows.pieces)
                return
            block_idx += 1
        for position, (identifier, (offset, text)) in enumerate(zip(ids, rows.pieces, strict=True)):
            number = int(identifier, 16)
            owner = self._owners.get(number)
            if owner == session.number or number in session.references:
                outcome.known += 1
                continue
            if owner is None:
                self._owners[number] = session.number
                outcome.stored += 1
                if rows.block_type not in OUTPUT and len(self.report.fresh) < self.report.MAX_FRESH:
                    self.report.fresh.append(identifier)
                self._append(session, rows, identifier, text, block_idx, position, offset)
            else:
                session.references.add(number)
                outcome.copies += 1
                self._append(session, rows, identifier, None, block_idx, position, REFERENCE)
            session.blocks[hash((rows.turn_uuid, block_idx))] = block

    def _placed(self, rows: BlockRows, session: _Session) -> str:
        """The name of a turn that is named by its place, when the block is part of it; else empty."""
        if session.placed is None:
            session.placed = PlacedTurns(rows.session_id, session.stored)
        turn = session.placed.find(rows, lambda there: self._is_stored(there, there.block_idx))
        if turn:
            session.seqs[hash(turn)] = session.placed.seqs[turn]
        return turn

    def _is_stored(self, rows: BlockRows, block_idx: int) -> bool:
        """Whether the block stored at a place is the same but for its id, or for the names in its markers.

        `funes scrub` gives a redacted block an id of its own when the trace that names the block is gone.
        """
        stored = self.writer.block_pieces(rows.session_id, rows.turn_uuid, block_idx, rows.block_type)
        if not rows.first and _whole(stored) == _whole(rows.pieces):
            return True
        # Of a very long block this is only a part.
        return bool(stored) and _whole(stored[rows.first : rows.first + len(rows.pieces)]) == _whole(rows.pieces)

    def _append(
        self,
        session: _Session,
        rows: BlockRows,
        identifier: str,
        text: str | None,
        block_idx: int,
        position: int,
        offset: int,
    ) -> None:
        turn = hash(rows.turn_uuid)
        seq = session.seqs.get(turn)
        if seq is None:
            seq = session.seqs[turn] = session.next_seq
            session.next_seq += 1
        session.last = _later(session.last, rows.ts)
        self._put(
            Chunk(
                id=identifier,
                text=text,
                session_id=rows.session_id,
                workdir=rows.workdir,
                repo=rows.repo,
                branch=rows.branch,
                turn_uuid=rows.turn_uuid,
                parent_uuid=rows.parent_uuid,
                seq=seq,
                ts=rows.ts,
                role=rows.role,
                block_type=rows.block_type,
                tool_name=rows.tool_name,
                source_path=rows.source_path,
                block_idx=block_idx,
                split_idx=rows.first + position,
                offset=offset,
                harness=rows.harness,
                origin=rows.origin,
                ruleset=self._ruleset,
            )
        )

    def _header(self, info: SessionInfo, ruleset: str) -> None:
        """Store what a session is called and where it comes from, when it has passages and something changed."""
        session = self._session(info.id)
        if not session.next_seq:
            return
        old = session.header
        parent, kind = (info.parent_id, info.kind) if info.parent_id or old is None else (old.parent_uuid, old.origin)
        row = header_row(
            session_id=info.id,
            harness=info.harness,
            # A read that continues in the middle of a trace may not see what its beginning said.
            title=info.title or (old.text or "" if old else ""),
            parent_id=parent,
            kind=kind,
            workdir=info.workdir or (old.workdir if old else ""),
            repo=info.repo or (old.repo if old else ""),
            branch=info.branch or (old.branch if old else ""),
            source_path=info.source_path,
            ts=session.last,
            ruleset=ruleset,
        )
        if old is None or old.id != row.id:
            session.header = row
            self._put(row)

    def _put(self, row: Chunk) -> None:
        self._rows.append(row)
        self._characters += len(row.text or "")
        if len(self._rows) >= self._enough or self._characters >= FLUSH_CHARACTERS:
            self.flush()


def _whole(pieces: Sequence[tuple[int, str]]) -> str:
    """The text of pieces in a row, as it is compared."""
    text = ""
    for offset, piece in pieces:
        text = text[: offset - pieces[0][0]] + piece
    return same_but_markers(text)


def _later(first: datetime | None, second: datetime | None) -> datetime | None:
    if first is None or second is None:
        return first or second
    return max(first, second)
