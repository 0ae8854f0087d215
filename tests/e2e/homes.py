"""Fresh HOMEs with real agents in them, set up for the scripted model, and what is in such a HOME."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.installing import Program

SOURCE = Path(__file__).parents[2] / "src"
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
PATIENCE = 180
"""Seconds for one run of an agent; a turn takes one to nine."""


@dataclass(frozen=True)
class Done:
    """A finished command; `ended` is the wall clock when it had."""

    code: int
    out: str
    err: str
    ended: float


class Home:
    """A HOME of its own, with a git project in it.

    Args:
        path: a folder that does not exist yet.
        url: address of the scripted model server.
        programs: the agents that are on PATH in it; the last one's folders come first.
    """

    def __init__(self, path: Path, url: str, programs: Sequence[Program]) -> None:
        self.path = path
        self.url = url
        self.project = path / "project"
        self.project.mkdir(parents=True)
        subprocess.run(["git", "init", "-q", str(self.project)], check=True)
        folders = [str(folder) for program in programs for folder in program.folders]
        self.environment = {
            "HOME": str(path),
            "PATH": os.pathsep.join([*folders, str(_funes_folder(path.parent)), SYSTEM_PATH]),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
        }
        for program in programs:
            _SET_UP[program.name](self)

    def run(self, *command: str, stdin: str = "", extra: Mapping[str, str] | None = None) -> Done:
        """Run a command in the project, with nothing but this HOME's environment."""
        process = subprocess.run(
            command,
            cwd=self.project,
            env=self.environment | dict(extra or {}),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        return Done(process.returncode, process.stdout, process.stderr, time.time())

    def funes(self, *arguments: str) -> Done:
        """Run a funes command."""
        return self.run("funes", *arguments)

    def turn(self, agent: str, prompt: str) -> Done:
        """One headless session of an agent with one prompt."""
        return self.run(*_TURN[agent](prompt))

    def write(self, name: str, content: str) -> None:
        """Write a file below the HOME."""
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)

    def files(self) -> dict[str, bytes]:
        """Every file below the HOME by its relative path; a link is its target, an empty folder is empty bytes."""
        found = {}
        for folder, names, files in os.walk(self.path):
            if not names and not files:
                found[os.path.relpath(folder, self.path) + "/"] = b""
            for name in [*files, *(name for name in names if os.path.islink(os.path.join(folder, name)))]:
                file = os.path.join(folder, name)
                relative = os.path.relpath(file, self.path)
                if os.path.islink(file):
                    found[relative] = os.readlink(file).encode()
                elif os.path.isfile(file):
                    found[relative] = Path(file).read_bytes()
        return found


def _claude(home: Home) -> None:
    home.environment |= {
        "ANTHROPIC_BASE_URL": home.url,
        "ANTHROPIC_API_KEY": "sk-scripted",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_MAX_RETRIES": "1",
    }


def _codex(home: Home) -> None:
    home.environment |= {"SCRIPTED_KEY": "scripted"}
    config = f"""\
        # The user's own line.
        model = "scripted-model"
        model_provider = "scripted"

        [model_providers.scripted]
        name = "scripted"
        base_url = "{home.url}/v1"
        env_key = "SCRIPTED_KEY"
        wire_api = "responses"
        """
    home.write(".codex/config.toml", textwrap.dedent(config))


def _pi(home: Home) -> None:
    home.environment |= {"PI_OFFLINE": "1", "PI_TELEMETRY": "0"}
    provider = {
        "baseUrl": f"{home.url}/v1",
        "api": "openai-completions",
        "apiKey": "scripted",
        "compat": {"supportsDeveloperRole": False, "supportsReasoningEffort": False},
        "models": [{"id": "scripted-model"}],
    }
    home.write(".pi/agent/models.json", json.dumps({"providers": {"scripted": provider}}, indent=2))
    settings = {"defaultProvider": "scripted", "defaultModel": "scripted-model"}
    home.write(".pi/agent/settings.json", json.dumps(settings, indent=2))


def _hermes(home: Home) -> None:
    config = f"""\
        # The user's own line.
        model:
          default: scripted-model
          provider: custom
          base_url: {home.url}/v1
          api_key: scripted
          context_length: 200000
        security:
          tirith_enabled: false  # would be downloaded
        """
    home.write(".hermes/config.yaml", textwrap.dedent(config))


_SET_UP = {"claude": _claude, "codex": _codex, "pi": _pi, "hermes": _hermes}
_TURN = {
    "claude": lambda prompt: ["claude", "-p", prompt, "--allowedTools", "mcp__funes__recall", "mcp__funes__get"],
    "codex": lambda prompt: ["codex", "exec", "--skip-git-repo-check", "--", prompt],
    "pi": lambda prompt: ["pi", "-p", prompt],
    "hermes": lambda prompt: ["hermes", "chat", "-Q", "-q", prompt],
}


def _funes_folder(beside: Path) -> Path:
    """A folder with `funes` and nothing else, so that PATH holds no second interpreter."""
    folder = beside / "funes-bin"
    script = folder / "funes"
    if not script.exists():
        folder.mkdir(parents=True, exist_ok=True)
        script.write_text(f'#!/bin/sh\nPYTHONPATH="{SOURCE}" exec "{sys.executable}" -m funes "$@"\n')
        script.chmod(0o755)
    return folder
