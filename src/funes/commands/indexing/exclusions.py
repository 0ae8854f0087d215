"""What a read leaves out by the user's will: sessions that were forgotten, and projects of the ignore file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from funes.commands.ignoring import IgnoreRules, read_ignore_rules
from funes.commands.tombstones import read_tombstones
from funes.ui.reasons import FORGOTTEN, IGNORED


@dataclass(frozen=True, slots=True)
class Exclusions:
    """The user's rules; can be sent to another process.

    Attributes:
        rules: the ignore file.
        forgotten: ids of forgotten sessions.
    """

    rules: IgnoreRules = field(default_factory=IgnoreRules)
    forgotten: frozenset[str] = frozenset()

    @classmethod
    def load(cls) -> Exclusions:
        """Read the files in FUNES_HOME.

        Raises:
            FunesError: when one of them cannot be understood.
        """
        return cls(read_ignore_rules(), frozenset(read_tombstones()))

    def fingerprint(self) -> str:
        """A digest that changes when the rules do; empty without any."""
        if not self.rules.lines and not self.forgotten:
            return ""
        text = "\x1e".join((*self.rules.lines, "", *sorted(self.forgotten)))
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

    def session(self, session_id: str, parent_id: str, kind: str, workdir: str, repo: str) -> str:
        """Why a session is left out, empty when it is not.

        Args:
            session_id: the session.
            parent_id: the session that spawned it.
            kind: `subagent` for one that belongs to its parent.
            workdir: where it began.
            repo: its repository.
        """
        if session_id in self.forgotten or (kind == "subagent" and parent_id in self.forgotten):
            return FORGOTTEN
        pattern = self.rules.ignores(workdir, repo)
        return f"{IGNORED} ({pattern})" if pattern else ""
