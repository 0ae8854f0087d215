"""Candidates: every tier gets its places, whatever the others find."""

from __future__ import annotations

from pathlib import Path

import pytest

from funes.memory.filters import Filter
from funes.memory.reader import MemoryReader
from funes.memory.store import MemoryWriter
from funes.search.candidates import find_candidates
from tests.support.small_memory import blocks

KINDS = {
    "prose": ("text", "", "The heron waits."),
    "calls": ("tool_use", "Bash", "heron --wait"),
    "output": ("tool_result", "Bash", "heron: it waited"),
}


@pytest.fixture
def reader(tmp_path: Path) -> MemoryReader:
    """Forty turns with a passage of each tier, which all have the word."""
    with MemoryWriter(tmp_path) as writer:
        for turn in range(40):
            texts = [(kind, tool, f"{text} {turn}") for kind, tool, text in KINDS.values()]
            writer.append(blocks("session-of-herons", turn, texts, "assistant"))
        writer.finish()
    return MemoryReader.open(str(tmp_path))


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ((), {"prose": 20, "calls": 4, "output": 4}),
        (("tool_use", "tool_result"), {"calls": 20, "output": 20}),
        (("tool_result",), {"output": 20}),
    ],
)
def test_each_tier_has_its_places(reader: MemoryReader, types: tuple[str, ...], expected: dict[str, int]) -> None:
    found = find_candidates(reader, "heron", None, Filter(types=types), 20)
    tiers = [candidate.tier for candidate in found]
    assert {tier: tiers.count(tier) for tier in tiers} == expected
    assert tiers == sorted(tiers, key=list(KINDS).index)
    kinds = reader.block_types([candidate.id for candidate in found])
    assert kinds == [KINDS[tier][0] for tier in tiers]
