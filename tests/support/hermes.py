"""Databases like the ones Hermes writes: its current schema and the one it began with."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from funes.traces.hermes import HermesSource
from funes.traces.model import Block, ReadReport, Session, Turn

SESSIONS = """CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT NOT NULL, user_id TEXT, model TEXT,
 model_config TEXT, system_prompt TEXT, parent_session_id TEXT, started_at REAL NOT NULL, ended_at REAL,
 end_reason TEXT, message_count INTEGER DEFAULT 0, cwd TEXT, git_branch TEXT, git_repo_root TEXT, title TEXT)"""
MESSAGES = """CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL,
 content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL, token_count INTEGER,
 finish_reason TEXT, reasoning TEXT, reasoning_content TEXT, reasoning_details TEXT,
 active INTEGER DEFAULT 1, compacted INTEGER NOT NULL DEFAULT 0, api_content TEXT)"""
LEGACY_SESSIONS = """CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT NOT NULL, parent_session_id TEXT,
 started_at REAL NOT NULL, ended_at REAL, end_reason TEXT)"""
LEGACY_MESSAGES = """CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT,
 content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL, reasoning TEXT)"""
START = 1764480000.25


class HermesDatabase:
    """A `state.db` being written."""

    def __init__(self, path: Path, *, wal: bool = True, legacy: bool = False, index: bool = True) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute(f"PRAGMA journal_mode={'WAL' if wal else 'DELETE'}")
        self.connection.execute("PRAGMA synchronous=OFF")
        self.connection.execute(LEGACY_SESSIONS if legacy else SESSIONS)
        self.connection.execute(LEGACY_MESSAGES if legacy else MESSAGES)
        if index:
            self.connection.execute("CREATE INDEX idx_messages_session ON messages(session_id, timestamp)")
        self.clock = START

    def session(self, session_id: str, source: str = "cli", **fields: Any) -> str:
        self._insert("sessions", {"id": session_id, "source": source, "started_at": START} | fields)
        return session_id

    def add(self, session_id: str, role: str, content: Any = None, **fields: Any) -> int:
        self.clock += 1
        if isinstance(fields.get("tool_calls"), list):
            fields["tool_calls"] = json.dumps(fields["tool_calls"])
        values = {"session_id": session_id, "role": role, "content": content, "timestamp": self.clock}
        return self._insert("messages", values | fields)

    def add_all(self, session_id: str, messages: list[dict[str, Any]]) -> None:
        for message in messages:
            self.add(session_id, **message)

    def compact(self, session_id: str, messages: list[dict[str, Any]]) -> None:
        """Put the live messages away and write the compacted conversation behind them."""
        self.execute("UPDATE messages SET active = 0, compacted = 1 WHERE session_id = ? AND active = 1", session_id)
        self.add_all(session_id, messages)

    def replace(self, session_id: str, messages: list[dict[str, Any]]) -> None:
        """Rewrite a session, which gives its messages new row ids."""
        self.execute("DELETE FROM messages WHERE session_id = ?", session_id)
        self.add_all(session_id, messages)

    def execute(self, statement: str, *values: Any) -> None:
        self.connection.execute(statement, values)

    def close(self) -> Path:
        self.connection.close()
        return self.path

    def _insert(self, table: str, values: Mapping[str, Any]) -> int:
        marks = ", ".join("?" * len(values))
        cursor = self.connection.execute(
            f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", tuple(values.values())
        )
        return cursor.lastrowid or 0


def call(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    """Make a tool call in the shape that Hermes stores."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def read(path: Path, resume: dict[str, Any] | None = None) -> tuple[list[tuple[Session, Turn]], ReadReport]:
    """Read a trace to its end."""
    report = ReadReport()
    return list(HermesSource().read(path, report, resume)), report


def turns(path: Path) -> list[Turn]:
    """Return all turns of a trace."""
    return [turn for _, turn in read(path)[0]]


def blocks(path: Path) -> Iterator[Block]:
    """Yield all blocks of a trace."""
    for turn in turns(path):
        yield from turn.blocks


def texts(path: Path) -> list[tuple[str, str, str]]:
    """Return `(role, block type, text)` of all blocks of a trace."""
    return [(turn.role, block.type, block.text) for turn in turns(path) for block in turn.blocks]
