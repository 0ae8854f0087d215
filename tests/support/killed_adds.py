"""Run as a program: adds funes to an agent, and takes out again what would be left had it been killed at each step.

Arguments: the agent, `add` or `again`, and the HOME. It prints the number of steps, and says what differs after which
one. A program of its own, since it forks.
"""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tomlkit  # noqa: F401  the stand-in for Codex has it without importing it anew

from funes.agents.detect import agent_named
from funes.agents.install import add_agent, remove_agent
from tests.support.agent_programs import BINDING, OTHER_BINDING, SERVER, program_script, tree_of

STEPS = ((os, "replace"), (os, "unlink"), (os, "rmdir"), (os, "mkdir"), (subprocess, "run"))
"""What changes a file, and the agents' commands."""


def run_in_fork(command: Sequence[Any], env: dict[str, str] | None = None, **_: Any) -> Any:
    """Take the place of `subprocess.run` for stand-ins: without the start of an interpreter each time."""
    script = program_script(Path(command[0]).name)
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        for module, name in STEPS:
            setattr(module, name, ORIGINALS[name])
        os.dup2(writing, 1)
        os.environ.clear()
        os.environ.update(env or {})
        sys.argv = [str(part) for part in command]
        code = 0
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit as end:
            code = int(end.code not in (None, 0))
        except BaseException:
            code = 1
        sys.stdout.flush()
        os._exit(code)
    os.close(writing)
    with open(reading, "rb") as stream:
        output = stream.read()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return subprocess.CompletedProcess(command, code, output, b"")


ORIGINALS = {name: getattr(module, name) for module, name in STEPS} | {"run": run_in_fork}


def states_during(action: Callable[[], Any], home: Path, copies: Path) -> list[Path]:
    """Do something, and copy the HOME before each of its steps: what a process that is killed there leaves behind."""
    taken: list[Path] = []

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            restore()
            taken.append(copies / str(len(taken)))
            shutil.copytree(home, taken[-1], symlinks=True)
            watch()
            return function(*arguments, **options)

        return call

    def watch() -> None:
        for module, name in STEPS:
            setattr(module, name, watched(ORIGINALS[name]))

    def restore() -> None:
        for module, name in STEPS:
            setattr(module, name, ORIGINALS[name])

    watch()
    action()
    restore()
    return taken


def main(name: str, what: str, home: str) -> None:
    """Try every step."""
    subprocess.run = run_in_fork  # type: ignore[assignment]
    os.fsync = lambda descriptor: None  # no power is cut here
    folder = Path(home)
    before = tree_of(folder)
    if what == "again":
        add_agent(agent_named(name), BINDING, SERVER)
    binding = OTHER_BINDING if what == "again" else BINDING
    states = states_during(lambda: add_agent(agent_named(name), binding, SERVER), folder, Path(f"{home}.states"))
    earlier = None
    for step, state in enumerate(states):
        if (there := tree_of(state)) == earlier:
            continue
        earlier = there
        shutil.rmtree(folder)
        shutil.copytree(state, folder, symlinks=True)
        remove_agent(agent_named(name))
        after = tree_of(folder)
        for path in sorted(before.keys() | after.keys()):
            if before.get(path, 0) != after.get(path, 0):
                how = "absent" if path not in after else "too much" if path not in before else "changed"
                print(f"step {step}: {path} is {how}")
    print(f"{len(states)} steps")


if __name__ == "__main__":
    main(*sys.argv[1:])
