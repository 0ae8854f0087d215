"""`funes index ORG/NAME`: trace datasets on the Hub, through the real command and the real client."""

from __future__ import annotations

import io
import json
import os
import shutil
from pathlib import Path

import pytest

from funes.commands.indexing import hub_dataset
from funes.memory.remote import downloads
from tests.support.hub_faults import Fault
from tests.support.hub_memory import publish_memory
from tests.support.hub_server import HubServer
from tests.support.small_memory import make_memory

REPO = "acme/traces"
EXAMPLES = Path(__file__).parents[2] / "examples" / "sessions" / "claude" / "projects" / "-home-mira-src-tidewatch"
RAW = sorted(EXAMPLES.glob("*.jsonl"))
RESOLVE = "GET /datasets/acme/traces/resolve/"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    with HubServer(tmp_path / "hub") as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("HF_TOKEN", server.token)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
        monkeypatch.delenv("HF_HUB_CACHE", raising=False)
        monkeypatch.setenv("FUNES_HOME", str(tmp_path / "home"))
        monkeypatch.setattr(downloads, "FIRST_WAIT", 0.001)
        monkeypatch.chdir(tmp_path)
        yield server


def index(run, place=REPO, *options):
    code, out, err = run("index", place, "--budget", "0", *options)
    assert code == 0, err
    return out


def sessions(run):
    document = json.loads(run("sessions", "--limit", "0", "--json")[1])
    return {one["id"]: one for one in document["sessions"]}


def parquet(*traces: Path) -> bytes:
    """A shard of a dataset of agent traces: one row a session."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = {
        "session_id": [trace.stem for trace in traces],
        "harness": ["claude_code"] * len(traces),
        "file_name": [trace.name for trace in traces],
        "trace": [trace.read_text() for trace in traces],
    }
    stream = io.BytesIO()
    pq.write_table(pa.table(rows), stream)
    return stream.getvalue()


def dataset(raw=RAW[:2], shards=(RAW[2:4], RAW[4:6])):
    files: dict[str, bytes | Path] = {f"raw/{path.name}": path for path in raw}
    files |= {f"data/train-{number:05d}.parquet": parquet(*traces) for number, traces in enumerate(shards)}
    return {**files, "README.md": b"# traces\n", "dataset_infos.json": b'{"version": 1}\n', "img/logo.png": b"\x89PNG"}


def test_raw_sessions_and_all_shards_are_read_and_their_origin_is_remembered(hub, run):
    hub.publish(REPO, dataset())
    out = index(run)
    assert out.startswith("5 traces: 4 read")
    assert "note: 1 file of acme/traces cannot be read as traces." in out
    found = sessions(run)
    assert {trace.stem for trace in RAW[:6]} <= set(found)
    assert found[RAW[0].stem]["source_path"] == f"hf://datasets/{REPO}/raw/{RAW[0].name}"
    assert found[RAW[3].stem]["source_path"] == f"hf://datasets/{REPO}/data/train-00000.parquet"
    assert hub.traffic.count(f"{RESOLVE}.*(png|README)") == 0
    assert not any("hf/hub" in one["source_path"] for one in found.values())


def test_what_was_read_is_neither_fetched_nor_read_again(hub, run, tmp_path):
    hub.publish(REPO, dataset())
    index(run)
    shutil.rmtree(tmp_path / "hf")
    hub.traffic.clear()
    assert index(run).startswith("5 traces: nothing new")
    assert index(run, f"hf://datasets/{REPO}@main").startswith("5 traces: nothing new")
    assert hub.traffic.count(RESOLVE) == 0


def test_only_shards_that_are_new_or_have_changed_are_read(hub, run):
    hub.publish(REPO, dataset())
    index(run)
    changed = dataset(raw=RAW[:3], shards=(RAW[2:4], RAW[4:7]))
    hub.publish(REPO, changed)
    hub.traffic.clear()
    out = index(run)
    assert out.startswith("6 traces: 2 read, 4 unchanged")
    assert {one.path.rpartition("/")[2] for one in hub.traffic.matching(RESOLVE)} == {
        RAW[2].name,
        "train-00001.parquet",
    }
    assert RAW[6].stem in sessions(run)


def test_an_interrupted_run_goes_on_where_it_stopped(hub, run, monkeypatch):
    monkeypatch.setattr(hub_dataset, "GROUP_FILES", 1)
    hub.publish(REPO, dataset())
    hub.faults.append(Fault(f"{RESOLVE}raw|{RESOLVE}.*/raw/{RAW[1].name}", "garbled"))
    code, _, err = run("index", REPO, "--budget", "0")
    assert code == 1
    assert "another content than it announces" in err
    before = set(sessions(run))
    assert before
    assert RAW[1].stem not in before
    hub.faults.clear()
    hub.traffic.clear()
    index(run)
    assert hub.traffic.count(f"{RESOLVE}.*train") == 0
    assert hub.traffic.count(f"{RESOLVE}.*{RAW[1].name}") == 1
    assert set(sessions(run)) >= before | {RAW[1].stem}


def test_an_existing_path_wins(hub, run, tmp_path):
    hub.publish(REPO, dataset())
    (tmp_path / REPO).mkdir(parents=True)
    shutil.copy(RAW[7], tmp_path / REPO)
    hub.traffic.clear()
    assert index(run).startswith("1 trace: 1 read")
    assert hub.traffic.requests == 0


def test_one_harness_and_a_limit(hub, run):
    hub.publish(REPO, dataset())
    assert index(run, REPO, "--harness", "claude", "--limit", "4").startswith("4 traces: ")
    assert len(sessions(run)) >= 1


def test_what_is_no_dataset_of_traces(hub, run, tmp_path):
    hub.publish("acme/text", {"data.txt": b"hello", "README.md": b"# hi"})
    publish_memory(hub, "acme/kb", make_memory(tmp_path / "memory"))
    hub.publish("acme/kb", {path: data for path, data in hub.files("acme/kb").items() if path != "memory.json"})

    def fault(place):
        code, out, err = run("index", place)
        assert (code, out) == (1, "")
        return err.removeprefix("funes: ").rstrip("\n")

    assert fault("acme/text") == (
        "acme/text on the Hub holds no files that can be traces (.jsonl, .json, .parquet or SQLite)."
    )
    assert fault("acme/kb") == "acme/kb is a memory, not a dataset of traces; `funes recall --memory acme/kb` reads it."
    assert fault("acme/none").startswith("There is no dataset acme/none on the Hub")
    assert fault("./acme/none").startswith("There is nothing at ./acme/none")
    assert fault("s3://bucket/traces").startswith("s3://bucket/traces is in an object store")
    hub.stop()
    assert "cannot be reached" in fault(REPO)
    assert not os.path.exists(tmp_path / "home" / "memory" / "chunks.lance")


def test_a_run_that_is_to_end_stops_fetching(hub, tmp_path, monkeypatch):
    from funes.commands.index import IndexOptions
    from funes.commands.indexing.report import IndexReport, NoProgress

    hub.publish(REPO, dataset())
    asked = iter([False, True])  # before the group, and with its first bytes
    read = []
    hub_dataset.read_dataset(
        IndexOptions(dataset=REPO), {}, IndexReport(), NoProgress(), lambda: next(asked, True), read.append
    )
    assert read == []
    assert list((tmp_path / "hf").rglob("*.incomplete")) == []
