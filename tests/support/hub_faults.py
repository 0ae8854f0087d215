"""Faults that the test Hub can be told to show, and what it counts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["status", "cut", "cut-upload", "lost", "truncated", "garbled", "slow"]


@dataclass(slots=True)
class Fault:
    """What goes wrong with some requests.

    Attributes:
        where: regular expression that `METHOD path` has to begin with, as `GET /datasets/.*/resolve/`.
        kind: `status` answers with `status` and does nothing; `cut` closes the connection in the middle of the answer's
            body; `cut-upload` closes it after half of the request's body; `lost` does what was asked and closes it
            without an answer; `truncated` sends half of a file as if it were all; `garbled` sends other bytes of the
            same number; `slow` waits `seconds` before it answers.
        status: for `status`.
        headers: further headers of the answer, for `status` (`Retry-After`, `X-Error-Code`, …).
        times: how many requests it happens to; a negative number for all.
        seconds: for `slow`.
    """

    where: str
    kind: Kind = "status"
    status: int = 500
    headers: dict[str, str] = field(default_factory=dict)
    times: int = -1
    seconds: float = 1.0

    def hits(self, request: str) -> bool:
        """Whether a request, `METHOD path`, is one that it happens to; counts it."""
        if not self.times or not re.match(self.where, request):
            return False
        self.times -= 1
        return True


@dataclass(slots=True)
class Served:
    """One request and what came of it.

    Attributes:
        method, path: what was asked, the query included.
        status: status of the answer, 0 when the connection was cut before one.
        received, sent: bytes of the request's and of the answer's body.
        authorized: whether it carried a token.
    """

    method: str
    path: str
    status: int = 0
    received: int = 0
    sent: int = 0
    authorized: bool = False


@dataclass(slots=True)
class Traffic:
    """What a server was asked."""

    served: list[Served] = field(default_factory=list)

    @property
    def requests(self) -> int:
        """Number of requests."""
        return len(self.served)

    @property
    def sent(self) -> int:
        """Bytes of all bodies that the server sent."""
        return sum(one.sent for one in self.served)

    @property
    def received(self) -> int:
        """Bytes of all bodies that the server received."""
        return sum(one.received for one in self.served)

    def count(self, where: str) -> int:
        """Number of requests whose `METHOD path` begins with a regular expression."""
        return len(self.matching(where))

    def matching(self, where: str) -> list[Served]:
        """Requests whose `METHOD path` begins with a regular expression."""
        return [one for one in self.served if re.match(where, f"{one.method} {one.path}")]

    def clear(self) -> None:
        """Forget what was asked so far."""
        self.served.clear()
