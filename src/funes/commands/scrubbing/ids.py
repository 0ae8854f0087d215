"""The ids that an index run would give redacted blocks.

An id is made from what the trace calls the block, which is not stored, so the traces that are still there are read
again. A block whose trace is gone gets an id by its place.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from funes.commands.indexing.messages import Batch, ReadJob
from funes.commands.indexing.reading import TraceReader
from funes.secrets.markers import same_but_markers
from funes.traces.detect import detect
from funes.traces.registry import sources

TurnKey = tuple[str, str]
BlockKey = tuple[str, str, str, str]
"""Session, turn, block type, and the redacted text as `same_but_markers` gives it."""


def ids_in_traces(traces: Iterable[str], turns: set[TurnKey]) -> dict[BlockKey, str]:
    """Read traces for the ids of the blocks of some turns.

    Args:
        traces: paths of traces; those that are gone, or that nothing can read any more, are passed over.
        turns: session and turn.
    """
    reader = TraceReader({})
    known = sources()
    found: dict[BlockKey, str] = {}
    for name in traces:
        path = Path(name)
        if not path.is_file():
            continue
        try:
            source = detect(path, known)
        except OSError:
            continue
        if source is None:
            continue
        pieces: dict[tuple[str, str, str, str], str] = {}
        for message in reader.read(ReadJob(path, os.path.realpath(path), source.name, "", 0)):
            if not isinstance(message, Batch):
                continue
            for rows in message.rows:
                if (rows.session_id, rows.turn_uuid) in turns:
                    key = (rows.session_id, rows.turn_uuid, rows.block_type, rows.id)
                    pieces[key] = _extended(pieces.get(key, ""), rows.pieces)
        for (session, turn, kind, identifier), text in pieces.items():
            found.setdefault((session, turn, kind, same_but_markers(text)), identifier)
    return found


def _extended(text: str, pieces: Iterable[tuple[int, str]]) -> str:
    for offset, piece in pieces:
        text = text[:offset] + piece
    return text
