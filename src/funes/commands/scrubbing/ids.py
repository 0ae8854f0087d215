"""What an index run would call redacted blocks, and the turns whose names are made of text.

An id is made from what the trace calls the block, which is not stored, so the traces that are still there are read
again. A block whose trace is gone gets an id by its place.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from funes.commands.indexing.messages import Batch, BlockRows, ReadJob
from funes.commands.indexing.reading import TraceReader
from funes.secrets.markers import same_but_markers
from funes.traces.detect import detect
from funes.traces.registry import sources

TurnKey = tuple[str, str]
BlockKey = tuple[str, str, str, str]
"""Session, turn, block type, and the redacted text as `same_but_markers` gives it."""

TextKey = tuple[str, str, int]
"""Session, block type, and a hash of the redacted text as `same_but_markers` gives it."""


@dataclass(slots=True)
class Told:
    """What traces say.

    Attributes:
        ids: ids of blocks, by the names that their turns are stored under.
        turns: what the stored turns are called now.
    """

    ids: dict[BlockKey, str] = field(default_factory=dict)
    turns: dict[TurnKey, str] = field(default_factory=dict)


def names_in_traces(
    traces: Iterable[str], turns: set[TurnKey], texts: Mapping[TextKey, list[TurnKey]] | None = None
) -> Told:
    """Read traces for the names of some turns, and for the ids of their blocks.

    Args:
        traces: paths of traces; those that are gone, or that nothing can read any more, are passed over.
        turns: session and turn, as stored.
        texts: turns by what they say, in their order: those whose names may be made of text, which other rules may have
            made other names of. They are known by it when they are not known by their names.
    """
    told = Told()
    sessions = {key[0] for key in texts or ()}
    unknown: defaultdict[TextKey, list[tuple[str, str, str]]] = defaultdict(list)
    for rows, text in _blocks(traces):
        plain = ""
        for name in (rows.turn_uuid, rows.former_turn):
            key = (rows.session_id, name)
            if name and key in turns:
                plain = plain or same_but_markers(text)
                told.turns.setdefault(key, rows.turn_uuid)
                told.ids.setdefault((*key, rows.block_type, plain), rows.id)
                break
        else:
            if rows.session_id in sessions:
                plain = same_but_markers(text)
                unknown[rows.session_id, rows.block_type, hash(plain)].append((rows.turn_uuid, rows.id, plain))
    for about, stored in (texts or {}).items():
        found = iter(unknown.get(about, ()))
        for key in stored:
            if told.turns.get(key, "") or (match := next(found, None)) is None:
                continue
            told.turns[key] = match[0]
            told.ids[*key, about[1], match[2]] = match[1]
    return told


def _blocks(traces: Iterable[str]) -> Iterator[tuple[BlockRows, str]]:
    """Every block of the traces with its whole text; of its rows, the first."""
    reader = TraceReader({})
    known = sources()
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
        first: BlockRows | None = None
        text = ""
        for message in reader.read(ReadJob(path, os.path.realpath(path), source.name, "", 0)):
            for rows in message.rows if isinstance(message, Batch) else ():
                if not rows.first:
                    if first is not None:
                        yield first, text
                    first, text = rows, ""
                text = _extended(text, rows.pieces)
        if first is not None:
            yield first, text


def _extended(text: str, pieces: Iterable[tuple[int, str]]) -> str:
    for offset, piece in pieces:
        text = text[:offset] + piece
    return text
