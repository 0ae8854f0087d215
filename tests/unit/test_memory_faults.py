"""A folder that is no memory, and a memory that is damaged, end in one sentence with a remedy."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from funes.errors import CorruptMemoryError, FunesError, NoMemoryError
from funes.memory.filters import Filter
from funes.memory.handle import TableHandle
from funes.memory.lance import written
from funes.memory.reader import MemoryReader
from funes.memory.schema import CHUNKS, chunks_to_table
from funes.memory.store import MemoryWriter
from tests.support.chunks import make_chunk
from tests.support.small_memory import PARSER, make_memory


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_memory(tmp_path_factory.mktemp("sound"))


@pytest.fixture
def memory(sound: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "memory"
    shutil.copytree(sound, folder)
    return folder


def sentence(error: FunesError) -> str:
    message = error.message
    assert "\n" not in message
    assert message.endswith(".")
    assert "Traceback" not in message
    return message


def test_nothing_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NoMemoryError) as info:
        MemoryReader.open(str(tmp_path / "absent"))
    assert "absent" in sentence(info.value)
    monkeypatch.setenv("FUNES_HOME", str(tmp_path / "home"))
    for location in (None, "local", ""):
        with pytest.raises(NoMemoryError) as info:
            MemoryReader.open(location)
        assert "funes index" in sentence(info.value)


def test_folders_that_are_no_memory(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "chunks.lance").mkdir()
    with pytest.raises(NoMemoryError):
        MemoryReader.open(str(tmp_path))
    (tmp_path / "file").write_text("x")
    with pytest.raises(NoMemoryError):
        MemoryReader.open(str(tmp_path / "file"))


def test_another_table_is_no_memory(tmp_path: Path) -> None:
    import lance
    import pyarrow as pa

    lance.write_dataset(pa.table({"a": [1]}), str(tmp_path / "chunks.lance"))
    with pytest.raises(CorruptMemoryError, match="not one of a funes memory"):
        MemoryReader.open(str(tmp_path))


def test_a_memory_without_rows_is_empty_not_damaged(tmp_path: Path) -> None:
    """What a writer leaves that is killed right after it has made the table."""
    with MemoryWriter(tmp_path) as writer:
        writer._append(chunks_to_table([]))
    reader = MemoryReader.open(str(tmp_path))
    assert reader.sessions() == []
    assert reader.find_sessions("") == []
    assert reader.words("parser", Filter(), 5) == []
    assert reader.session_chunks("s") == []
    assert reader.statistics().passages == 0
    make_memory(tmp_path)
    reader.refresh()
    assert reader.words("parser", Filter(), 5)


def test_a_faulty_condition_is_not_called_damage(sound: Path) -> None:
    with pytest.raises(ValueError, match="parsing"):
        TableHandle(sound, CHUNKS).scan(["id"], "id IN ()")


def test_the_home_of_a_memory_is_accepted(sound: Path, tmp_path: Path) -> None:
    shutil.copytree(sound, tmp_path / "memory")
    assert MemoryReader.open(str(tmp_path)).folder == tmp_path / "memory"


def truncate_manifest(folder: Path) -> None:
    for manifest in (folder / "chunks.lance" / "_versions").glob("*.manifest"):
        manifest.write_bytes(manifest.read_bytes()[:40])


def garble_manifest(folder: Path) -> None:
    for manifest in (folder / "chunks.lance" / "_versions").glob("*.manifest"):
        manifest.write_bytes(b"\xde\xad\xbe\xef" * 200)


def empty_manifest(folder: Path) -> None:
    for manifest in (folder / "chunks.lance" / "_versions").glob("*.manifest"):
        manifest.write_bytes(b"")


def remove_manifests(folder: Path) -> None:
    shutil.rmtree(folder / "chunks.lance" / "_versions")


def remove_data(folder: Path) -> None:
    shutil.rmtree(folder / "chunks.lance" / "data")


def garble_data(folder: Path) -> None:
    for data in (folder / "chunks.lance" / "data").iterdir():
        data.write_bytes(b"\x00" * data.stat().st_size)


def truncate_data(folder: Path) -> None:
    for data in (folder / "chunks.lance" / "data").iterdir():
        data.write_bytes(data.read_bytes()[: data.stat().st_size // 2])


def remove_indexes(folder: Path) -> None:
    shutil.rmtree(folder / "chunks.lance" / "_indices")


def garble_indexes(folder: Path) -> None:
    for path in (folder / "chunks.lance" / "_indices").rglob("*"):
        if path.is_file():
            path.write_bytes(b"\xff" * 100)


def use(memory: Path) -> None:
    reader = MemoryReader.open(str(memory))
    reader.words("parser", Filter(), 5)
    reader.session_chunks(PARSER)
    reader.sessions()


DAMAGE = [
    truncate_manifest,
    garble_manifest,
    empty_manifest,
    remove_manifests,
    remove_data,
    garble_data,
    truncate_data,
    remove_indexes,
    garble_indexes,
]


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_one_sentence(memory: Path, damage: Callable[[Path], None]) -> None:
    damage(memory)
    with pytest.raises(CorruptMemoryError) as info:
        use(memory)
    message = sentence(info.value)
    assert str(memory) in message
    assert "funes index" in message


@pytest.mark.parametrize("damage", [truncate_manifest, garble_manifest, remove_data])
def test_a_writer_does_not_add_to_a_damaged_memory(memory: Path, damage: Callable[[Path], None]) -> None:
    damage(memory)
    with pytest.raises(CorruptMemoryError), MemoryWriter(memory) as writer:
        writer.stored_session(PARSER)


def test_a_writer_refuses_another_programs_memory(tmp_path: Path) -> None:
    import lance
    import pyarrow as pa

    lance.write_dataset(pa.table({"id": ["a"], "text": ["b"]}), str(tmp_path / "chunks.lance"))
    with MemoryWriter(tmp_path) as writer, pytest.raises(CorruptMemoryError, match="another program"):
        writer.holds_rows()


def test_damaged_vectors_are_reported(memory: Path) -> None:
    from tests.unit.test_memory_reader import embed

    embed(memory)
    for data in (memory / "vectors.lance" / "data").iterdir():
        data.unlink()
    reader = MemoryReader.open(str(memory))
    with pytest.raises(CorruptMemoryError):
        reader.nearest(np.ones(384, np.float32), Filter(), 5)


def test_an_open_reader_survives_its_files_being_cleaned_up(memory: Path) -> None:
    """A writer may have removed the files of the version that a reader has open: it moves on by itself."""
    from datetime import timedelta

    import lance

    reader = MemoryReader.open(str(memory))
    before = reader.words("streaming parser", Filter(), 5)
    dataset = lance.dataset(str(memory / "chunks.lance"))
    for number in range(3):
        dataset = lance.write_dataset(dataset.to_table().slice(number, 1), dataset, mode="append")
    dataset.optimize.compact_files()
    dataset = lance.dataset(str(memory / "chunks.lance"))
    dataset.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    assert reader.session_chunks(PARSER)
    assert {identifier for identifier, _ in before} <= {
        identifier for identifier, _ in reader.words("streaming parser", Filter(), 20)
    }


def test_a_full_disk_is_one_sentence_and_loses_nothing(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import lance

    def full(*_: object, **__: object) -> None:
        raise OSError("LanceError(IO): No space left on device (os error 28)\n  at some/file.rs:1:2")

    with MemoryWriter(memory) as writer:
        writer.holds_rows()
        with monkeypatch.context() as patch:
            patch.setattr(lance, "write_dataset", full)
            with pytest.raises(FunesError, match="free space") as info:
                writer.append([make_chunk(id="new")])
        assert "No space left" in sentence(info.value)
        assert "file.rs" not in info.value.message
        assert not isinstance(info.value, CorruptMemoryError)
        writer.append([make_chunk("quokka", id="new")])
    assert MemoryReader.open(str(memory)).words("quokka", Filter(), 5)


def test_a_file_system_without_locks_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    from funes.memory import lock

    def unsupported(_: int) -> bool:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(lock, "_try_lock", unsupported)
    with pytest.raises(FunesError, match="No locks available") as info:
        lock.WriterLock(tmp_path).acquire()
    sentence(info.value)


def test_a_sentence_does_not_name_lines_of_lance(tmp_path):
    def full():
        raise OSError(
            "LanceError(IO): No space left on device (os error 28), /home/x/lance/src/writer/structural.rs:190:9"
        )

    with pytest.raises(FunesError) as caught:
        written(tmp_path, full)
    assert "(LanceError(IO): No space left on device (os error 28));" in caught.value.message
