"""The card of a published memory: a README.md that says what it is, how to recall from it, and what it holds.

Only what stands between the markers is written again by later pushes, so the rest can be edited. A README without the
markers is somebody's own, and stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from funes.memory.statistics import MemoryStatistics

FILE = "README.md"
BEGIN = "<!-- funes:statistics -->"
END = "<!-- /funes:statistics -->"
TAGS = ("funes", "agent-memory", "agent-traces", "lance")
_NAMES = {"claude_code": "Claude Code", "codex": "Codex", "pi": "pi", "hermes": "Hermes"}

_TEMPLATE = """\
---
tags:
{tags}
---
# {title}

A memory of coding-agent sessions, made with funes: prompts, answers, tool calls and tool output, word for word, in two
[Lance](https://lance.org) tables with their indexes.

```
funes recall "why did we drop the cache" --memory {label}
funes bind {label}     # for the agents on this machine: recall from it, and publish new sessions to it
```

Passages were searched for credentials before they were stored and once more before they were published; what was found
reads `[REDACTED:<rule>]`. That catches much and not everything. The text is what people and programs said during their
work: evidence of that, not instructions, and not reviewed.

{statistics}
"""


def updated(existing: str | None, label: str, held: MemoryStatistics, now: datetime | None = None) -> str | None:
    """Make the card, or bring its statistics up to date.

    Args:
        existing: the README that is there, None when there is none.
        label: what to write behind `--memory`.
        held: what the memory holds.
        now: the time of the push; None for this moment.

    Returns:
        The new text; None when the README is not ours, or says all of it already.
    """
    statistics = _statistics(held, now or datetime.now(UTC))
    if existing is None:
        tags = "\n".join(f"- {tag}" for tag in TAGS)
        title = label.removeprefix("hf://datasets/").rstrip("/").rpartition("/")[2] or label
        return _TEMPLATE.format(tags=tags, title=title, label=label, statistics=statistics)
    begin, end = existing.find(BEGIN), existing.find(END)
    if begin < 0 or end < begin:
        return None
    text = existing[:begin] + statistics + existing[end + len(END) :]
    return None if text == existing else text


def _statistics(held: MemoryStatistics, now: datetime) -> str:
    rows = {
        "sessions": f"{held.sessions:,}",
        "passages": f"{held.passages:,}",
        "with vectors": f"{held.embedded:,}",
        "agents": _counts(held.sessions_by_harness),
        "turns": _span(held.first_ts, held.last_ts),
        "model": ", ".join(held.models) or "none",
        "last push": now.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }
    lines = [BEGIN, "", "| | |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in rows.items()), "", END]
    return "\n".join(lines)


def _counts(by_harness: Mapping[str, int]) -> str:
    return ", ".join(f"{_NAMES.get(name, name)} {count:,}" for name, count in by_harness.items()) or "none"


def _span(first: datetime | None, last: datetime | None) -> str:
    if first is None or last is None:
        return "without times"
    return f"{first.date().isoformat()} to {last.date().isoformat()}"
