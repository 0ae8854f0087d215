"""One conversation with a password in it, in every format whose ids funes makes of what was said, and in others."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support import claude, codex, hermes

Build = Callable[[Path, str, int], Path]
"""Writes a trace below a folder, with a secret in it and some further turns behind; returns the trace."""


def line(secret: str) -> str:
    """A text in which the rules find the secret, and nothing else."""
    return f"The bakery's staging settings:\nDB_PASSWORD={secret}\nKeep them."


def _messages(secret: str, more: int) -> list[dict[str, Any]]:
    call = hermes.call("call_1", "terminal", command=f"export DB_PASSWORD={secret}")
    start = [
        {"role": "user", "content": "Which flour is in the rye bread?"},
        {"role": "assistant", "content": "Rye flour, type 1150."},
        {"role": "user", "content": line(secret)},
        {"role": "assistant", "content": "Noted.", "tool_calls": [call]},
        {"role": "tool", "content": f"DB_PASSWORD={secret}", "tool_call_id": "call_1", "tool_name": "terminal"},
        {"role": "user", "content": line(secret)},
        {"role": "assistant", "content": "You said that before."},
    ]
    return start + [{"role": "user", "content": f"And the bread number {n}?"} for n in range(more)]


def hermes_database(folder: Path, secret: str, more: int = 0) -> Path:
    """A `state.db` of Hermes's."""
    path = folder / "state.db"
    path.unlink(missing_ok=True)
    database = hermes.HermesDatabase(path, wal=False)
    database.session("20260304_102000_bread", title=f"password={secret}")
    database.add_all("20260304_102000_bread", _messages(secret, more))
    return database.close()


def hermes_export(folder: Path, secret: str, more: int = 0) -> Path:
    """What `hermes sessions export` writes."""
    path = folder / "export.jsonl"
    messages = [message | {"timestamp": 1772619600 + n} for n, message in enumerate(_messages(secret, more))]
    session = {"id": "20260304_102000_bread", "source": "cli", "started_at": 1772619600.5, "messages": messages}
    path.write_text(json.dumps(session) + "\n", "utf-8")
    return path


def _items(secret: str, more: int, ident: str) -> list[codex.Record]:
    return [
        codex.user("Which flour is in the rye bread?", 1),
        codex.assistant("Rye flour, type 1150.", 2),
        codex.user(line(secret), 3),
        codex.call(arguments={"cmd": f"export DB_PASSWORD={secret}"}, ident=ident),
        codex.output(f"DB_PASSWORD={secret}", ident),
        codex.user(line(secret), 6),
        codex.assistant("You said that before.", 7),
        *(codex.user(f"And the bread number {n}?", 8 + n) for n in range(more)),
    ]


def codex_without_turns(folder: Path, secret: str, more: int = 0) -> Path:
    """A rollout from before turns had ids."""
    return codex.write(folder, [codex.meta(), *_items(secret, more, "call_1")])


def codex_with_turns(folder: Path, secret: str, more: int = 0) -> Path:
    """A rollout with turns, from a server whose ids are not unique."""
    return codex.write(folder, [codex.meta(), codex.started(), *_items(secret, more, "call_1")])


def codex_events(folder: Path, secret: str, more: int = 0) -> Path:
    """A rollout that has the conversation as events alone."""
    said = [("user_message", line(secret)), ("agent_message", "Noted."), ("user_message", line(secret))]
    said += [("user_message", f"And the bread number {n}?") for n in range(more)]
    events = [codex.event({"type": kind, "message": text}, n) for n, (kind, text) in enumerate(said)]
    return codex.write(folder, [codex.meta(), *events])


def claude_queue(folder: Path, secret: str, more: int = 0) -> Path:
    """A transcript of Claude Code in which only the queue records a prompt."""
    queued = {"type": "queue-operation", "sessionId": claude.SESSION, "timestamp": "2026-01-02T03:04:05.000Z"}
    records = [
        claude.record("user", "u1", "Which flour is in the rye bread?"),
        queued | {"operation": "enqueue", "content": line(secret)},
        queued | {"operation": "remove", "content": line(secret)},
        claude.record("assistant", "a1", [claude.text("Rye flour, type 1150.")], "u1"),
        *(claude.record("user", f"u{n + 2}", f"And the bread number {n}?", "a1") for n in range(more)),
    ]
    return claude.write(folder / "projects" / "bakery" / f"{claude.SESSION}.jsonl", records)


def pi_session(folder: Path, secret: str, more: int = 0) -> Path:
    """A session of pi's, whose ids have nothing to do with the text."""
    time = "2026-03-04T10:20:00.000Z"
    texts = ["Which flour is in the rye bread?", line(secret), *(f"And the bread number {n}?" for n in range(more))]
    records: list[dict[str, Any]] = [
        {"type": "session", "version": 1, "id": "s", "timestamp": time, "cwd": "/home/dev"}
    ]
    records += [{"type": "message", "timestamp": time, "message": {"role": "user", "content": text}} for text in texts]
    path = folder / "2026-03-04T10-20-00-000Z_01a20000-0000-7000-8000-00000000000a.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    return path


def _parquet(folder: Path, rows: list[dict[str, Any]]) -> Path:
    import pyarrow as pa
    from pyarrow import parquet as pq

    path = folder / "traces.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def parquet_messages(folder: Path, secret: str, more: int = 0) -> Path:
    """An agent-trace dataset."""
    return _parquet(
        folder, [{"session_id": "bread", "harness": "other", "messages": json.dumps(_messages(secret, more))}]
    )


def parquet_without_ids(folder: Path, secret: str, more: int = 0) -> Path:
    """One whose sessions have no ids."""
    messages = [{"role": m["role"], "content": m["content"]} for m in _messages(secret, more)]
    return _parquet(folder, [{"harness": "other", "messages": messages}])


def parquet_trace(folder: Path, secret: str, more: int = 0) -> Path:
    """One that holds raw traces."""
    path = codex_without_turns(folder / "raw", secret, more)
    return _parquet(folder, [{"session_id": codex.SESSION, "harness": "codex", "trace": path.read_text("utf-8")}])


FORMATS: dict[str, Build] = {
    build.__name__: build
    for build in (
        hermes_database,
        hermes_export,
        codex_without_turns,
        codex_with_turns,
        codex_events,
        claude_queue,
        pi_session,
        parquet_messages,
        parquet_without_ids,
        parquet_trace,
    )
}
GROWING = ("hermes_database", "codex_without_turns", "codex_with_turns", "codex_events", "claude_queue")
"""Those that are read on as they grow, and whose ids were made of the text as recorded."""
