"""Which Codex session a rollout belongs to, and identifiers that survive every copy of it.

A fork copies its parent's lines (with new timestamps and the parent's `session_meta`), a compressed, archived or
migrated rollout is the same lines again. Three things are the same in all copies of a passage: the id of its item or
call, where there is one; else the turn it belongs to, with its text; else, in rollouts from before turns had ids, the
whole conversation up to it. Texts take part without the credentials in them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from funes.traces.codex_items import mapping, string
from funes.traces.identity import REDACTED
from funes.traces.model import Session
from funes.traces.repo import parse_remote

_UUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
_ROLLOUT = re.compile(
    rf"rollout-\d{{4}}-\d\d-\d\d(?:T[\d-]+)?-(?P<ids>{_UUID.pattern}(?:_{_UUID.pattern})*)", re.IGNORECASE
)
_LONG_RUN = re.compile(r"[A-Za-z0-9]{12,}")
_INTERNAL = frozenset(("guardian_review", "memory_consolidation", "compact"))


def is_unique(ident: str) -> bool:
    """Whether an id looks random enough to be the only one of its kind anywhere.

    `call_l60TLUHMKhytonPFbK7eA723` does; `call_1`, `msg_2` and `functions.shell:0`, as some servers make them, do not.
    """
    return any(any(c.isdigit() for c in run) for run in _LONG_RUN.findall(ident))


def digest(*values: str) -> str:
    """Hash strings to 24 hexadecimal digits."""
    data = "\x1f".join(values).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=12).hexdigest()


class Lineage:
    """Makes the anchors of a session's passages.

    Attributes:
        root: id of the session whose conversation the file starts with.
        turn: id of the current turn, empty when the file has none.
        begun: whether a passage was seen, so that later `session_meta` records do not change the root.
        former: what the anchor made last is when it is made of the texts as recorded, empty when it is the same or not
            known, as behind the place where an earlier read stopped.
    """

    def __init__(self, root: str, redact: Callable[[str], str], state: dict[str, Any] | None = None) -> None:
        state = state or {}
        self.root = string(state.get("root")) or root
        self.turn = string(state.get("turn"))
        self.begun = bool(state.get("begun"))
        self.former = ""
        self._redact = redact
        self._chain = string(state.get("chain")) or digest(self.root)
        self._redacted = bool(state.get("redacted"))
        # As recorded; no state has it.
        self._recorded = "" if state.get("chain") else self._chain
        self._recorded_counts: dict[str, int] = {}
        self._counts: dict[str, int] = {k: v for k, v in mapping(state.get("counts")).items() if isinstance(v, int)}

    def state(self) -> dict[str, Any]:
        """Return a JSON-able value from which a later reader continues."""
        return {
            "root": self.root,
            "turn": self.turn,
            "begun": self.begun,
            "chain": self._chain,
            "redacted": self._redacted,
            "counts": self._counts,
        }

    def start_from(self, session_id: str) -> None:
        """Note that the passages that follow are those of another session, which this one copies."""
        if not self.begun:
            self.root = session_id
            self._chain = self._recorded = digest(session_id)

    def start_turn(self, turn_id: str) -> None:
        """Note the turn of the passages that follow; ids that are mere numbers do not count."""
        if turn_id != self.turn and _UUID.fullmatch(turn_id):
            self.turn = turn_id
            self._counts.clear()
            self._recorded_counts.clear()

    def anchor(self, kind: str, ident: str, texts: Sequence[str]) -> str:
        """Make the anchor of a passage.

        Args:
            kind: what the passage is, to tell equal texts apart.
            ident: its id in the trace, empty when it has none.
            texts: its parts, as recorded.
        """
        self.begun, self.former = True, ""
        if is_unique(ident) and self.turn:
            return ident
        recorded = passage = digest(kind, ident, "\n".join(texts))
        shown = [self._redact(text) for text in texts]
        if shown != list(texts):
            passage = digest(REDACTED, kind, ident, *shown)
        if self.turn:
            return self._in_turn(passage, recorded)
        self._chain = digest(self._chain, passage)
        self._recorded = self._recorded and digest(self._recorded, recorded)
        self._redacted = self._redacted or passage != recorded
        if is_unique(ident):
            return ident
        if not self._redacted:
            return self._chain
        self.former = self._recorded
        return REDACTED + self._chain

    def _in_turn(self, passage: str, recorded: str) -> str:
        count = self._counts[passage] = self._counts.get(passage, 0) + 1
        made = digest(self.turn, passage, str(count))
        if passage == recorded:
            return made
        count = self._recorded_counts[recorded] = self._recorded_counts.get(recorded, 0) + 1
        self.former = digest(self.turn, recorded, str(count))
        return REDACTED + made


def file_ids(path: Path) -> list[str]:
    """Ids in a rollout's file name: the session's, and the file's own after a thread was reverted; empty for others."""
    match = _ROLLOUT.match(path.name)
    return _UUID.findall(match["ids"]) if match else []


def name_session(session: Session, meta: dict[str, Any], names: list[str]) -> bool:
    """Fill in a session from a `session_meta` payload (or the first line of an old rollout).

    Args:
        session: to be filled in.
        meta: the payload.
        names: ids in the file's name.

    Returns:
        False when the record is about another session: the beginning of the file is lost and what is left of it starts
        with the copied record of the session's parent.
    """
    ident = string(meta.get("id")) or string(meta.get("session_id"))
    plain = ident.replace("-", "").lower()
    own = not names or not ident or plain in {name.replace("-", "").lower() for name in names}
    if own:
        session.id = ident or session.id
        _note_parent(session, meta)
    elif not session.parent_id:
        session.parent_id, session.kind = ident, "fork"
    session.workdir = session.workdir or directory(meta.get("cwd"))
    git = mapping(meta.get("git"))
    session.branch = session.branch or string(git.get("branch"))
    session.repo = session.repo or parse_remote(string(git.get("repository_url")))
    return own


def _note_parent(session: Session, meta: dict[str, Any]) -> None:
    agent = _agent(meta)
    spawn = mapping(mapping(agent).get("thread_spawn"))
    root = string(meta.get("session_id"))
    parent = string(meta.get("parent_thread_id")) or string(spawn.get("parent_thread_id"))
    if agent is not None or parent or meta.get("thread_source") == "subagent":
        session.kind = "subagent"
        session.parent_id = parent or (root if root != session.id else "")
        return
    parent = string(meta.get("forked_from_id"))
    if parent and parent != session.id:
        session.kind, session.parent_id = "fork", parent


def _agent(meta: dict[str, Any]) -> object:
    source = mapping(meta.get("source"))
    return next((source[key] for key in ("subagent", "subAgent") if key in source), None)


def is_internal(meta: dict[str, Any]) -> bool:
    """Whether Codex runs the session for itself: to judge commands, or to write its own memories.

    Such a session consists of instructions and of extracts from other sessions.
    """
    agent = _agent(meta)
    names = {string(meta.get("thread_source")), string(agent), string(mapping(agent).get("other"))}
    return not names.isdisjoint(_INTERNAL) or any(name.startswith("guardian") for name in names)


def directory(value: object) -> str:
    """Return a working directory, which newer versions write as a `file://` address in places."""
    text = string(value)
    if not text.startswith("file://"):
        return text
    from urllib.parse import unquote, urlsplit

    path = unquote(urlsplit(text).path)
    return path[1:] if re.match(r"/[A-Za-z]:[/\\]", path) else path


def is_older(ident: str, session_id: str) -> bool:
    """Whether a time-ordered id (UUID version 7) was made before the session's, so that the session inherited it."""
    one, other = (value.replace("-", "").lower() for value in (ident, session_id))
    comparable = all(_UUID.fullmatch(value) and value[12] == "7" for value in (one, other))
    return comparable and one[:12] < other[:12]
