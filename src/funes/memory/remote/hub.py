"""The Hugging Face Hub: resolving, listing, downloading and committing dataset repositories.

The only module that imports the Hub's client. Asking for a branch's head, which every command does, goes through the
standard library instead: importing the client takes half as long as a whole recall.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from funes.memory.remote.cache import RepoCache
from funes.memory.remote.faults import Asked, RemoteError, RemoteMissingError, RemoteUnreachableError, remote_fault
from funes.memory.remote.tokens import find_token

MAIN = "main"
PUBLIC = "https://huggingface.co"
Told = Callable[[int, int], None]
"""Told how many bytes of how many are there."""

ANSWER_SECONDS = 120.0
"""Longest wait for an answer to anything but a question for a head or a file."""

STEP = 8 << 20
"""Bytes that are sent between two reports of progress, as far as files are not larger."""

_COMMIT = re.compile(r"[0-9a-f]{40}")
_KEY = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_TRUE = {"1", "ON", "YES", "TRUE"}


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a commit.

    Attributes:
        size: in bytes.
        key: name of its content: the sha256 of an LFS file, else the id that git gives it.
    """

    size: int
    key: str


class HubClient:
    """The Hub, for one command: one endpoint, one token.

    Args:
        endpoint: address of the Hub; None for `HF_ENDPOINT`, else the public one.

    Attributes:
        endpoint: the address, without a slash at the end.
    """

    def __init__(self, endpoint: str | None = None) -> None:
        self.endpoint = (endpoint or os.environ.get("HF_ENDPOINT") or PUBLIC).rstrip("/")
        self._token = find_token()
        self._trees: dict[tuple[str, str], dict[str, RemoteFile]] = {}

    def head(self, repo: str, revision: str = "") -> str:
        """Name the newest commit of a revision. One request; none for the name of a commit.

        Args:
            repo: `<org>/<name>` of a dataset.
            revision: branch, tag or commit; empty for the main branch.

        Raises:
            RemoteError: one of its subclasses says why there is no answer.
        """
        from funes.memory.remote.heads import ask_head

        if _COMMIT.fullmatch(revision):
            return revision
        asked = self._asked(repo, revision)
        self._refuse_offline(asked)
        return ask_head(self.endpoint, repo, revision or MAIN, self._token, asked)

    def files(self, repo: str, commit: str) -> dict[str, int]:
        """List a commit's files with their sizes in bytes.

        Raises:
            RemoteError: one of its subclasses says why there is no answer.
        """
        return {path: file.size for path, file in self.tree(repo, commit).items()}

    def tree(self, repo: str, commit: str) -> dict[str, RemoteFile]:
        """List a commit's files with what names their contents; asked for once.

        Raises:
            RemoteError: one of its subclasses says why there is no answer.
        """
        if (repo, commit) not in self._trees:
            self._trees[repo, commit] = self._tree(repo, commit)
        return self._trees[repo, commit]

    def download(self, repo: str, commit: str, paths: Sequence[str], told: Told | None = None) -> Path:
        """Bring files of a commit into the cache; those that are there already cost nothing.

        Args:
            repo: `<org>/<name>`.
            commit: its full name.
            paths: files to bring.
            told: told how far it is.

        Returns:
            The folder of the commit's files. All of `paths` are in it, whole and checked.

        Raises:
            RemoteError: when a file cannot be brought; what was brought before stays in the cache.
            FunesError: when the cache cannot be written.
        """
        cache = RepoCache(repo)
        wanted = dict.fromkeys(paths)
        tree = self.tree(repo, commit)
        asked = self._asked(repo, commit)
        for path in wanted:
            if path not in tree:
                raise RemoteMissingError(f"{repo} on {asked.hub} lacks the file {path}; it is not whole.")
        absent = [path for path in wanted if not cache.has(commit, path, tree[path].size)]
        if absent:
            from funes.memory.remote.downloads import Downloads

            self._refuse_offline(asked)
            Downloads(self._client(), self.endpoint, self._token.value, asked).bring(
                cache, repo, commit, {path: tree[path] for path in absent}, told
            )
        return cache.snapshot(commit)

    def keep(self, repo: str, commit: str, revision: str, paths: Sequence[str]) -> None:
        """Note that `paths` are everything that this commit needs, and that it is the newest of the revision.

        Raises:
            FunesError: when the cache cannot be written.
        """
        tree = self.tree(repo, commit)
        RepoCache(repo).complete(commit, revision or MAIN, {path: tree[path].size for path in paths})

    def cached(self, repo: str, revision: str = "") -> tuple[str, Path] | None:
        """The newest version of a revision that is in the cache whole, as commit and folder, without the network."""
        cache = RepoCache(repo)
        if _COMMIT.fullmatch(revision):
            return (revision, cache.snapshot(revision)) if cache.is_complete(revision) else None
        return cache.newest(revision or MAIN)

    def create(self, repo: str) -> bool:
        """Create a private dataset repository; False when there is one of that name already.

        Raises:
            RemoteError: one of its subclasses says why it cannot be created.
        """
        asked = self._asked(repo, writing=True)
        self._refuse_offline(asked)
        try:
            self._api().create_repo(repo, repo_type="dataset", private=True)
        except Exception as error:
            status = getattr(getattr(error, "response", None), "status_code", 0)
            if status == 409 or (status == 403 and self._exists(repo)):
                return False
            raise _told_apart(error, asked) from error
        return True

    def is_public(self, repo: str) -> bool:
        """Whether anybody may read a repository, perhaps after asking for it.

        Raises:
            RemoteError: one of its subclasses says why there is no answer.
        """
        asked = self._asked(repo)
        self._refuse_offline(asked)
        try:
            return not self._api().dataset_info(repo).private
        except Exception as error:
            raise _told_apart(error, asked) from error

    def commit(
        self,
        repo: str,
        parent: str,
        add: Mapping[str, Path | bytes],
        delete: Sequence[str],
        message: str,
        told: Told | None = None,
    ) -> str:
        """Change files of the main branch in one commit on top of another.

        Args:
            repo: `<org>/<name>`.
            parent: the commit that the change was made for.
            add: new contents by path, as bytes or the file that holds them.
            delete: paths to remove.
            message: title of the commit.
            told: told how much is sent, in steps of several files or `STEP` bytes.

        Returns:
            Name of the new commit.

        Raises:
            RemoteMovedError: when the branch is not at `parent` any more; nothing was changed.
            RemoteError: one of its subclasses says why it cannot be committed; nothing was changed, unless the
                connection broke after everything was sent.
        """
        from funes.memory.remote.patience import bounded

        asked = self._asked(repo, writing=True)
        self._refuse_offline(asked)
        client = self._client()
        additions = {
            path: client.CommitOperationAdd(path, content if isinstance(content, bytes) else str(content))
            for path, content in add.items()
        }
        sizes = {
            path: len(content) if isinstance(content, bytes) else content.stat().st_size
            for path, content in add.items()
        }
        deletions = [client.CommitOperationDelete(path, is_folder=False) for path in delete]
        try:
            api, sent = self._api(), 0
            with bounded(client.utils.get_session(), asked):
                for part in _parts(sizes):
                    if told is not None:
                        api.preupload_lfs_files(repo, [additions[path] for path in part], repo_type="dataset")
                        sent += sum(sizes[path] for path in part)
                        told(sent, sum(sizes.values()))
                made = api.create_commit(
                    repo,
                    [*additions.values(), *deletions],
                    commit_message=message,
                    repo_type="dataset",
                    parent_commit=parent,
                )
        except Exception as error:
            raise _told_apart(error, asked) from error
        return str(made.oid)

    def _tree(self, repo: str, commit: str) -> dict[str, RemoteFile]:
        asked = self._asked(repo, commit)
        self._refuse_offline(asked)
        found: dict[str, RemoteFile] = {}
        try:
            for one in self._api().list_repo_tree(repo, recursive=True, revision=commit, repo_type="dataset"):
                size = getattr(one, "size", None)
                if size is not None:
                    lfs = getattr(one, "lfs", None)
                    found[one.path] = RemoteFile(int(size), str(lfs.sha256 if lfs is not None else one.blob_id))
        except Exception as error:
            raise _told_apart(error, asked) from error
        for path, file in found.items():
            if not _is_inside(path) or not _KEY.fullmatch(file.key):
                raise RemoteError(f"{repo} on {asked.hub} has a file of an impossible name ({path[:80]!r}).")
        return found

    def _exists(self, repo: str) -> bool:
        try:
            self.head(repo)
        except RemoteError:
            return False
        return True

    def _asked(self, repo: str, revision: str = "", *, writing: bool = False) -> Asked:
        return Asked(repo, self.endpoint, self._token.value, self._token.name, revision, writing)

    def _refuse_offline(self, asked: Asked) -> None:
        if os.environ.get("HF_HUB_OFFLINE", "").upper() in _TRUE:
            raise RemoteUnreachableError(
                f"{asked.hub[:1].upper()}{asked.hub[1:]} is not asked, since HF_HUB_OFFLINE is set."
            )

    def _api(self) -> Any:
        return self._client().HfApi(endpoint=self.endpoint, token=self._token.value or False, library_name="funes")

    def _client(self) -> Any:
        # Read at import: commits through Xet are not atomic, and progress and telemetry are not ours to show or send.
        for name in ("HF_HUB_DISABLE_XET", "HF_HUB_DISABLE_PROGRESS_BARS", "HF_HUB_DISABLE_TELEMETRY"):
            os.environ.setdefault(name, "1")
        import huggingface_hub
        import huggingface_hub.utils

        client: Any = huggingface_hub
        if "HF_HUB_VERBOSITY" not in os.environ:
            client.utils.logging.set_verbosity_error()
        client.utils.get_session().timeout = ANSWER_SECONDS  # by default the client waits for ever
        return client


def _told_apart(error: Exception, asked: Asked) -> BaseException:
    """The error to raise for an exception of the client."""
    return remote_fault(error, asked) or error


def _is_inside(path: str) -> bool:
    """Whether a path of a repository stays inside the folder that it is put into."""
    parts = path.split("/")
    return "\\" not in path and "\0" not in path and not any(part in ("", ".", "..") for part in parts)


def _parts(sizes: Mapping[str, int]) -> list[list[str]]:
    """Divide files into groups that end once they have `STEP` bytes."""
    parts: list[list[str]] = [[]]
    filled = 0
    for path, size in sizes.items():
        if filled >= STEP:
            parts.append([])
            filled = 0
        parts[-1].append(path)
        filled += size
    return parts
