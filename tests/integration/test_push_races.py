"""Two machines at the same moment, each time at the point where it matters: nothing is lost, nothing is there twice."""

from __future__ import annotations

import json

import pytest

from funes.__main__ import main
from funes.memory.filters import Filter
from funes.memory.lance import lance_module
from funes.memory.maintenance import FTS
from funes.memory.reader import MemoryReader
from funes.memory.remote import card
from funes.memory.remote.folder_target import FolderTarget
from funes.memory.remote.hub import HubClient
from funes.memory.remote.store_target import StoreTarget
from funes.memory.remote.stores import storage_options
from funes.memory.remote.tables import Tables
from funes.memory.schema import CHUNKS, chunks_schema
from tests.support.hub_memory import REPO
from tests.support.sharing import rows_in


@pytest.fixture
def meanwhile(machines, monkeypatch):
    """Makes the other machine do something the first time that a function is called, before or after it."""
    one, two = machines

    def arrange(place, name, *command, after=False):
        function = getattr(place, name)
        done = []

        def other():
            if not done:
                done.append(True)
                two.use(monkeypatch)
                assert main([*command, "--yes"]) == 0
                one.use(monkeypatch)

        def overtaken(*arguments, **options):
            if not after:
                other()
            result = function(*arguments, **options)
            other()
            return result

        monkeypatch.setattr(place, name, overtaken)

    return arrange


def texts(memory):
    """What a reader finds in each session."""
    reader = MemoryReader.open(memory)
    return {one.id: [chunk.text for chunk in reader.session_chunks(one.id)] for one in reader.sessions()}


def test_a_repository_that_another_fills_as_soon_as_it_is_made(hub, machines, run, meanwhile):
    one, two = machines
    one.remember("a", ["of one"])
    two.remember("b", ["of two"])
    meanwhile(HubClient, "create", "push", REPO, after=True)
    code, out, _ = run("push", REPO, "--yes")
    assert code == 0
    assert "created: a private dataset repository" in out
    assert texts(REPO) == {"a": ["of one"], "b": ["of two"]}


def test_a_store_whose_first_writer_was_killed_before_it_made_the_index_of_words(s3, machines, run):
    url = f"s3://{s3.bucket()}/memory"
    options = storage_options(url)
    Tables("test", url, [], options, store=True)._create(CHUNKS, chunks_schema())
    assert MemoryReader.open(url).words("parser", Filter(), 10) == []
    machines[0].remember("a", ["def parseHeaderLine"])
    assert run("push", url, "--yes")[0] == 0
    table = lance_module().dataset(f"{url}/{CHUNKS}", storage_options=options)
    names = [table.read_transaction(version).operation for version in range(1, table.version + 1)]
    kinds = [type(operation).__name__ for operation in names]
    assert kinds.index("CreateIndex") < kinds.index("Append")
    assert FTS in {index.name for index in table.describe_indices()}
    assert len(MemoryReader.open(url).words("header lines", Filter(), 10)) == 1


def test_a_store_whose_vectors_another_makes_between_the_text_and_the_vectors(s3, machines, run, meanwhile):
    one, two = machines
    one.remember("a", ["of one"], title="A")
    two.remember("b", ["of two"])
    url = f"s3://{s3.bucket()}/memory"
    meanwhile(Tables, "append_vectors", "push", url)
    out = run("push", url, "--yes", "--json")[1]
    report = json.loads(out[out.index("{") :])  # the other machine's lines are before it
    assert texts(url) == {"a": ["of one"], "b": ["of two"]}
    assert {name: report[name] for name in ("rows", "titles", "copies", "vectors", "attempts")} == {
        "rows": 2,
        "titles": 1,
        "copies": 0,
        "vectors": 1,
        "attempts": 2,
    }
    assert MemoryReader.open(url).statistics().embedded == 2


def test_two_texts_that_come_to_stand_at_one_place_of_a_store(s3, machines, run, meanwhile):
    """As when two versions of the rules redact a block differently: it becomes a further block of its turn."""
    one, two = machines
    one.remember("a", ["as one has it"])
    two.remember("a", ["as two has it"])
    two.remember("b", ["only two"])
    url = f"s3://{s3.bucket()}/memory"
    assert run("push", url, "--yes", "--sessions", "a")[0] == 0
    one.remember("a", ["later, as one has it"])
    meanwhile(StoreTarget, "look", "push", url, after=True)
    out = run("push", url, "--yes", "--json")[1]
    assert json.loads(out[out.index("{") :])["rows"] == 1
    chunks = MemoryReader.open(url).session_chunks("a")
    assert sorted((chunk.block_idx, chunk.text) for chunk in chunks) == [
        (0, "as one has it"),
        (1, "as two has it"),
        (2, "later, as one has it"),
    ]


def test_a_reader_between_two_writers_sees_a_row_once(s3, machines, run):
    machines[0].remember("a", ["said once"])
    url = f"s3://{s3.bucket()}/memory"
    assert run("push", url, "--yes")[0] == 0
    tables = Tables("test", url, [CHUNKS], storage_options(url), store=True)
    tables.append_rows(iter(tables.chunks.to_table().to_batches()))
    assert texts(url) == {"a": ["said once"]}
    assert [hit for hit, _ in MemoryReader.open(url).words("said", Filter(), 10)] == [tables_ids(tables)]


def tables_ids(tables):
    """The one id in the tables."""
    return tables.chunks.to_table(columns=["id"]).column("id").unique().to_pylist()[0]


def test_the_files_beside_the_tables_of_a_store_fit_its_newest_version(s3, machines, run, meanwhile):
    one, two = machines
    one.remember("a", ["of one"])
    two.remember("b", ["of two"])
    bucket = s3.bucket()
    url = f"s3://{bucket}/memory"
    meanwhile(card, "updated", "push", url)
    assert run("push", url, "--yes")[0] == 0
    stored = s3.client.get_object(Bucket=bucket, Key="memory/README.md")["Body"].read().decode()
    assert "| passages | 2 |" in stored


def test_all_who_give_a_store_its_identity_give_it_the_same(s3, machines, run):
    machines[0].remember("a", ["of one"])
    bucket = s3.bucket()
    identities = []
    for number in range(2):
        machines[0].remember(str(number), ["more"])
        assert run("push", f"s3://{bucket}/memory", "--yes")[0] == 0
        identities.append(s3.client.get_object(Bucket=bucket, Key="memory/memory.json")["Body"].read())
        s3.client.delete_object(Bucket=bucket, Key="memory/memory.json")
    assert identities[0] == identities[1]
    assert len(json.loads(identities[0])["id"]) == 32


def test_a_folder_that_is_compacted_while_it_is_looked_at(machines, run, meanwhile, tmp_path):
    one, two = machines
    shared = tmp_path / "shared"
    for number in range(3):
        one.remember(f"a{number}", [f"of one {number}"])
        assert run("push", str(shared))[0] == 0
    one.remember("a", ["of one"])
    two.remember("b", ["of two"])
    meanwhile(FolderTarget, "look", "push", str(shared), "--compact", after=True)
    assert run("push", str(shared))[0] == 0
    assert sorted(row.text or "" for row in rows_in(shared)) == ["of one", "of one 0", "of one 1", "of one 2", "of two"]
