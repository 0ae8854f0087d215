"""Credentials in what stands beside the text: a folder, a repository, a branch or a tool of that name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from funes.commands.scrubbing.plan import with_title
from funes.memory.rewriting import ADDRESS
from funes.memory.schema import CHUNK_COLUMNS, SESSION_TYPE, quoted_list, table_to_chunks

if TYPE_CHECKING:
    from funes.chunking import Chunk
    from funes.commands.scrubbing.blocks import Scan
    from funes.commands.scrubbing.plan import Plan
    from funes.secrets import Redactor

NAMES = ("workdir", "repo", "branch", "tool_name")


def plan_names(plan: Plan, scan: Scan, redactor: Redactor, ruleset: str) -> tuple[int, set[str], Counter[str]]:
    """Plan what takes the place of rows with a credential in one of these columns. Each value is scanned once.

    Args:
        plan: is added to; what it has already is cleaned too.
        scan: reads the table.
        redactor: scans.
        ruleset: id of its rules.

    Returns:
        The number of names that change, the sessions concerned, and the findings by rule.
    """
    dirty, counts = _dirty(scan, redactor)
    sessions: set[str] = set()
    if not dirty:
        return 0, sessions, counts
    for address, rows in plan.rows.items():
        plan.rows[address] = [_cleaned(row, dirty, row.ruleset) for row in rows]
    table = scan(CHUNK_COLUMNS, " OR ".join(f"{name} IN ({quoted_list(sorted(dirty))})" for name in NAMES))
    newest = _newest_headers(scan)
    for address, row in zip(table.column(ADDRESS).to_pylist(), table_to_chunks(table), strict=True):
        sessions.add(row.session_id)
        plan.changes[row.source_path].forget_place = True
        if address in plan.rows:
            continue
        if row.block_type == SESSION_TYPE and newest[row.session_id] != address:
            plan.rows[address] = []
        else:
            plan.rows[address] = [_cleaned(row, dirty, ruleset if address in plan.restamped else row.ruleset)]
    return len(dirty), sessions, counts


def _dirty(scan: Scan, redactor: Redactor) -> tuple[dict[str, str], Counter[str]]:
    """What to write for each value with a credential, and the findings by rule."""
    table = scan(NAMES, None)
    values = {value for name in NAMES for value in table.column(name).unique().to_pylist() if value}
    dirty: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for value in sorted(values):
        redaction = redactor.redact(value)
        if redaction.counts:
            dirty[value] = redaction.text or ""
            counts += redaction.counts
    return dirty, counts


def _newest_headers(scan: Scan) -> dict[str, int]:
    headers = scan(["session_id"], f"block_type = '{SESSION_TYPE}'")
    return dict(zip(headers.column("session_id").to_pylist(), headers.column(ADDRESS).to_pylist(), strict=True))


def _cleaned(row: Chunk, dirty: Mapping[str, str], ruleset: str) -> Chunk:
    values = {name: dirty.get(getattr(row, name), getattr(row, name)) for name in NAMES}
    row = replace(row, ruleset=ruleset, **values)
    # The id of a header row is made from what it says.
    return with_title(row, row.text or "", ruleset) if row.block_type == SESSION_TYPE else row
