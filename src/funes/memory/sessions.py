"""Summaries of sessions, computed from the chunks table without reading its text."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from funes.memory.filters import Filter
from funes.memory.schema import SESSION_TYPE, quoted, quoted_list

if TYPE_CHECKING:
    import pyarrow as pa

    from funes.memory.handle import TableHandle

COUNTED = ("id", "session_id", "seq", "ts", "role", "block_type", "block_idx", "split_idx")
DESCRIBING = (
    "session_id",
    "block_type",
    "harness",
    "repo",
    "branch",
    "workdir",
    "parent_uuid",
    "origin",
    "source_path",
)
SESSIONS_BY_INDEX = 500
PROMPT_CHARACTERS = 300


@dataclass(slots=True)
class SessionSummary:
    """One session at a glance.

    Attributes:
        id: full session id.
        harness: stored facet.
        repo, branch, workdir: where it began.
        title: its name, empty when it has none.
        first_prompt: beginning of the first thing a person said, empty when nobody did.
        parent_id: the session it was spawned or forked from, empty for none.
        kind: `main`, `subagent` or `fork`.
        turns: number of retained turns.
        passages: number of stored passages, copies included.
        first_ts, last_ts: time of the first and the last turn, None when unknown.
        source_path: the file it was read from last.
    """

    id: str
    harness: str
    repo: str
    branch: str
    workdir: str
    title: str
    first_prompt: str
    parent_id: str
    kind: str
    turns: int
    passages: int
    first_ts: datetime | None
    last_ts: datetime | None
    source_path: str = ""


def summarize(chunks: TableHandle, where: Filter, limit: int | None) -> list[SessionSummary]:
    """Summarise the sessions that have a row meeting the conditions, latest activity first.

    Args:
        chunks: the chunks table.
        where: conditions on passages; a session is listed when at least one of its passages meets them all.
        limit: most sessions, None for all.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    scope = None
    if (condition := where.sql(dialect=chunks.dialect)) is not None:
        matching = chunks.scan(["session_id"], f"({condition}) AND seq >= 0").column("session_id")
        identifiers = pc.unique(matching).to_pylist()
        if not identifiers:
            return []
        if len(identifiers) <= SESSIONS_BY_INDEX:
            scope = f"session_id IN ({quoted_list(identifiers)})"
        wanted = pa.array(identifiers, pa.string())
    rows = chunks.scan(COUNTED, f"({scope}) AND seq >= 0" if scope else "seq >= 0")
    if condition is not None and scope is None:
        rows = rows.filter(pc.is_in(rows.column("session_id"), wanted))
    if not rows.num_rows:
        return []
    rows = rows.append_column("row", pa.array(range(rows.num_rows), pa.int64()))
    groups = rows.group_by("session_id").aggregate(
        [("ts", "min"), ("ts", "max"), ("seq", "count_distinct"), ("seq", "count"), ("row", "min")]
    )
    newest = [("ts_max", "descending"), ("session_id", "ascending")]
    order = pc.sort_indices(groups, sort_keys=newest)  # sessions without times come last
    groups = groups.take(order[:limit] if limit is not None else order)
    described = _descriptions(chunks, groups, rows)
    prompts = _first_prompts(chunks, groups, rows)
    summaries = []
    for group in groups.to_pylist():
        identifier = group["session_id"]
        about = described[identifier]
        header = about["block_type"] == SESSION_TYPE
        summaries.append(
            SessionSummary(
                id=identifier,
                harness=about.get("harness") or "",
                repo=about.get("repo") or "",
                branch=about.get("branch") or "",
                workdir=about.get("workdir") or "",
                title=(about.get("text") or "") if header else "",
                first_prompt=prompts.get(identifier, ""),
                parent_id=(about.get("parent_uuid") or "") if header else "",
                kind=(about.get("origin") or "main") if header else "main",
                turns=group["seq_count_distinct"],
                passages=group["seq_count"],
                first_ts=group["ts_min"],
                last_ts=group["ts_max"],
                source_path=about.get("source_path") or "",
            )
        )
    return summaries


def _descriptions(chunks: TableHandle, groups: pa.Table, rows: pa.Table) -> dict[str, dict[str, Any]]:
    """Find the row that describes each session: its newest header, else its first passage."""
    import pyarrow as pa

    identifiers = groups.column("session_id").to_pylist()
    condition = f"block_type = {quoted(SESSION_TYPE)}"
    if len(identifiers) <= SESSIONS_BY_INDEX:
        condition += f" AND session_id IN ({quoted_list(identifiers)})"
    headers = chunks.scan([*DESCRIBING, "text"], condition).to_pylist()
    described = {header["session_id"]: header for header in headers}
    bare = [group for group in groups.to_pylist() if group["session_id"] not in described]
    if bare:
        places = rows.take(pa.array([group["row_min"] for group in bare], pa.int64())).column("id").to_pylist()
        for start in range(0, len(places), SESSIONS_BY_INDEX):
            part = quoted_list(places[start : start + SESSIONS_BY_INDEX])
            for row in chunks.scan(DESCRIBING, f"id IN ({part})").to_pylist():
                described.setdefault(row["session_id"], row)
    return described


def _first_prompts(chunks: TableHandle, groups: pa.Table, rows: pa.Table) -> dict[str, str]:
    """Read the beginning of what a person said first in each session."""
    import pyarrow.compute as pc

    said = pc.and_(pc.equal(rows.column("role"), "user"), pc.equal(rows.column("block_type"), "text"))
    prompts = rows.filter(
        pc.and_(said, pc.is_in(rows.column("session_id"), groups.column("session_id").combine_chunks()))
    )
    by_place = [
        ("session_id", "ascending"),
        ("seq", "ascending"),
        ("block_idx", "ascending"),
        ("split_idx", "ascending"),
    ]
    present = [key for key in by_place if key[0] in prompts.column_names]
    prompts = prompts.take(pc.sort_indices(prompts, sort_keys=present))
    first: dict[str, str] = {}
    for session, identifier in zip(
        prompts.column("session_id").to_pylist(), prompts.column("id").to_pylist(), strict=True
    ):
        first.setdefault(session, identifier)
    identifiers = list(first.values())
    texts: dict[str, str] = {}
    for start in range(0, len(identifiers), SESSIONS_BY_INDEX):
        found = chunks.scan(["id", "text"], f"id IN ({quoted_list(identifiers[start : start + SESSIONS_BY_INDEX])})")
        for identifier, text in zip(found.column("id").to_pylist(), found.column("text").to_pylist(), strict=True):
            if text is not None:
                texts[identifier] = text[:PROMPT_CHARACTERS]
    return {session: texts.get(identifier, "") for session, identifier in first.items()}
