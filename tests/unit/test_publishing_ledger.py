"""What a machine remembers about the memories that it publishes to."""

from __future__ import annotations

import json

import numpy as np
import pytest

from funes.commands.publishing.gate import HeldBack
from funes.commands.publishing.ledger import HELD_KEPT, Ledger, PushState, states
from funes.errors import LockedError


def test_a_memory_that_was_never_published_to(tmp_path):
    ledger = Ledger("acme/decisions", tmp_path)
    assert ledger.state() == PushState("acme/decisions")
    assert len(ledger.published()) == 0
    assert not ledger.folder.exists()
    assert states(tmp_path) == []


def test_a_success_is_remembered_and_clears_an_error(tmp_path):
    ledger = Ledger("acme/decisions", tmp_path)
    ledger.fail("no connection")
    assert (ledger.state().error, ledger.state().time) == ("no connection", "")
    held = [HeldBack("a", "t", 0, "text", {"github-token": 1}) for _ in range(HELD_KEPT + 5)]
    ledger.succeed("abc", np.array([3, 1, 3], np.uint64), 2, held, [7, 8])
    again = ledger.state()
    assert (again.error, again.version, again.published, again.held) == ("", "abc", 2, HELD_KEPT + 5)
    assert len(again.held_back) == HELD_KEPT
    assert ledger.published().tolist() == [1, 3]


def test_who_agrees_while_a_push_is_under_way_has_agreed_afterwards(tmp_path):
    ledger = Ledger("acme/decisions", tmp_path)
    Ledger("acme/decisions", tmp_path).agree(True, True)
    ledger.succeed("abc", np.array([1], np.uint64), 1, [], [7, 8])
    Ledger("acme/decisions", tmp_path).fail("no connection")
    state = ledger.state()
    assert (state.approved, state.words, state.version, state.local) == (True, True, "abc", [7, 8])
    assert state.error == "no connection"


def test_what_is_damaged_counts_as_unknown(tmp_path):
    ledger = Ledger("acme/decisions", tmp_path)
    ledger.succeed("abc", np.array([1], np.uint64), 1, [], [])
    (ledger.folder / "published.npy").write_bytes(b"half a fi")
    (ledger.folder / "state.json").write_text('{"memory": "acme/dec')
    assert ledger.state() == PushState("acme/decisions")
    assert len(ledger.published()) == 0
    assert states(tmp_path) == []


def test_a_state_of_a_newer_version_is_read_as_far_as_it_is_known(tmp_path):
    ledger = Ledger("acme/decisions", tmp_path)
    ledger.fail("no connection")
    path = ledger.folder / "state.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"approved": True, "later": 1}))
    assert ledger.state().approved


def test_names_of_any_form_get_folders_of_their_own(tmp_path):
    labels = ["acme/decisions", "acme-decisions", "s3://b/x", "/home/dev/a", "/home/dev/b" * 40, "..", "ü/ö"]
    folders = [Ledger(label, tmp_path).folder for label in labels]
    assert len(set(folders)) == len(labels)
    for label, folder in zip(labels, folders, strict=True):
        assert folder.parent == tmp_path / "sharing"
        Ledger(label, tmp_path).agree(True, False)
    assert [state.memory for state in states(tmp_path)] == sorted(labels)


def test_one_push_at_a_time_and_the_next_finds_an_empty_folder(tmp_path):
    ledger = Ledger("acme/decisions", tmp_path)
    with ledger.lock(0):
        (ledger.work() / "left-over").write_text("from a killed push")
        with pytest.raises(LockedError, match="publishing to acme/decisions"):
            Ledger("acme/decisions", tmp_path).lock(0).acquire()
        assert list(ledger.work().iterdir()) == []
        ledger.clear_work()
        assert not (ledger.folder / "work").exists()
