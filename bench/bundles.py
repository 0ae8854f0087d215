"""The bundles of the long-session benchmark, and the sessions that they are about."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "long_session"


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that the session found out and the code does not show.

    Attributes:
        fact: in the benchmark author's words.
        patterns: regular expressions that all match near one another where it is said.
        turns: turns of the session that say it, counted from 0 in the order of the trace; up to four.
        source: `question` when it is what a question of the retrieval set asks for, which others wrote; else `author`.
    """

    fact: str
    patterns: tuple[str, ...]
    turns: tuple[int, ...]
    source: str


@dataclass(frozen=True, slots=True)
class Bundle:
    """One session and what comes after it. It holds no text of the session.

    Attributes:
        name: of the file.
        session: id of the session.
        until: last turn that counts.
        task: what the next agent is to do, a line each; the first names the topic.
        facts: what it should know.
        handoff: written by hand at the end of the session.
        summary: as a compaction would leave.
    """

    name: str
    session: str
    until: int
    task: tuple[str, ...]
    facts: tuple[Fact, ...]
    handoff: str
    summary: str


def load(folder: Path = FOLDER) -> list[Bundle]:
    """Read the bundles of a folder, by name."""
    bundles = []
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        facts = [
            Fact(fact["fact"], tuple(fact["patterns"]), tuple(fact["turns"]), fact["from"]) for fact in content["facts"]
        ]
        bundles.append(
            Bundle(
                path.stem,
                content["session"],
                content["until"],
                tuple(content["task"]),
                tuple(facts),
                "\n".join(content["handoff"]),
                "\n".join(content["summary"]),
            )
        )
    return bundles


def find_trace(session: str, folder: Path) -> Path | None:
    """The trace of a Claude Code session below a folder, None when it is not there."""
    return next(folder.rglob(f"{session}.jsonl"), None)


def session_text(path: Path, until: int) -> str:
    """What an agent that resumes a session has in its context: messages, tool calls and tool output, no thinking.

    After a compaction that is the summary and what came later.

    Args:
        path: the trace.
        until: the last turn.
    """
    from funes.traces.claude import ClaudeSource
    from funes.traces.model import ReadReport

    parts: list[str] = []
    for number, (_, turn) in enumerate(ClaudeSource().read(path, ReadReport())):
        if number > until:
            break
        if turn.origin == "compaction":
            parts.clear()
        # Claude Code leaves the thinking of finished turns out of what it sends.
        parts += [block.text for block in turn.blocks if block.type != "thinking"]
    return "\n".join(parts)
