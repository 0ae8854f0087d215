"""`funes models` and `recall --rerank` with a small cross-encoder, its download from a real server included."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from funes.__main__ import main
from funes.memory.reader import MemoryReader
from funes.memory.store import MemoryWriter
from funes.models import chosen
from funes.models.cross_encoder import CrossEncoder
from funes.models.pinned import CROSS_ENCODER, PinnedFile, PinnedModel
from funes.search import pipeline
from funes.search.model import RecallOptions
from funes.search.pipeline import recall as search
from tests.support.chunks import make_chunk
from tests.support.cross_encoders import KnownAnswers, write_cross_encoder
from tests.support.hub_server import HubServer
from tests.support.small_memory import make_memory

ROOT = Path(__file__).parents[2]
FILES = ("model.safetensors", "tokenizer.json", "config.json")
QUESTION = "why did we move off the streaming parser, and why was the cache stale"


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    return make_memory(tmp_path_factory.mktemp("memory"))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_cross_encoder(tmp_path_factory.mktemp("source"))


@pytest.fixture
def small(model, monkeypatch):
    """The small model in the place of the pinned one."""
    pinned = pinned_as(model, "0" * 40)
    monkeypatch.setattr("funes.models.pinned.CROSS_ENCODER", pinned)
    monkeypatch.setattr("funes.models.cross_encoder.PINNED", pinned)
    return pinned


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FUNES_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FUNES_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path


@pytest.fixture(autouse=True)
def no_hurry(monkeypatch):
    """How many passages are read in half a second says something about the machine."""
    monkeypatch.setattr(pipeline, "rerank", partial(pipeline.rerank, clock=lambda: 0.0))


@pytest.fixture
def run(capsys):
    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def pinned_as(folder, revision):
    files = tuple(
        PinnedFile(name, len(data), hashlib.sha256(data).hexdigest())
        for name in FILES
        for data in [(folder / name).read_bytes()]
    )
    return PinnedModel("acme/reader", "reader", revision, files, name="cross-encoder")


def install(model, folder):
    folder.mkdir(parents=True)
    for name in FILES:
        (folder / name).write_bytes((model / name).read_bytes())
    return folder


def states(run):
    code, out, _ = run("models", "list", "--json")
    assert code == 0
    return {entry["name"]: entry for entry in json.loads(out)["models"]}


def order(run, *options):
    code, out, err = run("recall", QUESTION, "--json", *options)
    assert code == 0, err
    return [(hit["turn_uuid"], hit["block_type"], hit["text"]) for hit in json.loads(out)["hits"]]


def test_the_pinned_files_are_the_published_ones():
    """The numbers that several projects published independently of each other (docs/models.md)."""
    assert CROSS_ENCODER.revision == "c5ee24cb16019beea0893ab7796b1df96625c6b8"
    assert [(file.name, file.size, file.sha256[:12]) for file in CROSS_ENCODER.files] == [
        ("model.safetensors", 90_870_598, "821d1aa69520"),
        ("tokenizer.json", 711_396, "d241a60d5e8f"),
        ("config.json", 794, "380e02c93f43"),
    ]
    assert all(re.fullmatch("[0-9a-f]{64}", file.sha256) for file in CROSS_ENCODER.files)


def test_both_models_are_listed(run, small, model, places):
    code, out, err = run("models")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("embedding  sentence-transformers/all-MiniLM-L6-v2  91 MB  vectors and late interaction")
    assert lines[2] == "cross-encoder  acme/reader  0 MB  reads the best passages and orders them (optional)"
    assert lines[3] == "  not on this machine; `funes models pull cross-encoder` fetches it"
    folder = install(model, places / "models" / "reader")
    assert states(run)["cross-encoder"] == {
        "name": "cross-encoder",
        "model_id": "acme/reader",
        "revision": "0" * 40,
        "purpose": "reads the best passages and orders them (optional)",
        "size": small.size,
        "folder": str(folder),
        "source": "models folder",
        "state": "verified",
    }
    (folder / "config.json").write_bytes(b"{}")
    assert states(run)["cross-encoder"]["state"] == "changed"
    assert f"{folder}  (models folder, not the bytes it should have, so it is not used)" in run("models")[1]


def pull(revision, files, **environment):
    """`funes models pull cross-encoder` in a process that pins this revision of acme/reader with these files."""
    code = (
        "import sys\n"
        "from funes.models import cross_encoder, fetch, pinned\n"
        "fetch._HUB_SECONDS = fetch._STALL_SECONDS = 120\n"
        f"files = tuple(pinned.PinnedFile(*file) for file in {[(f.name, f.size, f.sha256) for f in files]!r})\n"
        f"model = pinned.PinnedModel('acme/reader', 'reader', {revision!r}, files, name='cross-encoder')\n"
        "pinned.CROSS_ENCODER = cross_encoder.PINNED = model\n"
        "from funes.__main__ import main\n"
        "sys.exit(main(['models', 'pull', 'cross-encoder']))\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "HF_HUB_OFFLINE": "0", **environment}
    return subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=600, check=False
    )


def publish(hub, model, **changed):
    files = {name: (model / name).read_bytes() for name in FILES}
    return hub.publish("acme/reader", {**files, **changed}, private=False, kind="model")


def test_pulling_takes_the_pinned_revision_from_the_hub(places, model, monkeypatch, run):
    with HubServer(places / "hub") as hub:
        revision = publish(hub, model)
        publish(hub, model, **{"config.json": b"newer"})
        pinned = pinned_as(model, revision)
        done = pull(revision, pinned.files, HF_ENDPOINT=hub.url)
        snapshot = places / "hf" / "hub" / "models--acme--reader" / "snapshots" / revision
        assert done.stdout == f"acme/reader is in {snapshot}\n", done.stderr
        asked = hub.traffic.requests
        assert pull(revision, pinned.files, HF_ENDPOINT=hub.url).returncode == 0
        assert hub.traffic.requests == asked
    monkeypatch.setattr("funes.models.pinned.CROSS_ENCODER", pinned)
    assert states(run)["cross-encoder"]["source"] == "Hugging Face cache"
    code, out, err = run("models", "remove", "cross-encoder")
    assert (code, out, err) == (0, f"cross-encoder: 0 MB deleted from {snapshot}\n", "")
    assert not any(path.is_file() for path in (places / "hf" / "hub" / "models--acme--reader").rglob("blobs/*"))
    assert states(run)["cross-encoder"]["state"] == "absent"


def test_other_bytes_than_the_pinned_ones_are_refused(places, model):
    with HubServer(places / "hub") as hub:
        revision = publish(hub, model)
        files = [replace(file, sha256="0" * 64) for file in pinned_as(model, revision).files]
        done = pull(revision, files, HF_ENDPOINT=hub.url)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "funes: The model acme/reader could not be fetched (Hugging Face: the files are not the pinned ones): run "
        "`funes models pull cross-encoder` with a connection, or put model.safetensors, tokenizer.json and config.json "
        f"into {places / 'models' / 'reader'}.\n"
    )


def test_without_a_connection_the_sentence_names_the_hub_alone(places, model):
    done = pull("0" * 40, pinned_as(model, "0" * 40).files, HF_ENDPOINT="http://127.0.0.1:9")
    assert done.returncode == 1
    assert "could not be fetched (Hugging Face: no connection): run `funes models pull cross-encoder`" in done.stderr


def test_removing_deletes_the_files_once(run, small, model, places):
    folder = install(model, places / "models" / "reader")
    assert run("models", "remove", "cross-encoder") == (0, f"cross-encoder: 0 MB deleted from {folder}\n", "")
    assert not folder.exists()
    code, out, err = run("models", "remove", "cross-encoder")
    assert (code, out) == (1, "")
    assert err == "funes: The model acme/reader is not on this machine; there is nothing to remove.\n"


def test_a_folder_of_ones_own_is_used_until_it_is_removed(run, model, memory, places):
    code, out, err = run("models", "use", "cross-encoder", model)
    assert (code, err) == (0, "")
    assert out == f"cross-encoder: {model} is used from now on; `funes models remove cross-encoder` takes it out\n"
    state = states(run)["cross-encoder"]
    assert (state["model_id"], state["folder"], state["state"]) == ("", str(model), "unchanged")
    assert order(run, "--memory", memory) == order(run, "--memory", memory, "--rerank", "cross-encoder")
    assert run("models", "remove", "cross-encoder")[1] == (
        f"cross-encoder: {model} is not used any more; its files are as they were\n"
    )
    assert sorted(path.name for path in model.iterdir()) == sorted(FILES)
    assert not chosen.choices_file().exists()


def test_going_back_from_ones_own_keeps_the_pinned_one(run, small, model, places):
    folder = install(model, places / "models" / "reader")
    assert run("models", "use", "cross-encoder", install(model, places / "mine"))[0] == 0
    assert "is not used any more" in run("models", "remove", "cross-encoder")[1]
    assert states(run)["cross-encoder"]["folder"] == str(folder)
    assert "deleted from" in run("models", "remove", "cross-encoder")[1]


def test_a_folder_is_noted_whole_and_watched(run, model, places, monkeypatch):
    folder = install(model, places / "mine")
    monkeypatch.chdir(places)
    assert run("models", "use", "cross-encoder", "mine")[0] == 0
    assert states(run)["cross-encoder"]["folder"] == str(folder)
    (folder / "model.safetensors").write_bytes(b"other")
    assert states(run)["cross-encoder"]["state"] == "changed"
    assert "changed since it was chosen" in run("models")[1]
    (folder / "model.safetensors").unlink()
    assert states(run)["cross-encoder"]["state"] == "absent"


@pytest.mark.parametrize("name", ["embedding", "sentence-transformers/all-MiniLM-L6-v2"])
def test_the_embedding_model_cannot_be_chosen(run, model, name):
    code, out, err = run("models", "use", name, model)
    assert (code, out) == (1, "")
    assert "cannot be chosen, because memories are made with it" in err


def test_a_folder_that_does_not_fit_is_not_noted(run, places):
    folder = write_cross_encoder(places / "mine", hidden_act="relu")
    code, out, err = run("models", "use", "cross-encoder", folder)
    assert (code, out) == (1, "")
    assert "its hidden_act is 'relu'" in err
    assert not chosen.choices_file().exists()


def test_weights_that_give_no_number_are_not_noted(run, places):
    def spoil(weights):
        weights["classifier.bias"] = weights["classifier.bias"] * float("nan")

    code, _, err = run("models", "use", "cross-encoder", write_cross_encoder(places / "mine", change=spoil))
    assert code == 1
    assert "gives nan as a score; its weights are damaged" in err


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"cross-encoder": {"folder": 7, "sha256": ""}}'])
def test_a_damaged_note_is_not_guessed_at(run, memory, places, content):
    chosen.choices_file().parent.mkdir()
    chosen.choices_file().write_bytes(content)
    code, _, err = run("models")
    note = f"{chosen.choices_file()} cannot be read: delete it, and choose models again with `funes models use`."
    assert (code, err) == (1, f"funes: {note}\n")
    code, out, err = run("recall", QUESTION, "--memory", memory)
    assert code == 0
    assert out.startswith("[")
    assert f"note: {note}\n" in err


def test_recall_is_in_the_order_of_the_cross_encoder(run, small, model, memory, places):
    before = order(run, "--memory", memory)
    install(model, places / "models" / "reader")
    after = order(run, "--memory", memory)
    assert order(run, "--memory", memory, "--rerank", "late") == before
    reader = CrossEncoder(model)
    scored = zip(reader.scores(reader.pairs(QUESTION, [text for *_, text in after])).tolist(), after, strict=True)
    assert after == [hit for _, hit in sorted(scored, key=lambda one: -one[0])]
    assert sorted(after) == sorted(before)
    assert after != before


def test_asking_for_a_cross_encoder_that_is_not_there_is_an_error(run, memory):
    code, out, err = run("recall", QUESTION, "--memory", memory, "--rerank", "cross-encoder")
    assert (code, out) == (1, "")
    assert err == (
        "funes: There is no cross-encoder on this machine: run `funes models pull cross-encoder` once, with a "
        "connection, or leave `--rerank cross-encoder` out.\n"
    )


def test_a_chosen_folder_that_is_gone_is_a_note_unless_it_was_asked_for(run, memory, model, places):
    folder = install(model, places / "mine")
    assert run("models", "use", "cross-encoder", folder)[0] == 0
    (folder / "config.json").unlink()
    code, out, err = run("recall", QUESTION, "--memory", memory)
    assert code == 0
    assert out.startswith("[")
    assert f"note: {folder} cannot be used as a cross-encoder: it has no config.json; " in err
    code, out, err = run("recall", QUESTION, "--memory", memory, "--rerank", "cross-encoder")
    assert (code, out) == (1, "")
    assert "it has no config.json" in err


OLD, NEW = "The parser was dropped for its errors.", "The parser was dropped for its speed."


@pytest.fixture
def dated(tmp_path):
    """A memory of two passages, one of which is from yesterday."""
    now = datetime.now(UTC)
    chunks = [
        make_chunk(text, id=f"{age:024x}", turn_uuid=f"t{age}", session_id=f"s{age}", ts=now - timedelta(days=age))
        for text, age in ((OLD, 300), (NEW, 1))
    ]
    with MemoryWriter(tmp_path / "dated") as writer:
        writer.append(chunks)
        writer.finish()
    return MemoryReader.open(str(tmp_path / "dated"))


@pytest.mark.parametrize(
    ("question", "options", "first"),
    [
        ("why was the parser dropped", {}, OLD),
        ("why was the parser dropped", {"half_life_days": 0}, OLD),
        ("why was the parser dropped", {"half_life_days": 10}, NEW),
        ("why was the parser dropped yesterday", {}, NEW),
    ],
)
def test_what_was_asked_of_time_counts_after_the_cross_encoder(dated, question, options, first):
    """It prefers the old passage here, and knows nothing of time."""
    reader = KnownAnswers({OLD: 5.0, NEW: 4.0})
    found = search(dated, None, question, RecallOptions(neighbors=0, **options), reader).hits
    assert found[0].chunk.text == first
    assert reader.questions == ["why was the parser dropped"]
