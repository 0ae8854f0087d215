"""The traces that are indexed: the team sessions where they lie beside the checkout, else the examples repeated."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from measure import ROOT

ARCHIVE = ROOT.parent / "shared" / "corpus" / "team-sessions.tar.xz"
EXAMPLES = ROOT / "examples" / "sessions"
FULL_BYTES = 190_000_000
QUICK_BYTES = 12_000_000

_UUID = re.compile(r"\b([0-9a-f]{8})(?=-[0-9a-f]{4}-)")
_ANCHOR = re.compile(r"\b(?:msg|toolu|call|fc|rs)_\w+")


@dataclass(frozen=True, slots=True)
class Corpus:
    """A folder of traces.

    Attributes:
        folder: where they are.
        name: what they are, for the conditions.
        files: number of trace files.
        size: their bytes.
    """

    folder: Path
    name: str
    files: int
    size: int

    def describe(self) -> str:
        """One line for people."""
        return f"{self.name}: {self.files:,} files, {self.size / 1e6:,.0f} MB"


def find(folder: Path | None, work: Path, quick: bool) -> Corpus:
    """Choose the corpus, and unpack or make it when it is not there yet.

    Args:
        folder: what the caller asked for, None for the default.
        work: where to unpack or make it.
        quick: whether a made corpus is small.
    """
    if folder is not None:
        return _described(folder, f"traces in {folder.name}")
    if ARCHIVE.exists():
        folder = work / "team-sessions"
        if not folder.exists():
            unfinished = work / "team-sessions.part"
            with tarfile.open(ARCHIVE) as archive:
                archive.extractall(unfinished, filter="data")
            unfinished.rename(folder)
        return _described(folder, "team sessions")
    wanted = QUICK_BYTES if quick else FULL_BYTES
    folder = work / f"examples-{wanted // 1_000_000}"
    if not folder.exists():
        _repeat_examples(folder, wanted)
    return _described(folder, "example sessions, repeated")


def sample(corpus: Corpus, work: Path, size: int) -> Corpus:
    """A part of a corpus: every n-th file, linked into a folder of its own, about `size` bytes in all."""
    folder = work / f"sample-{size // 1_000_000}"
    if not folder.exists():
        files = list(_traces(corpus.folder))
        step = max(1, corpus.size // size)
        for path in files[step // 2 :: step]:
            target = folder / path.relative_to(corpus.folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(path.resolve())
    return _described(folder, f"part of the {corpus.name}")


def _described(folder: Path, name: str) -> Corpus:
    sizes = [path.stat().st_size for path in _traces(folder)]
    return Corpus(folder, name, len(sizes), sum(sizes))


def _traces(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def _repeat_examples(folder: Path, wanted: int) -> None:
    """Write copies of the example sessions under other ids until there are `wanted` bytes of them."""
    files = [path for path in sorted(EXAMPLES.rglob("*.jsonl")) if "subagents" not in path.parts]
    made = number = 0
    while made < wanted:
        for path in files:
            text = renamed(path.read_text(encoding="utf-8"), number)
            target = folder / f"{number:03d}" / renamed(str(path.relative_to(EXAMPLES)), number)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
            made += len(text.encode())
        number += 1


def renamed(text: str, number: int) -> str:
    """Give every id in a trace another value, the same in all the files of one copy.

    Args:
        text: of a trace, or its name.
        number: of the copy; 0 changes nothing.
    """

    def uuid(match: re.Match[str]) -> str:
        return f"{(int(match[1], 16) + 7919 * number) & 0xFFFFFFFF:08x}"

    return _ANCHOR.sub(lambda match: f"{match[0]}r{number}" if number else match[0], _UUID.sub(uuid, text))
