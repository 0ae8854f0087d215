"""Bounds on how long the Hub's client tries a request again, which it does by itself and without saying so.

It sends a request up to six times, for half a minute and more, and a push makes several. Its HTTP session calls hooks
before each request and after each answer; from there a request that keeps failing is ended.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

from funes.memory.remote.faults import Asked, RemoteUnreachableError, remote_fault

TRIES = 3
"""How often one request is sent: with the pauses of the client that takes three seconds."""


@contextlib.contextmanager
def bounded(session: Any, asked: Asked) -> Iterator[None]:
    """Let requests of a session fail once they have failed `TRIES` times.

    Args:
        session: the HTTP session of the Hub's client.
        asked: for the sentence of the fault.
    """
    # Each thread of the client has one request at a time, and others may be sending the same one for another file.
    failed: Counter[tuple[int, str, str]] = Counter()
    last: dict[tuple[int, str, str], Any] = {}

    def before(request: Any) -> None:
        key = _key(request)
        failed[key] += 1
        if failed[key] <= TRIES:
            return
        answer = last.get(key)
        fault = remote_fault(_AnsweredError(answer), asked) if answer is not None else None
        raise fault or RemoteUnreachableError(
            f"{asked.hub[:1].upper()}{asked.hub[1:]} cannot be reached (no answer in time)."
        )

    def after(response: Any) -> None:
        key = _key(response.request)
        if response.status_code == 429 or response.status_code >= 500:
            last[key] = response
        else:
            failed.pop(key, None)
            last.pop(key, None)

    hooks = {name: list(called) for name, called in session.event_hooks.items()}
    session.event_hooks = {
        **hooks,
        "request": [*hooks.get("request", ()), before],
        "response": [*hooks.get("response", ()), after],
    }
    try:
        yield
    finally:
        session.event_hooks = hooks


def _key(request: Any) -> tuple[int, str, str]:
    return threading.get_ident(), str(request.method), str(request.url)


class _AnsweredError(Exception):
    """Carries an answer to where faults are told apart."""

    def __init__(self, response: Any) -> None:
        super().__init__("the last answer")
        self.response = response
