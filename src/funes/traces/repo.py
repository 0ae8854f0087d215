"""Which repository a working directory belongs to, read from git's files without running git."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_SECTION = re.compile(r"""\[\s*remote\s+"((?:[^"\\]|\\.)*)"\s*\]""")
_URL = re.compile(r"""url\s*=\s*"?([^"#;]*?)"?\s*(?:[#;].*)?""")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://(?:[^/@]*@)?[^/]+/(.+)", re.IGNORECASE)
_SCP = re.compile(r"(?:[^@/:\s]+@)?[^/:\s]{2,}:(?!//)(.+)")
_MAX_CONFIG = 2**20
# Where agents put the worktrees they make; a worktree that is gone still belongs to the folder above.
_WORKTREE = re.compile(r"(.+?)[/\\](?:\.claude[/\\]worktrees|\.worktrees)[/\\][^/\\]")


def repo_identity(workdir: str, remembered: Mapping[str, str] | None = None) -> str:
    """Return the `owner/name` of the repository that a folder is in, or an empty string.

    Worktrees, sub-directories and worktree folders that are gone belong to their repository. The remote is `origin`,
    else `upstream`, else the first one.

    Args:
        workdir: an absolute path, as recorded in a trace; it need not exist any more.
        remembered: identities found earlier, by folder, for folders that are gone.
    """
    remembered = remembered or {}
    folder = Path(workdir)
    if not workdir or not folder.is_absolute():
        return remembered.get(workdir, "")
    if folder.is_dir():
        return _identity(folder)
    owner = match[1] if (match := _WORKTREE.match(workdir)) else ""
    if known := remembered.get(workdir) or remembered.get(owner):
        return known
    if owner and (found := _identity(Path(owner))):
        return found
    # A home folder under version control is no repository of everything that was ever below it.
    home = Path.home()
    above = next((place for place in folder.parents if place.is_dir()), None)
    if above is None or above == home or above in home.parents:
        return ""
    return _identity(above, stop=(home, *home.parents))


def parse_remote(url: str) -> str:
    """Return the `owner/name` of a git remote, or an empty string when it has none.

    Understands `https://host/owner/name.git`, `ssh://git@host:22/owner/name`, `git@host:owner/name.git` and
    `host:owner/name`; of deeper paths (GitLab's groups) the last two parts count.

    Args:
        url: the remote's URL, possibly with credentials, which are not returned.
    """
    url = url.strip()
    if match := _SCHEME.fullmatch(url):
        if url.lower().startswith("file:"):
            return ""
        path = match[1]
    elif "://" not in url and (match := _SCP.fullmatch(url)):
        path = match[1]
    else:
        return ""
    path = re.split(r"[?#]", path, maxsplit=1)[0].strip("/").removesuffix(".git").strip("/")
    parts = [part for part in path.split("/") if part and not part.startswith("~")]
    if len(parts) >= 2 and "_git" in parts[:-1]:
        # Azure: organisation/project/_git/name
        parts.remove("_git")
    if len(parts) < 2 or ".." in parts or any(ord(char) < 33 for char in path):
        return ""
    return "/".join(parts[-2:])


def _identity(folder: Path, stop: tuple[Path, ...] = ()) -> str:
    """Return the identity of the repository that a folder is in, looking upwards as far as a folder of `stop`."""
    for place in (folder, *folder.parents):
        if place in stop:
            break
        git = place / ".git"
        try:
            if git.is_dir():
                return _from_config(git / "config")
            if git.is_file():
                return _from_config(_common_folder(git) / "config")
            if (place / "HEAD").is_file() and (place / "objects").is_dir() and (place / "refs").is_dir():
                return _from_config(place / "config")
        except OSError:
            continue
    return ""


def _common_folder(git: Path) -> Path:
    """Return the folder with the configuration for a `.git` file (of a worktree or a submodule)."""
    pointer = _read(git).strip()
    folder = git.parent / pointer.removeprefix("gitdir:").strip()
    common = _read(folder / "commondir").strip()
    return folder / common if common else folder


def _from_config(config: Path) -> str:
    remotes: dict[str, str] = {}
    current = ""
    for raw in _read(config).splitlines():
        line = raw.strip()
        if line.startswith("["):
            match = _SECTION.match(line)
            current = match[1] if match else ""
            line = line[match.end() :].strip() if match else ""
        if current and current not in remotes and (match := _URL.fullmatch(line)) and (name := parse_remote(match[1])):
            remotes[current] = name
    for preferred in ("origin", "upstream"):
        if preferred in remotes:
            return remotes[preferred]
    return next(iter(remotes.values()), "")


def _read(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return stream.read(_MAX_CONFIG).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
