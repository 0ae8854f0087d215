"""The decisions about a project memory: a text file that a person can read, compare and edit.

One line is one decision, `include SESSION BLOCKS DIGEST` or `exclude SESSION …`; what follows a `#` is a comment. Two
further lines name the memory and the repository that its sessions are of.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import quote, unquote

from funes.errors import FunesError
from funes.memory.lock import WriterLock
from funes.paths import funes_home

Verdict = Literal["include", "exclude"]
FOLDER = "curation"
LOCK = "decisions.lock"
LOCK_SECONDS = 10.0

_REPO = re.compile(r"[\w.-]+(/[\w.-]+)+")
_DIGEST = re.compile(r"[0-9a-f]{12}")
_LONGEST_NAME = 180
_PLAIN = "-_.:@+=/,~"
"""What stands for itself in a session's id; everything else of it is percent-encoded in the file."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided about a session, and how far it reached then.

    Attributes:
        verdict: whether it is published.
        blocks: number of its blocks at the review.
        digest: digest of their places; see `funes.memory.extents.SessionExtent`.
    """

    verdict: Verdict
    blocks: int
    digest: str


@dataclass(slots=True)
class Decisions:
    """All decisions about one memory.

    Attributes:
        memory: what the memory is called.
        repo: repository that its sessions are of, `owner/name`.
        sessions: decisions by session id, in the order of the file.
    """

    memory: str
    repo: str
    sessions: dict[str, Decision] = field(default_factory=dict)


def decisions_file(label: str) -> Path:
    """Path of the file about a memory, whether there is one or not.

    Args:
        label: the memory's name as `canonical` gives it.
    """
    # To the Hub, names that differ in upper and lower case are one repository.
    name = quote(label if "://" in label or os.path.isabs(label) else label.lower(), safe=" @+=,")
    if len(name) > _LONGEST_NAME:
        import hashlib

        name = f"{name[:_LONGEST_NAME]}-{hashlib.blake2b(name.encode(), digest_size=6).hexdigest()}"
    return funes_home() / FOLDER / f"{name}.txt"


def canonical(memory: str) -> str:
    """One name for all spellings of a memory: without the Hub's scheme and a revision; a folder by its real path.

    Raises:
        FunesError: for what is no place of a memory.
    """
    from funes.memory.uri import place_name, resolve

    return place_name(resolve(memory))


def check_repo(repo: str) -> str:
    """Return a repository's name as it is compared.

    Raises:
        FunesError: for one that is not `owner/name`.
    """
    if not _REPO.fullmatch(repo):
        raise FunesError(f"{repo[:80]!r} is no repository; write it as OWNER/NAME, as `funes sessions` shows it.")
    return repo


@contextlib.contextmanager
def deciding() -> Iterator[None]:
    """Keep other processes from changing decisions: between reading them and writing them nobody else may."""
    folder = funes_home() / FOLDER
    with contextlib.suppress(OSError):  # the lock says what is wrong
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with WriterLock(folder, LOCK, LOCK_SECONDS, doing="changing decisions"):
        yield


def read_decisions(label: str) -> Decisions | None:
    """Read the decisions about a memory, None when it is not curated.

    Args:
        label: the memory's name as `canonical` gives it.

    Raises:
        FunesError: for a line that cannot be understood; nothing is published then.
    """
    path = decisions_file(label)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise FunesError(f"The decisions in {path} cannot be read ({error}); mend or delete that file.") from error
    return parse_decisions(text, path)


def parse_decisions(text: str, path: Path) -> Decisions:
    """Parse the text of a decisions file.

    Args:
        text: its content.
        path: named in messages.

    Raises:
        FunesError: for the first line that cannot be understood.
    """
    names: dict[str, str] = {}
    found: dict[str, Decision] = {}
    for number, line in enumerate(text.split("\n"), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        fault = _take(words, names, found)
        if fault:
            raise FunesError(f"{path}, line {number}: {fault}.")
    for name in ("memory", "repo"):
        if name not in names:
            raise FunesError(f"{path}: the line `{name} NAME` is missing; add it, or delete the file to start again.")
    return Decisions(names["memory"], check_repo(names["repo"]), found)


def _take(words: list[str], names: dict[str, str], found: dict[str, Decision]) -> str:
    """Take in the words of one line; returns what is wrong with it, if anything is."""
    verb = words[0]
    if verb in ("memory", "repo"):
        if len(words) < 2 or (verb == "repo" and not _REPO.fullmatch(words[1])):
            return f"`{verb}` needs a name behind it"
        if verb in names:
            return f"there is a second `{verb}` line; keep one"
        names[verb] = " ".join(words[1:]) if verb == "memory" else words[1]
        return ""
    if verb == "pending":
        return "" if len(words) >= 2 else "`pending` needs a session behind it"
    if verb not in get_args(Verdict):
        return f"{verb[:40]!r} is none of include, exclude, pending, memory, repo"
    if len(words) != 4 or not words[2].isdecimal() or not _DIGEST.fullmatch(words[3]):
        return (
            f"a decision is `{verb} SESSION BLOCKS DIGEST`, with the numbers that `funes curate` writes; "
            "delete the line to have the session pending"
        )
    session = unquote(words[1])
    if session in found:
        return f"there are two decisions about session {words[1][:60]}; keep one"
    found[session] = Decision("include" if verb == "include" else "exclude", int(words[2]), words[3])
    return ""


def write_decisions(decisions: Decisions, titles: Mapping[str, str]) -> Path:
    """Write the file, atomically; comments in it do not outlast this.

    Args:
        decisions: what to write.
        titles: for each session what to say about it behind the `#`.

    Returns:
        The path of the file.
    """
    path = decisions_file(decisions.memory)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary.write_text(render_decisions(decisions, titles), encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise FunesError(f"{path} cannot be written ({error.strerror}); check the folder's permissions.") from error
    return path


def render_decisions(decisions: Decisions, titles: Mapping[str, str]) -> str:
    """Render the text of the file; see `write_decisions`."""
    from funes.ui.safe import one_line

    lines = [
        f"# What `funes push {decisions.memory}` publishes: the included sessions of {decisions.repo}.",
        "# include|exclude SESSION BLOCKS DIGEST   # about the session",
        "# The two numbers say how far the session was reviewed; when it has grown since, it is pending again.",
        f"memory {decisions.memory}",
        f"repo {decisions.repo}",
        "",
    ]
    for session, decision in decisions.sessions.items():
        title = one_line(titles.get(session, ""), 100)
        about = f"  # {title}" if title else ""
        lines.append(f"{decision.verdict} {quote(session, safe=_PLAIN)} {decision.blocks} {decision.digest}{about}")
    return "\n".join(lines) + "\n"
