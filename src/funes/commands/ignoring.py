"""Which projects are kept out of the memory: the `ignore` file in FUNES_HOME, one pattern a line.

The patterns are those of a `.gitignore` file. Each is compared with a session's working directory and with its
repository (`owner/name`); the last one that matches decides, so that `!` takes a project back in.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from funes.errors import FunesError
from funes.paths import funes_home

FILE = "ignore"


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The patterns of an ignore file. Small and without compiled parts, so that it can go to another process.

    Attributes:
        lines: the patterns in order, as they stand in the file; comments and blank lines are left out.
    """

    lines: tuple[str, ...] = ()

    def ignores(self, workdir: str, repo: str) -> str:
        """The pattern that keeps a project out, empty when none does.

        Args:
            workdir: an absolute path, empty when it is not known.
            repo: `owner/name`, empty for none.
        """
        if not self.lines:
            return ""
        folder = f"{_as_path(workdir)}/" if workdir else ""
        identity = f"{repo.lower()}/" if repo else ""
        found = ""
        for line, negated, in_folder, in_repo in _compiled(self.lines, str(Path.home())):
            if (folder and in_folder(folder)) or (identity and in_repo(identity)):
                found = "" if negated else line
        return found


def ignore_file() -> Path:
    """Path of the file, whether there is one or not."""
    return funes_home() / FILE


def read_ignore_rules() -> IgnoreRules:
    """Read the ignore file; no patterns when there is none.

    Raises:
        FunesError: when it cannot be read, or a line is no pattern. Nothing may be indexed then.
    """
    path = ignore_file()
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return IgnoreRules()
    except (OSError, UnicodeDecodeError) as error:
        raise FunesError(f"{path} cannot be read ({error}); mend or delete that file.") from error
    lines = []
    for number, line in enumerate(text.split("\n"), 1):
        line = line.rstrip("\r")
        if not line.strip() or line.startswith("#"):
            continue
        try:
            _compiled((line,), str(Path.home()))
        except ValueError as error:
            raise FunesError(f"{path}, line {number}: {line[:60]!r} is no pattern; see `man gitignore`.") from error
        lines.append(line)
    return IgnoreRules(tuple(lines))


Match = Callable[[str], bool]


@lru_cache(maxsize=64)
def _compiled(lines: tuple[str, ...], home: str) -> list[tuple[str, bool, Match, Match]]:
    """For each line: the line, whether it takes back in, and the tests of a folder and of a repository.

    Raises:
        ValueError: a line is no pattern.
    """
    from pathspec import GitIgnoreSpec

    compiled: list[tuple[str, bool, Match, Match]] = []
    for line in lines:
        negated = line.startswith("!")
        pattern = line[1:] if negated else line
        if not pattern.strip():
            raise ValueError("nothing behind the exclamation mark")
        folder, repo = _spellings(pattern, home)
        compiled.append(
            (
                line,
                negated,
                GitIgnoreSpec.from_lines([folder]).match_file,
                GitIgnoreSpec.from_lines([repo.lower()]).match_file,
            )
        )
    return compiled


def _spellings(pattern: str, home: str) -> tuple[str, str]:
    """A pattern as it is compared with folders, and as it is compared with repositories.

    What begins with a slash or `~` is a path from the root; all else may begin at any depth, which of a pattern with
    a slash in it git would not say, since there it is relative to the file's own folder.
    """
    if pattern == "~" or pattern.startswith(("~/", "~\\")):
        return "/" + _escaped(_as_path(home)) + pattern[1:].replace("\\", "/"), pattern
    if re.match(r"[A-Za-z]:[/\\]", pattern):
        return "/" + _as_path(pattern), pattern
    if pattern.startswith(("/", "**/")) or "/" not in pattern.rstrip().rstrip("/"):
        return pattern, pattern
    return f"**/{pattern}", pattern


def _as_path(folder: str) -> str:
    """A folder as a path with forward slashes from the root, without a slash at either end."""
    return folder.replace("\\", "/").strip("/")


def _escaped(path: str) -> str:
    return re.sub(r"([\\*?\[\]!# ])", r"\\\1", path)
