"""Filters narrow to exactly the rows that a plain reading of them allows, whatever characters they contain."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funes.chunking import Chunk
from funes.memory.filters import Filter
from funes.memory.reader import MemoryReader
from funes.memory.schema import REFERENCE
from funes.memory.store import MemoryWriter
from tests.support.chunks import make_chunk

NOON = datetime(2026, 3, 1, 12, 0, 0, 5, tzinfo=UTC)
NASTY = [
    "it's",
    "a'' OR 1=1 --",
    'say "hi"',
    "back\\slash",
    "100%",
    "under_score",
    "täg/日本",
    "a\nb",
    "",
    "x y",
    "`tick`",
    "a;b",
]


def _rows() -> list[Chunk]:
    rows = [
        make_chunk(
            f"common word {number}",
            id=f"{number:024x}",
            branch=value,
            repo=value,
            workdir=f"/w/{value}",
            session_id=f"of {value}",
        )
        for number, value in enumerate(NASTY)
    ]
    fields = [
        {"repo": "Acme/API", "workdir": "/home/dev/api"},
        {"repo": "acme/api-client", "workdir": "/home/dev/api-client"},
        {"repo": "other/api", "workdir": "/home/dev/api/sub dir"},
        {"harness": "codex", "role": "user", "block_type": "thinking", "ts": NOON},
        {"harness": "pi", "role": "tool", "block_type": "tool_result", "ts": NOON + timedelta(microseconds=1)},
        {"harness": "hermes", "role": "user", "block_type": "summary", "ts": None},
        {"workdir": "C:\\work\\api\\src", "ts": NOON - timedelta(days=3)},
    ]
    rows += [
        make_chunk(
            f"common words {number}",
            id=f"{1000 + number:024x}",
            session_id="more",
            **({"repo": "", "workdir": ""} | values),
        )
        for number, values in enumerate(fields)
    ]
    copied = make_chunk("", id=f"{1000:024x}", session_id="fork", offset=REFERENCE)
    copied.text = None
    return [*rows, copied]


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> MemoryReader:
    folder = tmp_path_factory.mktemp("filters")
    with MemoryWriter(folder) as writer:
        writer.append(_rows())
    return MemoryReader.open(str(folder))


def found(reader: MemoryReader, where: Filter) -> set[int]:
    return {int(identifier, 16) for identifier, _ in reader.words("common", where, 1000)}


ALL = {*range(len(NASTY)), *range(1000, 1007)}


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (Filter(), ALL),
        (Filter(repo="acme/api"), {1000}),
        (Filter(repo="ACME/api"), {1000}),
        (Filter(repo="api"), {1000, 1002}),
        (Filter(repo="API-Client"), {1001}),
        (Filter(repo="pi"), set()),
        (Filter(workdir="/home/dev/api"), {1000, 1002}),
        (Filter(workdir="/home/dev/api/"), {1000, 1002}),
        (Filter(workdir="/home/dev"), {1000, 1001, 1002}),
        (Filter(workdir="C:\\work\\api"), {1006}),
        (Filter(harnesses=("codex", "pi")), {1003, 1004}),
        (Filter(roles=("user",)), {1003, 1005}),
        (Filter(roles=("user",), harnesses=("codex",)), {1003}),
        (Filter(types=("thinking", "summary")), {1003, 1005}),
        (Filter(session="more"), set(range(1000, 1007))),
        (Filter(session="fork"), {1000}),
        (Filter(session="mor"), set()),
        (Filter(session="more", types=("thinking",)), {1003}),
        (Filter(since=NOON, until=NOON), {1003}),
        (Filter(session="more", until=NOON), {1003, 1006}),
        (Filter(since=NOON + timedelta(microseconds=1), until=NOON + timedelta(days=1)), {1004}),
        (Filter(since=NOON.astimezone(timezone(timedelta(hours=5))), until=NOON.replace(tzinfo=None)), {1003}),
    ],
)
def test_each_condition(reader: MemoryReader, where: Filter, expected: set[int]) -> None:
    assert found(reader, where) == expected


@pytest.mark.parametrize("number", [number for number, value in enumerate(NASTY) if value])
def test_hostile_values_match_only_themselves(reader: MemoryReader, number: int) -> None:
    value = NASTY[number]
    assert found(reader, Filter(branch=value)) == {number}
    assert number in found(reader, Filter(repo=value))
    assert found(reader, Filter(session=f"of {value}")) == {number}
    assert number in found(reader, Filter(workdir=f"/w/{value}"))


@settings(max_examples=60)
@given(value=st.text(max_size=40).filter(lambda text: text not in NASTY and text.strip()))
def test_any_text_is_a_value_and_never_sql(reader: MemoryReader, value: str) -> None:
    assert found(reader, Filter(branch=value)) <= ({*range(1000, 1007)} if value == "main" else set())
    assert found(reader, Filter(types=(value,))) <= ALL
    assert reader.copies(value) == []
    assert reader.session_chunks(value) == []
    assert reader.rows([value]) == {}


def test_header_rows_are_kept_out_unless_asked_for() -> None:
    assert Filter().passages() == "block_type != 'session'"
    assert Filter(types=("session",)).passages() == "block_type IN ('session')"
    assert Filter().sql() is None


def test_the_reader_needs_a_path_only(reader: MemoryReader) -> None:
    assert isinstance(reader.folder, Path)
    assert reader.version[1] == 0
    assert reader.model is None
