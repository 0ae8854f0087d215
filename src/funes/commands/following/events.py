"""Events as the hooks left them: read from the spool, told apart, taken away when they are done."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from funes import hook

STARTS = frozenset(("SessionStart", "session_start", "on_session_start"))
ENDS = frozenset(("SessionEnd", "session_shutdown", "on_session_finalize"))
MAX_AGE = 7 * 86400.0
"""Seconds after which an event that could not be handled is given up; the next start of a session catches up."""

MAX_TRIES = 3


@dataclass(slots=True)
class Event:
    """One event of one agent.

    Attributes:
        path: its file in the spool.
        time: when it happened, seconds since the epoch.
        harness: the agent's name as its hook was installed (`claude`), empty when not known.
        name: the agent's own name for it (`Stop`), empty when the payload could not be read.
        memory: the memory that the agent is bound to, empty for the local one.
        session: id of the session, empty when not known.
        traces: trace files that the payload names.
        answer: the last message of the turn, which the trace has to contain; empty when not known.
        variables: where the agent keeps its traces, as environment variables.
        place: the same for the memory that it is bound to.
        tries: workers that died over it.
    """

    path: Path
    time: float
    harness: str = ""
    name: str = ""
    memory: str = ""
    session: str = ""
    traces: tuple[Path, ...] = ()
    answer: str = ""
    variables: dict[str, str] = field(default_factory=dict)
    place: dict[str, str] = field(default_factory=dict)
    tries: int = 0

    @property
    def starts(self) -> bool:
        """Whether a session began."""
        return self.name in STARTS

    @property
    def ends(self) -> bool:
        """Whether a session ended for good."""
        return self.name in ENDS

    def done(self) -> None:
        """Take it out of the spool."""
        self.path.unlink(missing_ok=True)


class Spool:
    """The folder of events.

    Args:
        home: FUNES_HOME.
    """

    def __init__(self, home: Path) -> None:
        self.folder = home / hook.FOLDER
        self._unusable: set[str] = set()

    def waiting(self) -> list[str]:
        """Names of the events, oldest first, without those that cannot be read or moved."""
        try:
            return [name for name in hook.waiting_events(str(self.folder)) if name not in self._unusable]
        except OSError:
            return []

    def take(self) -> list[Event]:
        """Read all events, oldest first.

        Each counts the times that it was taken, in its file's name: one over which workers die, again and again, must
        not keep all later ones from being handled.
        """
        events = []
        for name in self.waiting():
            path = self.folder / name
            try:
                event = read_event(path)
                if event.tries >= MAX_TRIES or event.time < time.time() - MAX_AGE:
                    event.done()
                    continue
                event.tries += 1
                stem = name.split(".")[0]
                event.path = path.rename(path.with_name(f"{stem}.{event.tries}{hook.SUFFIX}"))
                events.append(event)
            except OSError:  # another user's file, say
                self._unusable.add(name)
        return events

    def put_back(self, events: list[Event]) -> None:
        """Leave events for later through no fault of theirs."""
        for event in events:
            with contextlib.suppress(OSError):
                event.path.rename(event.path.with_name(f"{event.path.name.split('.')[0]}{hook.SUFFIX}"))


def read_event(path: Path) -> Event:
    """Read one event; whatever of it cannot be read is left empty.

    Raises:
        OSError: the file cannot be read.
    """
    head, _, payload = path.read_bytes().partition(b"\n\n")
    values: dict[str, str] = {}
    for line in head.decode("utf-8", "surrogateescape").splitlines():
        name, _, value = line.partition(" ")
        values[name] = value
    said = _decode(payload)
    tries = path.name.split(".")[1]
    return Event(
        path=path,
        time=_number(values.get("time", "")),
        harness=values.get("harness", ""),
        name=_text(said, "hook_event_name") or values.get("event", ""),
        memory=values.get("memory", ""),
        session=_text(said, "session_id"),
        traces=tuple(_traces(said)),
        answer=_text(said, "last_assistant_message"),
        variables={name: values[name] for name in hook.ROOT_VARIABLES if name in values},
        place={name: values[name] for name in hook.PLACE_VARIABLES if name in values},
        tries=int(tries) if tries.isdigit() else 0,
    )


def contains_answer(trace: Path, answer: str) -> bool:
    """Whether the end of a trace has the message, in whatever record and however escaped."""
    wanted = " ".join(answer.split())[-_ANSWER_TAIL:]
    if not wanted:
        return True
    try:
        with trace.open("rb") as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - _TRACE_TAIL - len(answer) * 6))
            lines = stream.read().splitlines()
    except OSError:
        return False
    for line in reversed(lines):
        with contextlib.suppress(ValueError, RecursionError):  # the line that was cut, or is being written
            if any(wanted in " ".join(text.split()) for text in _strings(json.loads(line))):
                return True
    return False


_ANSWER_TAIL = 200
_TRACE_TAIL = 64 << 10


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


def _decode(payload: bytes) -> Mapping[str, Any]:
    try:
        said = json.loads(payload)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _text(said: Mapping[str, Any], name: str) -> str:
    value = said.get(name)
    return value if isinstance(value, str) else ""


def _traces(said: Mapping[str, Any]) -> Iterator[Path]:
    for name in ("transcript_path", "agent_transcript_path"):
        if (value := _text(said, name)) and "\x00" not in value and os.path.isabs(value):
            yield Path(value)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return time.time()
