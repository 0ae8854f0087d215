"""The vectors phase: passages are embedded newest session first, in steps that a kill costs at most seconds of."""

from __future__ import annotations

import contextlib
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from funes.commands.indexing.report import IndexReport, Progress
from funes.memory.schema import CALLS, PROSE, TIERS, tier_of
from funes.memory.vector_store import MovedOnError, VectorWriter

if TYPE_CHECKING:
    import pyarrow as pa

    from funes.models.encoder import PassageEncodings

WINDOW = 512
"""Passages that are sorted by length together, so that a batch holds texts of similar length."""

STEP_CHARACTERS = 40_000
COMMIT_SECONDS = 5.0
KEPT_ENCODINGS = 1000
CODED = frozenset(TIERS.index(tier) for tier in (PROSE, CALLS))

Row = tuple[npt.NDArray[np.float32], "npt.NDArray[np.uint8] | None", npt.NDArray[np.uint16]]


class PassageEncoder(Protocol):
    """The part of the encoder that indexing uses."""

    model_id: str

    def encode_passages(self, texts: Any, with_codes: bool = True) -> PassageEncodings:
        """Encode texts; see `funes.models.encoder.Encoder`."""
        ...


def embed_waiting(
    folder: Path,
    encoder: PassageEncoder,
    *,
    passages: Sequence[str] | None = None,
    budget: float | None,
    wait: float,
    step: int | None = None,
    stop: Callable[[], bool],
    progress: Progress,
    report: IndexReport,
) -> None:
    """Embed passages that have no vector, until there are none left or the time is over.

    Args:
        folder: the memory's folder.
        encoder: makes the vectors.
        passages: ids of the only ones to embed, in which case `waiting` is not counted; None for all.
        budget: most seconds to spend, None for no limit.
        wait: seconds to wait for another process that does the same.
        step: characters between two looks at `stop` and the time; None for `STEP_CHARACTERS`.
        stop: says whether to end early.
        progress: told about each step.
        report: `embedded` and `waiting` are set.

    Raises:
        LockedError: when another process computes vectors.
    """
    with VectorWriter(folder, encoder.model_id, wait) as writer:
        deadline = None if budget is None else time.monotonic() + budget  # waiting and opening are no step forward
        if passages is not None:
            _embed_some(_Phase(writer, encoder, progress, report, step), passages, lambda: stop() or _over(deadline))
            return
        order = writer.waiting()
        report.waiting = len(order)
        if not len(order):
            return
        progress.start("vectors", len(order))
        phase = _Phase(writer, encoder, progress, report, step)
        start = 0
        while start < len(order) and not (stop() or _over(deadline)):
            tier = order.tiers[start]
            window = order.places[start : start + WINDOW][order.tiers[start : start + WINDOW] == tier]
            with contextlib.suppress(MovedOnError):  # which is seen below
                phase.window(window, int(tier) in CODED, lambda: stop() or _over(deadline))
            start += len(window)
            if writer.outdated():
                # Another process stored new passages: they are newer, so it is their turn.
                phase.commit()
                order, start = writer.waiting(), 0
                report.waiting = len(order)
        phase.commit()
        writer.finish()
        progress.finish()


def _embed_some(phase: _Phase, passages: Sequence[str], over: Callable[[], bool]) -> None:
    """Embed a few passages, tier by tier; vectors of another model are left for a run that replaces them all."""
    writer, progress = phase.writer, phase.progress
    if writer.replaces():
        return
    rows = writer.without_vectors(passages)
    kinds = [tier_of(kind) for kind in rows.column("block_type").to_pylist()]
    progress.start("vectors", rows.num_rows)
    for tier in sorted(set(kinds)):
        phase.embed(rows.take([i for i, kind in enumerate(kinds) if kind == tier]), tier in CODED, over)
    phase.commit()
    if phase.report.embedded:
        writer.finish()
    progress.finish()


class _Phase:
    """Encodes windows of passages and commits every few seconds."""

    def __init__(
        self,
        writer: VectorWriter,
        encoder: PassageEncoder,
        progress: Progress,
        report: IndexReport,
        step: int | None = None,
    ) -> None:
        self.characters = step or STEP_CHARACTERS
        self.writer = writer
        self.encoder = encoder
        self.progress = progress
        self.report = report
        self.parts: list[pa.Table] = []
        self.rows: list[Row] = []
        self.committed = time.monotonic()
        self.kept: OrderedDict[tuple[str, bool], Row] = OrderedDict()

    def window(self, places: npt.NDArray[np.int64], with_codes: bool, over: Callable[[], bool]) -> None:
        """Embed some passages by their places; see `embed`."""
        self.embed(self.writer.passages(places), with_codes, over)

    def embed(self, passages: pa.Table, with_codes: bool, over: Callable[[], bool]) -> None:
        """Embed some passages, in steps of similar length; ends early when `over` says so."""
        texts = passages.column("text").to_pylist()
        by_length = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        start = 0
        while start < len(by_length) and not over():
            end, characters = start, 0
            while end < len(by_length) and characters < self.characters:
                characters += len(texts[by_length[end]])
                end += 1
            step = by_length[start:end]
            self.rows += self._encode([texts[i] for i in step], with_codes)
            self.parts.append(passages.take(step))
            self.progress.advance(len(step), passages=len(step))
            start = end
            if time.monotonic() - self.committed >= COMMIT_SECONDS:
                self.commit()

    def commit(self) -> None:
        """Store what was embedded since the last time."""
        if self.rows:
            import pyarrow as pa

            dense, codes, pieces = zip(*self.rows, strict=True)
            self.writer.append(pa.concat_tables(self.parts), np.stack(dense), list(codes), list(pieces))
            self.report.embedded += len(self.rows)
            if self.report.waiting is not None:
                self.report.waiting -= len(self.rows)
            self.parts, self.rows = [], []
        self.committed = time.monotonic()

    def _encode(self, texts: list[str], with_codes: bool) -> list[Row]:
        """Encode texts, each different one once, also across recent steps."""
        known: dict[str, Row] = {}
        for text in texts:
            if (row := self.kept.get((text, with_codes))) is not None:
                known[text] = row
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            encoded = self.encoder.encode_passages(new, with_codes=with_codes)
            for i, text in enumerate(new):
                row = (encoded.dense[i], encoded.codes[i] if encoded.codes is not None else None, encoded.pieces[i])
                known[text] = self.kept[text, with_codes] = row
            while len(self.kept) > KEPT_ENCODINGS:
                self.kept.popitem(last=False)
        return [known[text] for text in texts]


def _over(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() >= deadline
