"""`funes push` to a Hub that fails, refuses or holds something else."""

from __future__ import annotations

import errno
import json
import os
from collections import Counter

import pytest

from funes.memory.remote.hub import HubClient
from funes.memory.remote.patience import TRIES
from funes.memory.remote.publish import FAULTS
from tests.support.hub_faults import Fault
from tests.support.hub_memory import REPO, commits, files, snapshot
from tests.support.sharing import TOKEN, rows_in


@pytest.mark.parametrize("others", [{"train.parquet": b"PAR1"}, {"data/a.jsonl": b"{}"}, {"other.lance/x": b"?"}])
def test_a_dataset_of_another_kind_is_left_alone(hub, machines, run, others):
    hub.publish(REPO, {"README.md": b"# A dataset", **others})
    machines[0].remember("a", ["words"])
    code, _, err = run("push", REPO, "--yes")
    assert code == 1
    assert err.startswith(f"funes: {REPO} is no memory and not empty (it holds {next(iter(others))});")
    assert "chunks.lance" not in " ".join(files(hub))


def test_a_memory_of_another_model_or_program_is_left_alone(hub, machines, run, tmp_path, monkeypatch):
    one, two = machines
    one.remember("a", ["words"])
    monkeypatch.setattr("tests.support.sharing.VECTORS_ID", "another/model")
    two.remember("b", ["words"])
    hub.publish(REPO, {str(path.relative_to(two.memory)): path for path in two.memory.rglob("*") if path.is_file()})
    code, _, err = run("push", REPO, "--yes")
    assert code == 1
    assert err.startswith(f"funes: The vectors of {REPO} were made with another/model and yours with ")
    import lance
    import pyarrow as pa

    rows = {name: ["x"] for name in ("id", "text", "session_id", "turn_uuid", "block_type")}
    lance.write_dataset(pa.table(rows | {"vector": [[0.0]]}), str(tmp_path / "rust" / "chunks.lance"))
    other = tmp_path / "rust"
    hub.publish(REPO, {str(path.relative_to(other)): path for path in other.rglob("*") if path.is_file()})
    code, _, err = run("push", REPO, "--yes")
    assert code == 1
    assert err.startswith(f"funes: {REPO} was made by another program (its table has no column ")


def test_a_damaged_memory_is_left_alone(hub, machines, run):
    one, two = machines
    one.remember("a", ["words"])
    two.remember("a", ["words"])
    damaged = {str(path.relative_to(two.memory)): path.read_bytes() for path in two.memory.rglob("*") if path.is_file()}
    for path in damaged:
        if "/data/" in path:
            damaged[path] = b"x" * len(damaged[path])
    hub.publish(REPO, damaged)
    code, _, err = run("push", REPO)
    assert code == 1
    assert err.startswith(f"funes: {REPO} is damaged: its tables cannot be read")
    assert files(hub) == damaged


def test_a_conflict_in_a_loop_ends_in_a_sentence(hub, machines, run, monkeypatch):
    monkeypatch.setattr("funes.memory.remote.publish.ATTEMPTS", 4)
    machines[0].remember("a", ["words"])
    run("push", REPO)
    machines[0].remember("b", ["more"])
    hub.faults.append(Fault(f"POST /api/datasets/{REPO}/commit/", status=412))
    before = HubClient().head(REPO)
    code, out, err = run("push", REPO)
    assert (code, out) == (1, "")
    assert "was changed by somebody else in the meantime; run the command again." in err
    assert hub.traffic.count(f"POST /api/datasets/{REPO}/commit/") == 5
    assert HubClient().head(REPO) == before
    assert json.loads(run("status", "--json")[1])["sharing"][0]["error"].endswith("run the command again.")
    hub.faults.clear()
    assert run("push", REPO)[0] == 0
    assert json.loads(run("status", "--json")[1])["sharing"][0]["error"] == ""


def test_a_busy_hub_is_waited_for_as_long_as_it_asks_but_not_for_ever(hub, machines, run, monkeypatch):
    waits = []
    monkeypatch.setattr("funes.memory.remote.publish.time.sleep", waits.append)
    machines[0].remember("a", ["words"])
    run("push", REPO)
    machines[0].remember("b", ["more"])
    where = f"POST /api/datasets/{REPO}/commit/"
    hub.faults.append(Fault(where, status=429, headers={"Retry-After": "7"}, times=1))
    assert run("push", REPO)[0] == 0
    assert waits == [7.0]
    machines[0].remember("c", ["even more"])
    hub.faults.append(Fault(where, status=429, headers={"Retry-After": "3600"}, times=1))
    code, _, err = run("push", REPO)
    assert code == 1
    assert "run the command again in 3600 seconds" in err


def test_two_conflicts_are_got_over(hub, machines, run):
    machines[0].remember("a", ["words"])
    run("push", REPO)
    machines[0].remember("b", ["more"])
    hub.faults.append(Fault(f"POST /api/datasets/{REPO}/commit/", status=412, times=2))
    code, out, _ = run("push", REPO)
    assert code == 0
    assert "tried 3 times, because others published meanwhile or the connection failed" in out
    assert len(rows_in(snapshot())) == 2


@pytest.mark.parametrize(
    "fault",
    [
        Fault(f"POST /api/datasets/{REPO}/commit/", status=500),
        Fault("PUT /_lfs/", "cut-upload"),
        Fault("POST /api/datasets/.*/preupload/", status=503),
        Fault("POST /datasets/.*/info/lfs/objects/batch", status=403),
    ],
    ids=["500 at the commit", "cut upload", "503 before it", "no right to upload"],
)
def test_a_push_that_fails_leaves_the_old_version(hub, machines, run, fault, monkeypatch):
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda _: None)
    machines[0].remember("a", ["words"])
    run("push", REPO)
    machines[0].remember("b", ["more"])
    before, present = HubClient().head(REPO), files(hub)
    hub.faults.append(fault)
    code, out, err = run("push", REPO)
    assert (code, out) == (1, "")
    assert err.startswith("funes: ")
    assert len(err.splitlines()) == 1
    assert hub.token not in err
    assert HubClient().head(REPO) == before
    assert files(hub) == present
    hub.faults.clear()
    assert run("push", REPO)[0] == 0
    assert len(rows_in(snapshot())) == 2


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (Fault("POST /api/datasets/.*/preupload/", status=503), "has trouble of its own (HTTP 503)"),
        (Fault("PUT /_lfs/", status=502), "has trouble of its own (HTTP 502)"),
        (Fault("PUT /_lfs/", "cut-upload"), "cannot be reached"),
    ],
)
def test_the_client_is_not_left_to_try_again_for_minutes(hub, machines, run, fault, sentence, monkeypatch):
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda _: None)
    machines[0].remember("a", ["words"])
    run("push", REPO)
    machines[0].remember("b", ["more"])
    hub.faults.append(fault)
    hub.traffic.served.clear()
    code, _, err = run("push", REPO)
    assert (code, sentence in err) == (1, True)
    asked = Counter((one.method, one.path) for one in hub.traffic.matching(fault.where))
    assert TRIES <= max(asked.values()) <= TRIES * FAULTS
    hub.faults.clear()
    assert run("push", REPO)[0] == 0


def test_an_answer_that_is_lost_is_no_second_push(hub, machines, run):
    machines[0].remember("a", ["words"])
    run("push", REPO)
    machines[0].remember("b", ["more"])
    before = commits(hub)
    hub.faults.append(Fault(f"POST /api/datasets/{REPO}/commit/", "lost", times=1))
    machines[0].remember("c", [f"held back for {TOKEN}"])
    code, out, _ = run("push", REPO)
    assert code == 0
    assert out.startswith(f"{REPO}: 1 passage of 1 session published, 1 with vectors, ")
    assert "tried 2 times" in out
    assert commits(hub) == before + 1
    assert sorted(row.text for row in rows_in(snapshot())) == ["more", "words"]
    assert run("push", REPO)[0] == 2


def test_nothing_is_sent_when_a_scanner_fails(hub, machines, run, monkeypatch):
    machines[0].remember("a", ["words"])
    monkeypatch.setattr("funes.commands.publishing.gate.self_test", lambda: ["Kingfisher misses an invented key."])
    code, _, err = run("push", REPO)
    assert code == 1
    assert "Nothing is published, because the secret scanners do not work: Kingfisher misses an invented key." in err
    assert hub.traffic.received == 0
    assert hub.store.meta("dataset", REPO) is None


def test_a_token_without_the_right_and_a_revision(hub, machines, run, monkeypatch):
    machines[0].remember("a", ["words"])
    code, _, err = run("push", "somebody/else")
    assert code == 1
    assert "somebody/else" in err
    code, _, err = run("push", f"{REPO}@v2")
    assert code == 1
    assert "only the main branch is published to" in err
    code, _, err = run("push", "local")
    assert (code, err[:34]) == (1, "funes: That is the local memory, w")
    hub.stop()
    code, _, err = run("push", REPO)
    assert code == 1
    assert "cannot be reached" in err


def test_a_repository_that_the_token_may_not_see(hub, machines, run):
    machines[0].remember("a", ["words"])
    hub.faults.append(Fault("POST /api/repos/create", status=409))
    code, _, err = run("push", REPO)
    assert code == 1
    assert err == f"funes: {REPO} exists, but the token here may not see it; use another token or another name.\n"


def test_a_full_disk_is_said_in_a_sentence(hub, machines, run, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    machines[0].remember("a", ["words"])
    with monkeypatch.context() as disk:
        disk.setattr("funes.memory.remote.staging.os.link", full)
        disk.setattr("funes.memory.remote.staging.shutil.copyfile", full)
        code, _, err = run("push", REPO, "--yes")
    assert code == 1
    assert err.startswith(f"funes: Publishing to {REPO} failed here (No space left on device); check the free space")
    assert "No space left" in json.loads(run("status", "--json")[1])["sharing"][0]["error"]
    assert run("push", REPO, "--yes")[0] == 0
