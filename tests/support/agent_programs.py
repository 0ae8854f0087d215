"""A HOME of its own with stand-ins for the agents' programs, which write what the real ones write.

`make e2e` runs the real ones; these are for faults that cannot be had from them.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from funes.agents.model import Binding

_PROGRAMS = Path(__file__).parent / "programs"
_NOBODY = 65534
_VARIABLES = (
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "PI_CODING_AGENT_DIR",
    "HERMES_HOME",
    "FUNES_HOME",
    "FUNES_MODELS",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "PYTHONPATH",
)

BINDING = Binding("", ("/opt/funes/bin/funes",), {"FUNES_HOME": "/data/funes"})
OTHER_BINDING = Binding("/data/team memory", ("/opt/funes/bin/funes",))
SERVER: dict[str, Any] = {
    "tools": [
        {
            "name": "recall",
            "title": "Recall",
            "description": "Search past sessions.",
            "inputSchema": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
        }
    ],
    "instructions": "Recall first.",
}


class AgentHome:
    """A HOME below a test's folder, and a PATH on which only the given agents are.

    Args:
        folder: the test's folder.
        patch: of the test.
        programs: names of the agents to put on PATH.
    """

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, programs: tuple[str, ...]) -> None:
        self.path = folder / "home"
        self.path.mkdir()
        self.programs = folder / "bin"
        self.programs.mkdir()
        self.log = folder / "commands.log"
        self._patch = patch
        for name in _VARIABLES:
            patch.delenv(name, raising=False)
        self.set("HOME", str(self.path))
        self.set("PATH", f"{self.programs}:/usr/bin:/bin")
        self.set("STAND_IN_LOG", str(self.log))
        for name in programs:
            self.program(name)

    def set(self, name: str, value: str) -> None:
        """Set a variable for the test."""
        self._patch.setenv(name, value)

    def program(self, name: str) -> Path:
        """Put an agent's stand-in on PATH: pi and Hermes are only looked at, never run."""
        script = program_script(name)
        path = self.programs / name
        flags = "-I -S " if name == "claude" else ""
        path.write_text(
            f'#!/bin/sh\nexec "{sys.executable}" {flags}"{script}" "$@"\n' if script.is_file() else "#!/bin/sh\n"
        )
        path.chmod(0o755)
        return path

    def write(self, name: str, content: str) -> Path:
        """Write a file below the HOME."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return path

    def read(self, name: str) -> str:
        """Read a file below the HOME."""
        return (self.path / name).read_text()

    def tree(self) -> dict[str, tuple[bytes, int] | None]:
        """Everything below the HOME, see `tree_of`."""
        return tree_of(self.path)


def program_script(name: str) -> Path:
    """The stand-in's source; there is none for agents whose program is only looked at."""
    return _PROGRAMS / f"{name}.py"


def tree_of(top: Path) -> dict[str, tuple[bytes, int] | None]:
    """Everything below a folder: content and permission bits of files, None for folders."""
    found: dict[str, tuple[bytes, int] | None] = {}
    for folder, names, files in os.walk(top):
        for name in names:
            found[os.path.relpath(os.path.join(folder, name), top)] = None
        for name in files:
            path = Path(folder, name)
            found[str(path.relative_to(top))] = (path.read_bytes(), path.stat().st_mode & 0o777)
    return found


@contextmanager
def without_rights() -> Iterator[Path]:
    """A folder of an ordinary user, as whom the test runs meanwhile: root may write into whatever is read-only."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    root = os.geteuid() == 0
    try:
        if root:
            os.chown(folder, _NOBODY, _NOBODY)
            os.seteuid(_NOBODY)
        yield folder
    finally:
        if root:
            os.seteuid(0)
        shutil.rmtree(folder)
