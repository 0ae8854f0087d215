"""Claude Code's transcripts, from 1.0 on: where they lie, how they are told from others, and reading one.

`docs/traces.md` of the shared notes describes the format; `claude_parser` follows it record by record.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from funes.traces.claude_parser import METADATA, ClaudeParser
from funes.traces.detect import is_session_name, walk
from funes.traces.jsonl import iter_records, open_trace, resume_point, resume_state
from funes.traces.model import Head, ReadReport, Session, Turn

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_FIRST_TYPE = re.compile(rb'\{"type":"([\w-]{1,60})"')
# The keys before the type of a progress record all have plain values.
_LATER_TYPE = re.compile(rb'\{"parentUuid":[^{}\[\]]{0,8192}?"type":"(progress)"')
_SKIPPED = {name.encode(): f"metadata {name}" for name in METADATA}
_RAW = re.compile(
    rb'"(?:parentUuid|leafUuid|isSidechain)"\s*:|"type"\s*:\s*"(?:user|assistant)"\s*,\s*"(?:uuid|message)"\s*:'
)
# Agents that the client runs for itself, over a copy of the conversation: nobody asked for them.
_HARNESS_AGENTS = ("agent-acompact-", "agent-aprompt_suggestion-")
_CONVERSATION = ("user", "assistant", "system", "attachment", "progress")
_OWN_TYPES = METADATA | {"summary", "queue-operation", "custom-title", "ai-title", "attachment"}
_OWN_KEYS = frozenset(("sessionId", "leafUuid", "messageId", "parentUuid"))


class ClaudeSource:
    """Sessions of Claude Code; see `funes.traces.model.TraceSource`."""

    name = "claude"
    harness = "claude_code"

    def roots(self) -> list[Path]:
        """Return the `projects` folders: that of `CLAUDE_CONFIG_DIR`, else of `~/.claude` and the XDG one."""
        if override := os.environ.get("CLAUDE_CONFIG_DIR"):
            return [Path(override).expanduser() / "projects"]
        xdg = os.environ.get("XDG_CONFIG_HOME")
        config = Path(xdg).expanduser() if xdg else Path.home() / ".config"
        other = config / "claude" / "projects"
        return [Path.home() / ".claude" / "projects", *([other] if other.is_dir() else [])]

    def files(self, root: Path) -> Iterator[Path]:
        """Yield the transcripts below a `projects` folder, sub-agents' included."""
        for path in walk(root):
            if path.name.endswith((".jsonl", ".jsonl.zst")) and is_session_name(path):
                yield path

    def matches(self, head: Head) -> bool:
        """Whether the file holds records of Claude Code."""
        for record in head.records:
            kind = str(record.get("type"))
            if kind in _CONVERSATION and "uuid" in record and ("sessionId" in record or "message" in record):
                return True
            if kind in _OWN_TYPES and not _OWN_KEYS.isdisjoint(record):
                return True
        # A first record that is damaged, or longer than what was read.
        return not head.records and _RAW.search(head.start) is not None

    def stamp(self, path: Path) -> str:
        """Return the state of the transcript and of what lies beside it: spilled outputs, metadata, title."""
        folder = path.parent / path.name.split(".")[0]
        beside = [folder / "tool-results", folder / "custom-title.json", _meta_path(path)]
        return " ".join(_stat(item) for item in (path, *beside))

    def read(
        self, path: Path, report: ReadReport, resume: dict[str, Any] | None = None
    ) -> Iterator[tuple[Session, Turn]]:
        """Stream a transcript's turns; sub-agents recorded inside it come as sessions of their own."""
        if path.name.startswith(_HARNESS_AGENTS):
            report.skipped["harness agent"] += 1
            return
        parser = ClaudeParser(path, _session(path), report)
        point = resume_point(path, resume)
        if point and resume:
            try:
                parser.restore(resume["state"])
            except (KeyError, TypeError, ValueError):
                parser, point = ClaudeParser(path, _session(path), report), None
        try:
            stream = open_trace(path)
        except OSError as error:
            report.failed = f"cannot be opened: {error.strerror or error}"
            return
        known = parser.described() if point else None
        with stream:
            start, line = point or (0, 1)
            reader = iter_records(stream, report, start, line=line, skip=_skip)
            for _, record in reader:
                for session, turn in parser.feed(record, reader.line):
                    report.turns += 1
                    yield session, turn
            for session, turn in parser.finish():
                report.turns += 1
                yield session, turn
        if known is not None and parser.described() != known:
            report.sessions.append(parser.session)  # a title comes after the last turn
        state = parser.state()
        if state is not None and not report.failed:
            report.resume = resume_state(path, reader, state=state)


def _skip(line: bytes) -> str | None:
    """Tell from its first bytes why a record need not be decoded."""
    match = _FIRST_TYPE.match(line) or _LATER_TYPE.match(line)
    return _SKIPPED.get(match[1]) if match else None


def _session(path: Path) -> Session:
    """Make the session of a transcript from its name and from the files beside it."""
    stem = path.name.removesuffix(".zst").removesuffix(".jsonl")
    session = Session(id="", harness=ClaudeSource.harness, source_path=str(path))
    if stem.startswith("agent-"):
        session.id, session.kind = stem, "subagent"
        session.title = _json_text(_meta_path(path), "description")
    elif _UUID.fullmatch(stem):
        session.id = stem
        session.title = _json_text(path.parent / stem / "custom-title.json", "customTitle")
    return session


def _meta_path(path: Path) -> Path:
    return path.parent / f"{path.name.removesuffix('.zst').removesuffix('.jsonl')}.meta.json"


def _json_text(path: Path, key: str) -> str:
    """Return a string of a small JSON file, empty when there is no such file or string."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return ""
    text = value.get(key) if isinstance(value, dict) else None
    return text if isinstance(text, str) else ""


def _stat(path: Path) -> str:
    try:
        stat = path.stat()
    except OSError:
        return "-"
    return f"{stat.st_size}:{stat.st_mtime_ns}:{stat.st_ino}"
