"""What a read can be narrowed to, as SQL that Lance applies before it ranks anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from funes.memory.dialect import FIRST_HARNESS, NATIVE, Dialect
from funes.memory.schema import SESSION_TYPE, quoted, quoted_list

_PLACE = ("repo", "branch", "workdir", "session_id", "harness")


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

    @property
    def place(self) -> Filter:
        """The conditions that a session meets, whichever of the passages it contains it stores itself.

        Which agent it belongs to is one of them, but alone it names no place.
        """
        place = Filter(repo=self.repo, branch=self.branch, workdir=self.workdir, session=self.session)
        return place if place == Filter() else replace(place, harnesses=self.harnesses)

    def sql(self, dialect: Dialect = NATIVE, among: Sequence[str] | None = None) -> str | None:
        """Render the conditions as an SQL expression over the filter columns, None when nothing is restricted.

        Args:
            dialect: what the table lacks; nothing meets a condition on a column that is not there.
            among: ids of passages that meet `place` already, to ask for them alone; None to ask for all.
        """
        conditions = {
            "block_type": f"block_type IN ({quoted_list(self.types)})" if self.types else "",
            "role": f"role IN ({quoted_list(self.roles)})" if self.roles else "",
            "harness": f"harness IN ({quoted_list(self.harnesses)})" if self.harnesses else "",
            "repo": _repo(self.repo) if self.repo else "",
            "branch": f"branch = {quoted(self.branch)}" if self.branch else "",
            "workdir": _below("workdir", self.workdir) if self.workdir else "",
            "session_id": f"session_id = {quoted(self.session)}" if self.session else "",
            "ts": self._times(dialect),
        }
        if among is not None:
            for column in _PLACE:
                del conditions[column]
            conditions["id"] = f"id IN ({quoted_list(among)})"
        if "harness" in dialect.lacking and FIRST_HARNESS in self.harnesses:
            conditions.pop("harness", None)
        wanted = {column: condition for column, condition in conditions.items() if condition}
        if not dialect.lacking.isdisjoint(wanted):
            return "false"
        return " AND ".join(wanted.values()) or None

    def passages(self, dialect: Dialect = NATIVE, among: Sequence[str] | None = None) -> str:
        """Like `sql`, for the chunks table, where header rows have to be kept out unless they are asked for."""
        condition = self.sql(dialect, among)
        if self.types:
            return condition or ""
        no_headers = f"block_type != {quoted(SESSION_TYPE)}"
        return f"{condition} AND {no_headers}" if condition else no_headers

    def _times(self, dialect: Dialect) -> str:
        bounds = [(sign, moment) for sign, moment in ((">=", self.since), ("<=", self.until)) if moment]
        if dialect.text_times:
            return " AND ".join(f"(ts != '' AND ts {sign} {_text_time(moment, sign)})" for sign, moment in bounds)
        return " AND ".join(f"ts {sign} {_timestamp(moment)}" for sign, moment in bounds)


def _repo(name: str) -> str:
    """Render: the repository has this name, or this is the last part of it."""
    repo = name.lower()
    condition = f"lower(repo) = {quoted(repo)}"
    return condition if "/" in repo else f"({condition} OR ends_with(lower(repo), {quoted('/' + repo)}))"


def _text_time(moment: datetime, sign: str) -> str:
    """Render a time for comparison with ISO texts in UTC, which may or may not have fractions of a second."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    text = aware.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
    # Of the characters that may follow the seconds, `Z` comes last.
    return quoted(text if sign == ">=" else f"{text}Z")


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
