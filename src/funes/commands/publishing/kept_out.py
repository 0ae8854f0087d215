"""Sessions that the ignore file names: what was stored before it named them is not published either."""

from __future__ import annotations


def kept_out() -> frozenset[str]:
    """Ids of the local memory's sessions that the ignore file names, and of the sub-agents' sessions below them.

    Raises:
        FunesError: when the file cannot be read or has a line that is no pattern; nothing may be published then.
    """
    from funes.commands.ignoring import read_ignore_rules
    from funes.commands.indexing.leaving_out import matching
    from funes.memory.reader import MemoryReader

    rules = read_ignore_rules()
    if not rules.lines:
        return frozenset()
    sessions = MemoryReader.open().sessions()
    chosen = {session.id for session in matching(rules, sessions)}
    while more := {item.id for item in sessions if item.kind == "subagent" and item.parent_id in chosen} - chosen:
        chosen |= more
    return frozenset(chosen)
