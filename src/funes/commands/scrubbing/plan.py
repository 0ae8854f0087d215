"""What takes the place of rows in which credentials were found."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from funes.chunking import Chunk, passage_id_at, split_id, split_text, unanchored
from funes.commands.scrubbing.blocks import Place, Scan, StoredBlock, with_texts
from funes.commands.scrubbing.ids import Told, TurnKey, names_in_traces
from funes.commands.scrubbing.turns import by_text, find_suspects, new_names, plan_turns
from funes.commands.stored import TraceChange
from funes.memory.rewriting import ADDRESS
from funes.memory.schema import CHUNK_COLUMNS, REFERENCE, SESSION_TYPE, header_row, quoted, quoted_list, table_to_chunks
from funes.secrets.markers import has_markers, same_but_markers
from funes.traces.identity import CHAINED

if TYPE_CHECKING:
    from funes.secrets import Redactor

IDS_AT_ONCE = 1000


@dataclass(slots=True)
class Plan:
    """What a scrub does to the chunks table.

    Attributes:
        rows: by the address of a row, what takes its place; see `MemoryRewriter.replace`.
        restamped: addresses of rows of which only the id of the secret rules changes.
        fresh: ids of the new passages.
        changes: what changes of each trace's counts, by source path.
        renamed: turns that get another name, by session and former name.
        removed_copies: blocks that went because their redacted text was stored beside them already.
    """

    rows: dict[int, list[Chunk]] = field(default_factory=dict)
    restamped: set[int] = field(default_factory=set)
    fresh: list[str] = field(default_factory=list)
    changes: defaultdict[str, TraceChange] = field(default_factory=lambda: defaultdict(TraceChange))
    renamed: dict[TurnKey, str] = field(default_factory=dict)
    removed_copies: int = 0


@dataclass(slots=True)
class Change:
    """A block that has to change.

    Attributes:
        block: the block.
        text: its redacted text, None for a block that goes.
        counts: findings by rule, none for a block that only gets another id.
    """

    block: StoredBlock
    text: str | None
    counts: Counter[str]


def plan_blocks(
    plan: Plan,
    scan: Scan,
    blocks: list[StoredBlock],
    changes: list[Change],
    marked: list[StoredBlock],
    ruleset: str,
) -> None:
    """Plan what takes the place of the rows of blocks, and of the names of turns that may be made of a credential.

    Args:
        plan: is added to.
        scan: reads the table.
        blocks: all blocks.
        changes: those in which credentials were found, and what becomes of them.
        marked: clean blocks from which some were taken out earlier.
        ruleset: id of the secret rules that the new text was scanned with.
    """
    suspects = find_suspects(blocks, [change.block for change in changes], marked)
    if not changes and not suspects.seqs:
        return
    changing = {id(change.block) for change in changes}
    others = list(with_texts(scan, [block for block in suspects.blocks if id(block) not in changing]))
    templates = _rows(scan, [*(change.block for change in changes), *(block for block, _ in others)])
    sources = sorted({row.source_path for row in templates.values()})
    turns = {key for change in changes for key in _turns(change.block)} | suspects.seqs.keys()
    redacted = [(change.block, change.text) for change in changes if change.text is not None]
    told = names_in_traces(sources, turns, by_text(suspects, [*redacted, *others]))
    plan.renamed = new_names(suspects, told)
    changes = [*changes, *_with_other_ids(others, told, plan.renamed)]
    if changes:
        _plan_rows(plan, scan, blocks, changes, told, templates, ruleset)
    plan_turns(plan, scan, plan.renamed, ruleset)


def _with_other_ids(
    blocks: Iterable[tuple[StoredBlock, str]], told: Told, renamed: Mapping[TurnKey, str]
) -> Iterator[Change]:
    """Blocks of renamed turns whose ids are made of the same text as the names were."""
    for block, text in blocks:
        places = [place for place in block.places if (place.session, place.turn) in renamed]
        key = same_but_markers(text)
        ids = {told.ids.get((place.session, place.turn, place.block_type, key), "") for place in places} - {""}
        if ids:
            if block.ids[min(block.ids)] not in ids:
                yield Change(block, text, Counter())
        elif places and (has_markers(text) or places[0].harness in CHAINED):
            yield Change(block, text, Counter())


def _plan_rows(
    plan: Plan,
    scan: Scan,
    blocks: list[StoredBlock],
    changes: list[Change],
    told: Told,
    templates: Mapping[int, Chunk],
    ruleset: str,
) -> None:
    known = _known_ids(scan, blocks, changes, told)
    new_ids = [
        known.get(id(change)) or _by_place(change, templates, plan.renamed)
        for change in changes
        if change.text is not None
    ]
    holders = _holders(new_ids, blocks)
    given = iter(new_ids)
    for change in changes:
        for place in change.block.places:
            plan.rows.update({address: [] for address in place.addresses.values()})
            _count(plan, place, templates, change)
        if change.text is None:
            continue
        identifier = next(given)
        pieces = split_text(change.text)
        for place in change.block.places:
            sessions = holders.setdefault(identifier, set())
            if place.session in sessions:
                plan.removed_copies += 1
                continue
            # The first place to have the passage stores it, the others refer to it.
            rows = _new_rows(place, templates, identifier, pieces, ruleset, own=not sessions)
            plan.rows[min(place.addresses.values())] = rows
            if not sessions:
                plan.fresh += [row.id for row in rows]
            source = plan.changes[rows[0].source_path]
            source.stored += 0 if sessions else len(rows)
            source.copies += len(rows) if sessions else 0
            sessions.add(place.session)


def plan_titles(
    plan: Plan, scan: Scan, redactor: Redactor, ruleset: str, *, stale: bool, restamp: bool
) -> tuple[int, Counter[str]]:
    """Plan the same for the header rows of sessions, of which only the newest one of each counts.

    Args:
        plan: is added to.
        scan: reads the table.
        redactor: scans.
        ruleset: its id.
        stale: only rows with another id.
        restamp: whether clean rows get the id.

    Returns:
        The number of titles that change, and the findings by rule.
    """
    table = scan(CHUNK_COLUMNS, f"block_type = {quoted(SESSION_TYPE)}")
    headers = list(zip(table.column(ADDRESS).to_pylist(), table_to_chunks(table), strict=True))
    newest = {header.session_id: address for address, header in headers}
    counts: Counter[str] = Counter()
    changed = 0
    for address, header in headers:
        if stale and header.ruleset == ruleset:
            continue
        found = redactor.redact(header.text or "")
        if newest[header.session_id] != address:
            if found.counts or header.ruleset != ruleset:
                plan.rows[address] = []
        elif found.counts:
            plan.rows[address] = [with_title(header, found.text or "", ruleset)]
            plan.changes[header.source_path].forget_place = True
            changed += 1
            counts += found.counts
        elif restamp and header.ruleset != ruleset:
            plan.restamped.add(address)
    return changed, counts


def with_title(header: Chunk, title: str, ruleset: str) -> Chunk:
    """The header row of the same session with another title, and the id that belongs to it."""
    return header_row(
        session_id=header.session_id,
        harness=header.harness,
        title=title,
        parent_id=header.parent_uuid,
        kind=header.origin,
        workdir=header.workdir,
        repo=header.repo,
        branch=header.branch,
        source_path=header.source_path,
        ts=header.ts,
        ruleset=ruleset,
    )


def _rows(scan: Scan, blocks: Iterable[StoredBlock]) -> dict[int, Chunk]:
    """Rows of blocks by address, without their text."""
    columns = [name for name in CHUNK_COLUMNS if name != "text"]
    ids = list(dict.fromkeys(identifier for block in blocks for identifier in block.ids.values()))
    found: dict[int, Chunk] = {}
    for start in range(0, len(ids), IDS_AT_ONCE):
        table = scan(columns, f"id IN ({quoted_list(ids[start : start + IDS_AT_ONCE])})")
        found.update(zip(table.column(ADDRESS).to_pylist(), table_to_chunks(table), strict=True))
    return found


def _known_ids(scan: Scan, blocks: list[StoredBlock], changes: list[Change], of_traces: Told) -> dict[int, str]:
    """Ids of changed blocks that their trace tells, or a block of the same turn that has the redacted text already."""
    turns = {(place.session, place.turn) for change in changes for place in change.block.places}
    told = dict(of_traces.ids)
    changing = {id(change.block) for change in changes}
    beside = [block for block in blocks if id(block) not in changing and _turns(block) & turns]
    for block, text in with_texts(scan, beside):
        for place in block.places:
            told[place.session, place.turn, place.block_type, same_but_markers(text)] = block.ids[min(block.ids)]
    found = {}
    for change in changes:
        for place in change.block.places:
            key = (place.session, place.turn, place.block_type, same_but_markers(change.text or ""))
            if change.text is not None and key in told:
                found[id(change)] = told[key]
                break
    return found


def _turns(block: StoredBlock) -> set[TurnKey]:
    return {(place.session, place.turn) for place in block.places}


def _by_place(change: Change, templates: Mapping[int, Chunk], renamed: Mapping[TurnKey, str]) -> str:
    """Id of a block whose trace is gone."""
    place = change.block.places[0]
    harness = templates[min(place.addresses.values())].harness
    turn = renamed.get((place.session, place.turn), place.turn)
    anchor = unanchored(place.session, turn, place.block_idx)
    return passage_id_at(harness, anchor, place.block_type, change.text or "")


def _holders(ids: list[str], blocks: list[StoredBlock]) -> dict[str, set[str]]:
    """Which of the new ids are stored already, and the sessions that have them."""
    stored = {identifier: block for block in blocks for identifier in block.ids.values()}
    return {
        identifier: {place.session for place in stored[identifier].places} for identifier in ids if identifier in stored
    }


def _new_rows(
    place: Place,
    templates: Mapping[int, Chunk],
    identifier: str,
    pieces: list[tuple[int, str]],
    ruleset: str,
    *,
    own: bool,
) -> list[Chunk]:
    template = templates[min(place.addresses.values())]
    return [
        replace(
            template,
            id=split_id(identifier, split_idx),
            text=piece if own else None,
            split_idx=split_idx,
            offset=offset if own else REFERENCE,
            ruleset=ruleset,
        )
        for split_idx, (offset, piece) in enumerate(pieces)
    ]


def _count(plan: Plan, place: Place, templates: Mapping[int, Chunk], change: Change) -> None:
    """Count what goes of a place."""
    source = plan.changes[templates[min(place.addresses.values())].source_path]
    source.forget_place = True
    source.stored -= len(place.owned)
    source.copies -= len(place.ids) - len(place.owned)
    if place is change.block.places[0]:
        if change.text is None:
            source.skipped[f"credentials could not be removed: {next(iter(change.counts)).partition(': ')[2]}"] += 1
        else:
            source.redactions += change.counts
