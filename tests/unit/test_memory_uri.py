from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funes.errors import FunesError
from funes.memory.uri import MemoryPlace, from_anywhere, resolve
from funes.paths import memory_folder


@pytest.mark.parametrize("location", [None, "", "local"])
def test_the_local_memory(location):
    assert resolve(location) == MemoryPlace("local", "local", memory_folder())


@pytest.mark.parametrize(
    ("location", "repo", "revision"),
    [
        ("acme/kb", "acme/kb", ""),
        ("acme/kb@v1.2", "acme/kb", "v1.2"),
        ("hf://datasets/acme/kb", "acme/kb", ""),
        ("hf://datasets/acme/kb/", "acme/kb", ""),
        ("hf://datasets/acme/kb@main", "acme/kb", "main"),
        ("hf://datasets/acme/kb@refs/pr/3", "acme/kb", "refs/pr/3"),
        ("hf://datasets/acme/kb@refs%2Fpr%2F3", "acme/kb", "refs/pr/3"),
        ("HF://datasets/Acme-1/k_b.x", "Acme-1/k_b.x", ""),
    ],
)
def test_the_hub(location, repo, revision):
    label = re.sub("(?i)^hf://datasets/", "", location).strip("/")
    assert resolve(location) == MemoryPlace(label, "hub", repo=repo, revision=revision)


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("s3://bucket/team/memory", "s3://bucket/team/memory"),
        ("gs://bucket/m/", "gs://bucket/m"),
        ("AZ://container", "az://container"),
    ],
)
def test_object_stores(location, url):
    assert resolve(location) == MemoryPlace(location, "store", url=url)


def test_an_existing_path_wins_over_the_shorthand(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert resolve("acme/kb").kind == "hub"
    (tmp_path / "acme" / "kb").mkdir(parents=True)
    place = resolve("acme/kb")
    assert (place.kind, place.label, str(place.folder)) == ("folder", "acme/kb", "acme/kb")
    place = resolve("hf://datasets/acme/kb")
    assert (place.kind, place.label) == ("hub", "hf://datasets/acme/kb")
    assert resolve(from_anywhere("acme/kb")) == place
    assert [from_anywhere(one) for one in (None, "local", "./acme/kb", "s3://b/m")] == [
        None,
        "local",
        "./acme/kb",
        "s3://b/m",
    ]


@pytest.mark.parametrize("location", ["./acme/kb", "../kb", "/abs/kb", "a/b/c", "kb", "~/kb", "a b/c"])
def test_paths(location):
    assert resolve(location).kind == "folder"


def test_the_home_of_a_memory(tmp_path):
    (tmp_path / "memory" / "chunks.lance").mkdir(parents=True)
    assert resolve(str(tmp_path)).folder == tmp_path / "memory"


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("hf://acme/kb", "hf://datasets/<org>/<name>"),
        ("hf://models/acme/kb", "hf://datasets/<org>/<name>"),
        ("hf://datasets/acme", "hf://datasets/<org>/<name>"),
        ("hf://datasets/acme/kb/deeper", "hf://datasets/<org>/<name>"),
        ("hf://datasets/acme/kb@a..b", "no valid revision"),
        ("hf://datasets/acme/kb@../x", "no valid revision"),
        ("https://huggingface.co/datasets/acme/kb", "<org>/<name>"),
        ("s3://", "names no bucket"),
        ("ftp://host/kb", "no place that funes reads"),
    ],
)
def test_what_is_no_memory(location, said):
    with pytest.raises(FunesError) as caught:
        resolve(location)
    assert said in caught.value.message
    assert caught.value.message.endswith(".")


@given(st.text(max_size=300) | st.from_regex(r"[~\w./@:-]{1,40}"))
def test_any_text_is_a_place_or_one_sentence(text):
    try:
        place = resolve(text)
    except FunesError:
        return
    assert place.kind in ("local", "folder", "hub", "store")
    if place.kind == "hub":
        assert place.repo.count("/") == 1
        assert ".." not in place.revision
