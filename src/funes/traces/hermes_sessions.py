"""Hermes's session records: what a session is, and which sessions continue which."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from funes.traces.model import Session, SessionKind

SESSION_COLUMNS = (
    "id",
    "source",
    "parent_session_id",
    "end_reason",
    "model_config",
    "title",
    "cwd",
    "git_branch",
    "git_repo_root",
)
"""The columns of `sessions` that are read, where the version has them."""

_MAX_CHAIN = 10_000


def read_session(row: Mapping[str, Any], rows: Mapping[str, Mapping[str, Any]], source_path: str) -> Session:
    """Make a session of its record.

    Args:
        row: the session's record.
        rows: the records known, by session id.
        source_path: the file it was read from.
    """
    session_id, parent = _text(row.get("id")), parent_of(row)
    return Session(
        id=session_id,
        harness="hermes",
        workdir=_text(row.get("cwd")) or _text(row.get("git_repo_root")),
        branch=_text(row.get("git_branch")),
        title=_text(row.get("title")),
        parent_id=parent if parent != session_id else "",
        kind=_kind(row, rows.get(parent)),
        source_path=source_path,
    )


def lineage_of(row: Mapping[str, Any], rows: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the id of the session in which a session's conversation began.

    A compaction and `/branch` continue a conversation in a new session, with copies of old messages; a sub-agent's
    conversation is its own.

    Args:
        row: the session's record.
        rows: the records known, by session id.
    """
    current, seen = row, {_text(row.get("id"))}
    name = _text(row.get("id"))
    while len(seen) < _MAX_CHAIN:
        parent = parent_of(current)
        if not parent or parent in seen or _kind(current, rows.get(parent)) == "subagent":
            break
        name = parent
        seen.add(parent)
        if parent not in rows:
            break
        current = rows[parent]
    return name


def parent_of(row: Mapping[str, Any]) -> str:
    """Return the id of the session that started this one, empty for none."""
    if parent := _text(row.get("parent_session_id")):
        return parent
    config = _config(row)
    parent = _text(config.get("_delegate_from")) or _text(config.get("_branched_from"))
    return "" if parent == "__orphaned__" else parent


def _kind(row: Mapping[str, Any], parent: Mapping[str, Any] | None) -> SessionKind:
    config = _config(row)
    if _text(row.get("source")) == "subagent" or config.get("_delegate_from"):
        return "subagent"
    if config.get("_branched_from") or (parent is not None and parent.get("end_reason") == "branched"):
        return "fork"
    return "main"


def _config(row: Mapping[str, Any]) -> Mapping[str, Any]:
    value = row.get("model_config")
    if isinstance(value, (str, bytes)):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace").strip()
    return "" if value is None else str(value).strip()
