"""The secrets gate: what is about to be published is scanned once more, whole blocks at a time, with both engines.

It does not trust what the scan at indexing time found: rules get better, and a memory may have been made without the
second engine. A block with a finding is held back with all its pieces and all its copies. When an engine is missing,
misses an invented credential, fails or takes too long, nothing is published at all.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from funes.chunking import Chunk
from funes.commands.get import stitch
from funes.errors import FunesError
from funes.secrets import EngineError, Redactor, self_test

if TYPE_CHECKING:
    from funes.memory.remote.merge import Block, Missing
    from funes.memory.remote.source import Source
    from funes.secrets import Finding

BLOCKS_AT_ONCE = 500
NAMED_COLUMNS = ("workdir", "repo", "branch", "tool_name", "source_path")
ID_COLUMNS = ("session_id", "turn_uuid", "parent_uuid", "origin", "harness", "role")
"""Columns that are published beside the text, and in which a credential may stand: a token in a branch's name, say."""

_PLAIN_ID = re.compile(r"(?:r-)?[0-9a-f-]{0,36}|[a-z_]{0,16}")
"""What most ids look like, of which a memory has too many to scan each: no credential is told by so little."""

Scanned = Callable[[int], None]


@dataclass(slots=True)
class HeldBack:
    """One block, or one title, that is not published.

    Attributes:
        session, turn: where it is; no turn for a title.
        block: position of the block in its turn; -1 for a title.
        type: block type, `session` for a title.
        rules: what was found, by rule; never the value. A column's name stands before what was found in it.
        passages: stored passages that it consists of.
    """

    session: str
    turn: str
    block: int
    type: str
    rules: dict[str, int]
    passages: int = 1


@dataclass(slots=True)
class Verdict:
    """What the gate says about rows.

    Attributes:
        held: blocks and titles that must not be published.
        places: places of their rows in the catalogue.
        blocks: number of blocks that were scanned.
    """

    held: list[HeldBack] = field(default_factory=list)
    places: set[int] = field(default_factory=set)
    blocks: int = 0


class Gate:
    """Scans blocks, each once.

    Args:
        source: the local memory.

    Raises:
        FunesError: an engine is missing, or does not find what it must; nothing may be published then.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self._redactor = Redactor(require_both=True)
        if faults := self_test():
            raise FunesError(f"Nothing is published, because the secret scanners do not work: {faults[0]}")
        self._clean: set[Block] = set()
        self._dirty: dict[Block, tuple[HeldBack, list[int]]] = {}
        self._titles: dict[int, HeldBack | None] = {}
        self._values: dict[tuple[str, str], Counter[str]] = {}

    def verdict(self, missing: Missing, scanned: Scanned | None = None) -> Verdict:
        """Scan what is missing elsewhere and was not scanned yet.

        Args:
            missing: what is about to be published.
            scanned: told how many more blocks and titles have been looked at.

        Raises:
            FunesError: an engine failed or took too long; nothing may be published then.
        """
        import numpy as np

        catalogue = self.source.catalogue
        blocks = catalogue.blocks_of(np.concatenate([missing.rows, missing.vectors]))
        new = [block for block in blocks if block not in self._clean and block not in self._dirty]
        try:
            for start in range(0, len(new), BLOCKS_AT_ONCE):
                part = {block: blocks[block] for block in new[start : start + BLOCKS_AT_ONCE]}
                self._scan_blocks(part)
                if scanned:
                    scanned(len(part))
            self._scan_titles([place for place in missing.titles.tolist() if place not in self._titles])
        except EngineError as error:
            raise FunesError(
                f"Nothing is published, because a secret scanner failed ({error.reason}); run the command again."
            ) from error
        verdict = Verdict(blocks=len(blocks))
        for block in blocks:
            if found := self._dirty.get(block):
                verdict.held.append(found[0])
                verdict.places.update(found[1])
        for place in missing.titles.tolist():
            if title := self._titles.get(place):
                verdict.held.append(title)
                verdict.places.add(place)
        return verdict

    def _scan_blocks(self, blocks: dict[Block, list[int]]) -> None:
        places = [place for rows in blocks.values() for place in rows]
        texts = iter(self.source.texts(places))
        about = iter(self._about(places))
        for block, rows in blocks.items():
            pieces = [_piece(*next(texts)) for _ in rows]
            kinds, named = zip(*(next(about) for _ in rows), strict=True)
            rules = _count(self._redactor.scan(stitch(pieces)))
            for counts in named:
                rules |= counts
            if not rules:
                self._clean.add(block)
                continue
            held = HeldBack(self._shown(block[0]), self._shown(block[1]), block[2], kinds[0], dict(rules), len(rows))
            self._dirty[block] = (held, rows)

    def _scan_titles(self, places: Sequence[int]) -> None:
        if not places:
            return
        titles = self.source.texts(places)
        for place, (title, _), (kind, named) in zip(places, titles, self._about(places), strict=True):
            rules = _count(self._redactor.scan(title)) | named
            session = self._shown(self.source.catalogue.sessions[place])
            self._titles[place] = HeldBack(session, "", -1, kind, dict(rules)) if rules else None

    def _about(self, places: Sequence[int]) -> list[tuple[str, Counter[str]]]:
        """Block type of rows, and what was found in their other columns."""
        names = (*NAMED_COLUMNS, *ID_COLUMNS)
        rows = self.source.columns(places, ["block_type", *names])
        columns = [rows.column(name).to_pylist() for name in names]
        kinds: list[str] = rows.column("block_type").to_pylist()
        found = []
        for kind, *values in zip(kinds, *columns, strict=True):
            rules: Counter[str] = Counter()
            for name, value in zip(names, values, strict=True):
                rules |= self._value(name, value or "")
            found.append((kind, rules))
        return found

    def _shown(self, identifier: str) -> str:
        """An id as it may be shown and noted: without the credential that stands in it."""
        return self._redactor.redact(identifier).text or "[REDACTED]"

    def _value(self, name: str, value: str) -> Counter[str]:
        """Findings in a value of a column, each value scanned once."""
        if name in ID_COLUMNS and _PLAIN_ID.fullmatch(value):
            return Counter()
        key = (name, value)
        if key not in self._values:
            found = _count(self._redactor.scan(value)) if value else Counter()
            self._values[key] = Counter({f"{name}: {rule}": count for rule, count in found.items()})
        return self._values[key]


def _count(findings: Sequence[Finding]) -> Counter[str]:
    return Counter(finding.rule for finding in findings)


def _piece(text: str, offset: int) -> Chunk:
    """A split of a block, with no more than stitching needs."""
    return Chunk("", text, "", "", "", "", "", "", 0, None, "", "", "", "", 0, 0, offset, "", "", "")
