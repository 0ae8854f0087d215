"""Comparing a HOME in which funes was added, used and removed with one in which the same was done without it."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_HEX = re.compile(r"[0-9a-f]{12,}")
_NUMBER = re.compile(r"\d+")

OWN = {
    "claude": (r"^\.claude/(projects|sessions|shell-snapshots|backups|statsig|todos|debug|plugins/store)/",),
    "codex": (
        r"^\.codex/(sessions|shell_snapshots|tmp|log|packages|cache)/",
        r"^\.codex/[a-z_]+_\d+\.sqlite$",
        r"^\.codex/(installation_id|models_cache\.json|version\.json|history\.jsonl|session_index\.jsonl)$",
    ),
    "pi": (r"^\.pi/agent/sessions/",),
    "hermes": (
        r"^\.hermes/(logs|sessions|cache|memories|checkpoints|sandboxes)/",
        r"^\.hermes/(state|response_store|kanban)\.db$",
        r"^\.hermes/\.update_check$",
    ),
}
"""What the agents write as they run and never the same twice: traces, databases, logs, caches. Compared by nothing but
that no file of a kind is there in one HOME only (session ids and times in names left out)."""

_PASSING = re.compile(
    r"-(shm|wal)$"  # a database's own
    r"|^\.cache/pip/"  # a check for updates of Hermes
    r"|^\.codex/\.tmp/"
    r"|^\.cache/claude-cli-nodejs/"  # what happened to any MCP server
    r"|^\.claude/\.last-cleanup$"
    r"|^\.claude/session-env/"  # made for each session in which any hook runs at its start
    r"|^\.hermes/logs/mcp-stderr\.log$"  # what any MCP server says on stderr
)
"""Files of the agents that are there or not as it happens."""

_COUNTERS = re.compile(
    r"(?i)(time|at|id|count|startups?|cost|duration|tokens?|lines(added|removed)|version|usage|metrics|fps\w*|hash|stats)$"
)
"""Keys whose values differ between two runs of the same program."""


def plain_name(name: str, home: Path) -> str:
    """A file's name without what differs between two runs: the HOME in it, ids and numbers."""
    dashed = re.sub(r"[^A-Za-z0-9]", "-", str(home))
    name = name.replace(dashed, "HOME").replace(str(home).replace("/", "-"), "HOME")
    return _NUMBER.sub("0", _HEX.sub("X", _UUID.sub("U", name)))


def differences(
    subject: Mapping[str, bytes], control: Mapping[str, bytes], homes: tuple[Path, Path], agents: Iterable[str]
) -> list[str]:
    """What is in one HOME and not in the other, or not the same.

    Args:
        subject: files of the HOME that had funes, without funes's own folders.
        control: files of the one that had not.
        homes: their folders.
        agents: the agents that ran in both.

    Returns:
        A line for each difference; none when the two are the same apart from what the agents write anew each time.
    """
    own = _own(agents)
    plain = [
        {plain_name(name, home): name for name in files if not _PASSING.search(name)}
        for files, home in zip((subject, control), homes, strict=True)
    ]
    found = [f"only with funes: {name}" for name in sorted(plain[0].keys() - plain[1].keys())]
    found += [f"only without funes: {name}" for name in sorted(plain[1].keys() - plain[0].keys())]
    for name in sorted(plain[0].keys() & plain[1].keys()):
        if own.search(name):
            continue
        texts = [
            _plain_content(files[names[name]], home)
            for files, names, home in zip((subject, control), plain, homes, strict=True)
        ]
        if texts[0] != texts[1]:
            found.append(f"differs: {name}\n  with    {_around(*texts)}\n  without {_around(*reversed(texts))}")
    return found


def mentions(files: Mapping[str, bytes], word: bytes, agents: Iterable[str]) -> list[str]:
    """Names of the files, other than the agents' own, that contain a word."""
    own = _own(agents)
    return [
        name for name, content in files.items() if not own.search(name) and (word in content or word in name.encode())
    ]


def touched(before: Mapping[str, bytes], after: Mapping[str, bytes], agents: Iterable[str]) -> set[str]:
    """Names of the files that were there before and are not the same to the byte, without the agents' own."""
    own = _own(agents)
    return {name for name, content in before.items() if not own.search(name) and after.get(name) != content}


def _own(agents: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join([*(pattern for agent in agents for pattern in OWN[agent]), _PASSING.pattern]))


def changes(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> list[str]:
    """Names of the files that are new, gone or changed."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def _plain_content(content: bytes, home: Path) -> str:
    text = content.decode("utf-8", "replace").replace(str(home), "HOME")
    with contextlib.suppress(ValueError):
        text = json.dumps(_without_counters(json.loads(text)), indent=1, sort_keys=True)
    return _UUID.sub("U", text)


def _without_counters(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: None if _COUNTERS.search(key) else _without_counters(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_without_counters(entry) for entry in value]
    return value


def _around(text: str, other: str) -> str:
    """The place where a text begins to differ from another."""
    at = next((place for place, pair in enumerate(zip(text, other, strict=False)) if pair[0] != pair[1]), 0)
    return repr(text[max(0, at - 60) : at + 120])
