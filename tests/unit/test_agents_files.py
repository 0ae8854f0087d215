"""Files of other programs: written whole, put back byte by byte."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funes.agents import files
from funes.agents.files import FileRecord, Snapshot
from funes.agents.model import Watch
from funes.errors import FunesError
from tests.support.agent_programs import without_rights


def test_a_new_file_gets_the_mode_and_an_old_one_keeps_its_own(tmp_path):
    files.write(tmp_path / "a" / "new", b"x", 0o600)
    assert (tmp_path / "a" / "new").stat().st_mode & 0o777 == 0o600
    old = tmp_path / "old"
    old.write_text("before")
    old.chmod(0o640)
    files.write(old, b"after", 0o600)
    assert old.read_bytes() == b"after"
    assert old.stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(tmp_path)) == ["a", "old"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "dotfiles").mkdir()
    target = tmp_path / "dotfiles" / "settings"
    target.write_text("before")
    link = tmp_path / "settings"
    link.symlink_to(target)
    files.write(link, b"after")
    assert link.is_symlink()
    assert target.read_bytes() == b"after"


def test_a_read_only_file_is_left_alone():
    with without_rights() as folder:
        path = folder / "settings"
        path.write_text("before")
        path.chmod(0o400)
        with pytest.raises(FunesError, match="settings is read-only, so funes leaves it alone"):
            files.write(path, b"after")
        assert path.read_text() == "before"


def test_a_folder_without_rights_is_a_fault_and_leaves_nothing_behind():
    with without_rights() as folder:
        (folder / "a").mkdir()
        (folder / "a").chmod(0o500)
        with pytest.raises(FunesError, match="cannot be written: Permission denied"):
            files.write(folder / "a" / "new", b"x")
        with pytest.raises(FunesError, match="cannot be written: Permission denied"):
            files.write(folder / "a" / "b" / "new", b"x")
        assert os.listdir(folder / "a") == []


def test_a_folder_where_a_file_should_be(tmp_path):
    (tmp_path / "settings").mkdir()
    with pytest.raises(FunesError, match="cannot be read: Is a directory"):
        files.read(tmp_path / "settings")


def test_restoring_a_snapshot_undoes_everything(tmp_path):
    tree = tmp_path / "made" / "tree"
    settings, gone = tmp_path / "settings", tmp_path / "gone"
    settings.write_text("before")
    gone.write_text("here")
    gone.chmod(0o600)
    snapshot = Snapshot.take(Watch(files=(settings, gone, tmp_path / "other" / "new"), trees=(tree,)))
    settings.write_text("after")
    gone.unlink()
    files.write(tmp_path / "other" / "new", b"new")
    files.write(tree / "deep" / "er", b"new")
    (tmp_path / "made" / "not-ours").write_text("stays")
    snapshot.restore()
    assert settings.read_text() == "before"
    assert gone.read_text() == "here"
    assert gone.stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "other").exists()
    assert [path.name for path in (tmp_path / "made").rglob("*")] == ["not-ours"]


@given(before=st.none() | st.binary(max_size=40), after=st.binary(max_size=40), middle=st.binary(max_size=8))
def test_a_record_gives_the_bytes_back(tmp_path_factory, before, after, middle):
    path = tmp_path_factory.getbasetemp() / "record"
    if before is not None:
        after = before[: len(before) // 2] + middle + before[len(before) // 2 :] if len(middle) % 2 else after
    record = FileRecord.from_json(FileRecord.compare(path, before, after).to_json())
    path.write_bytes(after)
    assert record.intact()
    files.put_back(path, record.original(after))
    assert files.read(path) == before


def test_a_record_gives_the_mode_back(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"after")
    path.chmod(0o600)
    record = FileRecord.from_json(FileRecord.compare(path, b"before", b"after", 0o644).to_json())
    files.put_back(path, record.original(b"after"))
    assert path.read_bytes() == b"before"
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_record_holds_only_what_differs(tmp_path):
    secret = b'{"token": "hunter2-hunter2"}'
    record = FileRecord.compare(tmp_path / "x", secret, secret[:-1] + b', "funes": 1}')
    assert record.before == (len(secret) - 1, len(secret) + 11, b"")


def test_a_changed_file_is_not_intact(tmp_path):
    path = tmp_path / "x"
    record = FileRecord.compare(path, None, b"ours")
    assert not record.intact()
    path.write_bytes(b"ours, edited")
    assert not record.intact()
