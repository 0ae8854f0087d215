"""pi: session files of every version, and files of other programs in the same shape.

The other programs are those that grew from pi (OpenClaw, omp) and the harnesses that write the session-trace format of
Hugging Face, whose header names the harness.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from funes.traces.detect import walk
from funes.traces.jsonl import iter_records, resume_point, resume_state
from funes.traces.model import Head, ReadReport, Session, Turn
from funes.traces.pi_entries import Entries
from funes.traces.pi_text import session_of_file
from funes.traces.streams import open_trace

_SUFFIXES = (".jsonl", ".jsonl.zst")
_OLD_NAME = re.compile(r"\d{4}-\d\d-\d\dT.*\.jsonl")
_SESSION_FIELDS = ("id", "harness", "workdir", "title", "parent_id", "kind")


class PiSource:
    """The trace source of pi, under `PI_CODING_AGENT_DIR` or `~/.pi/agent`."""

    name = "pi"
    harness = "pi"

    def roots(self) -> list[Path]:
        """Return the agent folder and, where sessions are kept elsewhere, that folder."""
        agent = _folder(os.environ.get("PI_CODING_AGENT_DIR")) or Path.home() / ".pi" / "agent"
        elsewhere = _folder(os.environ.get("PI_CODING_AGENT_SESSION_DIR")) or _folder(_setting(agent, "sessionDir"))
        return [agent, elsewhere] if elsewhere and elsewhere != agent / "sessions" else [agent]

    def files(self, root: Path) -> Iterator[Path]:
        """Return the session files below a root, oldest first, so that a session comes before its forks.

        Version 0.30 put sessions directly into the agent folder, where other files lie too.
        """
        if root == self.roots()[0]:
            try:
                yield from sorted(path for path in root.iterdir() if _OLD_NAME.fullmatch(path.name))
            except OSError:
                return
            root /= "sessions"
        found = [path for path in walk(root) if path.name.endswith(_SUFFIXES)]
        yield from sorted(found, key=lambda path: (path.name, path))

    def matches(self, head: Head) -> bool:
        """Whether the file has a session header or entries with a message inside."""
        return any(
            (record.get("type") == "session" and isinstance(record.get("id"), str))
            or (record.get("type") == "message" and isinstance(record.get("message"), dict))
            for record in head.records
        )

    def stamp(self, path: Path) -> str:
        """Return size, times and inode of the file."""
        status = path.stat()
        return f"{status.st_size}:{status.st_mtime_ns}:{status.st_ino}"

    def read(
        self, path: Path, report: ReadReport, resume: dict[str, Any] | None = None
    ) -> Iterator[tuple[Session, Turn]]:
        """Stream the turns of a session file; see `TraceSource.read`."""
        try:
            point = resume_point(path, resume)
            state = resume if point and resume else {}
            session = Session(session_of_file(path.name), self.harness, source_path=str(path))
            kept = state.get("session")
            for field in _SESSION_FIELDS:
                if isinstance(kept, dict) and isinstance(kept.get(field), str):
                    setattr(session, field, kept[field])
            title = session.title
            entries = Entries(session, report, state.get("entries"))
            offset, line = point or (0, 1)
            with open_trace(path) as stream:
                reader = iter_records(stream, report, offset, line=line)
                for _, record in reader:
                    for turn in entries.feed(record):
                        yield session, turn
        except OSError as error:
            report.failed = report.failed or f"it cannot be opened: {error.strerror or error}"
            return
        if point and session.title != title and not report.turns:
            # A new name and nothing else was added; it has to reach the session's rows, which takes a turn.
            _clear(report)
            yield from self.read(path, report)
            return
        kept = {field: getattr(session, field) for field in _SESSION_FIELDS}
        report.resume = resume_state(path, reader, session=kept, entries=entries.state())


def _clear(report: ReadReport) -> None:
    empty = ReadReport()
    for field in fields(empty):
        setattr(report, field.name, getattr(empty, field.name))


def _folder(value: str | None) -> Path | None:
    return Path(value).expanduser() if value else None


def _setting(agent: Path, key: str) -> str | None:
    """Value of a text in the agent's settings; None without one."""
    try:
        settings = json.loads((agent / "settings.json").read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError, RecursionError):
        # No settings, or some that pi itself could not read.
        return None
    value = settings.get(key) if isinstance(settings, dict) else None
    return value if isinstance(value, str) else None
