"""The tables of Hermes's `state.db`: whatever version made them, and whatever state they are in."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterator, Sequence
from typing import Any

from funes.traces.model import ReadReport
from funes.traces.sqlite_files import UnreadableError, clause

MESSAGE_COLUMNS = (
    "role",
    "content",
    "tool_call_id",
    "tool_calls",
    "tool_name",
    "timestamp",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "active",
    "compacted",
    "_compressed_summary",
    "display_kind",
)
"""The columns of `messages` that are read, where the version has them."""

_BATCH = 32
_PROBES = 20_000


class Database:
    """An open `state.db`.

    Attributes:
        message_columns: names of the columns of `messages`.
        session_columns: names of the columns of `sessions`; empty when there is no such table.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Look at the schema.

        Raises:
            UnreadableError: it is not a database of Hermes's.
        """
        self._connection = connection
        self.message_columns = self._columns("messages")
        self.session_columns = self._columns("sessions")
        if not self.message_columns and not self.session_columns and self._is_empty():
            raise UnreadableError("it has no tables; it was copied without its state.db-wal, or never written to")
        if not {"session_id", "role", "content"} <= self.message_columns:
            raise UnreadableError("it is a database, but not one of Hermes's: it has no messages in it")

    def _is_empty(self) -> bool:
        return not self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]

    def _columns(self, table: str) -> frozenset[str]:
        try:
            rows = self._connection.execute(f"PRAGMA table_info({table})").fetchall()
        except sqlite3.DatabaseError as error:
            raise UnreadableError(f"the database is damaged ({clause(error)})") from error
        return frozenset(str(row[1]) for row in rows)

    def sessions(self, columns: Sequence[str], report: ReadReport) -> dict[str, dict[str, Any]]:
        """Read the sessions table, as far as it can be read.

        Args:
            columns: the columns wanted; those that this version does not have are None.
            report: faults are noted here.
        """
        present = [name for name in columns if name in self.session_columns]
        if "id" not in self.session_columns:
            return {}
        rows, fault = self._salvage(f"SELECT rowid, {', '.join(present)} FROM sessions NOT INDEXED")
        if fault:
            report.damage(f"part of the table of sessions cannot be read ({fault})")
        found = (dict(zip(present, row[1:], strict=True)) for row in rows)
        return {str(row["id"]): row for row in found if row["id"] is not None}

    def message_ids(self, report: ReadReport) -> dict[str, array[int]]:
        """Return the row ids of each session's messages, ascending; sessions in the order of their first message."""
        query = "SELECT rowid, session_id FROM messages"
        by_session: dict[str, array[int]] = {}
        try:
            # Without an order SQLite may answer from an index on session_id, which is far smaller than the table.
            for rowid, session in self._connection.execute(query):
                by_session.setdefault(_name(session), array("q")).append(rowid)
        except sqlite3.DatabaseError:
            by_session = {}
            rows, fault = self._salvage(f"{query} NOT INDEXED")
            for rowid, session in rows:
                by_session.setdefault(_name(session), array("q")).append(rowid)
            if fault:
                report.damage(f"part of the table of messages cannot be read ({fault})")
        ordered = {session: array("q", sorted(ids)) for session, ids in by_session.items()}
        return dict(sorted(ordered.items(), key=lambda entry: entry[1][0]))

    def messages(self, ids: Sequence[int], report: ReadReport) -> Iterator[dict[str, Any]]:
        """Read messages by row id, a few at a time, without keeping a lock in between.

        Args:
            ids: row ids, ascending. Rows that are gone by now are left out.
            report: a message that cannot be read is noted here.
        """
        names = [name for name in MESSAGE_COLUMNS if name in self.message_columns]
        query = f"SELECT rowid, {', '.join(names)} FROM messages WHERE rowid"
        for start in range(0, len(ids), _BATCH):
            batch = list(ids[start : start + _BATCH])
            try:
                marks = ",".join("?" * len(batch))
                rows = self._connection.execute(f"{query} IN ({marks}) ORDER BY rowid", batch).fetchall()
            except sqlite3.DatabaseError:
                rows = list(self._one_by_one(f"{query} = ?", batch, report))
            for row in rows:
                yield dict(zip(names, row[1:], strict=True))

    def _one_by_one(self, query: str, ids: Sequence[int], report: ReadReport) -> Iterator[tuple[Any, ...]]:
        for rowid in ids:
            try:
                yield from self._connection.execute(query, (rowid,)).fetchall()
            except sqlite3.DatabaseError as error:
                report.damage(f"message {rowid} cannot be read ({clause(error)})")

    def _salvage(self, query: str) -> tuple[list[tuple[Any, ...]], str]:
        """Read the rows of a table whose pages may be damaged, from both ends and between the damaged pages.

        Args:
            query: a SELECT without WHERE, whose first column is the rowid.

        Returns:
            The rows by rowid, and the fault met, empty for none.
        """
        rows: list[tuple[Any, ...]] = []
        fault = self._collect(f"{query} ORDER BY rowid", (), rows)
        if not fault:
            return rows, ""
        low = int(rows[-1][0]) if rows else 0
        tail: list[tuple[Any, ...]] = []
        self._collect(f"{query} WHERE rowid > ? ORDER BY rowid DESC", (low,), tail)
        high = int(tail[-1][0]) if tail else low + _PROBES
        step = max(1, (high - low) // _PROBES)
        while low + 1 < high:
            count = len(rows)
            self._collect(f"{query} WHERE rowid > ? AND rowid < ? ORDER BY rowid", (low, high), rows)
            low = max(low + step, int(rows[-1][0]) if len(rows) > count else 0)
        return rows + tail[::-1], fault

    def _collect(self, query: str, values: tuple[int, ...], rows: list[tuple[Any, ...]]) -> str:
        """Append what a query gives until it fails; returns the fault."""
        try:
            rows.extend(self._connection.execute(query, values))
        except sqlite3.DatabaseError as error:
            return clause(error)
        return ""


def _name(session: object) -> str:
    return "" if session is None else str(session)
