from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from funes.errors import FunesError
from funes.traces import registry
from funes.traces.claude import ClaudeSource
from funes.traces.detect import detect, find_traces, is_session_name, may_be_trace, read_head, walk
from tests.support.claude import record
from tests.support.corpus import shared_corpus

LINE = b'{"type":"user"}\n'


def put(path: Path, content: bytes = LINE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def found(root: Path) -> list[str]:
    return [str(path.relative_to(root)) for path in walk(root)]


# Walking


def test_what_may_be_a_session(tmp_path: Path):
    wanted = ["a.jsonl", "b.json", "c/d.parquet", "c/state.db", "e.jsonl.zst", "x/.hidden/y.jsonl"]
    others = [
        "README.md",
        "tool.py",
        "x.txt",
        "history.jsonl",
        "session_index.jsonl",
        "w/journal.jsonl",
        "agent-1.meta.json",
        "sessions-index.json",
        ".ralph/x.jsonl",
        "s.checkpoint.1.jsonl",
        "request_dump_1.json",
        "s/tool-results/x.json",
        ".git/x.json",
        "node_modules/x/package.json",
        "data/a.jsonl.bak",
    ]
    for name in wanted + others:
        put(tmp_path / name)
    assert sorted(found(tmp_path)) == sorted(wanted)
    assert found(tmp_path) == found(tmp_path)
    assert not is_session_name(Path("history.jsonl"))


def test_a_single_file_is_taken_whatever_its_name(tmp_path: Path):
    path = put(tmp_path / "session.log")
    assert list(walk(path)) == [path]
    assert list(walk(tmp_path / "gone")) == []


def test_links_are_followed_once(tmp_path: Path):
    put(tmp_path / "real" / "a.jsonl")
    (tmp_path / "real" / "loop").symlink_to(tmp_path)
    (tmp_path / "other").symlink_to(tmp_path / "real")
    (tmp_path / "b.jsonl").symlink_to(tmp_path / "real" / "a.jsonl")
    os.link(tmp_path / "real" / "a.jsonl", tmp_path / "c.jsonl")
    (tmp_path / "dangling.jsonl").symlink_to(tmp_path / "gone")
    (tmp_path / "dangling").symlink_to(tmp_path / "gone")
    assert len(found(tmp_path)) == 1
    elsewhere = tmp_path / "elsewhere"
    put(elsewhere / "d.jsonl")
    root = tmp_path / "root"
    root.symlink_to(elsewhere)
    assert found(root) == ["d.jsonl"]


def test_the_plain_file_wins_over_its_compressed_twin(tmp_path: Path):
    rollout = "rollout-2026-01-02T03-04-05-01a22abc-2888-7640-b38f-ea232c98fd47.jsonl"
    put(tmp_path / "2026/01/02" / f"{rollout}.zst")
    put(tmp_path / "2026/01/02" / rollout)
    put(tmp_path / "2026/01/01" / f"{rollout}.zst")
    put(tmp_path / "a" / "0000.jsonl")
    put(tmp_path / "b" / "0000.jsonl.zst")
    put(tmp_path / "a" / "0000.jsonl.zst")
    assert sorted(found(tmp_path)) == [f"2026/01/02/{rollout}", "a/0000.jsonl", "b/0000.jsonl.zst"]


def test_folders_that_cannot_be_read_are_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    put(tmp_path / "locked" / "a.jsonl")
    put(tmp_path / "open" / "b.jsonl")
    real = os.scandir

    def refuse(folder: Any) -> Iterator[os.DirEntry[str]]:
        if Path(folder).name == "locked":
            raise PermissionError(13, "Permission denied")
        return real(folder)

    monkeypatch.setattr(os, "scandir", refuse)
    reported: Counter[str] = Counter()
    paths = list(walk(tmp_path, lambda path, error: reported.update([f"{path.name}: {error.strerror}"])))
    assert [path.name for path in paths] == ["b.jsonl"]
    assert reported == {"locked: Permission denied": 1}


# Recognising


def test_the_head_of_a_file(tmp_path: Path):
    head = read_head(put(tmp_path / "a.jsonl", LINE * 80))
    assert len(head.records) == 50
    assert head.start == LINE * 80
    squeezed = zstandard.ZstdCompressor().compress(LINE * 3)
    head = read_head(put(tmp_path / "a.jsonl.zst", squeezed))
    assert (len(head.records), head.start) == (3, LINE * 3)
    head = read_head(put(tmp_path / "b.json", json.dumps({"session": {"id": 1}, "items": []}, indent=2).encode()))
    assert head.records == [{"session": {"id": 1}, "items": []}]
    long = b'{"type":"user","x":"' + b"y" * 400_000 + b'"}\n'
    head = read_head(put(tmp_path / "c.jsonl", long + LINE))
    assert [record["type"] for record in head.records] == ["user"]
    assert len(head.start) == 256 * 1024


@pytest.mark.parametrize("content", [b"", b"\0" * 5000, b"\xff\xfe", b"{", b"PAR1", b"SQLite format 3\0"])
def test_heads_of_files_that_hold_nothing(tmp_path: Path, content: bytes):
    head = read_head(put(tmp_path / "a.jsonl", content))
    assert head.records == []
    assert not ClaudeSource().matches(head)


def test_compressed_data_that_is_none(tmp_path: Path):
    path = put(tmp_path / "a.jsonl", b"\x28\xb5\x2f\xfd" + b"\xff" * 50)
    with pytest.raises(OSError, match="compressed data"):
        read_head(path)
    unreadable: list[Path] = []
    assert list(find_traces(tmp_path, [ClaudeSource()], lambda path, error: unreadable.append(path))) == []
    assert unreadable == [path]


def test_a_long_file_without_a_record_is_not_read_to_its_end(tmp_path: Path):
    path = put(tmp_path / "a.jsonl", b"x\n" * 2_000_000)
    assert read_head(path).records == []


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_tables_are_read_without_a_trace(tmp_path: Path, mode: str):
    path = tmp_path / "state.db"
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA journal_mode={mode}")
    connection.execute("CREATE TABLE sessions (id)")
    connection.execute("CREATE TABLE IF NOT EXISTS messages (id)")
    connection.execute('CREATE VIRTUAL TABLE "messages_fts" USING fts5(x)')
    connection.commit()
    before = sorted(os.listdir(tmp_path))
    assert {"sessions", "messages", "messages_fts"} <= read_head(path).tables
    assert sorted(os.listdir(tmp_path)) == before
    connection.close()


def test_claude_is_told_from_others(tmp_path: Path):
    def is_claude(*records: Any) -> bool:
        content = b"".join(json.dumps(item).encode() + b"\n" for item in records)
        return ClaudeSource().matches(read_head(put(tmp_path / "x.jsonl", content)))

    assert is_claude(record("user", "u1", "x"))
    assert is_claude({"type": "summary", "summary": "x", "leafUuid": "y"})
    assert is_claude({"type": "queue-operation", "operation": "enqueue", "sessionId": "s", "timestamp": "t"})
    assert is_claude({"type": "file-history-snapshot", "messageId": "m", "snapshot": {}})
    assert is_claude({"type": "something-new"}, record("assistant", "a1", []))
    assert not is_claude({"type": "session", "version": 3, "id": "x", "timestamp": "t", "cwd": "/"})
    assert not is_claude({"timestamp": "t", "type": "session_meta", "payload": {"id": "x"}})
    assert not is_claude({"id": "x", "timestamp": "t", "instructions": None, "git": {}})
    assert not is_claude({"type": "user.message", "data": {}, "id": "x", "parentId": None, "timestamp": "t"})
    assert not is_claude({"role": "user", "message": {"content": []}})
    assert not is_claude({"sessionId": "x", "startTime": "t"}, {"id": "1", "type": "user", "content": "x"})
    assert not is_claude({"role": "session_meta", "tools": []}, {"role": "user", "content": "x"})
    assert not is_claude({"type": ["user"]}, {"type": {"a": 1}})


# The registry


def test_built_in_sources_are_there_without_metadata():
    names = [source.name for source in registry.sources()]
    assert names[:1] == ["claude"]
    assert {"claude", "codex", "pi", "hermes"} <= set(names)
    assert registry.source_problems() == []
    assert registry.source_named("claude").harness == registry.source_named("claude_code").harness == "claude_code"
    assert registry.source_named(" Claude-Code ").name == "claude"
    with pytest.raises(FunesError, match="no trace source named 'emacs'"):
        registry.source_named("emacs")


@pytest.mark.real_corpus
def test_every_real_trace_is_recognised_as_what_it_is():
    root = shared_corpus()
    problems: list[str] = []
    seen: Counter[tuple[str, str]] = Counter()
    for path, source in find_traces(root, registry.sources(), lambda path, error: problems.append(f"{path}: {error}")):
        seen[path.relative_to(root).parts[0], source.name if source else ""] += 1
    assert problems == []
    wrong = {pair: number for pair, number in seen.items() if pair[1] not in ("", pair[0]) and pair[0] != "hf"}
    assert wrong == {}
    assert seen["claude", "claude"] >= 28
    assert seen["codex", "codex"] >= 15
    assert seen["pi", "pi"] == 4
    # Two empty files.
    assert {pair: number for pair, number in seen.items() if not pair[1]} == {("claude", ""): 2}


def test_a_parquet_file_that_holds_raw_traces_is_no_trace_of_theirs(tmp_path):
    """Uncompressed, the text of the traces stands in the file as it is."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    record = '{"type": "user", "uuid": "u1", "sessionId": "s1", "message": {"role": "user", "content": "hi"}}'
    path = tmp_path / "train.parquet"
    pq.write_table(pa.table({"trace": [record], "session_id": ["s1"]}), path, compression="none", use_dictionary=False)
    source = detect(path, registry.sources())
    assert source is not None
    assert source.name == "parquet"


@pytest.mark.parametrize(
    ("path", "may_be"),
    [
        ("data/train-00000-of-00002.parquet", True),
        ("a/b/session.jsonl", True),
        ("rollout.jsonl.zst", True),
        ("state.db", True),
        ("README.md", False),
        ("a/history.jsonl", False),
        ("session/tool-results/one.json", False),
        ("chunks.lance/data/x.lance", False),
    ],
)
def test_files_elsewhere_are_judged_by_their_paths(path, may_be):
    assert may_be_trace(path) is may_be
