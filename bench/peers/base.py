"""What a driver of a peer does."""

from __future__ import annotations

import os
import shutil
import subprocess
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

SECONDS = 1800
"""The longest that one command of a peer may take."""


@dataclass(frozen=True, slots=True)
class Found:
    """A result.

    Attributes:
        session: id of its session, as Claude Code names it.
        text: what the program shows of it, which may be a passage or snippets of a session.
    """

    session: str
    text: str


class Peer(ABC):
    """A program that searches sessions.

    Args:
        work: a folder of its own; a `HOME` is made in it, so that the program neither finds nor changes the user's own.
        traces: the sessions, laid out as below `~/.claude/projects`.

    Attributes:
        name: for the table.
        how: one phrase: what is run for a question.
        command: the program, empty for one that is always there.
    """

    name = ""
    how = ""
    command = ""

    def __init__(self, work: Path, traces: Path) -> None:
        self.work, self.traces = work, traces
        self.home = work / "home"

    def missing(self) -> str:
        """Why it cannot be measured here, empty when it can."""
        return "" if not self.command or shutil.which(self.command) else f"there is no `{self.command}` on PATH"

    @property
    def version(self) -> str:
        """What it says about itself."""
        return self.run(self.command, "--version").strip().splitlines()[-1][:60]

    def prepare(self) -> None:
        """Put the sessions where the program looks for them; not timed."""
        target = self.home / ".claude" / "projects"
        shutil.rmtree(self.work, ignore_errors=True)
        target.parent.mkdir(parents=True)
        shutil.copytree(self.traces, target, copy_function=_link)

    @abstractmethod
    def build(self) -> None:
        """Index the sessions."""

    @abstractmethod
    def search(self, question: str, count: int) -> list[Found]:
        """Ask.

        Args:
            question: in full.
            count: how many results are wanted.

        Returns:
            The results, best first.
        """

    def close(self) -> None:
        """End what still runs."""
        return

    def run(self, *command: str) -> str:
        """Run a command of the program in its `HOME`; what it prints.

        Raises:
            SystemExit: it failed, so there is nothing to compare.
        """
        keep = ("PATH", "LANG", "LC_ALL", "TMPDIR")
        variables = {name: os.environ[name] for name in keep if name in os.environ} | {"HOME": str(self.home)}
        done = subprocess.run(
            command, env=variables, cwd=self.home, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        if done.returncode:
            raise SystemExit(f"{self.name}: {command[0]} ended with {done.returncode}: {done.stderr[-300:]}")
        return done.stdout


def _link(source: str, target: str) -> str:
    """Link a file, or copy it where links are not possible."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
    return target
