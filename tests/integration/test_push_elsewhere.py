"""`funes push` to an object store and to a plain folder."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from funes.__main__ import main
from funes.memory.lock import WriterLock
from funes.memory.reader import MemoryReader
from funes.memory.remote.store_target import StoreTarget
from funes.memory.remote.stores import is_overtaken, storage_options
from funes.memory.remote.tables import Tables
from funes.memory.schema import CHUNKS, VECTORS, table_to_chunks
from tests.support.push_process import expected
from tests.support.sharing import TOKEN, environment, rows_in, texts_of, vectors_in

CHECKOUT = Path(__file__).parents[2]
ROUNDS = 3


@pytest.fixture
def store(s3):
    """An S3 server with an empty bucket."""
    return Store(s3.client, s3.bucket())


@dataclass(frozen=True)
class Store:
    client: Any
    bucket: str

    @property
    def url(self):
        return f"s3://{self.bucket}/memory"


def tables_of(store):
    return Tables("test", store.url, [CHUNKS, VECTORS], storage_options(store.url))


def stored(store):
    tables = tables_of(store)
    assert tables.chunks is not None
    assert tables.vectors is not None
    return table_to_chunks(tables.chunks.to_table()), tables.vectors.to_table(columns=["id"]).column("id").to_pylist()


def test_a_store_is_appended_to(store, machines, run, monkeypatch):
    one, two = machines
    one.remember("a", ["common", "only here", f"token {TOKEN}"], title="A")
    code, out, err = run("push", store.url)
    assert (code, err) == (0, "")
    assert out.startswith(f"{store.url}: 2 passages of 1 session published, 2 with vectors, ")
    assert "held back: 1 block" in out
    assert run("push", store.url)[0] == 2
    two.use(monkeypatch)
    two.remember("a", ["common"])
    two.remember("b", ["from the other machine"])
    assert run("push", store.url)[0] == 0
    rows, vectors = stored(store)
    assert sorted((row.session_id, row.text) for row in rows) == [
        ("a", "A"),
        ("a", "common"),
        ("a", "only here"),
        ("b", "from the other machine"),
    ]
    assert len(vectors) == 3
    assert "from the other machine" in run("recall", "other machine", "--memory", store.url, "-k", "3")[1]
    names = {item["Key"] for item in store.client.list_objects_v2(Bucket=store.bucket)["Contents"]}
    assert {"memory/README.md", "memory/memory.json", "memory/piece-counts.npy"} <= names
    card = store.client.get_object(Bucket=store.bucket, Key="memory/README.md")["Body"].read().decode()
    assert "| passages | 3 |" in card
    assert json.loads(run("push", store.url, "--json")[1])["rows"] == 0
    assert run("push", store.url, "--compact")[0] == 0
    assert len(stored(store)[0]) == 4


def test_a_folder_of_a_store_that_holds_something_else_is_left_alone(store, machines, run):
    machines[0].remember("a", ["words"])
    store.client.put_object(Bucket=store.bucket, Key="memory/README.md", Body=b"# Mine")
    store.client.put_object(Bucket=store.bucket, Key="memory/data/train.csv", Body=b"x")
    code, _, err = run("push", store.url)
    assert (code, err) == (
        1,
        f"funes: {store.url} is no memory and not empty (it holds data); name a new or an empty folder.\n",
    )
    assert len(store.client.list_objects_v2(Bucket=store.bucket)["Contents"]) == 2
    store.client.delete_object(Bucket=store.bucket, Key="memory/data/train.csv")
    assert run("push", store.url)[0] == 0
    assert store.client.get_object(Bucket=store.bucket, Key="memory/README.md")["Body"].read() == b"# Mine"


def test_a_store_without_the_bucket(store, machines, run):
    machines[0].remember("a", ["words"])
    code, _, err = run("push", "s3://nowhere/memory")
    assert code == 1
    assert "There is no bucket nowhere" in err


def overtake(store, one, two, monkeypatch):
    """Have machine `two` push between the first look and append of machine `one`."""
    look = StoreTarget.look
    seen = []

    def overtaken(self):
        tables = look(self)
        if not seen:
            seen.append(True)
            two.use(monkeypatch)
            assert main(["push", store.url, "--yes"]) == 0
            one.use(monkeypatch)
        return tables

    monkeypatch.setattr(StoreTarget, "look", overtaken)


def test_what_two_writers_added_at_the_same_time_is_there_once(store, machines, run, monkeypatch):
    one, two = machines
    one.remember("a", ["first"])
    run("push", store.url)
    for machine in machines:
        machine.remember("b", ["said on both machines", "also on both"], title="B")
    overtake(store, one, two, monkeypatch)
    assert run("push", store.url)[0] == 0
    rows, vectors = stored(store)
    assert sorted((row.session_id, row.text) for row in rows) == [
        ("a", "first"),
        ("b", "B"),
        ("b", "also on both"),
        ("b", "said on both machines"),
    ]
    assert len(vectors) == 3


def test_a_table_made_by_two_at_the_same_moment_is_made_once(tmp_path):
    def make(location, gate):
        tables = Tables("test", location, [], store=True)
        gate.wait()
        try:
            tables.append_rows(iter([]))
        except OSError as error:
            return error
        return tables

    for number in range(12):
        location = str(tmp_path / str(number))
        with ThreadPoolExecutor(6) as pool:
            results = list(pool.map(make, [location] * 6, [threading.Barrier(6)] * 6))
        made = [result for result in results if isinstance(result, Tables)]
        refused = [result for result in results if isinstance(result, OSError)]
        assert len(made) == 1
        assert len(refused) == 5
        assert all(is_overtaken(error) for error in refused)
        table = made[0].chunks
        changes = [type(table.read_transaction(version + 1).operation).__name__ for version in range(table.version)]
        assert (changes[0], changes.count("Overwrite")) == ("Overwrite", 1)


def test_a_first_push_that_another_overtakes_is_made_again(store, machines, run, monkeypatch):
    one, two = machines
    one.remember("a", ["of one"])
    two.remember("b", ["of two"])
    overtake(store, one, two, monkeypatch)
    assert run("push", store.url, "--yes")[0] == 0
    rows, vectors = stored(store)
    assert sorted(row.text for row in rows) == ["of one", "of two"]
    assert len(vectors) == 2


def test_what_a_killed_writer_left_twice_is_cleared_up_by_the_next(store, machines, run):
    machines[0].remember("a", ["first", "second"])
    run("push", store.url)
    tables = tables_of(store)
    assert tables.chunks is not None
    tables.append_rows(iter(tables.chunks.to_table().to_batches()))
    assert len(stored(store)[0]) == 4
    machines[0].remember("b", ["third"])
    assert run("push", store.url)[0] == 0
    assert sorted(row.text for row in stored(store)[0]) == ["first", "second", "third"]


@pytest.mark.parametrize("kind", ["store", "folder"])
def test_two_machines_at_once(request, kind, machines, tmp_path):
    store = request.getfixturevalue("store") if kind == "store" else None
    memory = store.url if store else str(tmp_path / "shared")
    source = next(path for path in map(str, sys.path) if path.endswith("src"))
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.support.push_process", memory, machine.name, str(ROUNDS)],
            env=environment(machine, PYTHONPATH=f"{source}:{CHECKOUT}"),
            cwd=CHECKOUT,
            stderr=subprocess.PIPE,
            text=True,
        )
        for machine in machines
    ]
    for process in running:
        _, errors = process.communicate(timeout=600)
        assert process.returncode == 0, errors
    if store:
        rows, vectors = stored(store)
    else:
        rows, vectors = rows_in(Path(memory)), vectors_in(Path(memory))
    wanted = expected(["one", "two"], ROUNDS)
    assert {(row.session_id, row.text) for row in rows} == wanted
    assert len(rows) == len(wanted)
    assert len(vectors) == len(wanted)


def test_a_folder_is_a_memory_afterwards(machines, run, tmp_path):
    one, _ = machines
    one.remember("a", ["common", "only here"], title="A")
    shared = tmp_path / "shared"
    code, out, err = run("push", str(shared))
    assert (code, err) == (0, "")
    assert out.startswith(f"{shared}: 2 passages of 1 session published")
    assert texts_of(shared, "a") == ["common", "only here"]
    assert f"--memory {shared}" in (shared / "README.md").read_text()
    one.remember("a", ["common", "only here", "and more"])
    assert run("push", str(shared))[0] == 0
    statistics = MemoryReader.open(str(shared)).statistics()
    assert (statistics.passages, statistics.embedded) == (3, 3)
    assert run("status", str(shared))[1].count("not published: 0 passages") == 1


def test_a_folder_that_holds_other_things_or_is_being_written(machines, run, tmp_path, monkeypatch):
    machines[0].remember("a", ["words"])
    other = tmp_path / "documents"
    other.mkdir()
    (other / "letter.txt").write_text("dear")
    code, _, err = run("push", str(other), "--yes")
    assert code == 1
    assert "is no memory and not empty (it holds letter.txt); name a new or an empty folder." in err
    assert list(other.iterdir()) == [other / "letter.txt"]
    code, _, err = run("push", str(machines[0].memory))
    assert (code, "That is the local memory" in err) == (1, True)
    shared = tmp_path / "shared"
    monkeypatch.setattr("funes.memory.remote.folder_target.LOCK_SECONDS", 0.1)
    with WriterLock(shared):
        code, _, err = run("push", str(shared))
    assert code == 1
    assert "Another funes is writing" in err


def test_without_a_local_memory_there_is_nothing_to_push(machines, run, tmp_path):
    code, _, err = run("push", str(tmp_path / "shared"))
    assert code == 1
    assert "run `funes index` to make one" in err
