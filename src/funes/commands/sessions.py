"""`funes sessions`: which sessions a memory holds."""

from __future__ import annotations

from funes.commands.opened import OpenMemory
from funes.commands.recall import with_full_session
from funes.errors import FunesError
from funes.memory.filters import Filter
from funes.ui.views import SessionList

DEFAULT_LIMIT = 20


def sessions(memory: OpenMemory, where: Filter, limit: int = DEFAULT_LIMIT) -> SessionList:
    """List sessions that have a passage meeting the conditions, latest activity first.

    Args:
        memory: where to look.
        where: conditions; `where.session` may be the beginning of an id.
        limit: most sessions to list, 0 for all.

    Raises:
        FunesError: for a negative limit, or a memory that cannot be read.
    """
    if limit < 0:
        raise FunesError(f"The limit is {limit}; it has to be 0 (all) or more.")
    reader = memory.reader()
    found = reader.sessions(with_full_session(memory, where), limit + 1 if limit else None)
    more = bool(limit) and len(found) > limit
    return SessionList(reader.label, found[:limit] if limit else found, more)
