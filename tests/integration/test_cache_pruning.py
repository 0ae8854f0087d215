"""Old versions in the Hugging Face cache: what nobody reads goes, and nothing else."""

from __future__ import annotations

import os
import time

from funes.memory.reader import MemoryReader
from funes.memory.remote.cache import RepoCache
from funes.memory.remote.pruning import KEPT, UNUSED_SECONDS
from tests.support.hub_memory import REPO

VERSIONS = KEPT + 3


def pushed(machine, run, number):
    machine.remember(f"s{number}", [f"turn {number} about the parser"])
    assert run("push", REPO, "--yes")[0] == 0


def age(cache):
    """Make all versions look as if nobody had opened them for long; the latest are told apart still."""
    for number, note in enumerate(sorted(cache.notes(), key=lambda path: path.stat().st_mtime_ns)):
        os.utime(note, (0, time.time() - 2 * UNUSED_SECONDS + number))


def contents(cache):
    return {path.name for path in (cache.folder / "blobs").iterdir()}


def needed(cache):
    links = [path for path in (cache.folder / "snapshots").rglob("*") if path.is_symlink()]
    return {os.path.basename(os.path.realpath(link)) for link in links}


def test_versions_that_nobody_has_opened_for_a_week_go(hub, machines, run):
    for number in range(VERSIONS):
        pushed(machines[0], run, number)
    cache = RepoCache(REPO)
    assert len(cache.notes()) == VERSIONS
    first = min(cache.notes(), key=lambda path: path.stat().st_mtime_ns).stem
    age(cache)
    before = contents(cache)
    pushed(machines[0], run, VERSIONS)
    assert len(cache.notes()) == KEPT
    assert not cache.snapshot(first).exists()
    assert contents(cache) < before | contents(cache)
    assert contents(cache) == needed(cache)
    assert MemoryReader.open(REPO).statistics().passages == VERSIONS + 1
    assert MemoryReader.open(f"hf://datasets/{REPO}@{first}").statistics().passages == 1  # fetched again


def test_what_is_in_use_or_not_ours_stays(hub, machines, run):
    for number in range(VERSIONS):
        pushed(machines[0], run, number)
    cache = RepoCache(REPO)
    first, second, third = (path.stem for path in sorted(cache.notes(), key=lambda path: path.stat().st_mtime_ns)[:3])
    age(cache)
    (cache.snapshot(first) / "notes.txt").write_text("of another program")
    (cache.folder / "refs" / "v1").write_text(second)
    cache.use(third)
    whole = {one: set(cache.snapshot(one).rglob("*")) for one in (first, second, third)}
    pushed(machines[0], run, VERSIONS)
    assert {note.stem for note in cache.notes()} >= {first, second, third}
    for one, files in whole.items():
        assert set(cache.snapshot(one).rglob("*")) == files
        assert all(path.exists() for path in files)
