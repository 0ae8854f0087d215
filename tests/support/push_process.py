"""One machine that remembers and publishes, round after round, in a process of its own.

    python -m tests.support.push_process MEMORY NAME ROUNDS

`FUNES_HOME` and the rest of the environment say which machine it is. Each round adds a session of its own with three
passages, and continues one that all machines share. Prints one JSON object: how many rounds, and how often a push was
tried again because another machine was quicker.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from funes.commands.push import PushOptions, push
from tests.support.sharing import Machine

SHARED = "shared-session"


def main(memory: str, name: str, rounds: int) -> None:
    """Publish in rounds."""
    home = Path(os.environ["FUNES_HOME"])
    machine = Machine(home.parent, home.name)
    retries = sent = 0
    for number in range(rounds):
        machine.remember(f"{name}-{number}", [f"{name} says {word} in round {number}" for word in ("a", "b", "c")])
        if number < 10:
            machine.remember(SHARED, [f"everybody says this in round {number}"])
        report = push(PushOptions(memory, yes=True, wait=60.0))
        retries += report.done.attempts - 1
        sent += report.done.sent
    print(json.dumps({"rounds": rounds, "retries": retries, "sent": sent}), flush=True)


def expected(names: list[str], rounds: int) -> set[tuple[str, str]]:
    """What the memory holds when all machines are done: session and text of each passage."""
    own = {
        (f"{name}-{number}", f"{name} says {word} in round {number}")
        for name in names
        for number in range(rounds)
        for word in ("a", "b", "c")
    }
    return own | {(SHARED, f"everybody says this in round {number}") for number in range(min(rounds, 10))}


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
