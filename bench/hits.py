"""What an agent reads after a recall, taken apart again (docs/agent-format.md)."""

from __future__ import annotations

import re
from dataclasses import dataclass

_HEAD = re.compile(r"\[[^\]]*\] \S+ .*score=(-?\d+\.\d+)")
_GET = re.compile(r"  → get (\S+) (\S+)")
_NEIGHBOUR = "  ~ ["


@dataclass(slots=True)
class Hit:
    """A passage of an answer.

    Attributes:
        session: id of its session.
        turn: uuid of its turn.
        score: as printed.
        text: the passage, without its neighbours.
    """

    session: str
    turn: str
    score: float
    text: str


def hits(answer: str) -> list[Hit]:
    """The hits of a recall in the agent format, best first.

    Args:
        answer: what `funes recall` printed or the tool returned.
    """
    found: list[Hit] = []
    score, body, inside = 0.0, [""], False
    for line in answer.split("\n"):
        if not inside and (head := _HEAD.match(line)):
            score = float(head[1])
        elif not inside and (get := _GET.match(line)):
            found.append(Hit(get[1], get[2], score, ""))
            body, inside = [], True
        elif inside and line == "---":
            found[-1].text = "\n".join(part for part in body if not part.startswith(_NEIGHBOUR))
            inside = False
        else:
            body.append(line)
    if inside:
        found[-1].text = "\n".join(part for part in body if not part.startswith(_NEIGHBOUR))
    return found
