"""What is the same for every agent: a binding, the files that it touches, what came of it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from funes.paths import shown

SERVER = "funes"
"""Name of the MCP server in every agent's configuration."""

Kind = Literal["created", "edited", "removed", "restored"]


@dataclass(frozen=True, slots=True)
class Binding:
    """What is written into an agent's configuration.

    Attributes:
        memory: the memory that the agent reads, empty for the local one.
        program: absolute path of funes and the arguments before a command's name.
        env: variables without which funes would look in other folders; agents pass on few of their own.
    """

    memory: str
    program: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def arguments(self) -> list[str]:
        """Arguments of the program that start the MCP server."""
        return [*self.program[1:], "mcp", *([self.memory] if self.memory else [])]

    @property
    def server(self) -> list[str]:
        """The command that starts the MCP server."""
        return [self.program[0], *self.arguments]

    @property
    def label(self) -> str:
        """What the user calls the memory."""
        return self.memory or "local"

    def hook(self, harness: str, event: str = "") -> list[str]:
        """The command of a hook, as a program and its arguments.

        Args:
            harness: the agent's name.
            event: name of the event, for an agent whose payload does not say it.
        """
        from funes.hook import hook_command

        return hook_command(harness, event=event, memory=self.memory)

    def hook_line(self, harness: str, event: str = "") -> str:
        """The command of a hook as one line, for a shell and for programs that split as one does."""
        return shlex.join(self.hook(harness, event))


@dataclass(frozen=True, slots=True)
class Watch:
    """What registering may touch.

    Attributes:
        files: single files.
        trees: folders, with everything below them.
        folders: folders of which only the existence matters.
    """

    files: tuple[Path, ...] = ()
    trees: tuple[Path, ...] = ()
    folders: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """One file or folder that was changed."""

    kind: Kind
    path: Path
    what: str = ""


@dataclass(slots=True)
class Outcome:
    """What adding or removing did.

    Attributes:
        name: the agent's name on the command line.
        agent: its title and, where known, its version.
        done: false when everything was as it should be already.
        changes: in the order of the paths.
        notes: what else the user should know or do, a sentence each.
    """

    name: str
    agent: str
    done: bool = True
    changes: list[Change] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def base_in(entry: Any) -> Path | None:
    """The FUNES_HOME that an entry of a configuration passes on.

    Args:
        entry: a mapping with the variables under `env`; anything else names none.
    """
    if not isinstance(entry, Mapping):
        return None
    env = entry.get("env")
    named = env.get("FUNES_HOME") if isinstance(env, Mapping) else None
    return Path(named) if isinstance(named, str) and os.path.isabs(named) else Path.home() / ".funes"


def base_around(folder: Any, name: str) -> Path | None:
    """The FUNES_HOME in which an agent's plugin lies, None for a folder that is none of funes's."""
    path = Path(folder) if isinstance(folder, str) else Path()
    return path.parent.parent if path.is_absolute() and path.parts[-2:] == ("agents", name) else None


def is_own_server(entry: Any) -> bool:
    """Whether an MCP server is of funes, by what it runs: `funes mcp`, wherever that is and whatever starts it.

    Args:
        entry: its entry in an agent's configuration.
    """
    if not isinstance(entry, Mapping):
        return False
    arguments = entry.get("args")
    words = [str(word) for word in (entry.get("command"), *(arguments if isinstance(arguments, list) else ()))]
    names = [os.path.basename(word.replace("\\", "/")).removesuffix(".exe") for word in words]
    return any(first == "funes" and second == "mcp" for first, second in zip(names, words[1:], strict=False))


def foreign_server(entry: Any, path: Path) -> str:
    """What to say of an MCP server with the name of ours that is not of funes; empty when it is, or there is none.

    Args:
        entry: its entry in an agent's configuration, None for none.
        path: the file that holds it.
    """
    if entry is None or is_own_server(entry):
        return ""
    command = entry.get("command") if isinstance(entry, Mapping) else None
    # The arguments may hold a key.
    runs = f" (`{os.path.basename(command)}`)" if isinstance(command, str) and command else ""
    return f"{shown(path)} has an MCP server `{SERVER}` that runs something else{runs}"


class Agent(Protocol):
    """An agent that funes can be added to.

    Attributes:
        name: as on the command line: `claude`, `codex`, `pi`, `hermes`.
        title: as people call it.
        base: the FUNES_HOME whose files are looked at and written.
    """

    name: str
    title: str
    base: Path

    def program(self) -> Path | None:
        """The agent's program, None when it is not on this machine."""
        ...

    def version(self) -> str:
        """Version of the program, empty when it does not say."""
        ...

    def check(self) -> None:
        """Look whether funes can be added, before anything is changed.

        Raises:
            FunesError: when the program is missing or too old, a file that has to be edited cannot be parsed, or
                something else has the name of funes.
        """
        ...

    def watch(self) -> Watch:
        """Every file and folder that `register` may touch."""
        ...

    def named_base(self) -> Path | None:
        """The FUNES_HOME that the agent's own files name, which may be another one; None when they name none."""
        ...

    def parts(self) -> list[Path]:
        """The files and folders that hold now what funes alone puts there."""
        ...

    def has_server(self) -> bool:
        """Whether there is an MCP server of funes."""
        ...

    def foreign(self) -> str:
        """What has the name of funes here but is not of it, as a clause; empty for nothing."""
        ...

    def registered(self, binding: Binding, server: Mapping[str, Any]) -> bool:
        """Whether the agent's configuration is what `register` would make of it, from the same arguments."""
        ...

    def register(self, binding: Binding, server: Mapping[str, Any], *, trust: bool) -> tuple[dict[str, Any], list[str]]:
        """Add the MCP server and the hooks. Nothing of funes is there when this is called.

        Args:
            binding: what to write.
            server: what the MCP server said of itself: `tools` and `instructions`.
            trust: whether the user asked to trust the hooks without the agent's own dialog.

        Returns:
            What `unregister` has to know when a file has changed since, as JSON; and notes for the user.

        Raises:
            FunesError: when a step failed; the caller puts every file back.
        """
        ...

    def advice(self) -> list[str]:
        """What the user should know of the agent once, when funes is first added, a sentence each."""
        ...

    def unregister(self, known: Mapping[str, Any]) -> None:
        """Take every part of funes out, whatever else has changed since.

        Args:
            known: what `register` returned, empty when nobody knows.

        Raises:
            FunesError: when a file cannot be parsed or written.
        """
        ...

    def describe(self, path: Path) -> str:
        """What a changed file has to do with funes, in a few words."""
        ...
