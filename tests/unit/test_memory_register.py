"""The register: rows found by id and by row id, through appends, deletions and compaction."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funes.memory.dialect import NATIVE, Dialect
from funes.memory.handle import TableHandle
from funes.memory.register import Names, Passage, Register, RegisterReader, Rows
from funes.memory.schema import CHUNKS, REFERENCE, chunks_to_table
from funes.memory.store import MemoryWriter
from tests.support.chunks import MOMENT, make_chunk


def register_of(ids: list[str], **columns: Any) -> Register:
    names = Names()
    table = pa.table({"id": ids, "_rowid": pa.array(range(len(ids)), pa.uint64()), **columns})
    return Register(None, Rows.of(table, names), names)


# Ids are of fixed width here, padded with NUL, so that this is the one character they cannot end with.
IDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)


@given(st.lists(IDS, unique=True, max_size=40), st.lists(IDS, max_size=10))
def test_ids_of_any_kind_are_found_where_they_are(ids: list[str], others: list[str]) -> None:
    register = register_of(ids)
    wanted = [*ids[::-1], *others, "x" * 99]
    assert register.by_id(wanted).tolist() == [ids.index(one) if one in ids else -1 for one in wanted]
    assert register.ids_at(np.arange(len(ids))) == ids


def test_the_row_with_the_text_stands_for_a_passage() -> None:
    register = register_of(["a", "b", "a"], offset=pa.array([REFERENCE, 0, 7], pa.int64()))
    assert register.by_id(["a", "b", "c"]).tolist() == [2, 1, -1]
    assert register_of(["a"], offset=pa.array([REFERENCE], pa.int64())).by_id(["a"]).tolist() == [-1]


def test_row_ids_need_no_order() -> None:
    register = register_of(["a", "b", "c"])
    register.rows.row_ids = np.array([9, 2, 5], np.uint64)
    assert register.by_row_id(np.array([5, 9, 3, 2], np.uint64)).tolist() == [2, 0, -1, 1]


def test_what_a_table_lacks_is_empty() -> None:
    assert register_of(["a"]).passages(["a", "b"]) == {"a": Passage("a", "", "", None)}
    assert register_of([]).passages(["a"]) == {}
    assert register_of([]).block_types(["a"]) == [""]


def test_passages_know_their_session_kind_and_time() -> None:
    before = datetime(1969, 12, 31, 23, 59, 59, 5, tzinfo=UTC)
    register = register_of(
        ["a", "b"],
        session_id=["s", None],
        block_type=["text", "tool_use"],
        ts=pa.array([before, None], pa.timestamp("us", "UTC")),
    )
    assert register.passages(["b", "a"]) == {
        "b": Passage("b", "", "tool_use", None),
        "a": Passage("a", "s", "text", before),
    }
    assert list(register.passages(["b", "a"])) == ["b", "a"]
    assert register.block_types(["b", "unknown", "a"]) == ["tool_use", "", "text"]


def test_only_new_rows_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    of = Rows.of
    monkeypatch.setattr(Rows, "of", lambda table, names: read.append(table.num_rows) or of(table, names))
    append(tmp_path, "a", "b", "c")
    dataset = lance.dataset(str(tmp_path / CHUNKS))
    reader = RegisterReader()
    reader.read(dataset, NATIVE)
    append(tmp_path, "d", "e")
    dataset = lance.dataset(str(tmp_path / CHUNKS))
    register = reader.read(dataset, NATIVE)
    assert read == [3, 2]
    assert sorted(register.ids_at(np.arange(5))) == ["a", "b", "c", "d", "e"]
    dataset.delete("id IN ('b', 'd')")
    register = reader.read(dataset, NATIVE)
    assert read == [3, 2, 2, 1]
    assert sorted(register.ids_at(np.arange(3))) == ["a", "c", "e"]
    reader.read(dataset, NATIVE)
    assert read == [3, 2, 2, 1]


def append(folder: Path, *ids: str) -> None:
    with MemoryWriter(folder) as writer:
        writer.append([make_chunk(f"text of {identifier}", id=identifier) for identifier in ids])


def test_rows_are_taken_from_their_places_after_deletions_and_compaction(tmp_path: Path) -> None:
    ids = [f"p{number:03}" for number in range(60)]
    for start in range(0, 60, 20):
        append(tmp_path, *ids[start : start + 20])
    handle = TableHandle(tmp_path, CHUNKS)
    gone = {*ids[3:9], *ids[25:41:3], ids[59]}
    for change in ("none", "delete", "compact"):
        if change == "delete":
            handle.dataset.delete("id IN ({})".format(", ".join(f"'{identifier}'" for identifier in gone)))
        elif change == "compact":
            handle.dataset.optimize.compact_files()
        handle.refresh()
        handle = TableHandle(tmp_path, CHUNKS) if change == "compact" else handle
        rows = handle.by_id([*ids[::-1], "unknown"], ["id", "text", "no such column"])
        left = [identifier for identifier in ids if change == "none" or identifier not in gone]
        found = dict(zip(rows.column("id").to_pylist(), rows.column("text").to_pylist(), strict=True))
        assert found == {identifier: f"text of {identifier}" for identifier in left}
        assert handle.by_id([], ["id"]).num_rows == 0


def test_times_that_are_text_are_understood(tmp_path: Path) -> None:
    table = chunks_to_table([make_chunk("x", id="a")])
    column = table.column_names.index("ts")
    text = MOMENT.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    table = table.set_column(column, "ts", pa.array([text])).drop_columns(["branch", "seq"])
    dataset = lance.write_dataset(table, str(tmp_path / CHUNKS))
    register = RegisterReader().read(dataset, Dialect.of(dataset.schema))
    assert register.passages(["a"])["a"].ts == MOMENT
    assert register.rows.seq.tolist() == [0]
