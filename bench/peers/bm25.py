"""The plain baseline: SQLite's full text index over what was said, any word of the question, ranked by BM25."""

from __future__ import annotations

import re
import sqlite3

from peers.base import Found, Peer

PROSE = ("text", "summary")


class Bm25(Peer):
    """One row for each message, its text and summaries; stemmed; words joined by OR."""

    name = "BM25 (SQLite FTS5)"
    how = "in process; messages' text, porter stemmer, words joined by OR"

    @property
    def version(self) -> str:
        """Of SQLite."""
        return f"SQLite {sqlite3.sqlite_version}"

    def missing(self) -> str:
        """SQLite may have been built without its full text index."""
        try:
            sqlite3.connect(":memory:").execute("CREATE VIRTUAL TABLE t USING fts5(x)")
        except sqlite3.OperationalError as error:
            return str(error)
        return ""

    def prepare(self) -> None:
        """The sessions are read where they are."""
        self.work.mkdir(parents=True, exist_ok=True)
        (self.work / "bm25.sqlite").unlink(missing_ok=True)

    def build(self) -> None:
        """Read every session with the project's own reader, which is all that it shares with funes."""
        from funes.traces.claude import ClaudeSource
        from funes.traces.model import ReadReport

        source = ClaudeSource()
        self.database = sqlite3.connect(self.work / "bm25.sqlite")
        self.database.execute(
            "CREATE VIRTUAL TABLE messages USING fts5(text, session UNINDEXED, tokenize='porter unicode61')"
        )
        for path in sorted(self.traces.rglob("*.jsonl")):
            rows = (
                (block.text, session.id)
                for session, turn in source.read(path, ReadReport())
                for block in turn.blocks
                if block.type in PROSE
            )
            self.database.executemany("INSERT INTO messages VALUES (?, ?)", rows)
        self.database.commit()

    def search(self, question: str, count: int) -> list[Found]:
        """The best messages."""
        rows = self.database.execute(
            "SELECT session, text FROM messages WHERE messages MATCH ? ORDER BY rank LIMIT ?", (match(question), count)
        )
        return [Found(session, text) for session, text in rows]

    def close(self) -> None:
        """Close the database."""
        self.database.close()


def match(question: str) -> str:
    """The FTS5 expression of a question: any of its words."""
    words = dict.fromkeys(re.findall(r"\w+", question.lower()))
    return " OR ".join(f'"{word}"' for word in words) or '""'
