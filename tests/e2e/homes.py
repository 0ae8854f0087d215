"""Fresh HOMEs with real agents in them, set up for the scripted model, and what is in such a HOME."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from funes.models.fetch import find
from funes.models.pinned import MINILM
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
        programs: the agents that are on PATH in it.
        cache: funes's cache folder, shared by all homes: compiling the secret rules costs seconds of CPU.
        handshakes: a file in which the MCP server notes how long after its start it has answered each step of the
            handshake, in seconds: `protocolVersion`, `tools`.
    """

    def __init__(
        self, path: Path, url: str, programs: Sequence[Program], cache: Path, handshakes: Path | None = None
    ) -> None:
        self.path = path
        self.url = url
        self.project = path / "project"
        self.project.mkdir(parents=True)
        subprocess.run(["git", "init", "-q", str(self.project)], check=True)
        folders = [str(folder) for program in programs for folder in program.folders]
        self.environment = {
            "HOME": str(path),
            "PATH": os.pathsep.join([*folders, str(_funes_folder(path.parent, handshakes)), SYSTEM_PATH]),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "FUNES_LINGER": "1",  # the worker waits for another turn, and `wait_for_worker` for the worker
        }
        self._fill_cache(cache)
        for program in programs:
            _SET_UP[program.name](self)

    def _fill_cache(self, cache: Path) -> None:
        """Put this machine's embedding model where funes looks for it; without one, nothing is to wait for it."""
        (self.path / ".cache").mkdir()
        (self.path / ".cache" / "funes").symlink_to(cache)
        folder = find(MINILM)
        if folder is None:
            self.environment |= {"HF_HUB_OFFLINE": "1", "PIP_RETRIES": "0"}
        elif not (cache / "models").exists():
            (cache / "models").symlink_to(folder.parent)

    def run(self, *command: str, stdin: str = "", extra: Mapping[str, str] | None = None) -> Done:
        """Run a command in the project, with nothing but this HOME's environment."""
        process = subprocess.Popen(
            command,
            cwd=self.project,
            env=self.environment | dict(extra or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            out, err = process.communicate(stdin, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise
        return Done(process.returncode, out, err, time.time())

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


_FUNES = """\
#!{python}
import sys
sys.path.insert(1, {source!r})
{more}from funes.__main__ import main
sys.exit(main())
"""
_TIMED = """\
if sys.argv[1:2] == ["mcp"]:
    import os, time
    from funes.mcp import server
    send = server.Server._send
    def timed(self, message, batch=None):
        send(self, message, batch)
        for step in message.get("result", {{}}).keys() & {{"protocolVersion", "tools"}}:
            with open("/proc/self/stat") as stat, open({log!r}, "a") as log:
                started = int(stat.read().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
                log.write(f"{{step}} {{time.clock_gettime(time.CLOCK_BOOTTIME) - started}}\\n")
    server.Server._send = timed
"""


def _funes_folder(beside: Path, handshakes: Path | None) -> Path:
    """A folder with `funes`, as pip would write it, and nothing else, so that PATH holds no second interpreter."""
    folder = beside / "funes-bin"
    folder.mkdir(exist_ok=True)
    script = folder / "funes"
    more = _TIMED.format(log=str(handshakes)) if handshakes else ""
    script.write_text(_FUNES.format(python=sys.executable, source=str(SOURCE), more=more))
    script.chmod(0o755)
    return folder


def wait_for_worker(home: Home) -> None:
    """Wait until the worker behind the hooks has ended."""
    lock = home.path / ".funes" / "hooks" / "worker.lock"
    if lock.exists():
        with lock.open() as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            fcntl.flock(stream, fcntl.LOCK_UN)
