"""From the filter options of a command or tool to a `Filter`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime

from funes.dates import parse_range
from funes.errors import FunesError
from funes.memory.filters import Filter

BLOCK_TYPES = ("text", "thinking", "tool_use", "tool_result", "summary")
ROLES = ("user", "assistant", "tool", "system")
_BUILT_IN = {"claude": "claude_code", "claude_code": "claude_code", "codex": "codex", "pi": "pi", "hermes": "hermes"}


def make_filter(
    *,
    types: Sequence[str] = (),
    roles: Sequence[str] = (),
    harnesses: Sequence[str] = (),
    repo: str | None = None,
    branch: str | None = None,
    workdir: str | None = None,
    session: str | None = None,
    since: str | None = None,
    until: str | None = None,
    now: datetime | None = None,
) -> Filter:
    """Build the conditions of a read.

    Args:
        types: block types; any of them.
        roles: speakers; any of them.
        harnesses: harness names in either spelling of claude; any of them.
        repo: `owner/name`, or the bare name.
        branch: git branch, exactly.
        workdir: folder, absolute or relative to the current one; it and everything below it.
        session: full session id.
        since: earliest time, as `funes.dates` reads it.
        until: latest time, in the same forms; a day counts to its end.
        now: what ages count back from; the current time when None.

    Raises:
        FunesError: for a value that cannot be used.
    """
    first, last = parse_range(since, until, now=now)
    return Filter(
        types=_known(types, BLOCK_TYPES, "block type"),
        roles=_known(roles, ROLES, "role"),
        harnesses=tuple(dict.fromkeys(harness_facet(name) for name in harnesses)),
        repo=repo or None,
        branch=branch or None,
        workdir=os.path.abspath(os.path.expanduser(workdir)) if workdir else None,
        session=session or None,
        since=first,
        until=last,
    )


def harness_facet(name: str) -> str:
    """The stored facet of a harness by any of its names.

    A name that no installed source has stays as it is: a memory from elsewhere can hold other harnesses.
    """
    key = name.strip().lower().replace("-", "_")
    if key in _BUILT_IN:
        return _BUILT_IN[key]
    from funes.traces.registry import sources

    return next((source.harness for source in sources() if key in (source.name, source.harness)), name.strip())


def _known(values: Sequence[str], known: Sequence[str], what: str) -> tuple[str, ...]:
    for value in values:
        if value not in known:
            raise FunesError(f"There is no {what} {value!r}; it is one of {', '.join(known)}.")
    return tuple(dict.fromkeys(values))
