"""Writing: vectors in the right order and once, indexes and clean-up that change no answer, readers that never fail."""

from __future__ import annotations

import multiprocessing
import os
from datetime import timedelta
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

from funes.errors import CorruptMemoryError, LockedError
from funes.memory import maintenance
from funes.memory.filters import Filter
from funes.memory.handle import TableHandle
from funes.memory.identity import ensure_identity, newest_version, read_identity
from funes.memory.lance import lance_module, settled
from funes.memory.maintenance import remove_old_versions
from funes.memory.reader import MemoryReader
from funes.memory.schema import CHUNKS, VECTORS
from funes.memory.store import MemoryWriter
from funes.memory.vector_store import MovedOnError, VectorWriter
from funes.models.pinned import VECTORS_ID
from tests.support.chunks import MOMENT, make_chunk
from tests.support.sharing import Machine
from tests.support.small_memory import make_memory

TYPES = ("tool_result", "text", "tool_use", "thinking", "summary")


def fill(folder: Path, sessions: int = 3) -> None:
    """Sessions of which the last one is the newest, each with every block type."""
    rows = [
        make_chunk(
            f"passage {session} {kind}",
            id=f"{session}-{kind}",
            session_id=f"session {session}",
            seq=seq,
            ts=None if session == 0 else MOMENT + timedelta(days=session, minutes=seq),
            block_type=kind,
        )
        for session in range(sessions)
        for seq, kind in enumerate(TYPES)
    ]
    with MemoryWriter(folder) as writer:
        writer.append(rows)


def give_vectors(writer: VectorWriter, places: np.ndarray) -> list[str]:
    passages = writer.passages(places)
    count = len(places)
    pieces = [np.zeros(1, np.uint16)] * count
    writer.append(passages, np.ones((count, 384), np.float32), [None] * count, pieces)
    return list(passages.column("id").to_pylist())


def test_waiting_goes_tier_by_tier_newest_session_first(tmp_path: Path) -> None:
    fill(tmp_path)
    with VectorWriter(tmp_path, "m") as writer:
        order = writer.waiting()
        ids = writer.passages(order.places).column("id").to_pylist()
    assert ids[:9] == [f"{session}-{kind}" for session in (2, 1, 0) for kind in ("text", "thinking", "summary")]
    assert ids[9:12] == ["2-tool_use", "1-tool_use", "0-tool_use"]
    assert ids[12:] == ["2-tool_result", "1-tool_result", "0-tool_result"]
    assert order.tiers.tolist() == [0] * 9 + [1] * 3 + [2] * 3


def test_nothing_waits_twice(tmp_path: Path) -> None:
    fill(tmp_path)
    given = []
    for _ in range(4):
        with VectorWriter(tmp_path, "m") as writer:
            given += give_vectors(writer, writer.waiting().places[:4])
            writer.finish()
    assert len(given) == len(set(given)) == 15
    with VectorWriter(tmp_path, "m") as writer:
        assert len(writer.waiting()) == 0
    assert MemoryReader.open(str(tmp_path)).statistics().waiting == 0


def test_copies_and_headers_do_not_wait(tmp_path: Path) -> None:
    make_memory(tmp_path)
    with VectorWriter(tmp_path, "m") as writer:
        waiting = len(writer.waiting())
    assert waiting == MemoryReader.open(str(tmp_path)).statistics().passages


def test_new_passages_are_noticed_and_come_first(tmp_path: Path) -> None:
    fill(tmp_path, 1)
    with VectorWriter(tmp_path, "m") as writer:
        assert len(writer.waiting()) == 5
        assert not writer.outdated()
        fill_one = make_chunk("newest", id="newest", session_id="now", ts=MOMENT + timedelta(days=99))
        with MemoryWriter(tmp_path) as words:
            words.append([fill_one])
        assert writer.outdated()
        order = writer.waiting()
        assert not writer.outdated()
        assert writer.passages(order.places[:1]).column("id").to_pylist() == ["newest"]


def test_another_models_vectors_are_replaced(tmp_path: Path) -> None:
    fill(tmp_path)
    for model in ("old", "new"):
        with VectorWriter(tmp_path, model) as writer:
            order = writer.waiting()
            assert len(order) == 15
            give_vectors(writer, order.places)
    reader = MemoryReader.open(str(tmp_path))
    assert reader.model == "new"
    assert reader.statistics().embedded == 15


def test_only_one_process_computes_vectors(tmp_path: Path) -> None:
    fill(tmp_path)
    with VectorWriter(tmp_path, "m"), pytest.raises(LockedError, match="computing vectors"):
        VectorWriter(tmp_path, "m", wait=0).__enter__()


def test_vectors_are_stored_in_half_precision_beside_the_filter_columns(tmp_path: Path) -> None:
    make_memory(tmp_path)
    with VectorWriter(tmp_path, "m") as writer:
        give_vectors(writer, writer.waiting().places)
    table = lance.dataset(str(tmp_path / VECTORS)).to_table()
    assert table.schema.field("vector").type == pa.list_(pa.float16(), 384)
    reader = MemoryReader.open(str(tmp_path))
    rows = reader.rows(table.column("id").to_pylist())
    for row in table.drop(["vector", "codes", "pieces", "model"]).to_pylist():
        chunk = rows[row["id"]]
        assert row == {name: getattr(chunk, name) for name in row}


def test_an_index_serves_all_rows_after_deltas_and_a_merge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "MERGE_DELTAS", 3)
    monkeypatch.setattr(maintenance, "MANY_SMALL", 4)
    for batch in range(10):
        with MemoryWriter(tmp_path) as writer:
            writer.append([make_chunk(f"quokka number{batch} row{row}", id=f"{batch}-{row}") for row in range(20)])
            maintenance.index_chunks(writer._dataset, delta_rows=5)
            writer.finish()
        reader = MemoryReader.open(str(tmp_path))
        assert len(reader.words("quokka", Filter(), 1000)) == 20 * (batch + 1)
        assert len(reader.words(f"number{batch}", Filter(), 1000)) >= 20
        assert len(reader.rows([f"{old}-3" for old in range(batch + 1)])) == batch + 1
    dataset = lance.dataset(str(tmp_path / CHUNKS))
    assert dataset.count_rows() == 200
    assert len(dataset.get_fragments()) < 6
    assert dataset.stats.index_stats(maintenance.FTS)["num_indices"] < 6


@pytest.mark.parametrize(
    ("rows", "merged"),
    [
        ([], 0),
        ([50_000], 0),
        ([10_000] * 5, 0),
        ([10_000] * 6, 6),
        ([30_000] * 6, 0),
        ([50_000, *[10_000] * 6], 7),
        ([100_000, *[10_000] * 6], 6),
        ([50_000, *[1_000] * 6], 6),
        ([50_000, *[1_000] * 5], 0),
        ([50_000, 6_000, *[1_000] * 5], 7),
        ([90_000, 6_000, *[1_000] * 5], 6),
        ([50_000, 32_000, *[1_000] * 5], 0),
        ([0, 2_000, 2_000, 3_000, 2_000, 1_500, 1_000], 7),
    ],
)
def test_deltas_of_similar_size_are_merged(rows: list[int], merged: int) -> None:
    assert maintenance.deltas_to_merge(rows) == merged


@pytest.mark.parametrize(
    ("rows", "added", "merged"),
    [
        ([0, 20_000, 20_000, 17_000, 300], 57_300, 5),
        ([200_000, 20_000, 20_000, 17_000], 57_000, 3),
        ([57_000, 120], 120, 0),
        ([57_000, 200, 120], 120, 2),
        ([57_000, 20_000], 20_000, 0),
        ([30_000, 20_000], 20_000, 2),
        ([20_000] * 10, 200_000, 7),
        ([40_000], 40_000, 0),
        ([10_000] * 6, 20, 6),
    ],
)
def test_a_run_merges_as_much_as_it_is_worth(rows: list[int], added: int, merged: int) -> None:
    assert maintenance.deltas_to_merge(rows, added) == merged


def test_a_long_run_leaves_one_delta_and_nothing_of_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "SMALL_FRAGMENT", 600)
    with MemoryWriter(tmp_path) as writer:
        for batch in range(4):
            writer.append([make_chunk(f"quokka number{batch}", id=f"{batch}-{row}") for row in range(150)])
            writer.index()
        assert lance.dataset(str(tmp_path / CHUNKS)).stats.index_stats(maintenance.FTS)["num_indices"] > 2
        writer.finish()
    statistics = lance.dataset(str(tmp_path / CHUNKS)).stats.index_stats(maintenance.FTS)
    assert (statistics["num_indices"], statistics["num_unindexed_rows"]) == (1, 0)
    assert len(list((tmp_path / CHUNKS / "_indices").iterdir())) == 4
    assert len(MemoryReader.open(str(tmp_path)).words("number2", Filter(), 1000)) >= 150


def test_fragments_of_one_size_are_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "SMALL_FRAGMENT", 5)
    monkeypatch.setattr(maintenance, "MANY_MEDIUM", 4)
    rows = []
    for batch in range(6):
        with MemoryWriter(tmp_path) as writer:
            writer.append([make_chunk(f"text {batch} {row}", id=f"{batch}-{row}") for row in range(20)])
        dataset = lance.dataset(str(tmp_path / CHUNKS))
        maintenance.tidy(dataset, big=60)
        rows.append([fragment.count_rows() for fragment in lance.dataset(str(tmp_path / CHUNKS)).get_fragments()])
    assert rows == [[20], [20] * 2, [20] * 3, [80], [80, 20], [80, 20, 20]]


def test_small_appends_do_not_rewrite_what_is_bigger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "SMALL_FRAGMENT", 20)
    monkeypatch.setattr(maintenance, "MANY_MEDIUM", 4)
    for batch, size in enumerate([50, *[1] * 10]):
        with MemoryWriter(tmp_path) as writer:
            writer.append([make_chunk(f"text {batch} {row}", id=f"{batch}-{row}") for row in range(size)])
            writer.finish()
    rows = [fragment.count_rows() for fragment in lance.dataset(str(tmp_path / CHUNKS)).get_fragments()]
    assert rows == [50, *[1] * 10]


def test_old_versions_go_when_there_are_many(tmp_path: Path) -> None:
    for number in range(40):
        with MemoryWriter(tmp_path) as writer:
            writer.append([make_chunk(f"text {number}", id=str(number))])
            writer.finish()
    versions = len(list((tmp_path / CHUNKS / "_versions").glob("*.manifest")))
    assert versions <= maintenance.MANY_VERSIONS + 6
    assert len(lance.dataset(str(tmp_path / CHUNKS)).get_fragments()) <= maintenance.MANY_SMALL
    assert MemoryReader.open(str(tmp_path)).statistics().passages == 40


def test_many_vectors_get_an_index_that_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "VECTOR_INDEX_ROWS", 500)
    monkeypatch.setattr(maintenance, "VECTOR_PARTITION", 200)
    count = 800
    with MemoryWriter(tmp_path) as writer:
        writer.append(
            [make_chunk(f"passage {number}", id=f"{number:024x}", branch=f"b{number % 2}") for number in range(count)]
        )
    dense = np.random.default_rng(1).normal(size=(count, 384)).astype(np.float32)
    dense /= np.linalg.norm(dense, axis=1, keepdims=True)
    with VectorWriter(tmp_path, "m") as writer:
        passages = writer.passages(writer.waiting().places)
        writer.append(passages, dense, [None] * count, [np.zeros(1, np.uint16)] * count)
        writer.finish()
    names = {index.name for index in lance.dataset(str(tmp_path / VECTORS)).describe_indices()}
    assert maintenance.VECTOR in names
    ids = np.array(passages.column("id").to_pylist())
    reader = MemoryReader.open(str(tmp_path))
    for query in dense[:20] + dense[20:40]:
        exact = {str(identifier) for identifier in ids[np.argsort(-(dense @ query))[:10]]}
        ranked = reader.nearest(query / np.linalg.norm(query), Filter(), 10)
        assert len(exact & {identifier for identifier, _ in ranked}) >= 9  # half precision may swap neighbours
    assert len(reader.nearest(dense[0], Filter(branch="b1"), 300)) == 300


def test_identity_and_version_are_told_from_files_alone(tmp_path: Path) -> None:
    assert read_identity(tmp_path) == ""
    assert newest_version(tmp_path) == 0
    identity = ensure_identity(tmp_path)
    assert ensure_identity(tmp_path) == read_identity(tmp_path) == identity
    fill(tmp_path)
    assert newest_version(tmp_path) == lance.dataset(str(tmp_path / CHUNKS)).version
    (tmp_path / "memory.json").write_text("garbage")
    assert read_identity(tmp_path) == ""
    assert ensure_identity(tmp_path) != identity


def _write_and_tidy(folder: Path, rounds: int) -> None:
    for number in range(rounds):
        with MemoryWriter(folder) as writer:
            writer.append([make_chunk(f"quokka {number} {row}", id=f"w{number}-{row}") for row in range(5)])
            maintenance.index_chunks(writer._dataset, delta_rows=3)
            maintenance.tidy(lance.dataset(str(folder / CHUNKS)), thoroughly=True)


def test_readers_never_fail_while_a_writer_appends_compacts_and_cleans(tmp_path: Path) -> None:
    make_memory(tmp_path)
    process = multiprocessing.get_context("spawn").Process(target=_write_and_tidy, args=(tmp_path, 25))
    process.start()
    reader = MemoryReader.open(str(tmp_path))
    seen, rounds = 0, 0
    while process.is_alive() or rounds < 3:
        found = len(reader.words("quokka", Filter(), 1000))
        assert found >= seen
        seen = found
        assert reader.words("streaming parser", Filter(), 5)
        assert len(reader.sessions()) >= 3
        assert reader.rows([identifier for identifier, _ in reader.words("parser", Filter(), 5)])
        if rounds % 2:
            reader.refresh()
        rounds += 1
    process.join()
    assert process.exitcode == 0
    reader.refresh()
    assert len(reader.words("quokka", Filter(), 1000)) == 125
    assert os.listdir(tmp_path / CHUNKS / "_versions")


def test_passages_whose_files_another_process_removed_are_looked_for_again(tmp_path):
    machine = Machine(tmp_path, "one")
    for number in range(3):
        machine.remember(f"s{number}", [f"word {number}"], vectors=False)
    with VectorWriter(machine.memory, VECTORS_ID) as writer:
        before = writer.waiting()
        moved_on(machine.memory)
        with pytest.raises(MovedOnError):
            writer.passages(before.places)
        texts = writer.passages(writer.waiting().places).column("text").to_pylist()
        assert sorted(texts) == ["word 0", "word 1", "word 2"]
        ids = writer.passages(writer.waiting().places).column("id").to_pylist()
        moved_on(machine.memory)
        assert writer.without_vectors(ids).num_rows == 3


def test_a_read_is_made_again_as_long_as_the_table_moves_on(tmp_path):
    machine = Machine(tmp_path, "one")
    machine.remember("a", ["words"])
    tries = []

    def read():
        tries.append(True)
        if len(tries) < 3:
            machine.remember(f"s{len(tries)}", ["more"])
            raise OSError("Not found: a file of the version that was opened")
        return "read"

    assert settled(machine.memory, read) == "read"
    with pytest.raises(CorruptMemoryError, match="is damaged"):
        settled(machine.memory, lambda: (_ for _ in ()).throw(OSError("Not found")))


def test_a_reader_tries_again_as_long_as_the_table_moves_on(tmp_path):
    machine = Machine(tmp_path, "one")
    machine.remember("a", ["words"])
    handle = TableHandle(machine.memory, CHUNKS)
    tries = []

    def read():
        tries.append(handle.version)
        if len(tries) < 4:
            machine.remember(f"s{len(tries)}", ["more"])
            raise OSError("Not found: a file of the version that was opened")
        return "read"

    assert handle.attempt(read) == "read"
    assert tries == sorted(set(tries))
    with pytest.raises(CorruptMemoryError, match="is damaged"):
        handle.attempt(lambda: (_ for _ in ()).throw(OSError("Not found")))


def moved_on(folder):
    """What another process does: the fragments become one, and the files of older versions go."""
    table = lance_module().dataset(str(folder / CHUNKS))
    table.optimize.compact_files(target_rows_per_fragment=5000)
    remove_old_versions(lance_module().dataset(str(folder / CHUNKS)))
