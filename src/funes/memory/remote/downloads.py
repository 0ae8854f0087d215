"""Bringing files of a repository into the cache: one request for each, checked before it counts as there."""

from __future__ import annotations

import contextlib
import hashlib
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from funes.memory.remote.cache import RepoCache, unwritable
from funes.memory.remote.faults import Asked, RemoteBusyError, RemoteError, RemoteUnreachableError, remote_fault

if TYPE_CHECKING:
    from funes.memory.remote.hub import RemoteFile, Told

AT_ONCE = 8
TRIES = 4
LONGEST_WAIT = 60.0
"""Seconds that the Hub may ask to wait between two tries."""

FIRST_WAIT = 0.5
"""Seconds before the second try; each further wait is twice as long."""

TIMEOUT = 20.0


class Downloads:
    """Downloads of one command.

    Args:
        client: the module `huggingface_hub`.
        endpoint: address of the Hub.
        token: sent along unless it is empty.
        asked: for the sentence of a fault.
    """

    def __init__(self, client: Any, endpoint: str, token: str, asked: Asked) -> None:
        self._client = client
        self._endpoint = endpoint
        self._asked = asked
        self._headers = client.utils.build_hf_headers(token=token or False, library_name="funes")
        # A compressed answer has another length than the file, and cannot be continued in the middle.
        self._headers["Accept-Encoding"] = "identity"
        self._stop = threading.Event()
        self._parts: set[Path] = set()

    def bring(
        self, cache: RepoCache, repo: str, commit: str, files: Mapping[str, RemoteFile], told: Told | None
    ) -> None:
        """Bring files, several at a time, and make them visible in the commit's folder.

        Args:
            cache: where to.
            repo: `<org>/<name>`.
            commit: the commit.
            files: what to bring, by path.
            told: told how far it is.

        Raises:
            RemoteError: when a file cannot be brought.
            FunesError: when the cache cannot be written.
        """
        contents = {file.key: (path, file.size) for path, file in files.items()}
        absent = {key: about for key, about in contents.items() if not cache.has_blob(key, about[1])}
        progress = _Progress(sum(size for _, size in absent.values()), told)

        def one(key: str) -> None:
            path, size = absent[key]
            address = self._client.hf_hub_url(repo, path, repo_type="dataset", revision=commit, endpoint=self._endpoint)
            self._bring_one(cache, _Wanted(path, address, key, size), progress)

        cache.sweep()
        self._side_by_side(one, list(absent))
        try:
            for path, file in files.items():
                cache.link(commit, path, file.key)
        except OSError as error:
            raise unwritable(error) from error

    def _side_by_side(self, one: Callable[[str], None], keys: list[str]) -> None:
        """Bring several contents at a time; the first fault ends it.

        The threads are daemons, so that Ctrl-C does not wait for a server that does not answer.
        """
        waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
        done: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        for key in keys:
            waiting.put(key)

        def work() -> None:
            with contextlib.suppress(queue.Empty):
                while not self._stop.is_set():
                    key = waiting.get_nowait()
                    try:
                        one(key)
                        done.put(None)
                    except BaseException as error:
                        done.put(error)

        threads = [threading.Thread(target=work, daemon=True) for _ in range(min(AT_ONCE, len(keys)))]
        for thread in threads:
            thread.start()
        try:
            for _ in keys:
                if (fault := done.get()) is not None:
                    raise fault
        except BaseException:
            self._stop.set()
            for path in list(self._parts):
                with contextlib.suppress(OSError):
                    path.unlink()
            raise

    def _bring_one(self, cache: RepoCache, wanted: _Wanted, progress: _Progress) -> None:
        """Download one content and move it into its place."""
        temporary = cache.temporary(wanted.key)
        self._parts.add(temporary)
        try:
            temporary.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as stream:
                self._fill(_Content(stream, wanted, progress))
            temporary.replace(cache.blob(wanted.key))
        except OSError as error:
            raise unwritable(error) from error
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()
            self._parts.discard(temporary)

    def _fill(self, content: _Content) -> None:
        """Download one content, trying again from where it broke off."""
        wrong = 0
        for tried in range(1, TRIES + 1):
            try:
                for piece in self._pieces(content):
                    content.add(piece)
            except (RemoteBusyError, RemoteUnreachableError) as fault:
                wait = (
                    fault.wait if isinstance(fault, RemoteBusyError) and fault.wait else FIRST_WAIT * 2 ** (tried - 1)
                )
                if tried == TRIES or wait > LONGEST_WAIT or self._stop.wait(wait):
                    raise
                continue
            if content.is_right():
                return
            content.restart()
            wrong += 1
            if wrong > 1:
                break
        raise RemoteError(
            f"{self._asked.repo} sends {content.wanted.path} with another content than it announces; run the command "
            "again, and tell its owner if it stays so."
        )

    def _pieces(self, content: _Content) -> Iterator[bytes]:
        """What the Hub sends, from where the content broke off."""
        headers = dict(self._headers)
        if content.received:
            headers["Range"] = f"bytes={content.received}-"
        session = self._client.utils.get_session()
        try:
            with session.stream(
                "GET", content.wanted.address, headers=headers, timeout=TIMEOUT, follow_redirects=True
            ) as answer:
                self._client.utils.hf_raise_for_status(answer)
                if content.received and answer.status_code != 206:
                    content.restart()
                for piece in answer.iter_bytes():  # as it comes, so that a break loses nothing
                    if self._stop.is_set():
                        raise RemoteUnreachableError("The download was stopped.")
                    yield piece
                    if content.received > content.wanted.size:
                        return
        except Exception as error:
            raise (remote_fault(error, self._asked) or error) from error


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A content, and where it is."""

    path: str
    address: str
    key: str
    size: int


class _Content:
    """A content on its way: what is there so far, and its digest."""

    def __init__(self, stream: BinaryIO, wanted: _Wanted, progress: _Progress) -> None:
        self.wanted = wanted
        self.received = 0
        self._stream = stream
        self._progress = progress
        self._digest = _digest(wanted)

    def add(self, piece: bytes) -> None:
        self._stream.write(piece)
        self._digest.update(piece)
        self.received += len(piece)
        self._progress.add(len(piece))

    def restart(self) -> None:
        self._progress.add(-self.received)
        self._stream.seek(0)
        self._stream.truncate()
        self._digest = _digest(self.wanted)
        self.received = 0

    def is_right(self) -> bool:
        return self.received == self.wanted.size and self._digest.hexdigest() == self.wanted.key


class _Progress:
    """Adds up the bytes of all threads."""

    def __init__(self, total: int, told: Told | None) -> None:
        self._total = total
        self._told = told
        self._done = 0
        self._lock = threading.Lock()

    def add(self, size: int) -> None:
        with self._lock:
            self._done += size
            if self._told is not None:
                self._told(self._done, self._total)


def _digest(wanted: _Wanted) -> Any:
    """A new digest of the kind that names the content: sha256, or git's own over a header and the bytes."""
    if len(wanted.key) == 64:
        return hashlib.sha256()
    return hashlib.sha1(b"blob %d\0" % wanted.size, usedforsecurity=False)
