"""Which traces there are to read: found by harness or below a path, compared with what was read before."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from funes.commands.indexing.messages import ReadJob
from funes.commands.indexing.report import FoundHarness, IndexOptions
from funes.commands.indexing.state import KnownTrace, TraceState
from funes.errors import FunesError
from funes.traces.detect import detect, walk
from funes.traces.model import TraceSource
from funes.traces.registry import source_named, source_problems, sources


@dataclass(slots=True)
class Found:
    """What a look at the disk found.

    Attributes:
        jobs: traces to read, oldest first.
        traces: number of traces, unchanged ones included.
        unchanged: number of those that were read before and have not changed.
        unrecognised: files that look like traces but that no source recognises, with their stamps.
        unreadable: folders and files that cannot be read, with the reason.
        problems: sentences about sources that cannot be used.
        noted: states to record for what is not read at all.
    """

    jobs: list[ReadJob] = field(default_factory=list)
    traces: int = 0
    unchanged: int = 0
    unrecognised: list[tuple[Path, str]] = field(default_factory=list)
    unreadable: list[tuple[Path, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    noted: list[TraceState] = field(default_factory=list)


def find_harnesses(harness: str | None = None) -> list[FoundHarness]:
    """List what each harness keeps on this machine; harnesses that have nothing are left out.

    Args:
        harness: only this one.

    Raises:
        FunesError: for an unknown name.
    """
    found = []
    for source in [source_named(harness)] if harness else sources():
        roots = [root for root in source.roots() if root.exists()]
        sizes = [_size(path) for root in roots for path in _files(source, root, [])]
        if sizes:
            found.append(FoundHarness(source.name, roots, len(sizes), sum(sizes)))
    return found


def discover(options: IndexOptions, earlier: Mapping[str, KnownTrace]) -> Found:
    """Find the traces that are new or have changed.

    Args:
        options: what was asked for.
        earlier: state of the traces read before, by path.

    Raises:
        FunesError: for a path that does not exist, a file that is no trace, or an unknown harness.
    """
    wanted = source_named(options.harness) if options.harness else None
    found = Found(problems=[] if options.follows else source_problems())
    if options.traces is not None:
        candidates = _exactly(options.traces, wanted, earlier, found)
    elif options.path is not None:
        candidates = _below(options.path, wanted, earlier, found)
    else:
        candidates = _of_harnesses([wanted] if wanted else sources(), found)
    entries: dict[str, tuple[float, Path, TraceSource]] = {}
    for path, source in candidates:
        key = os.path.realpath(path)
        if key in entries or (options.since is not None and key not in earlier and _changed(path) < options.since):
            continue
        entries[key] = (_modified(path), path, source)
    newest_first = sorted(entries.items(), key=lambda item: (item[1][0], item[0]), reverse=True)
    for key, (_, path, source) in newest_first[: options.limit]:
        found.traces += 1
        job = _job(path, key, source, earlier.get(key), options, found)
        if job is not None:
            found.jobs.append(job)
    # Oldest first: a passage is stored under the session that had it first, and its forks refer to it.
    found.jobs.reverse()
    return found


def still_to_read(jobs: Iterable[ReadJob], earlier: Mapping[str, KnownTrace]) -> list[ReadJob]:
    """Leave out what another process has read meanwhile, and continue where it stopped."""
    left = []
    for job in jobs:
        state = earlier.get(job.key)
        if state is None:
            left.append(replace(job, resume=None))
        elif state.stamp != job.stamp or (job.thinking and not state.thinking):
            left.append(replace(job, resume=_resume(state, job.source, job.thinking)))
    return left


def _job(
    path: Path, key: str, source: TraceSource, state: KnownTrace | None, options: IndexOptions, found: Found
) -> ReadJob | None:
    try:
        stamp = source.stamp(path)
    except OSError as error:
        found.unreadable.append((path, f"it cannot be read: {error.strerror or error}"))
        return None
    resume = None
    if state is not None:
        covered = state.thinking or not options.thinking
        if state.stamp == stamp and state.source == source.name and covered:
            found.unchanged += 1
            return None
        resume = _resume(state, source.name, options.thinking)
    size = _size(path)
    if resume:
        # Of a database the part that changed is read, which is little: nothing to start processes for.
        offset = resume.get("offset")
        size = max(size - offset, 0) if isinstance(offset, int) else 0
    return ReadJob(path, key, source.name, stamp, size, options.thinking, resume, options.limit)


def _resume(state: KnownTrace, source: str, thinking: bool) -> dict[str, object] | None:
    """Where to continue; thinking that was left out before is only found by reading from the start."""
    if state.source != source or (thinking and not state.thinking):
        return None
    return state.resume()


def _of_harnesses(wanted: Iterable[TraceSource], found: Found) -> Iterator[tuple[Path, TraceSource]]:
    for source in wanted:
        for root in source.roots():
            if root.exists():
                for path in _files(source, root, found.unreadable):
                    yield path, source


def _files(source: TraceSource, root: Path, unreadable: list[tuple[Path, str]]) -> Iterator[Path]:
    try:
        yield from source.files(root)
    except OSError as error:
        unreadable.append((root, f"it cannot be read: {error.strerror or error}"))


def _below(
    root: Path, wanted: TraceSource | None, earlier: Mapping[str, KnownTrace], found: Found
) -> Iterator[tuple[Path, TraceSource]]:
    """Yield the traces below a path; a file that was recognised before is not opened to recognise it again."""
    if not root.exists():
        raise FunesError(f"There is nothing at {root}; name a trace file, or a folder that holds some.")
    known = sources()
    by_name = {source.name: source for source in known}
    for path in walk(root, _note(found.unreadable)):
        state = earlier.get(os.path.realpath(path))
        source = by_name.get(state.source) if state is not None else None
        if source is None:
            stamp = _plain_stamp(path)
            if state is not None and not state.source and state.stamp == stamp:
                found.unrecognised.append((path, stamp))
                continue
            try:
                source = detect(path, known)
            except OSError as error:
                found.unreadable.append((path, f"it cannot be read: {error.strerror or error}"))
                continue
            if source is None:
                if path == root:
                    raise FunesError(f"{path} is not a trace that funes can read (see `funes index --help`).")
                found.unrecognised.append((path, stamp))
                continue
        if wanted is None or source.name == wanted.name:
            yield path, source


def _exactly(
    traces: Iterable[Path], wanted: TraceSource | None, earlier: Mapping[str, KnownTrace], found: Found
) -> Iterator[tuple[Path, TraceSource]]:
    """Yield the given files that there are and that have something in them, each with the source that reads it."""
    for path in traces:
        if not _size(path) or not path.is_file():
            continue
        state = earlier.get(os.path.realpath(path))
        if wanted is not None and state is not None and state.source == wanted.name:
            yield path, wanted
            continue
        try:
            source = (detect(path, [wanted]) if wanted else None) or detect(path, sources())
        except OSError as error:
            found.unreadable.append((path, f"it cannot be read: {error.strerror or error}"))
            continue
        if source is None:
            found.unreadable.append((path, "it is not a trace that funes can read"))
        else:
            yield path, source


def _note(unreadable: list[tuple[Path, str]]) -> Callable[[Path, OSError], None]:
    return lambda path, error: unreadable.append((path, f"it cannot be read: {error.strerror or error}"))


def _plain_stamp(path: Path) -> str:
    try:
        stat = path.stat()
    except OSError:
        return ""
    return f"{stat.st_size} {stat.st_mtime_ns} {stat.st_ino}"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _changed(path: Path) -> float:
    """Time of the last change, of a database's log too."""
    return max(_modified(path), _modified(path.with_name(f"{path.name}-wal")))


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
