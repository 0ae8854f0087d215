"""The Hub's client against a server that shows every fault: no half file, no token in a sentence, one sentence each."""

from __future__ import annotations

import hashlib
import logging
import os
import time
from pathlib import Path

import pytest

from funes.errors import FunesError
from funes.memory.remote import downloads, heads
from funes.memory.remote import hub as hub_module
from funes.memory.remote.cache import RepoCache
from funes.memory.remote.faults import (
    Asked,
    RemoteBusyError,
    RemoteDeniedError,
    RemoteError,
    RemoteMissingError,
    RemoteMovedError,
    RemoteUnreachableError,
    remote_fault,
)
from funes.memory.remote.hub import HubClient
from funes.memory.remote.tokens import find_token
from tests.support.hub_faults import Fault
from tests.support.hub_server import BOB, HubServer

REPO = "acme/files"
BIG = os.urandom(300_000)
FILES = {"a/one.lance": BIG, "two.txt": b"two\n", "empty.txt": b"", "same.lance": BIG}
RESOLVE = "GET /datasets/.*/resolve/"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    with HubServer(tmp_path / "hub") as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("HF_TOKEN", server.token)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
        monkeypatch.delenv("HF_HUB_CACHE", raising=False)
        monkeypatch.setattr(downloads, "FIRST_WAIT", 0.001)
        monkeypatch.setattr(heads, "FIRST_WAIT", 0.001)
        yield server


@pytest.fixture
def no_waiting(monkeypatch):
    """The Hub's client waits half a minute before it gives up."""
    monkeypatch.setattr(time, "sleep", lambda seconds: None)


@pytest.fixture
def commit(hub):
    return hub.publish(REPO, FILES)


def everything_cached():
    return [path for path in RepoCache(REPO).folder.rglob("*") if path.is_file() or path.is_symlink()]


def contents(folder: Path):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_head_is_one_request_and_none_for_a_commit(hub, commit):
    assert HubClient().head(REPO) == commit
    assert [one.path for one in hub.traffic.served] == [f"/api/datasets/{REPO}/revision/main?expand=sha"]
    hub.traffic.clear()
    assert HubClient().head(REPO, commit) == commit
    assert hub.traffic.requests == 0


def test_a_renamed_repository_is_followed(hub, commit):
    hub.store.rename("dataset", REPO, "acme/renamed")
    client = HubClient()
    assert client.head(REPO) == commit
    assert contents(client.download(REPO, commit, list(FILES))) == FILES


def test_a_revision_with_a_slash_is_asked_for(hub, commit):
    meta = hub.store.meta("dataset", REPO)
    meta["refs"]["try/this"] = commit
    hub.store.put_meta("dataset", REPO, meta)
    assert HubClient().head(REPO, "try/this") == commit


def test_download_brings_files_whole_with_one_request_each(hub, commit):
    client, seen = HubClient(), []
    folder = client.download(REPO, commit, list(FILES), lambda done, total: seen.append((done, total)))
    assert contents(folder) == FILES
    assert hub.traffic.count(RESOLVE) == 3  # two paths have the same content
    assert seen[-1] == (len(BIG) + 4, len(BIG) + 4)
    blobs = RepoCache(REPO).folder / "blobs"
    assert (blobs / hashlib.sha256(BIG).hexdigest()).read_bytes() == BIG
    assert (folder / "two.txt").is_symlink()
    hub.traffic.clear()
    HubClient().download(REPO, commit, list(FILES))
    assert hub.traffic.count(RESOLVE) == 0


def test_the_client_of_the_hub_finds_what_was_brought(hub, commit):
    from huggingface_hub import hf_hub_download, scan_cache_dir

    client = HubClient()
    client.download(REPO, commit, list(FILES))
    client.keep(REPO, commit, "", list(FILES))
    hub.stop()
    cache = str(RepoCache(REPO).folder.parent)
    path = hf_hub_download(REPO, "a/one.lance", repo_type="dataset", cache_dir=cache, local_files_only=True)
    assert Path(path).read_bytes() == BIG
    scan = scan_cache_dir(cache)
    assert (scan.warnings, len(scan.repos)) == ([], 1)


def test_what_killed_downloads_left_is_removed_after_a_day(hub, commit):
    old, new = RepoCache(REPO).temporary("a" * 64), RepoCache(REPO).temporary("b" * 64)
    old.parent.mkdir(parents=True)
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    HubClient().download(REPO, commit, ["two.txt"])
    assert (old.exists(), new.exists()) == (False, True)


def test_a_new_version_costs_only_what_is_new(hub, commit):
    HubClient().download(REPO, commit, list(FILES))
    later = hub.publish(REPO, {**FILES, "three.txt": b"three"})
    hub.traffic.clear()
    folder = HubClient().download(REPO, later, [*FILES, "three.txt"])
    assert contents(folder) == {**FILES, "three.txt": b"three"}
    assert hub.traffic.count(RESOLVE) == 1


def test_only_a_kept_snapshot_counts_and_only_while_it_is_whole(hub, commit):
    client = HubClient()
    folder = client.download(REPO, commit, list(FILES))
    assert client.cached(REPO) is None
    client.keep(REPO, commit, "", list(FILES))
    assert HubClient().cached(REPO) == (commit, folder)
    assert HubClient().cached(REPO, commit) == (commit, folder)
    assert HubClient().cached(REPO, "v2") is None
    (folder / "two.txt").unlink()
    assert HubClient().cached(REPO) is None


def test_the_token_does_not_go_to_another_host(tmp_path, monkeypatch):
    with HubServer(tmp_path / "hub", storage_host="localhost") as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("HF_TOKEN", server.token)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
        commit = server.publish(REPO, FILES)
        assert contents(HubClient().download(REPO, commit, list(FILES))) == FILES
        assert [one.authorized for one in server.traffic.matching("GET /_storage/")] == [False]
        assert all(one.authorized for one in server.traffic.matching("GET /(api|datasets)/"))


@pytest.mark.parametrize("kind", ["cut", "truncated", "garbled"])
def test_a_fault_that_passes_costs_nothing_but_a_request(hub, commit, kind):
    hub.faults.append(Fault(RESOLVE, kind, times=1))
    assert contents(HubClient().download(REPO, commit, list(FILES))) == FILES


def test_a_cut_download_goes_on_where_it_broke_off(hub, commit):
    hub.faults.append(Fault(f"{RESOLVE}.*one", "cut", times=1))
    HubClient().download(REPO, commit, ["a/one.lance"])
    assert [one.sent for one in hub.traffic.matching(RESOLVE)] == [len(BIG) // 2, len(BIG) - len(BIG) // 2]


@pytest.mark.parametrize(
    ("fault", "error", "said"),
    [
        (Fault(RESOLVE, "truncated"), RemoteError, "another content than it announces"),
        (Fault(RESOLVE, "garbled"), RemoteError, "another content than it announces"),
        (Fault(f"{RESOLVE}.*lance", "cut"), RemoteUnreachableError, "cannot be reached"),
        (Fault(RESOLVE, status=401), RemoteDeniedError, "does not accept the token in HF_TOKEN"),
        (Fault(RESOLVE, status=403), RemoteDeniedError, "may not read acme/files"),
        (Fault(RESOLVE, status=404, headers={"X-Error-Code": "EntryNotFound"}), RemoteMissingError, "is gone"),
        (Fault(RESOLVE, status=404), RemoteMissingError, "There is no dataset acme/files"),
        (Fault(RESOLVE, status=429, headers={"Retry-After": "3600"}), RemoteBusyError, "again in 3600 seconds"),
        (Fault(RESOLVE, status=500), RemoteBusyError, "trouble of its own (HTTP 500)"),
        (Fault(RESOLVE, status=418), RemoteError, "(HTTP 418: scripted 418)"),
    ],
    ids=lambda value: value.kind + str(value.status) if isinstance(value, Fault) else "",
)
def test_a_fault_that_stays_is_one_sentence_and_leaves_no_part(hub, commit, no_waiting, fault, error, said):
    hub.faults.append(fault)
    with pytest.raises(RemoteError) as caught:
        HubClient().download(REPO, commit, list(FILES))
    assert type(caught.value) is error
    assert said in caught.value.message
    assert hub.token not in caught.value.message
    cache = RepoCache(REPO)
    assert not cache.snapshot(commit).exists()
    assert all(contents(cache.folder / "blobs")[name] in FILES.values() for name in os.listdir(cache.folder / "blobs"))
    hub.faults.clear()
    assert contents(HubClient().download(REPO, commit, list(FILES))) == FILES


def test_a_server_that_does_not_answer_is_given_up(hub, commit, no_waiting, monkeypatch):
    monkeypatch.setattr(downloads, "TIMEOUT", 0.1)
    monkeypatch.setattr(hub_module, "ANSWER_SECONDS", 0.1)
    hub.faults.append(Fault("GET /datasets/|PUT /_lfs/", "slow", seconds=30))
    assert "no answer in time" in sentence(lambda: HubClient().download(REPO, commit, list(FILES)))
    assert "no answer in time" in sentence(lambda: HubClient().commit(REPO, commit, {"n.lance": BIG + b"?"}, [], "x"))
    assert hub.files(REPO) == FILES


def test_a_short_wait_is_waited(hub, commit, no_waiting):
    hub.faults.append(Fault(RESOLVE, status=429, headers={"Retry-After": "0"}, times=2))
    hub.faults.append(Fault("GET /api/datasets/.*/revision", status=429, headers={"Retry-After": "1"}, times=2))
    client = HubClient()
    assert contents(client.download(REPO, client.head(REPO), list(FILES))) == FILES


@pytest.mark.parametrize(
    ("fault", "error", "requests"),
    [
        (Fault("GET", status=429, headers={"Retry-After": "600"}), RemoteBusyError, 1),
        (Fault("GET", status=500), RemoteBusyError, 3),
        (Fault("GET", "lost"), RemoteUnreachableError, 3),
        (Fault("GET", "slow", seconds=10), RemoteUnreachableError, 1),
        (Fault("GET", "truncated"), RemoteError, 1),
        (Fault("GET", status=412), RemoteMovedError, 1),
    ],
    ids=["429", "500", "cut", "slow", "half an answer", "412"],
)
def test_faults_of_the_head(hub, commit, monkeypatch, fault, error, requests):
    monkeypatch.setenv("HF_HUB_ETAG_TIMEOUT", "1")
    hub.faults.append(fault)
    with pytest.raises(RemoteError) as caught:
        HubClient().head(REPO)
    assert type(caught.value) is error
    assert hub.traffic.requests == requests


def sentence(action):
    with pytest.raises(FunesError) as caught:
        action()
    return caught.value.message


def test_what_cannot_be_read_is_told_apart(hub, commit, monkeypatch):
    said = {"missing": sentence(lambda: HubClient().head("acme/none"))}
    said["revision"] = sentence(lambda: HubClient().head(REPO, "v9"))
    said["file"] = sentence(lambda: HubClient().download(REPO, commit, ["none"]))
    for name, token in (("no token", ""), ("bad token", "test-made-up"), ("other token", BOB)):
        monkeypatch.setenv("HF_TOKEN", token)
        said[name] = sentence(lambda: HubClient().head(REPO))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    said["offline"] = sentence(lambda: HubClient().head(REPO))
    monkeypatch.delenv("HF_HUB_OFFLINE")
    hub.stop()
    said["unreachable"] = sentence(lambda: HubClient().head(REPO))
    where = f"the Hub at 127.0.0.1:{hub.port}"
    check = "check the name, or ask its owner for access if it is private"
    assert said == {
        "missing": f"There is no dataset acme/none on {where} that the token in HF_TOKEN may see; {check}.",
        "revision": f"acme/files on {where} has no revision v9.",
        "file": f"acme/files on {where} lacks the file none; it is not whole.",
        "no token": f"acme/files does not exist on {where}, or it is private and there is no token here: check the "
        "name, or run `hf auth login` or set HF_TOKEN.",
        "bad token": f"T{where[1:]} does not accept the token in HF_TOKEN, which is mistyped, expired or revoked; run "
        "`hf auth login` or set HF_TOKEN.",
        "other token": f"There is no dataset acme/files on {where} that the token in HF_TOKEN may see; {check}.",
        "offline": f"T{where[1:]} is not asked, since HF_HUB_OFFLINE is set.",
        "unreachable": f"T{where[1:]} cannot be reached (Connection refused).",
    }


def test_a_gated_dataset_says_so(hub, commit, monkeypatch):
    meta = hub.store.meta("dataset", REPO)
    hub.store.put_meta("dataset", REPO, {**meta, "private": False, "gated": "manual"})
    monkeypatch.setenv("HF_TOKEN", BOB)
    assert "asked for access" in sentence(lambda: HubClient().head(REPO))


def test_the_public_hub_has_no_address_in_sentences():
    fault = remote_fault(ConnectionRefusedError(111, "Connection refused"), Asked("a/b", "https://huggingface.co"))
    assert fault is not None
    assert fault.message == "The Hub cannot be reached (Connection refused)."
    assert remote_fault(KeyError("x"), Asked("a/b")) is None
    assert remote_fault(PermissionError(13, "Permission denied"), Asked("a/b")) is None


def test_tokens_are_found_and_not_shown(tmp_path, monkeypatch):
    secret = "-".join(("hf", "secret", "0123456789"))
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.delenv("HF_TOKEN_PATH")
    assert find_token().value == ""
    (tmp_path / "token").write_text(f"{secret}-file\n")
    assert find_token().value == f"{secret}-file"
    monkeypatch.setenv("HF_TOKEN_PATH", str(tmp_path / "elsewhere"))
    assert find_token().value == ""
    for name in ("HUGGINGFACE_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN"):
        monkeypatch.setenv(name, f" {secret}-{name}\n")
        assert (find_token().value, find_token().name) == (f"{secret}-{name}", name)
    assert secret not in repr(find_token())
    fault = remote_fault(ConnectionError(f"bad header {secret}-HF_TOKEN"), Asked("a/b", "", f"{secret}-HF_TOKEN"))
    assert fault is not None
    assert secret not in fault.message


@pytest.mark.parametrize("value", ["two words", "line\nbreak", "t\u00f6ken", "tab\there"])
def test_what_cannot_be_a_token_is_not_sent(hub, monkeypatch, value):
    monkeypatch.setenv("HF_TOKEN", value)
    said = sentence(lambda: HubClient().head(REPO))
    assert said.startswith("What stands in HF_TOKEN is no token")
    assert value not in said
    assert hub.traffic.requests == 0


def test_a_long_listing_is_read_page_by_page(hub):
    commit = hub.publish(REPO, {f"data/{number:04d}.txt": b"x" for number in range(1005)})
    assert len(HubClient().files(REPO, commit)) == 1005
    assert hub.traffic.requests == 2


def test_nothing_is_logged_with_a_token(hub, commit, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    hub.faults.append(Fault(RESOLVE, "cut", times=2))
    HubClient().download(REPO, commit, list(FILES))
    captured = capfd.readouterr()
    assert hub.token not in caplog.text + captured.out + captured.err


@pytest.mark.parametrize("path", ["../evil", "/abs", "a//b", "a/./b", "a\\b"])
def test_names_that_leave_the_folder_are_refused(hub, path):
    commit = hub.publish(REPO, {path: b"x"})
    assert "impossible name" in sentence(lambda: HubClient().files(REPO, commit))


def test_a_cache_that_cannot_be_written(hub, commit, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "file"))
    (tmp_path / "file").write_text("not a folder")
    said = sentence(lambda: HubClient().download(REPO, commit, list(FILES)))
    assert said.startswith(f"The Hugging Face cache in {tmp_path / 'file' / 'hub'} cannot be written (Not a directory)")


def test_create_is_private_and_says_whether_it_was_needed(hub):
    client = HubClient()
    assert client.create("acme/new") is True
    assert client.create("acme/new") is False
    assert hub.store.meta("dataset", "acme/new")["private"] is True
    with pytest.raises(RemoteDeniedError, match="may not write to other/new"):
        client.create("other/new")


def test_commit_changes_files_at_once(hub, commit, tmp_path):
    path = tmp_path / "new.lance"
    path.write_bytes(BIG[::-1])
    seen = []
    client = HubClient()
    made = client.commit(
        REPO, commit, {"b/new.lance": path, "README.md": b"# hi\n"}, ["two.txt"], "change", lambda *to: seen.append(to)
    )
    assert hub.store.meta("dataset", REPO)["refs"]["main"] == made
    expected = {**FILES, "b/new.lance": BIG[::-1], "README.md": b"# hi\n"}
    del expected["two.txt"]
    assert hub.files(REPO) == expected
    assert seen == [(len(BIG) + 5, len(BIG) + 5)]


def test_commit_on_an_old_version_changes_nothing(hub, commit):
    later = hub.publish(REPO, {**FILES, "theirs.txt": b"1"})
    with pytest.raises(RemoteMovedError):
        HubClient().commit(REPO, commit, {"ours.txt": b"2"}, [], "late")
    assert hub.store.meta("dataset", REPO)["refs"]["main"] == later


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault("PUT /_lfs/", "cut-upload"), RemoteUnreachableError),
        (Fault("PUT /_lfs/", status=500), RemoteBusyError),
        (Fault("POST /datasets/.*/info/lfs", status=403), RemoteDeniedError),
        (Fault("POST /api/datasets/.*/preupload", status=401), RemoteDeniedError),
        (Fault("POST /api/datasets/.*/commit", status=404), RemoteMissingError),
        (Fault("POST /api/datasets/.*/commit", status=412), RemoteMovedError),
        (Fault("POST /api/datasets/.*/commit", status=429, headers={"Retry-After": "1"}), RemoteBusyError),
        (Fault("POST /api/datasets/.*/commit", "cut-upload"), RemoteUnreachableError),
    ],
    ids=["cut", "500", "403", "401", "404", "412", "429", "cut commit"],
)
def test_an_upload_that_fails_changes_nothing(hub, commit, no_waiting, fault, error):
    hub.faults.append(fault)
    with pytest.raises(RemoteError) as caught:
        HubClient().commit(REPO, commit, {"new.lance": BIG + b"!"}, ["two.txt"], "change")
    assert type(caught.value) is error
    assert hub.token not in caught.value.message
    assert hub.files(REPO) == FILES
    hub.faults.clear()
    made = HubClient().commit(REPO, commit, {"new.lance": BIG + b"!"}, [], "change")
    assert hub.store.meta("dataset", REPO)["refs"]["main"] == made


def test_a_fault_of_an_upload_that_passes_is_not_noticed(hub, commit, no_waiting):
    hub.faults.append(Fault("PUT /_lfs/", "cut-upload", times=1))
    hub.faults.append(Fault("PUT /_lfs/", status=500, times=1))
    HubClient().commit(REPO, commit, {"new.lance": BIG + b"!"}, [], "change")
    assert hub.files(REPO)["new.lance"] == BIG + b"!"


@pytest.mark.hub
def test_the_real_hub():
    """Reading a small public dataset: what the test server does is what the Hub does."""
    if not find_token().value:
        pytest.skip("no Hub token")
    client = HubClient()
    commit = client.head("hf-internal-testing/dataset_with_data_files")
    files = client.files("hf-internal-testing/dataset_with_data_files", commit)
    folder = client.download("hf-internal-testing/dataset_with_data_files", commit, list(files))
    assert {path: (folder / path).stat().st_size for path in files} == files
    with pytest.raises(RemoteMissingError):
        client.head("hf-internal-testing/there-is-no-such-dataset")
