"""The traces of a dataset on the Hub: which of its files are read, brought into the cache group by group.

The state knows a file by its address on the Hub and by what names its content, so one that was read is neither fetched
nor read again, whatever became of the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from funes.commands.indexing.discovery import Found
from funes.commands.indexing.messages import ReadJob
from funes.commands.indexing.report import IndexOptions, IndexReport, Progress
from funes.commands.indexing.state import KnownTrace, TraceOutcome, TraceState
from funes.errors import FunesError
from funes.traces.detect import detect, may_be_trace
from funes.traces.registry import source_named, source_problems, sources

if TYPE_CHECKING:
    from funes.memory.remote.hub import HubClient, RemoteFile
    from funes.memory.uri import MemoryPlace

GROUP_BYTES = 256 << 20
GROUP_FILES = 500


def read_dataset(
    options: IndexOptions,
    earlier: Mapping[str, KnownTrace],
    report: IndexReport,
    progress: Progress,
    stop: Callable[[], bool],
    read: Callable[[Found], None],
) -> None:
    """Fetch what is new of a dataset and have it read, group by group.

    Args:
        options: what was asked for; `dataset` is set.
        earlier: state of what was read before, by address.
        report: gets numbers and notes.
        progress: told how far it is.
        stop: says whether to end early.
        read: reads and stores a group.

    Raises:
        FunesError: when no file of the dataset can be a trace.
        RemoteError: when the Hub cannot be reached, or not without more rights; what was read before stays.
    """
    from funes.memory.remote.hub import HubClient
    from funes.memory.uri import resolve

    place = resolve(options.dataset)
    dataset = HubDataset(place, HubClient())
    unknown = 0
    for group in groups(dataset.shards(options, earlier, report)):
        if stop():
            return
        progress.start("fetch", sum(shard.size for shard in group))
        try:
            found = dataset.fetch(group, options, _steps(progress, stop))
        except _StoppedError:
            return
        finally:
            progress.finish()
        unknown += len(found.noted)
        read(found)
    if unknown:
        files = "1 file" if unknown == 1 else f"{unknown:,} files"
        report.note(f"{files} of {place.label} cannot be read as traces.")


class _StoppedError(Exception):
    """The user wants the run to end."""


def _steps(progress: Progress, stop: Callable[[], bool]) -> Callable[[int, int], None]:
    """Turn what is done in all into what was done since the last time, until the run is to end."""
    before = 0

    def told(done: int, _: int) -> None:
        nonlocal before
        if stop():
            raise _StoppedError
        progress.advance(done - before)
        before = done

    return told


@dataclass(frozen=True, slots=True)
class Shard:
    """A file of a dataset: its path there, its address, its size and what names its content."""

    path: str
    address: str
    size: int
    key: str


class HubDataset:
    """A dataset of traces, at the commit that was its newest when this was made.

    Args:
        place: the dataset, of the kind `hub`.
        client: the Hub.

    Raises:
        RemoteError: one of its subclasses says why it cannot be listed.
    """

    def __init__(self, place: MemoryPlace, client: HubClient) -> None:
        self._place = place
        self._client = client
        self._commit = client.head(place.repo, place.revision)
        self._files: dict[str, RemoteFile] = client.tree(place.repo, self._commit)

    def shards(self, options: IndexOptions, earlier: Mapping[str, KnownTrace], report: IndexReport) -> list[Shard]:
        """The files that are to be read, in the order of their paths.

        Args:
            options: what was asked for.
            earlier: state of what was read before, by address.
            report: gets the numbers of files, and of those that were read before.

        Raises:
            FunesError: when no file of the dataset can be a trace, or it is a memory.
        """
        root = f"hf://datasets/{self._place.repo}"
        found = [
            Shard(path, f"{root}/{path}", file.size, file.key)
            for path, file in sorted(self._files.items())
            if may_be_trace(path)
        ]
        name = self._place.label
        if any(path.startswith("chunks.lance/") for path in self._files):
            raise FunesError(f"{name} is a memory, not a dataset of traces; `funes recall --memory {name}` reads it.")
        if not found:
            raise FunesError(
                f"{name} on the Hub holds no files that can be traces (.jsonl, .json, .parquet or SQLite)."
            )
        for sentence in source_problems():
            report.note(sentence)
        found = found[: options.limit]
        left = [shard for shard in found if not _is_read(earlier.get(shard.address), shard, options)]
        report.traces, report.unchanged = len(found), len(found) - len(left)
        return left

    def fetch(self, shards: Sequence[Shard], options: IndexOptions, told: Callable[[int, int], None]) -> Found:
        """Bring files into the cache and make jobs of those that are traces.

        Args:
            shards: the files.
            options: what was asked for.
            told: told how many bytes of how many are there.

        Raises:
            RemoteError: when a file cannot be brought; what was brought before stays in the cache.
        """
        folder = self._client.download(self._place.repo, self._commit, [shard.path for shard in shards], told)
        wanted = source_named(options.harness) if options.harness else None
        known = sources()
        found = Found()
        for shard in shards:
            path = folder / shard.path
            source = detect(path, known)
            if source is None:
                outcome = TraceOutcome(unrecognised=True)
                found.noted.append(TraceState(shard.address, "", shard.key, True, outcome))
            elif wanted is None or source.name == wanted.name:
                found.jobs.append(
                    ReadJob(
                        path,
                        shard.address,
                        source.name,
                        shard.key,
                        shard.size,
                        options.thinking,
                        limit=options.limit,
                        origin=shard.address,
                    )
                )
        return found


def groups(shards: Sequence[Shard]) -> Iterator[list[Shard]]:
    """Divide files into groups that are fetched, read and recorded one after the other."""
    group: list[Shard] = []
    size = 0
    for shard in shards:
        group.append(shard)
        size += shard.size
        if size >= GROUP_BYTES or len(group) >= GROUP_FILES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _is_read(state: KnownTrace | None, shard: Shard, options: IndexOptions) -> bool:
    """Whether this content was read before, and with everything that is wanted now."""
    return state is not None and state.stamp == shard.key and (state.thinking or not options.thinking)
