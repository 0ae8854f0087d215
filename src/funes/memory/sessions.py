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

COLUMNS = (
    "id",
    "session_id",
    "seq",
    "ts",
    "role",
    "block_type",
    "harness",
    "repo",
    "branch",
    "workdir",
    "source_path",
    "parent_uuid",
    "origin",
    "block_idx",
    "split_idx",
)


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
    """Summaries of the sessions that have a row meeting the conditions, latest activity first.

    Args:
        chunks: the chunks table.
        where: conditions on passages; a session is listed when at least one of its passages meets them all.
        limit: most sessions, None for all.
    """
    raise NotImplementedError
