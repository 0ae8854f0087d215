"""Programs: where funes itself is, where an agent's is, and running one for a moment."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from funes.agents.journal import noting_command
from funes.agents.model import Binding
from funes.errors import FunesError

COMMAND_SECONDS = 90
SERVER_SECONDS = 30
_FAULT = re.compile(r"error|fail|cannot|could not|denied|refus|not supported", re.IGNORECASE)
_VERSION = re.compile(r"\d+(?:\.\d+)+")
_CACHES = ("/uv/archive-", "/.cache/uv/", "/pipx/.cache/")
"""Folders that `uvx` and `pipx run` empty at times."""


@dataclass(frozen=True, slots=True)
class Done:
    """A command that has ended.

    Attributes:
        code: its exit code.
        output: its stdout.
        errors: its stderr.
    """

    code: int
    output: str
    errors: str

    def reason(self) -> str:
        """What it said last, on one line, without credentials."""
        # The rules that need no compiled engine, which takes seconds to load.
        from funes.secrets.gap_rules import scan

        said = [line for line in f"{self.output}\n{self.errors}".splitlines() if line.strip()]
        # Warnings come before the error that ended it.
        line = next((line for line in reversed(said) if _FAULT.search(line)), said[-1] if said else "")
        line = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", line).split())
        for finding in sorted(scan(line), key=lambda finding: finding.start, reverse=True):
            line = f"{line[: finding.start]}[REDACTED]{line[finding.end :]}"
        return line[:300] or f"exit code {self.code}"


def find_program(name: str, others: Iterable[Path] = ()) -> Path | None:
    """A program on PATH, or at one of the places where its installer puts it.

    Args:
        name: its name.
        others: places to look at when it is not on PATH.
    """
    if found := shutil.which(name):
        return Path(os.path.abspath(found))
    return next((path for path in others if path.is_file() and os.access(path, os.X_OK)), None)


def run(program: Path, arguments: Sequence[str], *, remove: Iterable[str] = (), add: Mapping[str, str] = {}) -> Done:
    """Run an agent's command to its end, without a terminal, and outside any project, whose settings it would read.

    Args:
        program: the program.
        arguments: its arguments.
        remove: variables to leave out of the environment.
        add: variables to set.

    Raises:
        FunesError: when it cannot be started or does not end.
    """
    leave_out = set(remove)
    environment = {name: value for name, value in os.environ.items() if name not in leave_out} | dict(add)
    called = f"`{program.name} {shlex.join(arguments[:3])}`"
    try:
        with noting_command():
            done = subprocess.run(
                [program, *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                cwd=os.sep,
                env=environment,
                timeout=COMMAND_SECONDS,
            )
    except subprocess.TimeoutExpired as error:
        raise FunesError(f"{called} did not end within {COMMAND_SECONDS} s.") from error
    except OSError as error:
        raise FunesError(f"{called} cannot be run: {error.strerror or error}.") from error
    return Done(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))


def refuse_foreign(clause: str, name: str) -> None:
    """Refuse to take a name that something else has.

    Args:
        clause: what has it, empty for nothing.
        name: the agent.

    Raises:
        FunesError: when something has it.
    """
    if clause:
        raise FunesError(f"{clause}; give it another name or take it out, then run `funes add {name}` again.")


def version_of(text: str) -> str:
    """The version number in what a program says of itself, empty for none."""
    found = _VERSION.search(text)
    return found[0] if found else ""


def at_least(version: str, floor: str) -> bool:
    """Whether a version is not older than another; an unknown one passes."""
    if not version:
        return True
    mine, needed = ([int(part) for part in text.split(".")] for text in (version, floor))
    return mine >= needed


def make_binding(memory: str) -> Binding:
    """What to write into an agent's configuration: this funes, its folders, the memory.

    Args:
        memory: the memory, empty for the local one.
    """
    from funes.hook import baked_variables

    env = baked_variables(memory)
    if env.get("FUNES_HOME") == str(Path.home() / ".funes"):
        del env["FUNES_HOME"]
    program = _own_program()
    if len(program) > 1 and (path := os.environ.get("PYTHONPATH")):
        # A checkout that is not installed.
        env["PYTHONPATH"] = os.pathsep.join(os.path.abspath(part) for part in path.split(os.pathsep) if part)
    return Binding(memory, program, env)


def passing_note(binding: Binding) -> str:
    """A warning when this funes lies in a folder that is emptied at times, else empty."""
    real = os.path.realpath(binding.program[0])
    if any(part in real for part in _CACHES):
        return (
            "This funes lies in a cache that is emptied at times; install it (`uv tool install` or `pipx install`) "
            "and add it again, or the agent loses it one day."
        )
    return ""


def ask_server(binding: Binding) -> dict[str, Any]:
    """Start the MCP server as an agent does, with next to no environment, and ask what it offers.

    Returns:
        `tools` (the definitions) and `instructions`.

    Raises:
        FunesError: when it does not answer.
    """
    opening = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "funes add", "version": "1"}}
    messages = (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    )
    environment = {name: os.environ[name] for name in ("HOME", "PATH", "LANG") if name in os.environ}
    called = f"`{shlex.join(binding.server)}`"
    try:
        done = subprocess.run(
            binding.server,
            input="".join(json.dumps(message) + "\n" for message in messages).encode(),
            capture_output=True,
            cwd=os.sep,
            env=environment | dict(binding.env),
            timeout=SERVER_SECONDS,
        )
        answers = {answer["id"]: answer["result"] for answer in map(json.loads, done.stdout.splitlines())}
        return {"tools": answers[2]["tools"], "instructions": answers[1]["instructions"]}
    except subprocess.TimeoutExpired as error:
        raise FunesError(f"{called} did not answer within {SERVER_SECONDS} s, so no agent could use it.") from error
    except OSError as error:
        raise FunesError(f"{called} cannot be run: {error.strerror or error}.") from error
    except (ValueError, KeyError, TypeError) as error:
        reason = Done(done.returncode, "", done.stderr.decode("utf-8", "replace")).reason()
        raise FunesError(f"{called} does not answer as a memory server: {reason}") from error


def _own_program() -> tuple[str, ...]:
    """The funes that runs now: its script if it was started by one, else the interpreter and the module."""
    for candidate in (sys.argv[0], os.path.join(os.path.dirname(os.path.abspath(sys.executable)), "funes")):
        if os.path.basename(candidate) == "funes" and os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            # Links stay: the one on PATH outlives the environment that it points into.
            return (os.path.abspath(candidate),)
    return (os.path.abspath(sys.executable), "-m", "funes")
