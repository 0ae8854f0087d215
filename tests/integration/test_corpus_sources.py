"""Every file of the shared corpus, through detection and its parser: what is in it, and that nothing is raised."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from funes.traces.detect import detect, walk
from funes.traces.model import ReadReport, Session, Turn
from funes.traces.registry import sources
from tests.support.corpus import shared_corpus

pytestmark = pytest.mark.real_corpus

ROLES = {"user", "assistant", "tool", "system"}
TYPES = {"text", "thinking", "tool_use", "tool_result", "summary"}


@dataclass(frozen=True)
class Expected:
    """What is in a file.

    Attributes:
        source: which source recognises it.
        turns: number of turns of each of its sessions, in order.
        damaged: number of faults reported.
        failed: the reason it cannot be read at all.
        torn: whether its last line is unfinished.
    """

    source: str
    turns: list[int]
    damaged: int = 0
    failed: str = ""
    torn: bool = False


# Looked through by eye, and compared with the records of the files: every text of a message that is not here is the
# harness's (context, reminders, client commands, warm-up exchanges) or the preview of an output that is here in full.
EXPECTED = {
    "claude/broken": {
        "bom.jsonl": Expected("claude", [20]),
        "crlf.jsonl": Expected("claude", [20]),
        "deep_nesting.jsonl": Expected("claude", [], damaged=1),
        "invalid_utf8.jsonl": Expected("claude", [20], damaged=1),
        "no_newline_single.jsonl": Expected("claude", []),
        "nul_block.jsonl": Expected("claude", [20], damaged=1),
        "torn_last_line.jsonl": Expected("claude", [20], torn=True),
        "u2028_nel_ff.jsonl": Expected("claude", [20]),
    },
    "claude/real-1.0.62/projects/-home-dev-work-cc": {
        "3c4aad0b-a632-4007-a682-aead93b57c9d.jsonl": Expected("claude", [13]),
        "ba99b349-c2d4-4e27-8df6-d6beccc0d99c.jsonl": Expected("claude", [5, 5]),
        "bbc40033-9adf-4ae1-938e-6d7f953938ac.jsonl": Expected("claude", [15]),
        "c92cc7e0-8d0f-4589-80fe-37e47863ac41.jsonl": Expected("claude", [25]),
        "e5b91b4d-227b-4632-b14a-4660d2882354.jsonl": Expected("claude", [3]),
    },
    "claude/real-2.0.22/projects/-home-dev-work-cc": {
        "047e0c07-5265-4e59-b1bb-2777cc9a4aff.jsonl": Expected("claude", [5, 5]),
        "15d1a524-168c-40f5-8069-07e563c1bfbd.jsonl": Expected("claude", [3]),
        "758990fa-d6c2-4a20-8cb0-95b678ea0298.jsonl": Expected("claude", [20]),
    },
    "claude/real-2.1.110/projects/-home-dev-work-cc/20ae1ece-ed53-4a41-9531-b9720a0cde76/subagents": {
        "agent-af99b1f3e70f69bd1.jsonl": Expected("claude", [5]),
    },
    "claude/real-2.1.110/projects/-home-dev-work-cc": {
        "20ae1ece-ed53-4a41-9531-b9720a0cde76.jsonl": Expected("claude", [5]),
        "55c1b8d1-01aa-4edc-b00a-516c9bec2952.jsonl": Expected("claude", [20]),
        "6518e8a1-925e-4bff-831f-386253e12e81.jsonl": Expected("claude", [3]),
    },
    "claude/real-2.1.332/projects/-home-dev-work-cc": {
        "528a256b-be90-4c99-97d4-7507ad085055.jsonl": Expected("claude", [2]),
        "78edfe2c-d684-4b65-97d1-f26cccc62aea.jsonl": Expected("claude", [21]),
        "813c9ef3-5c26-4b5a-9d9d-32717a4597a3.jsonl": Expected("claude", [3]),
        "95d93956-ca11-481f-90e6-efb3c7f3e276.jsonl": Expected("claude", [7]),
        "c4fe5562-7014-44d4-8c87-e2b3126c9ed2.jsonl": Expected("claude", [22]),
        "ed2fe2fe-26b5-4b51-8496-fa4998a485d5.jsonl": Expected("claude", [6]),
    },
    "claude/real-2.1.332/projects/-home-dev-work-cc/95d93956-ca11-481f-90e6-efb3c7f3e276/subagents": {
        "agent-a0c4e34aaa580e507.jsonl": Expected("claude", [5]),
    },
    "claude/real-2.1.332-TUI/projects/-home-dev-work-cc": {
        "08d62f8b-2066-4326-96a8-0d40ba41beb1.jsonl": Expected("claude", [11]),
    },
    "codex/old": {
        "rollout-2025-05-07-5973b6c0-94b8-487b-a530-2aeb6098ae0e.json": Expected("codex", [4]),
    },
    "codex/real-0.104.0/sessions/2026/11/30": {
        "rollout-2026-11-30T04-34-57-01a22abc-0e7c-7520-ab2e-f4b120215144.jsonl": Expected("codex", [17]),
        "rollout-2026-11-30T04-34-58-01a22abc-1326-7f41-a1d9-d89531ca1b44.jsonl": Expected("codex", [9]),
    },
    "codex/real-0.171.0/archived_sessions": {
        "rollout-2026-11-30T04-29-24-01a22ab6-fc6a-7823-bed6-1aeabf7489e0.jsonl": Expected("codex", [2]),
    },
    "codex/real-0.171.0/sessions/2026/11/30": {
        "rollout-2026-11-30T04-26-29-01a22ab4-4f76-7823-90b4-2cf2062347ab.jsonl": Expected("codex", [17]),
        "rollout-2026-11-30T04-27-44-01a22ab5-728a-77b2-b868-ac6582554252.jsonl": Expected("codex", [3]),
        "rollout-2026-11-30T04-27-44-01a22ab5-73e7-72a2-a720-32b7e8d70bb9.jsonl": Expected("codex", [2]),
        "rollout-2026-11-30T04-32-02-01a22ab9-63f1-7da1-8c5c-692b5e6b5fbe.jsonl": Expected("codex", [2]),
        "rollout-2026-11-30T04-33-19-01a22aba-8eb8-73e3-9ca5-d4d6e1534077.jsonl": Expected("codex", [10]),
    },
    "codex/real-0.171.0-compressed/archived_sessions": {
        "rollout-2026-11-30T04-29-24-01a22ab6-fc6a-7823-bed6-1aeabf7489e0.jsonl.zst": Expected("codex", [2]),
    },
    "codex/real-0.171.0-compressed/sessions/2026/11/30": {
        "rollout-2026-11-30T04-35-03-01a22abc-2888-7640-b38f-ea232c98fd47.jsonl.zst": Expected("codex", [17]),
        "rollout-2026-11-30T04-35-05-01a22abc-2e18-7231-add9-c551ecfde48f.jsonl.zst": Expected("codex", [9]),
    },
    "codex/real-0.20.0/sessions/2026/11/30": {
        "rollout-2026-11-30T04-34-15-18255e02-bab2-45c8-8a76-2fb5e56adfe0.jsonl": Expected("codex", [8]),
        "rollout-2026-11-30T04-34-15-88326557-6173-4841-843b-469189115807.jsonl": Expected("codex", [15]),
    },
    "codex/real-0.44.0/sessions/2026/11/30": {
        "rollout-2026-11-30T04-34-15-01a22abb-6d33-7d11-94f3-b65eb364c9f7.jsonl": Expected("codex", [17]),
        "rollout-2026-11-30T04-34-17-01a22abb-721b-77a0-aaee-5cb42bfb4251.jsonl": Expected("codex", [22]),
    },
    "codex/zst/sessions/2026/11/20": {
        "rollout-2026-11-30T04-35-03-01a22abc-2888-7640-b38f-ea232c98fd47.jsonl.zst": Expected("codex", [17]),
    },
    "codex/zst/sessions/2026/11/21": {
        "rollout-2026-11-30T04-35-03-01a22abc-2888-7640-b38f-ea232c98fd47.jsonl": Expected("codex", [17]),
    },
    "hermes/basic": {
        "state.db": Expected("hermes", [7, 7, 4]),
    },
    "hermes/compaction": {
        "state.db": Expected("hermes", [11, 7, 2, 2, 2]),
    },
    "hermes/corrupt": {
        "state.db": Expected("hermes", [], failed="the database is damaged (file is not a database)"),
    },
    "hermes/empty": {
        "state.db": Expected("hermes", [], failed="it is empty"),
    },
    "hermes/export": {
        "sessions.jsonl": Expected("hermes", [4, 7, 7]),
    },
    "hermes/live_wal": {
        "state.db": Expected("hermes", [7]),
    },
    "hf": {
        "agent_traces_claude.parquet": Expected("parquet", [5, 5, 20, 3, 13, 5, 5, 15, 25, 3]),
        "agent_traces_codex.parquet": Expected("parquet", [17, 9, 17, 3]),
    },
    "pi/real-1.6.0/--home-dev-work-pi--": {
        "2026-11-30T04-38-58-075Z_01a22abf-bb1b-7217-ab5e-09bc675b96bb.jsonl": Expected("pi", [9]),
        "2026-11-30T04-39-00-171Z_01a22abf-c34a-754b-a6e4-5f7a79d5be0e.jsonl": Expected("pi", [8]),
        "2026-11-30T04-40-00-277Z_01a22ac0-ae15-72c4-a7da-3545a160dc17.jsonl": Expected("pi", [11]),
        "2026-11-30T04-42-40-559Z_01a22ac3-202f-7384-8fe5-f4dc3598d331.jsonl": Expected("pi", [11]),
    },
}
# Nothing that a parser knows: no record at all, or none that is complete.
UNKNOWN = {
    "claude/broken/empty.jsonl",
    "claude/real-2.0.22/projects/-home-dev-work-cc/09b28338-40dc-4a43-a778-3f8704599fb0.jsonl",
    "codex/zst/sessions/2026/11/21/rollout-2026-11-30T04-35-03-01a22abc-2888-7640-b38f-ea232c98fd47.jsonl.zst",
}
FILES = {f"{folder}/{name}": expected for folder, files in EXPECTED.items() for name, expected in files.items()}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the corpus: reading a live database touches its -shm file."""
    return _copy(tmp_path_factory.mktemp("corpus") / "traces")


def _copy(target: Path) -> Path:
    shutil.copytree(shared_corpus(), target, copy_function=shutil.copyfile)
    return target


def read(path: Path) -> tuple[str, list[tuple[Session, Turn]], ReadReport]:
    source = detect(path, sources())
    assert source is not None
    report = ReadReport()
    return source.name, list(source.read(path, report)), report


@pytest.mark.parametrize("name", FILES)
def test_a_file_gives_its_sessions(corpus: Path, name: str) -> None:
    if not (corpus / name).exists():
        pytest.skip("not in this version of the corpus")
    source, found, report = read(corpus / name)
    counts = Counter(session.id for session, _ in found)
    got = Expected(source, list(counts.values()), len(report.damaged), report.failed, report.torn_tail)
    assert got == FILES[name]
    assert report.turns == len(found)


@pytest.mark.parametrize("name", FILES)
def test_sessions_and_turns_are_well_formed(corpus: Path, name: str) -> None:
    if not (corpus / name).exists():
        pytest.skip("not in this version of the corpus")
    path = corpus / name
    _, found, _ = read(path)
    for session, turn in found:
        assert session.id
        assert session.harness in {"claude_code", "codex", "pi", "hermes"}
        assert session.source_path == str(path)
        assert (session.parent_id != "") >= (session.kind == "subagent")
        assert turn.role in ROLES
        assert turn.blocks
        for block in turn.blocks:
            assert block.type in TYPES
            assert block.text.strip() or block.type == "tool_use"
            assert ";base64," not in block.text
            block.text.encode()
        assert turn.timestamp is None or turn.timestamp.tzinfo is not None
    names = Counter((session.id, turn.uuid) for session, turn in found)
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("name", FILES)
def test_a_second_read_gives_the_same(corpus: Path, name: str) -> None:
    if not (corpus / name).exists():
        pytest.skip("not in this version of the corpus")
    first, second = read(corpus / name)[1], read(corpus / name)[1]
    assert first == second


def test_every_file_of_the_corpus_is_looked_at(corpus: Path) -> None:
    """Files that are not in the table are unknown to all sources, or no traces by their names."""
    everything = {path.relative_to(corpus).as_posix() for path in corpus.rglob("*") if path.is_file()}
    known = set(FILES) | UNKNOWN
    others = everything - known
    visited = {path.relative_to(corpus).as_posix() for path in walk(corpus)}
    assert {name for name in others & visited if detect(corpus / name, sources()) is not None} == set()
    for name in UNKNOWN & everything:
        assert detect(corpus / name, sources()) is None


@cache
def _passages(path: Path) -> frozenset[tuple[str, str]]:
    return frozenset((block.anchor, block.text) for _, turn in read(path)[1] for block in turn.blocks if block.anchor)


CLAUDE_ORIGINAL = "claude/real-2.1.110/projects/-home-dev-work-cc/20ae1ece-ed53-4a41-9531-b9720a0cde76.jsonl"
CODEX_ORIGINAL = (
    "codex/real-0.171.0/sessions/2026/11/30/rollout-2026-11-30T04-26-29-01a22ab4-4f76-7823-90b4-2cf2062347ab.jsonl"
)


@pytest.mark.parametrize(
    ("dataset", "original"),
    [("hf/agent_traces_claude.parquet", CLAUDE_ORIGINAL), ("hf/agent_traces_codex.parquet", CODEX_ORIGINAL)],
)
def test_a_dataset_holds_the_passages_of_its_originals(corpus: Path, dataset: str, original: str) -> None:
    """The copies meet, so that a published session and the one on disk are stored once (but for anonymised paths)."""
    if not (corpus / dataset).exists() or not (corpus / original).exists():
        pytest.skip("not in this version of the corpus")
    mine = {anchor for anchor, _ in _passages(corpus / original)}
    theirs = {anchor for anchor, _ in _passages(corpus / dataset)}
    assert mine
    assert mine <= theirs
