"""The harnesses this installation can read: the built-in ones and those of other packages."""

from __future__ import annotations

import importlib
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from funes.errors import FunesError
from funes.traces.model import TraceSource

GROUP = "funes.sources"

# Also entry points of this distribution; listed so that a source tree without metadata works the same.
BUILT_IN = {
    "claude": "funes.traces.claude:ClaudeSource",
    "codex": "funes.traces.codex:CodexSource",
    "pi": "funes.traces.pi:PiSource",
    "hermes": "funes.traces.hermes:HermesSource",
    "parquet": "funes.traces.parquet:ParquetSource",
}
_MEMBERS = ("name", "harness", "roots", "files", "matches", "stamp", "read")


def sources() -> list[TraceSource]:
    """Return one instance of every usable source, the built-in ones first."""
    return list(_load()[0])


def source_problems() -> list[str]:
    """Return one sentence for each source that is registered but cannot be used."""
    return list(_load()[1])


def source_named(name: str) -> TraceSource:
    """Find the source with that command-line name or stored facet (`claude` or `claude_code`).

    Raises:
        FunesError: there is none.
    """
    wanted = name.strip().lower().replace("-", "_")
    for source in sources():
        if wanted in (source.name, source.harness):
            return source
    known = ", ".join(source.name for source in sources())
    raise FunesError(f"There is no trace source named {name!r}; this installation has {known}.")


def forget_sources() -> None:
    """Look for sources anew at the next call (packages were installed or removed)."""
    _load.cache_clear()


@cache
def _load() -> tuple[tuple[TraceSource, ...], tuple[str, ...]]:
    loaded: dict[str, TraceSource] = {}
    problems: list[str] = []
    registered = [EntryPoint(name, value, GROUP) for name, value in BUILT_IN.items()]
    built_in = set(BUILT_IN.values())
    registered += [point for point in entry_points(group=GROUP) if point.value not in built_in]
    for point in registered:
        try:
            source = _instance(point)
        except Exception as error:
            # Whatever another package's code raises must not take the built-in sources down; it is shown to the user.
            problems.append(f"The trace source {point.name!r} ({point.value}) cannot be used: {error}.")
            continue
        if source.name in loaded or source.harness in {other.harness for other in loaded.values()}:
            problems.append(f"The trace source {point.name!r} ({point.value}) is left out: its name is taken.")
            continue
        loaded[source.name] = source
    return tuple(loaded.values()), tuple(problems)


def _instance(point: EntryPoint) -> TraceSource:
    module, _, name = point.value.partition(":")
    source: TraceSource = getattr(importlib.import_module(module), name)()
    missing = [member for member in _MEMBERS if not hasattr(source, member)]
    if missing:
        raise TypeError(f"it has no {', '.join(missing)}")
    return source
