"""Turns whose names may be made of a credential, and what they are called without it.

An earlier version made names of the text as recorded, and rules of an earlier version may have left a credential in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from funes.commands.scrubbing.blocks import StoredBlock
from funes.commands.scrubbing.ids import TextKey, Told, TurnKey
from funes.memory.rewriting import ADDRESS
from funes.memory.schema import CHUNK_COLUMNS, quoted_list, table_to_chunks
from funes.secrets.markers import same_but_markers
from funes.traces.identity import CHAINED, is_made, is_plain, place_name

if TYPE_CHECKING:
    from funes.chunking import Chunk
    from funes.commands.scrubbing.blocks import Scan
    from funes.commands.scrubbing.plan import Plan


@dataclass(slots=True)
class Suspects:
    """Turns whose names may be made of a credential.

    Attributes:
        seqs: the turns, with their positions in their sessions.
        blocks: their blocks.
    """

    seqs: dict[TurnKey, int] = field(default_factory=dict)
    blocks: list[StoredBlock] = field(default_factory=list)


def find_suspects(blocks: list[StoredBlock], found: Iterable[StoredBlock], marked: Iterable[StoredBlock]) -> Suspects:
    """Find them.

    Args:
        blocks: all blocks of the memory.
        found: those in which a credential was found now, so that it may be in whatever name funes made.
        marked: those from which one was taken out earlier; a name that says that it is made without it is right.
    """
    suspects = Suspects()
    turns: set[TurnKey] = set()
    all_since, plain_since = _since(turns, found, is_made), _since(turns, marked, is_plain)
    if not turns and not all_since and not plain_since:
        return suspects
    plain_until = _first_redacted(blocks, plain_since)
    for block in blocks:
        for place in block.places:
            name, session = place.turn, place.session
            later = is_made(name) and place.seq >= all_since.get(session, place.seq + 1)
            if is_plain(name) and session in plain_since:
                later = later or plain_since[session] <= place.seq < plain_until.get(session, place.seq + 1)
            if later or (session, name) in turns:
                suspects.seqs[session, name] = place.seq
                if not suspects.blocks or suspects.blocks[-1] is not block:
                    suspects.blocks.append(block)
    return suspects


def _since(turns: set[TurnKey], blocks: Iterable[StoredBlock], test: Callable[[str], bool]) -> dict[str, int]:
    """Add the turns of the blocks whose names a test is true of, and say from where on later names may be concerned."""
    since: dict[str, int] = {}
    for block in blocks:
        for place in block.places:
            if test(place.turn):
                turns.add((place.session, place.turn))
            if place.harness in CHAINED:
                since[place.session] = min(place.seq, since.get(place.session, place.seq))
    return since


def _first_redacted(blocks: list[StoredBlock], since: Mapping[str, int]) -> dict[str, int]:
    """Where, behind a credential, a session has a name that is made without it: what follows was named so, too."""
    first: dict[str, int] = {}
    for block in blocks if since else ():
        for place in block.places:
            if (
                since.get(place.session, place.seq + 1) <= place.seq
                and is_made(place.turn)
                and not is_plain(place.turn)
            ):
                first[place.session] = min(place.seq, first.get(place.session, place.seq))
    return first


def by_text(suspects: Suspects, texts: Iterable[tuple[StoredBlock, str]]) -> dict[TextKey, list[TurnKey]]:
    """The turns by what they say, in their order.

    Args:
        suspects: the turns.
        texts: their blocks, with their texts as they are to be stored.
    """
    found: defaultdict[TextKey, list[TurnKey]] = defaultdict(list)
    for block, text in texts:
        for place in block.places:
            if (key := (place.session, place.turn)) in suspects.seqs:
                found[place.session, place.block_type, hash(same_but_markers(text))].append(key)
    for turns in found.values():
        turns.sort(key=lambda key: suspects.seqs[key])
    return dict(found)


def new_names(suspects: Suspects, told: Told) -> dict[TurnKey, str]:
    """What turns are called now: what their trace says, else their place. Those that keep their name are left out."""
    names = {key: told.turns.get(key) or place_name(key[0], seq) for key, seq in suspects.seqs.items()}
    return {key: name for key, name in names.items() if name != key[1]}


def plan_turns(plan: Plan, scan: Scan, names: Mapping[TurnKey, str], ruleset: str) -> None:
    """Plan that turns get other names, in their rows and in those of the turns that follow them.

    Args:
        plan: is added to; what it has already gets the names too.
        scan: reads the table.
        names: the new names.
        ruleset: id of the secret rules of rows that only get that.
    """
    if not names:
        return
    for address, rows in plan.rows.items():
        plan.rows[address] = [_renamed(row, names) for row in rows]
    former = quoted_list(sorted({turn for _, turn in names}))
    sessions = quoted_list(sorted({session for session, _ in names}))
    condition = f"session_id IN ({sessions}) AND seq >= 0 AND (turn_uuid IN ({former}) OR parent_uuid IN ({former}))"
    table = scan(CHUNK_COLUMNS, condition)
    for address, row in zip(table.column(ADDRESS).to_pylist(), table_to_chunks(table), strict=True):
        plan.changes[row.source_path].forget_place = True
        if address not in plan.rows:
            row = replace(row, ruleset=ruleset if address in plan.restamped else row.ruleset)
            plan.rows[address] = [_renamed(row, names)]


def _renamed(row: Chunk, names: Mapping[TurnKey, str]) -> Chunk:
    return replace(
        row,
        turn_uuid=names.get((row.session_id, row.turn_uuid), row.turn_uuid),
        parent_uuid=names.get((row.session_id, row.parent_uuid), row.parent_uuid),
    )
