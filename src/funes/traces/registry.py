"""The harnesses this installation can read: the built-in ones and those of other packages."""

from __future__ import annotations

import importlib
from functools import cache

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
    if (built_in := _built_in(wanted)) is not None:
        return built_in
    for source in sources():
        if wanted in (source.name, source.harness):
            return source
    known = ", ".join(source.name for source in sources())
    raise FunesError(f"There is no trace source named {name!r}; this installation has {known}.")


def forget_sources() -> None:
    """Look for sources anew at the next call (packages were installed or removed)."""
    _load.cache_clear()


@cache
def _built_in(name: str) -> TraceSource | None:
    """The built-in source of that name, without looking for other packages' (a tenth of a second)."""
    try:
        return _instance(BUILT_IN[name]) if name in BUILT_IN else None
    except ImportError:
        return None  # told with the others' problems


@cache
def _load() -> tuple[tuple[TraceSource, ...], tuple[str, ...]]:
    loaded: dict[str, TraceSource] = {}
    problems: list[str] = []
    from importlib.metadata import entry_points

    registered = list(BUILT_IN.items())
    built_in = set(BUILT_IN.values())
    registered += [(point.name, point.value) for point in entry_points(group=GROUP) if point.value not in built_in]
    for name, value in registered:
        try:
            source = _instance(value)
        except Exception as error:
            # Whatever another package's code raises must not take the built-in sources down; it is shown to the user.
            problems.append(f"The trace source {name!r} ({value}) cannot be used: {error}.")
            continue
        if source.name in loaded or source.harness in {other.harness for other in loaded.values()}:
            problems.append(f"The trace source {name!r} ({value}) is left out: its name is taken.")
            continue
        loaded[source.name] = source
    return tuple(loaded.values()), tuple(problems)


def _instance(place: str) -> TraceSource:
    module, _, name = place.partition(":")
    source: TraceSource = getattr(importlib.import_module(module), name)()
    missing = [member for member in _MEMBERS if not hasattr(source, member)]
    if missing:
        raise TypeError(f"it has no {', '.join(missing)}")
    return source
