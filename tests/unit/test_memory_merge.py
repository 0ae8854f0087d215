"""What another memory lacks: rows, texts, vectors, titles; and that merging in any order gives one result."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from funes.commands.get import to_turns
from funes.memory.reader import MemoryReader
from funes.memory.remote.folder_target import FolderTarget
from funes.memory.remote.merge import Holdings
from funes.memory.remote.publish import publish
from funes.memory.remote.source import Source
from funes.models.pinned import VECTORS_ID
from tests.support.chunks import MOMENT
from tests.support.sharing import Machine, reference, rows_in, texts_of, turn_rows, vectors_in
from tests.support.small_memory import header


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path, "one")


def offer(machine, tmp_path, *, sessions=None, words=False):
    source = Source(machine.memory, tmp_path / "work", VECTORS_ID)
    return source, source.catalogue.offer(sessions, words=words)


def send(machine, tmp_path, to, **options):
    source, places = offer(machine, tmp_path, **options)
    return publish(FolderTarget("shared", to), source, lambda there: source.catalogue.lacking(places, there))


def ids(source, places):
    return [source.catalogue.ids[place] for place in places.tolist()]


def test_only_blocks_whose_pieces_all_have_vectors_are_offered(machine, tmp_path):
    machine.remember("a", ["has one"])
    waiting = machine.remember("b", ["waits"], vectors=False)
    long = turn_rows("c", 0, "many words " * 300)
    assert len(long) == 3
    machine.store(long, vectors=False)
    from tests.support.sharing import embed

    embed(machine.memory, [long[0].id, long[2].id])
    source, places = offer(machine, tmp_path)
    assert [source.catalogue.sessions[place] for place in places] == ["a"]
    source, places = offer(machine, tmp_path, words=True)
    assert set(ids(source, places)) >= {waiting[0].id, *(row.id for row in long)}


def test_a_reference_whose_original_is_not_published_carries_the_text(machine, tmp_path):
    original = machine.remember("a", ["said once", "and more"], workdir="/secret/project")
    machine.store([reference(original[0], "b", 0)])
    shared = tmp_path / "shared"
    done = send(machine, tmp_path, shared, sessions={"b"})
    assert (done.rows, done.vectors, done.after) == (1, 1, 1)
    (row,) = rows_in(shared)
    assert (row.session_id, row.text, row.offset) == ("b", "said once", 0)
    # The vector's columns are those of the row that is published, not of the one that stays here.
    assert [vector["session_id"] for vector in vectors_in(shared)] == ["b"]
    done = send(machine, tmp_path, shared)
    assert (done.rows, done.vectors, done.after) == (2, 1, 2)
    assert {(row.session_id, row.text) for row in rows_in(shared)} == {
        ("b", "said once"),
        ("a", None),
        ("a", "and more"),
    }
    assert texts_of(shared, "a") == ["said once", "and more"]


def test_a_piece_of_a_block_keeps_its_place_when_a_reference_becomes_the_original(machine, tmp_path):
    text = "".join(f"line {number} of a long output\n" for number in range(120))
    original = machine.store(turn_rows("a", 0, text))
    assert len(original) > 2
    machine.store([reference(row, "b", 0) for row in original])
    shared = tmp_path / "shared"
    send(machine, tmp_path, shared, sessions={"b"})
    assert [row.offset for row in rows_in(shared)] == [row.offset for row in original]
    (turn,) = to_turns(MemoryReader.open(str(shared)).session_chunks("b"))
    assert turn.blocks[0].text == text


def test_another_text_at_the_same_place_becomes_a_further_block(tmp_path):
    """One machine's rules redacted what the other's left, say."""
    shared = tmp_path / "shared"
    long = "".join(f"line {number} of the output\n" for number in range(90))
    texts = {"one": f"{long}key [REDACTED:password]", "two": f"{long}key abc"}
    for name, text in texts.items():
        machine = Machine(tmp_path, name)
        machine.store(turn_rows("a", 0, text))
        send(machine, tmp_path, shared)
    for name in texts:
        assert send(Machine(tmp_path, name), tmp_path, shared).rows == 0
    (turn,) = to_turns(MemoryReader.open(str(shared)).session_chunks("a"))
    assert [block.text for block in turn.blocks] == list(texts.values())


def test_vectors_come_later(machine, tmp_path):
    rows = machine.remember("a", ["first", "second"], vectors=False)
    shared = tmp_path / "shared"
    assert send(machine, tmp_path, shared).rows == 0
    assert not (shared / "chunks.lance").exists()
    done = send(machine, tmp_path, shared, words=True)
    assert (done.rows, done.vectors) == (2, 0)
    from tests.support.sharing import embed

    embed(machine.memory, [rows[0].id])
    done = send(machine, tmp_path, shared)
    assert (done.rows, done.vectors) == (0, 1)
    assert send(machine, tmp_path, shared).vectors == 0


def test_the_newest_title_wins_whoever_pushes_last(tmp_path):
    shared = tmp_path / "shared"
    new, old = Machine(tmp_path, "new"), Machine(tmp_path, "old")
    for machine, title, later in ((new, "Second name", 60), (old, "First name", 0)):
        machine.remember("a", ["same words"])
        row = header("a", title)
        row.ts = MOMENT + timedelta(minutes=later)
        machine.store([row], vectors=False)
    send(new, tmp_path, shared)
    done = send(old, tmp_path, shared)
    assert (done.rows, done.titles) == (0, 0)
    assert [row.text for row in rows_in(shared) if row.seq < 0] == ["Second name"]
    assert send(new, tmp_path, shared).version == done.version


def test_only_the_newest_title_is_published(machine, tmp_path):
    machine.remember("a", ["words"], title="First name")
    row = header("a", "Second name")
    row.ts = MOMENT + timedelta(minutes=1)
    machine.store([row], vectors=False)
    shared = tmp_path / "shared"
    send(machine, tmp_path, shared)
    assert [row.text for row in rows_in(shared) if row.seq < 0] == ["Second name"]


def test_what_is_held_back_takes_its_copies_and_an_empty_session_s_title_along(machine, tmp_path):
    rows = machine.remember("a", ["bad", "good"], title="A")
    machine.remember("c", ["unique"], title="C")
    machine.store([reference(rows[0], "b", 0), header("b", "B")], vectors=False)
    source, places = offer(machine, tmp_path)
    missing = source.catalogue.lacking(places, Holdings())
    left = missing.without([source.catalogue.ids.index(rows[0].id)], source.catalogue, Holdings())
    assert [(source.catalogue.sessions[place]) for place in left.rows] == ["a", "c"]
    assert [(source.catalogue.sessions[place]) for place in left.titles] == ["a", "c"]
    assert len(missing.rows) == 4
    assert len(missing.titles) == 3


def test_a_reference_to_a_passage_that_is_nowhere_is_left_out(machine, tmp_path):
    lost = turn_rows("a", 0, "forgotten")[0]
    machine.remember("c", ["kept"])
    machine.store([reference(lost, "b", 0)], vectors=False)
    shared = tmp_path / "shared"
    send(machine, tmp_path, shared, words=True)
    assert [row.session_id for row in rows_in(shared)] == ["c"]


def test_a_local_memory_that_is_compacted_meanwhile_stays_readable(machine, tmp_path):
    for number in range(25):
        machine.remember(f"s{number}", [f"words {number}"])
    source, places = offer(machine, tmp_path)
    from funes.memory.maintenance import tidy

    for table in ("chunks.lance", "vectors.lance"):
        import lance

        tidy(lance.dataset(str(machine.memory / table)), thoroughly=True)
    shared = tmp_path / "shared"
    done = publish(FolderTarget("shared", shared), source, lambda there: source.catalogue.lacking(places, there))
    assert done.after == 25


passages = st.integers(0, 5)
histories = st.lists(st.lists(st.tuples(st.sampled_from("xyz"), passages), max_size=6), min_size=2, max_size=3)


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(histories)
def test_any_order_of_pushes_gives_one_memory_with_everything_once(tmp_path_factory, machines):
    """Each machine has sessions of which passages may be in several sessions and on several machines."""
    root = tmp_path_factory.mktemp("merge")
    made, wanted = [], set()
    for number, content in enumerate(machines):
        machine = Machine(root, f"m{number}")
        stored: dict[str, str] = {}
        rows = []
        for seq, (session, passage) in enumerate(dict.fromkeys(content)):
            (row,) = turn_rows("origin", passage, f"passage {passage}")
            place = {"session_id": session, "seq": seq, "turn_uuid": f"{session}-{passage}"}
            for name, value in place.items():
                setattr(row, name, value)
            rows.append(reference(row, session, seq) if row.id in stored else row)
            stored.setdefault(row.id, session)
            wanted.add((session, row.id))
        if rows:
            machine.store(rows)
            made.append(machine)
    results = []
    for number, order in enumerate(itertools.islice(itertools.permutations(made), 2)):
        shared = root / f"shared{number}"
        for machine in (*order, *order):
            send(machine, root, shared)
        if not made:
            continue
        found = rows_in(shared)
        assert {(row.session_id, row.id) for row in found} == wanted
        assert len(found) == len(wanted)
        texts = [row.id for row in found if row.text is not None]
        assert sorted(texts) == sorted({row.id for row in found})
        vectors = [vector["id"] for vector in vectors_in(shared)]
        assert sorted(vectors) == sorted(set(texts))
        results.append({(row.session_id, row.id) for row in found})
    assert all(result == wanted for result in results)
