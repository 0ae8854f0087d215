"""Which traces were read, how far, and with what result: an SQLite file beside the memory.

The state only ever lags behind the memory: a trace counts as read after its rows are stored. It belongs to one memory,
told by that memory's id, and is void when the memory was deleted, replaced or put back to an older version.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from funes.errors import FunesError

FORMAT = 1
UNKNOWN = -1

_TABLES = """
CREATE TABLE IF NOT EXISTS traces (
    path TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    stamp TEXT NOT NULL,
    thinking INTEGER NOT NULL,
    read_at REAL NOT NULL,
    outcome TEXT NOT NULL,
    resume TEXT
);
CREATE TABLE IF NOT EXISTS repos (workdir TEXT PRIMARY KEY, repo TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""


@dataclass(slots=True)
class TraceOutcome:
    """What came of one trace, over all reads of it.

    Attributes:
        records: records parsed.
        turns: turns yielded by the parser.
        sessions: sessions in it.
        passages: passages its turns were cut into.
        stored: passages stored with their text.
        copies: passages stored by another session.
        known: passages that the session already had.
        skipped: records and blocks left out, by reason.
        redactions: credentials replaced, by rule.
        damaged: one sentence for each fault.
        torn_tail: whether its last line is unfinished.
        failed: why the trace could not be read at all, empty when it could.
        unrecognised: whether no source recognised the file.
    """

    records: int = 0
    turns: int = 0
    sessions: int = 0
    passages: int = 0
    stored: int = 0
    copies: int = 0
    known: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    redactions: Counter[str] = field(default_factory=Counter)
    damaged: list[str] = field(default_factory=list)
    torn_tail: bool = False
    failed: str = ""
    unrecognised: bool = False

    def add(self, earlier: TraceOutcome) -> None:
        """Add what an earlier read of the same trace found, when this one continued behind it."""
        for name in ("records", "turns", "passages", "stored", "copies", "known"):
            setattr(self, name, getattr(self, name) + getattr(earlier, name))
        self.sessions = max(self.sessions, earlier.sessions)
        self.skipped += earlier.skipped
        self.redactions += earlier.redactions
        self.damaged = list(dict.fromkeys(earlier.damaged + self.damaged))

    def to_json(self) -> str:
        """Render for the database."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> TraceOutcome:
        """Parse what `to_json` rendered; unknown fields are left out."""
        values = {name: value for name, value in json.loads(text).items() if name in cls.__slots__}
        outcome = cls(**values)
        outcome.skipped, outcome.redactions = Counter(outcome.skipped), Counter(outcome.redactions)
        return outcome


@dataclass(frozen=True, slots=True)
class KnownTrace:
    """The part of a trace's state that decides whether it is read again: its source, stamp and options.

    Attributes:
        source: name of the source that reads it, empty for a file that none recognises.
        stamp: the source's stamp at the last read; empty to have it read again in any case.
        thinking: whether thinking was stored.
        resume_json: what the source needs to continue, None when it cannot.
    """

    source: str
    stamp: str
    thinking: bool
    resume_json: str | None

    def resume(self) -> dict[str, Any] | None:
        """Decode where the source can continue."""
        return json.loads(self.resume_json) if self.resume_json else None


@dataclass(slots=True)
class TraceState:
    """The whole state of one trace.

    Attributes:
        path: the trace's real path.
        source: name of the source that reads it, empty for a file that none recognises.
        stamp: the source's stamp at the last read; empty to have it read again in any case.
        thinking: whether thinking was stored.
        outcome: what came of it.
        resume: what the source needs to continue, None when it cannot.
        read_at: time of the last read, seconds since the epoch.
    """

    path: str
    source: str
    stamp: str
    thinking: bool
    outcome: TraceOutcome
    resume: dict[str, Any] | None = None
    read_at: float = 0.0


class IndexState:
    """The state file, opened; made when it does not exist. Write only under the memory's writer lock.

    Args:
        path: the SQLite file.

    Raises:
        FunesError: when the file cannot be opened or is not a state file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path, timeout=10.0)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            if self._format() != FORMAT:
                self._start_over()
        except (sqlite3.Error, OSError) as error:
            raise FunesError(f"The indexing state in {path} cannot be used ({error}); {_remedy(error)}.") from error

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> IndexState:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def belongs_to(self, identity: str, version: int) -> bool:
        """Whether this is the state of the memory with that id, and the memory is not older than the state."""
        return bool(identity) and self._meta("memory") == identity and version >= int(self._meta("version") or 0)

    def adopt(self, identity: str, waiting: int) -> None:
        """Forget everything and belong to the memory with that id from now on, which has so many waiting passages."""
        with self._database:
            self._database.execute("DELETE FROM traces")
            self._database.execute("DELETE FROM meta")
            self._set("memory", identity)
            self._set("waiting", str(waiting))

    @property
    def waiting(self) -> int:
        """Passages without a vector as of the last run, `UNKNOWN` when they have to be counted."""
        return int(self._meta("waiting") or 0)

    @waiting.setter
    def waiting(self, number: int) -> None:
        if number != self.waiting or self._meta("waiting") is None:
            with self._database:
                self._set("waiting", str(number))

    @property
    def model(self) -> str:
        """Id of the model that `waiting` is about."""
        return self._meta("model") or ""

    @model.setter
    def model(self, identifier: str) -> None:
        if identifier != self.model:
            with self._database:
                self._set("model", identifier)

    @property
    def exclusions(self) -> str:
        """Fingerprint of the user's rules about what to leave out that the traces were read under."""
        return self._meta("exclusions") or ""

    @exclusions.setter
    def exclusions(self, fingerprint: str) -> None:
        if fingerprint != self.exclusions:
            with self._database:
                self._set("exclusions", fingerprint)

    def read_again(self, paths: Iterable[str]) -> None:
        """Have traces read from their start at the next run."""
        with self._database:
            self._database.executemany(
                "UPDATE traces SET stamp = '', resume = NULL WHERE path = ?", [(path,) for path in paths]
            )

    def wipe(self) -> None:
        """Make sure that what was replaced cannot be read from the file any more."""
        self._database.execute("VACUUM")
        self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def known(self, paths: Iterable[str] | None = None) -> dict[str, KnownTrace]:
        """Read of every trace, or of some, by its path, what decides whether it is read again."""
        query = "SELECT path, source, stamp, thinking, resume FROM traces"
        if paths is None:
            rows = self._database.execute(query).fetchall()
        else:
            rows = [row for path in paths for row in self._database.execute(f"{query} WHERE path = ?", (path,))]
        return {
            path: KnownTrace(source, stamp, bool(thinking), resume) for path, source, stamp, thinking, resume in rows
        }

    def trace(self, path: str) -> TraceState | None:
        """Read the whole state of one trace, None when it was never read."""
        return self._traces("WHERE path = ?", (path,)).get(path)

    def traces(self) -> dict[str, TraceState]:
        """Read the whole state of every trace, by its path."""
        return self._traces("", ())

    def record(self, traces: Iterable[TraceState], version: int) -> None:
        """Store the state of traces whose rows are in the memory.

        Args:
            traces: the new states.
            version: the newest version of the chunks table.
        """
        now = time.time()
        rows = [
            (
                trace.path,
                trace.source,
                trace.stamp,
                trace.thinking,
                now,
                trace.outcome.to_json(),
                None if trace.resume is None else json.dumps(trace.resume),
            )
            for trace in traces
        ]
        with self._database:
            self._database.executemany("INSERT OR REPLACE INTO traces VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
            self._set("version", str(version))

    def repos(self) -> dict[str, str]:
        """Read the repository of each working directory that was ever resolved."""
        return dict(self._database.execute("SELECT workdir, repo FROM repos"))

    def remember_repos(self, repos: dict[str, str]) -> None:
        """Keep the repositories of working directories, for when the directories are gone."""
        if repos:
            with self._database:
                self._database.executemany("INSERT OR REPLACE INTO repos VALUES (?, ?)", repos.items())

    def _traces(self, condition: str, values: tuple[str, ...]) -> dict[str, TraceState]:
        query = f"SELECT path, source, stamp, thinking, outcome, resume, read_at FROM traces {condition}"
        found = {}
        with closing(self._database.execute(query, values)) as cursor:
            for path, source, stamp, thinking, outcome, resume, read_at in cursor:
                kept = json.loads(resume) if resume else None
                found[path] = TraceState(
                    path, source, stamp, bool(thinking), TraceOutcome.from_json(outcome), kept, read_at
                )
        return found

    def _format(self) -> int:
        return int(self._database.execute("PRAGMA user_version").fetchone()[0])

    def _start_over(self) -> None:
        with self._database:
            for table in ("traces", "meta"):
                self._database.execute(f"DROP TABLE IF EXISTS {table}")
            for statement in _TABLES.split(";"):
                self._database.execute(statement)
            self._database.execute(f"PRAGMA user_version = {FORMAT}")

    def _meta(self, name: str) -> str | None:
        row = self._database.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def _set(self, name: str, value: str) -> None:
        self._database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))


def _remedy(error: Exception) -> str:
    if isinstance(error, OSError) or any(sign in str(error) for sign in ("unable to open", "readonly", "disk")):
        return "check the folder's permissions and free space, or set FUNES_HOME to another folder"
    if "locked" in str(error):
        return "another process uses it: run the command again"
    return "delete that file and run `funes index` again: nothing stored is lost or stored twice"


def read_traces(path: Path, identity: str, version: int) -> dict[str, TraceState]:
    """Read the state of every trace for display; empty when there is none or it belongs to another memory.

    Args:
        path: the state file; it is not made.
        identity: id of the memory.
        version: the newest version of its chunks table.
    """
    if not path.is_file():
        return {}
    with IndexState(path) as state:
        return state.traces() if state.belongs_to(identity, version) else {}
