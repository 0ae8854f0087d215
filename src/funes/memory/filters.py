"""What a read can be narrowed to, as SQL that Lance applies before it ranks anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from funes.memory.schema import SESSION_TYPE, quoted, quoted_list


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions that all have to hold; an empty or None field does not restrict.

    Attributes:
        types: block types; any of them.
        roles: speakers; any of them.
        harnesses: stored facets (`claude_code`, …); any of them.
        repo: `owner/name`, or the bare name; upper and lower case are the same.
        branch: git branch, exactly.
        workdir: absolute folder; it and everything below it.
        session: full session id.
        since: earliest time, inclusive, aware.
        until: latest time, inclusive, aware.
    """

    types: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    harnesses: tuple[str, ...] = ()
    repo: str | None = None
    branch: str | None = None
    workdir: str | None = None
    session: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def sql(self, copies: Sequence[str] = ()) -> str | None:
        """Render the conditions as an SQL expression over the filter columns, None when nothing is restricted.

        Args:
            copies: ids of passages that the session named by `session` contains but another one stores.
        """
        parts = []
        if self.types:
            parts.append(f"block_type IN ({quoted_list(self.types)})")
        if self.roles:
            parts.append(f"role IN ({quoted_list(self.roles)})")
        if self.harnesses:
            parts.append(f"harness IN ({quoted_list(self.harnesses)})")
        if self.repo:
            repo = self.repo.lower()
            condition = f"lower(repo) = {quoted(repo)}"
            if "/" not in repo:
                condition = f"({condition} OR ends_with(lower(repo), {quoted('/' + repo)}))"
            parts.append(condition)
        if self.branch:
            parts.append(f"branch = {quoted(self.branch)}")
        if self.workdir:
            parts.append(_below("workdir", self.workdir))
        if self.session:
            condition = f"session_id = {quoted(self.session)}"
            if copies:
                condition = f"({condition} OR id IN ({quoted_list(copies)}))"
            parts.append(condition)
        if self.since:
            parts.append(f"ts >= {_timestamp(self.since)}")
        if self.until:
            parts.append(f"ts <= {_timestamp(self.until)}")
        return " AND ".join(parts) or None

    def passages(self, copies: Sequence[str] = ()) -> str:
        """Like `sql`, for the chunks table, where header rows have to be kept out unless they are asked for."""
        condition = self.sql(copies)
        if self.types:
            return condition or ""
        no_headers = f"block_type != {quoted(SESSION_TYPE)}"
        return f"{condition} AND {no_headers}" if condition else no_headers


def _below(column: str, folder: str) -> str:
    """Render: a path column is the folder or lies below it, in either spelling of the separator."""
    stem = folder.rstrip("/\\")
    if not stem:
        return f"starts_with({column}, {quoted(folder)})"
    return (
        f"({column} = {quoted(stem)} OR starts_with({column}, {quoted(stem + '/')}) "
        f"OR starts_with({column}, {quoted(stem + chr(92))}))"
    )


def _timestamp(moment: datetime) -> str:
    """Render a time as an SQL literal; a naive one counts as UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return f"timestamp '{aware.astimezone(UTC).strftime('%Y-%m-%dT%H:%M:%S.%f')}+00:00'"
