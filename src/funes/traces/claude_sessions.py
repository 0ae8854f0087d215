"""Which session a record of a Claude Code transcript belongs to, and what the records say about their sessions."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from funes.traces.claude_blocks import first_text, text_of
from funes.traces.model import Session

_ANCESTORS = ("parentSessionId", "sourceSessionId", "fromSessionId", "derivedFrom", "forkedFrom")
_TRANSCRIPT = re.compile(
    r"read the full transcript at: \S*?([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\.jsonl\s*\Z"
)
_PLAN_START = "Implement the following plan:"


class Sessions:
    """The transcript's session and those of the sub-agents recorded inside it.

    Attributes:
        main: the session that the transcript is named after, or that of the sub-agent it belongs to.
        has_inline: whether a sub-agent's conversation was found inside.
    """

    def __init__(self, main: Session, task_of: Callable[[str], str]) -> None:
        """Prepare.

        Args:
            main: the transcript's session, its id empty to take that of the first record.
            task_of: gives the description of the task that a sub-agent's prompt belongs to, or an empty string.
        """
        self.main = main
        self.has_inline = False
        self._task_of = task_of
        self._is_subagent = main.kind == "subagent"
        self._started = False
        self._warm_up = False
        self._titles: dict[str, str] = {}
        self._chains: dict[str, Session | None] = {}

    def place(self, record: dict[str, Any]) -> Session | None:
        """Return the session of a user's or assistant's record; None for a warm-up, which nobody asked for."""
        self.describe(record)
        said = first_text(record["message"].get("content")).strip()
        if self._is_subagent:
            self._warm_up = self._warm_up or (not self._started and said == "Warmup")
            self._started = True
            return None if self._warm_up else self.main
        if record.get("isSidechain") is not True:
            if said.startswith(_PLAN_START) and not self.main.parent_id and (plan := _TRANSCRIPT.search(said[-400:])):
                self.main.parent_id = plan[1]
            return self.main
        self.has_inline = True
        parent, uuid = text_of(record.get("parentUuid")), text_of(record.get("uuid"))
        if parent in self._chains:
            chain = self._chains[parent]
        else:
            # A parent that is not there was lost: what follows it still belongs together.
            chain = None if said == "Warmup" else self._subagent(record, parent or uuid, said)
            self._chains[parent or uuid] = chain
        self._chains[uuid] = chain
        return chain

    def _subagent(self, record: dict[str, Any], root: str, prompt: str) -> Session:
        digest = hashlib.blake2b(f"{self.main.id}\x1f{root}".encode(), digest_size=8).hexdigest()
        return Session(
            id=f"agent-{text_of(record.get('agentId')) or digest}",
            harness=self.main.harness,
            workdir=text_of(record.get("cwd")) or self.main.workdir,
            branch=branch_of(record) or self.main.branch,
            title=self._task_of(prompt),
            parent_id=self.main.id,
            kind="subagent",
            source_path=self.main.source_path,
        )

    def describe(self, record: dict[str, Any]) -> None:
        """Take what a record says about the transcript's session."""
        main = self.main
        recorded = text_of(record.get("sessionId"))
        main.id = main.id or recorded or text_of(record.get("session_id")) or Path(main.source_path).stem
        main.workdir = main.workdir or text_of(record.get("cwd"))
        main.branch = main.branch or branch_of(record)
        if self._is_subagent:
            main.parent_id = main.parent_id or recorded
            return
        if record.get("isSidechain") is True:
            return
        # A fork's copied records keep the id of the session they were made in, here or there.
        fork = record.get("forkedFrom")
        origin = text_of(fork.get("sessionId")) if isinstance(fork, dict) else ""
        origin = origin or text_of(record.get("requestSessionId")) or recorded
        if origin and origin != main.id:
            main.parent_id, main.kind = origin, "fork"

    def retitle(self, record: dict[str, Any], is_own_leaf: Callable[[str], bool]) -> None:
        """Take a title, or a session's ancestor, from a record that holds such a thing."""
        kind = record.get("type")
        if kind == "summary":
            # Some versions write the titles of other sessions into a new file: only a leaf of this one counts.
            title = text_of(record.get("summary"))
            if is_own_leaf(text_of(record.get("leafUuid"))) and not title.startswith("Invalid API key"):
                self._titles["summary"] = title
        elif kind == "ai-title":
            self._titles["ai"] = text_of(record.get("aiTitle")) or self._titles.get("ai", "")
        elif kind == "custom-title":
            self._titles["custom"] = text_of(record.get("customTitle"))
        elif kind in ("derived-from", "fork-context-ref") and not self._is_subagent:
            ancestor = next((value for key in _ANCESTORS if (value := text_of(record.get(key)))), "")
            if ancestor and ancestor != self.main.id:
                self.main.parent_id, self.main.kind = ancestor, "fork"

    def settle(self) -> None:
        """Give the transcript's session the best title that was found."""
        titles = (self._titles.get(name) for name in ("custom", "ai", "summary"))
        self.main.title = next((title for title in titles if title), self.main.title)

    def state(self) -> dict[str, Any]:
        """Return what is needed to go on in the rest of the file, JSON-able; not so when `has_inline`."""
        main = self.main
        known = [main.id, main.workdir, main.branch, main.title, main.parent_id, main.kind]
        return {"main": known, "titles": self._titles, "warm_up": self._warm_up}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over an earlier `state()`.

        Raises:
            KeyError, TypeError, ValueError: it is not one.
        """
        main = self.main
        (main.id, main.workdir, main.branch, main.title, main.parent_id, main.kind) = state["main"]
        self._titles = dict(state["titles"])
        self._warm_up = bool(state["warm_up"])
        self._started = True


def branch_of(record: dict[str, Any]) -> str:
    """Return the git branch of a record; a detached head has none."""
    branch = text_of(record.get("gitBranch"))
    return "" if branch == "HEAD" else branch
