"""Prompts that are typed while Claude Code works, and the several records that each of them may leave."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from funes.traces.claude_blocks import said_turn, text_of
from funes.traces.claude_text import read_said
from funes.traces.identity import REDACTED
from funes.traces.model import Turn
from funes.traces.text import parse_time

_NEARBY = 40


class PromptQueue:
    """The queue of prompts, followed through its operations.

    A prompt taken from the queue between turns (`dequeue`) becomes a user record. One that is handed to the agent in
    the middle of a turn (`remove`) becomes a `queued_command` attachment in versions that record attachments, and is
    recorded nowhere but in the queue's operations before. `popAll` gives the prompts back to whoever typed them.

    Attributes:
        has_attachments: whether the transcript records attachments.
    """

    def __init__(self, redact: Callable[[str], str]) -> None:
        """Begin with an empty queue; `redact` takes the credentials out of a text."""
        self._redact = redact
        self.has_attachments = False
        self._waiting: list[tuple[str, str]] = []
        self._yielded: OrderedDict[str, int] = OrderedDict()
        self._records = 0

    def tick(self) -> None:
        """Count a record; echoes are only looked for among neighbouring ones."""
        self._records += 1

    def operate(self, record: dict[str, Any]) -> list[Turn]:
        """Follow one operation; return the turn of a prompt that is recorded nowhere else."""
        content, operation = record.get("content"), record.get("operation")
        if operation == "enqueue":
            self._waiting.append((text_of(content), text_of(record.get("timestamp"))))
            return []
        if operation == "popAll":
            self._waiting.clear()
            return []
        place = next((i for i, (text, _) in enumerate(self._waiting) if text == content), 0)
        text, time = self._waiting.pop(place) if self._waiting else ("", "")
        if operation != "remove" or self.has_attachments:
            return []
        said = read_said(text)
        is_bare_command = said.text.startswith("/") and " " not in said.text
        if said.kind != "prompt" or is_bare_command or self.is_echo(said.text):
            return []
        self.expect_echo(said.text)
        name = former = _digest(time, text)
        if (shown := self._redact(text)) != text:
            name = REDACTED + _digest(time, shown)
        turns = said_turn(said, f"queued:{name}", "human")
        for turn in turns:
            turn.uuid = f"queued-{name}"
            turn.former = f"queued-{former}" if name != former else ""
            turn.timestamp = parse_time(time)
        return turns

    def expect_echo(self, text: str) -> None:
        """Note that a queued prompt was yielded: a record close by may repeat it."""
        self._yielded[text.strip()] = self._records
        while len(self._yielded) > _NEARBY:
            self._yielded.popitem(last=False)

    def is_echo(self, text: str) -> bool:
        """Whether a text repeats a queued prompt that was yielded a moment ago; each is repeated once at most."""
        return self._records - self._yielded.pop(text.strip(), -_NEARBY - 1) <= _NEARBY

    def state(self) -> dict[str, Any]:
        """Return what a queue in the rest of the file has to know, JSON-able."""
        return {"waiting": [list(item) for item in self._waiting], "attachments": self.has_attachments}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the `state()` of an earlier queue.

        Raises:
            KeyError, TypeError, ValueError: it is not one.
        """
        self._waiting = [(text, time) for text, time in state["waiting"]]
        self.has_attachments = bool(state["attachments"])


def _digest(time: str, text: str) -> str:
    return hashlib.blake2b(f"{time}\x1f{text}".encode("utf-8", "replace"), digest_size=12).hexdigest()
