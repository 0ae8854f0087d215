"""The outline of a memory: the order in which sessions say what they say, without its text."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from funes.memory.register import Positions, Register
from funes.memory.schema import SESSION_TYPE

NOWHERE = -1

Places = npt.NDArray[np.int32]


class Outline:
    """Passages in the order of their sessions, turns, blocks and splits; a place is a number in that order.

    A passage whose text another session stores has its place in each session that contains it.

    Args:
        register: the rows of the chunks table.
        order: positions of the passages in it, `(n,)` int64, in that order.
    """

    def __init__(self, register: Register, order: Positions) -> None:
        self._register = register
        self._order = order = order.astype(np.int32)
        rows, code = register.rows, register.names.code
        self._places: Places = np.full(len(register), NOWHERE, np.int32)
        self._places[order] = np.arange(len(order))
        sessions = rows.session[order]
        first = np.ones(len(sessions), bool)
        first[1:] = sessions[1:] != sessions[:-1]
        self._first = _last_true(first)
        ends = np.append(np.flatnonzero(first)[1:], len(sessions)).astype(np.int32)
        self._end = ends[np.cumsum(first) - 1]
        prompt = (rows.role[order] == code("user")) & (rows.block_type[order] == code("text"))
        self._prompt = _last_true(prompt)

    @classmethod
    def of(cls, register: Register) -> Outline:
        """The outline of all that was said and done."""
        rows = register.rows
        passages = np.flatnonzero(rows.block_type != register.names.code(SESSION_TYPE))
        keys = [key[passages] for key in (rows.session, rows.seq, rows.block_idx, rows.split_idx)]
        return cls(register, passages[_ordered(keys)])

    def only(self, block_types: Collection[str]) -> Outline:
        """The outline of the passages of some types."""
        codes = [self._register.names.code(one) for one in block_types]
        return Outline(self._register, self._order[np.isin(self._register.rows.block_type[self._order], codes)])

    def __len__(self) -> int:
        return len(self._order)

    def places(self, ids: Sequence[str]) -> Places:
        """Where passages stand in the sessions that store them, `(n,)`; `NOWHERE` for others."""
        positions = self._register.by_id(ids)
        return np.where(positions >= 0, self._places[positions], NOWHERE) if len(self._places) else positions

    def session(self, place: int) -> tuple[int, int]:
        """First place of the session that a place belongs to, and the one after its last."""
        return int(self._first[place]), int(self._end[place])

    def is_prompt(self, place: int) -> bool:
        """Whether the user wrote the passage."""
        return bool(self._prompt[place] == place)

    def prompt_before(self, place: int) -> int:
        """Place of the last prompt before a passage in its session, `NOWHERE` when there is none."""
        first, _ = self.session(place)
        prompt = int(self._prompt[place - 1]) if place > first else NOWHERE
        return prompt if prompt >= first else NOWHERE

    def ids(self, places: npt.ArrayLike) -> list[str]:
        """Ids of the passages at places."""
        return self._register.ids_at(self._rows(places))

    def seq(self, place: int) -> int:
        """Number of the turn that a passage belongs to."""
        return int(self._register.rows.seq[self._order[place]])

    def block(self, place: int) -> int:
        """Number of its block in the turn."""
        return int(self._register.rows.block_idx[self._order[place]])

    def begins_block(self, place: int) -> bool:
        """Whether it is the first part of its block."""
        return bool(self._register.rows.split_idx[self._order[place]] == 0)

    def block_type(self, place: int) -> str:
        """What it is."""
        return self._register.names.text(int(self._register.rows.block_type[self._order[place]]))

    def role(self, place: int) -> str:
        """Who said it."""
        return self._register.names.text(int(self._register.rows.role[self._order[place]]))

    def _rows(self, places: npt.ArrayLike) -> Positions:
        return self._order[np.asarray(places, np.int64)]


def _ordered(keys: Sequence[npt.NDArray[np.int32]]) -> Positions:
    """Order of rows by several keys, the first one counting most."""
    spans = [int(key.max(initial=0)) - int(key.min(initial=0)) + 1 for key in keys]
    if math.prod(spans) >= 2**63:
        return np.lexsort(keys[::-1])
    joint = np.zeros(len(keys[0]), np.int64)
    for key, span in zip(keys, spans, strict=True):
        joint = joint * span + (key - key.min(initial=0))
    return np.argsort(joint, kind="stable")


def _last_true(marks: npt.NDArray[np.bool_]) -> Places:
    """For each place the last one up to it that is marked, `NOWHERE` when there is none."""
    marked: Any = np.where(marks, np.arange(len(marks), dtype=np.int32), np.int32(NOWHERE))
    return np.maximum.accumulate(marked) if len(marked) else marked
