"""Invented sessions in the layouts of pi and Hermes, for piles that have all four harnesses."""

from __future__ import annotations

import json
import random
import sqlite3
from datetime import datetime
from pathlib import Path

from generate import Claude, Codex, Record, Trace

_SESSIONS = """CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, source TEXT NOT NULL, model TEXT,
 parent_session_id TEXT, started_at REAL NOT NULL, ended_at REAL, end_reason TEXT, cwd TEXT, git_branch TEXT,
 title TEXT)"""
_MESSAGES = """CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL,
 role TEXT NOT NULL, content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL,
 reasoning TEXT, active INTEGER DEFAULT 1, compacted INTEGER NOT NULL DEFAULT 0)"""


class Pi(Trace):
    """A session of pi, version 3."""

    _call = ""

    def __init__(self, folder: Path, chance: random.Random, start: datetime, project: str) -> None:
        super().__init__(folder, chance, start, project)
        self.start = start
        about = {"type": "session", "version": 3, "id": self.id, "timestamp": self.tick()}
        self.records.append({**about, "cwd": f"/home/dev/{project}"})

    def say(self, role: str, text: str) -> None:
        """Append what one side says."""
        message: Record = {"role": role, "content": [{"type": "text", "text": text}]}
        if role == "call":
            self._call = f"call_{self.chance.getrandbits(96):024x}"
            call = {"type": "toolCall", "id": self._call, "name": "bash", "arguments": {"command": text}}
            message = {"role": "assistant", "content": [call]}
        elif role == "output":
            message |= {"role": "toolResult", "toolCallId": self._call, "toolName": "bash", "isError": False}
        parent = self.records[-1]["id"] if len(self.records) > 1 else None
        entry = {"type": "message", "id": f"{self.chance.getrandbits(32):08x}", "parentId": parent}
        self.records.append({**entry, "timestamp": self.tick(), "message": message})

    def path(self) -> Path:
        """Where the harness keeps it."""
        name = f"{self.start:%Y-%m-%dT%H-%M-%S}-000Z_{self.id}.jsonl"
        return self.folder / "pi" / "sessions" / f"--home-dev-{self.project}--" / name


class Hermes(Trace):
    """A session in Hermes's database, which all of them share."""

    _call = ""

    def __init__(self, folder: Path, chance: random.Random, start: datetime, project: str) -> None:
        super().__init__(folder, chance, start, project)
        self.start = start

    def say(self, role: str, text: str) -> None:
        """Append what one side says."""
        row: Record = {"role": role, "content": text}
        if role == "call":
            self._call = f"call_{self.chance.getrandbits(96):024x}"
            function = {"name": "terminal", "arguments": json.dumps({"command": text})}
            calls = json.dumps([{"id": self._call, "type": "function", "function": function}])
            row = {"role": "assistant", "tool_calls": calls}
        elif role == "output":
            row |= {"role": "tool", "tool_call_id": self._call, "tool_name": "terminal"}
        self.tick()
        self.records.append({**row, "session_id": self.id, "timestamp": self.now.timestamp()})

    def path(self) -> Path:
        """Where the harness keeps it."""
        return self.folder / "hermes" / "state.db"

    def write(self) -> int:
        """Write the session's rows in the place of those that an earlier run left; their bytes, about."""
        self.path().parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path())
        try:
            with connection:
                connection.execute("PRAGMA synchronous=OFF")
                connection.execute(_SESSIONS)
                connection.execute(_MESSAGES)
                connection.execute("DELETE FROM messages WHERE session_id = ?", (self.id,))
                connection.execute(
                    "INSERT OR REPLACE INTO sessions (id, source, started_at, ended_at, cwd) VALUES (?, ?, ?, ?, ?)",
                    (self.id, "cli", self.start.timestamp(), self.now.timestamp(), f"/home/dev/{self.project}"),
                )
                for row in self.records:
                    marks = ", ".join("?" * len(row))
                    connection.execute(f"INSERT INTO messages ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))
        finally:
            connection.close()
        return sum(len(str(value)) for row in self.records for value in row.values())


FOUR = (Claude, Codex, Pi, Hermes)
