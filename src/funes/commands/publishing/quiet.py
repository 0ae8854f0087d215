"""The push that nobody watches: started by the worker behind the hooks, at the boundaries of sessions.

It runs in a process of its own, so that a slow network holds up neither the agent nor the indexing of its next turn.
What came of it is in `logs/publish.log` and, if it failed, in `funes status`.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import funes
from funes import hook
from funes.commands.curating.decisions import read_decisions
from funes.commands.publishing.destination import destination
from funes.commands.publishing.ledger import Ledger, now
from funes.errors import FunesError, LockedError
from funes.memory.identity import newest_version
from funes.memory.schema import VECTORS
from funes.paths import funes_home, memory_folder

LOG = "publish.log"
NOT_AGREED = "nobody has agreed yet to publish this machine's sessions there; `funes bind {label}` asks"
_PROGRAM = (
    "import sys; sys.path.append(sys.argv[1]); from funes.commands.publishing.quiet import main; main(sys.argv[2])"
)


def start(memory: str, place: Mapping[str, str]) -> None:
    """Start a push in the background; a machine that cannot start a process any more logs that.

    Args:
        memory: the memory that an agent is bound to.
        place: variables that say where that is, as they were for the agent; this process may have been started by
            another one.
    """
    environment = {name: value for name, value in os.environ.items() if name not in hook.PLACE_VARIABLES}
    packages = str(Path(funes.__file__).parent.parent)
    try:
        subprocess.Popen(
            [sys.executable, "-E", "-P", "-c", _PROGRAM, packages, memory],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=funes_home(),
            env=environment | dict(place),
            start_new_session=True,
        )
    except OSError as error:
        _log(memory, {"error": f"the push cannot be started: {error.strerror or error}"})


def main(memory: str) -> None:
    """Publish to a memory if somebody has agreed to that, and log what came of it."""
    began = time.monotonic()
    try:
        values = _publish(memory)
        if not values:
            return  # Nothing has happened since the last push.
    except LockedError:
        return  # Another push is under way. What it does not take along, the next boundary does.
    except FunesError as error:
        values = {"error": error.message}
    except Exception as error:
        # There is nobody to see a traceback; the log and `funes status` show what happened.
        values = {"error": f"unexpected {type(error).__name__}: {' '.join(str(error).split())[:300]}"}
        with contextlib.suppress(FunesError, OSError):
            Ledger(destination(memory)[0]).fail(str(values["error"]))
    _log(memory, values | {"seconds": round(time.monotonic() - began, 1)})


def _publish(memory: str) -> dict[str, Any]:
    from funes.commands.push import PushOptions, push

    label, _ = destination(memory)
    state = Ledger(label).state()
    if not state.approved:
        return {"note": NOT_AGREED.format(label=label)}
    if not state.error and state.local == _versions() and read_decisions(label) is None:
        return {}
    report = push(PushOptions(memory, words=state.words, wait=0.0))
    done = report.done
    values: dict[str, Any] = {"passages": done.passages, "vectors": done.vectors, "sent": done.sent}
    if report.held:
        values["held_back"] = len(report.held)
    return values


def _versions() -> list[int]:
    folder = memory_folder()
    return [newest_version(folder), newest_version(folder, VECTORS)]


def _log(memory: str, values: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # a full disk has no room for complaints either
        hook.write_log(str(funes_home()), json.dumps({"time": now(), "memory": memory, **values}), LOG)
