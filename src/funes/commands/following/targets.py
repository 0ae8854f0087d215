"""Which traces an event is about: the one that its payload names, and those of the agents that this one started."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_STEM_ENDS = (".zst", ".jsonl")


def traces_of(harness: str, trace: Path) -> Iterator[Path]:
    """Yield a session's trace and the traces of its sub-agents, those that exist.

    Args:
        harness: the agent's name.
        trace: the trace that the payload names.
    """
    yield trace
    beside: list[tuple[Path, str]] = []
    if harness == "claude":
        stem = trace.name
        for end in _STEM_ENDS:
            stem = stem.removesuffix(end)
        # Before 2.1 sub-agents lay beside the sessions of the project, since then below the one that they belong to.
        beside = [(trace.parent / stem / "subagents", "**/*.jsonl"), (trace.parent, "agent-*.jsonl")]
    elif harness == "codex":
        # A sub-agent's rollout lies among the day's others.
        beside = [(trace.parent, "rollout-*.jsonl")]
    for folder, pattern in beside:
        try:
            found = sorted(folder.glob(pattern))
        except OSError:  # removed meanwhile
            continue
        yield from (path for path in found if path != trace)
