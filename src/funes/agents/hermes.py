"""Hermes: an MCP server and shell hooks in config.yaml, and the hooks' approval in the list beside it.

`hermes mcp add` lays the whole file out anew and loses its comments, and nothing but a question on a terminal approves
a hook, so both files are edited here, and only where they have to be.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from funes.agents import files, hermes_approvals, programs, yaml_text
from funes.agents.journal import note_known
from funes.agents.model import SERVER, Binding, Watch, base_in, foreign_server, is_own_server
from funes.errors import FunesError
from funes.paths import funes_home, shown

EVENTS = ("on_session_start", "post_llm_call", "on_session_finalize")
"""Start of a session, end of a turn, real end of a session (`on_session_end` comes after each turn)."""

HOOK_SECONDS = 10
_LOOK = (
    "import importlib.metadata as m, importlib.util as u; "
    "print(m.version('hermes-agent'), u.find_spec('mcp') is not None, u.find_spec('agent.shell_hooks') is not None)"
)


class Hermes:
    """See `funes.agents.model.Agent`."""

    name = "hermes"
    title = "Hermes"

    def __init__(self) -> None:
        override = os.environ.get("HERMES_HOME")
        self.home = Path(override).expanduser() if override else Path.home() / ".hermes"
        self.config = self.home / "config.yaml"
        self.approvals = self.home / "shell-hooks-allowlist.json"
        self.base = funes_home().absolute()

    def program(self) -> Path | None:
        """The `hermes` program."""
        inside = self.home / "hermes-agent" / "venv" / "bin" / "hermes"
        return programs.find_program("hermes", (Path.home() / ".local" / "bin" / "hermes", inside))

    def version(self) -> str:
        """Version of the package that the program belongs to."""
        return self._look()[0]

    def check(self) -> None:
        """See the protocol."""
        if self.program() is None:
            raise FunesError(
                "Hermes is not on this machine (there is no `hermes` on PATH); install it, then run `funes add hermes` "
                "again."
            )
        version, has_mcp, has_hooks = self._look()
        if not has_hooks:
            raise FunesError(f"Hermes {version} has no shell hooks; update it (`hermes update`), then try again.")
        if not has_mcp:
            raise FunesError(
                "This Hermes has no MCP client; install it into Hermes's environment (`pip install "
                "'hermes-agent[mcp]'`), then run `funes add hermes` again."
            )
        programs.refuse_foreign(self.foreign(), self.name)
        hermes_approvals.load(self.approvals)

    def watch(self) -> Watch:
        """See the protocol."""
        return Watch(files=(self.config, self.approvals, hermes_approvals.lock_of(self.approvals)))

    def named_base(self) -> Path | None:
        """See the protocol."""
        return base_in(self._server())

    def parts(self) -> list[Path]:
        """See the protocol."""
        found = [self.config] if any(_own_hooks(self._settings())) else []
        return found + ([self.approvals] if hermes_approvals.own(hermes_approvals.load(self.approvals)) else [])

    def has_server(self) -> bool:
        """See the protocol."""
        return is_own_server(self._server())

    def foreign(self) -> str:
        """See the protocol."""
        return foreign_server(self._server(), self.config)

    def registered(self, binding: Binding, server: Mapping[str, Any]) -> bool:
        """See the protocol."""
        settings, line = self._settings(), binding.hook_line(self.name)
        hooks = _map(settings, "hooks")
        wanted = [(event, line) for event in EVENTS]
        own = hermes_approvals.own(hermes_approvals.load(self.approvals))
        approved = [(entry.get("event"), entry["command"]) for entry in own]
        return (
            _map(settings, "mcp_servers").get(SERVER) == _entry(binding)
            and [(event, hooks[event][number].get("command")) for event, number in _own_hooks(settings)] == wanted
            and sorted(approved, key=str) == sorted(wanted)
        )

    def register(self, binding: Binding, server: Mapping[str, Any], *, trust: bool) -> tuple[dict[str, Any], list[str]]:
        """See the protocol."""
        text, settings = yaml_text.load(self.config)
        unapproved = hermes_approvals.missing(hermes_approvals.load(self.approvals))
        known: dict[str, Any] = {"absent": _missing(settings), "approvals": unapproved, "pieces": []}
        note_known(known)
        earlier = _map(settings, "mcp_servers").get(SERVER)
        line = binding.hook_line(self.name)
        try:
            if earlier is not None:
                known["server"] = earlier
                text = yaml_text.remove(text, ("mcp_servers", SERVER))
            text = self._put_in(text, ("mcp_servers", SERVER), _entry(binding), known)
            for event in EVENTS:
                text = self._put_in(text, ("hooks", event), [{"command": line, "timeout": HOOK_SECONDS}], known)
        except ValueError as error:
            raise FunesError(
                f"{shown(self.config)} is laid out so that funes cannot add to it; docs/agent-hermes.md says "
                "what to write into it by hand."
            ) from error
        files.write(self.config, text.encode(), files.PRIVATE)
        hermes_approvals.add(self.approvals, [{"event": event, "command": line} for event in EVENTS])
        return known, [
            "Its hooks are approved in Hermes's own list, without its question; `hermes hooks list` shows them.",
            "Sessions of Hermes that are open now get the tools when they are started again.",
        ]

    def advice(self) -> list[str]:
        """See the protocol."""
        return []

    def unregister(self, known: Mapping[str, Any]) -> None:
        """See the protocol."""
        hermes_approvals.remove(self.approvals, known.get("approvals", ()))
        text, settings = yaml_text.load(self.config)
        if not settings or not (self.has_server() or any(_own_hooks(settings))):
            return
        try:
            new = self._without(text, settings, known)
        except ValueError as error:
            raise FunesError(
                f"{shown(self.config)} is laid out so that funes cannot take its parts out; delete "
                f"`{SERVER}` under `mcp_servers` and the hooks with `funes` in their command by hand."
            ) from error
        if new.strip() or "config" not in known.get("absent", ()):
            files.write(self.config, new.encode())
        else:
            files.delete(self.config)

    def describe(self, path: Path) -> str:
        """See the protocol."""
        if path == self.config:
            return f'MCP server "{SERVER}", hooks that index after each turn'
        return "approval of the hooks"

    def _without(self, text: str, settings: Mapping[str, Any], known: Mapping[str, Any]) -> str:
        absent = known.get("absent", ())
        new = text
        for event, number in reversed(list(_own_hooks(settings))):
            new = yaml_text.remove(new, ("hooks", event, number))
        if self.has_server():
            new = yaml_text.remove(new, ("mcp_servers", SERVER))
        for path in [("hooks", event) for event in EVENTS] + [("hooks",), ("mcp_servers",)]:
            if ".".join(path) in absent and _is_empty(yaml_text.parse(new), path):
                new = yaml_text.remove(new, path)
        if (earlier := known.get("server")) is not None and not self.foreign():
            return yaml_text.add(new, ("mcp_servers", SERVER), earlier)[0]
        # What was put in may be cut out in one piece, which leaves no trace in the layout either.
        return yaml_text.cut(text, known.get("pieces", ()), yaml_text.parse(new)) or new

    def _put_in(self, text: str, path: tuple[str, ...], value: Any, known: dict[str, Any]) -> str:
        text, piece = yaml_text.add(text, path, value)
        known["pieces"].append(piece)
        return text

    def _server(self) -> Any:
        """The MCP server with the name of ours, None for none."""
        return _map(self._settings(), "mcp_servers").get(SERVER)

    def _settings(self) -> dict[str, Any]:
        _, value = yaml_text.load(self.config)
        if value is not None and not isinstance(value, dict):
            raise files.unfit(self.config, "is no YAML mapping")
        for name in ("mcp_servers", "hooks"):
            inner = (value or {}).get(name)
            if inner is not None and not isinstance(inner, dict):
                raise files.unfit(self.config, f"has no mapping at `{name}`")
        return value or {}

    def _look(self) -> tuple[str, bool, bool]:
        """Version; whether there is an MCP client, and shell hooks: yes when it cannot be told."""
        program = self.program()
        try:
            with open(program or os.devnull, "rb") as stream:
                first = stream.readline(1000).decode("utf-8", "replace")
        except OSError:
            first = ""
        interpreter = shlex.split(first[2:]) if first.startswith("#!") else []
        if len(interpreter) != 1 or "python" not in os.path.basename(interpreter[0]):
            return "", True, True
        try:
            done = subprocess.run([*interpreter, "-c", _LOOK], capture_output=True, timeout=30, cwd=os.sep)
            version, has_mcp, has_hooks = done.stdout.decode("utf-8", "replace").split()
        except (OSError, subprocess.TimeoutExpired, ValueError):
            return "", True, True
        return version, has_mcp == "True", has_hooks == "True"


def _entry(binding: Binding) -> dict[str, Any]:
    """The MCP server for Hermes, which passes on next to no environment of its own."""
    entry: dict[str, Any] = {"command": binding.program[0], "args": binding.arguments}
    return entry | ({"env": dict(binding.env)} if binding.env else {})


def _own_hooks(settings: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Event and number of each hook of funes, in the order in which they are put in."""
    hooks = _map(settings, "hooks")
    for event in EVENTS:
        entries = hooks.get(event)
        if isinstance(entries, list):
            yield from ((event, number) for number, entry in enumerate(entries) if hermes_approvals.is_own(entry))


def _missing(settings: Any) -> list[str]:
    """What is not in the settings yet and should be gone again when funes is."""
    paths = [("mcp_servers",), ("hooks",), *(("hooks", event) for event in EVENTS)]
    missing = [".".join(path) for path in paths if not _has(settings, path)]
    return missing + ([] if settings else ["config"])


def _has(value: Any, path: tuple[str, ...]) -> bool:
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return False
        value = value[key]
    return True


def _is_empty(value: Any, path: tuple[str, ...]) -> bool:
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return False
        value = value[key]
    return not value


def _map(value: Any, name: str) -> dict[str, Any]:
    inner = value.get(name) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}
