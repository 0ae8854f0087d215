"""Which traces an event is about: the one that its payload names, and those of the agents that this one started."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_STEM_ENDS = (".zst", ".jsonl")


def traces_of(harness: str, trace: Path, since: float) -> Iterator[Path]:
    """Yield a session's trace and those of its sub-agents.

    Args:
        harness: the agent's name.
        trace: the trace that the payload names.
        since: sub-agents whose trace has not changed since that time (seconds since the epoch) are left out.
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
            found = sorted(path for path in folder.glob(pattern) if path != trace and path.stat().st_mtime >= since)
        except OSError:  # removed meanwhile; the start of the next session catches up
            continue
        yield from found
