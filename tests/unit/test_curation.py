"""Decisions about a project memory: the file, and what may be published."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funes.commands.curating.decisions import (
    Decision,
    Decisions,
    canonical,
    decisions_file,
    parse_decisions,
    read_decisions,
    render_decisions,
)
from funes.commands.curation import Curation, Selection, named_sessions, publishable, stop_curating
from funes.commands.publishing.destination import destination
from funes.errors import FunesError
from funes.memory.reader import MemoryReader
from funes.memory.store import MemoryWriter
from funes.paths import memory_folder
from tests.support.small_memory import CACHE, HELPER, PARSER, blocks, make_memory

MEMORY = "acme/memory"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FUNES_HOME", str(tmp_path / "home"))
    make_memory(memory_folder())
    return tmp_path / "home"


def curate(repo: str = "acme/web") -> Curation:
    return Curation(MEMORY, repo, MemoryReader.open())


def test_a_memory_that_nobody_curates_has_no_selection() -> None:
    assert publishable(MEMORY) is None


def test_only_included_sessions_of_the_repository_are_selected() -> None:
    curation = curate()
    found = curation.candidates()
    assert {item.session.id: item.status for item in found} == {CACHE: "pending", HELPER: "pending"}
    curation.decide(found, {CACHE: "include", HELPER: "exclude"})
    assert publishable(MEMORY) == Selection(frozenset({CACHE}), "acme/web")
    assert publishable(canonical(f"hf://datasets/{MEMORY}@main")) == publishable(MEMORY)
    assert publishable(MEMORY.upper()) == publishable(MEMORY)  # one repository to the Hub
    assert {item.session.id: item.status for item in curate().candidates()} == {CACHE: "included", HELPER: "excluded"}
    curation.decide(found, {CACHE: None})
    assert publishable(MEMORY) == Selection(frozenset(), "acme/web")


def test_a_curated_memory_publishes_nothing_before_the_first_decision() -> None:
    curation = curate()
    curation.decide(curation.candidates(), {})
    assert publishable(MEMORY) == Selection(frozenset(), "acme/web")


def test_a_session_that_has_grown_is_pending_again() -> None:
    curation = curate()
    curation.decide(curation.candidates(), {CACHE: "include"})
    with MemoryWriter(memory_folder()) as writer:
        writer.append(blocks(CACHE, 7, [("text", "", "And the staging password is on the wiki.")], "user"))
    assert publishable(MEMORY) == Selection(frozenset(), "acme/web")
    assert {item.session.id: item.status for item in curate().candidates()}[CACHE] == "grown"


def test_curating_can_be_stopped() -> None:
    curation = curate()
    curation.decide(curation.candidates(), {CACHE: "include"})
    assert stop_curating(MEMORY)
    assert not stop_curating(MEMORY)
    assert publishable(MEMORY) is None


def test_another_repository_is_refused() -> None:
    curation = curate()
    curation.decide([], {})
    with pytest.raises(FunesError, match="is curated for acme/web"):
        curate("acme/api")
    assert Curation(MEMORY, None, MemoryReader.open()).repo == "acme/web"
    with pytest.raises(FunesError, match="name the repository"):
        Curation("acme/other", None, MemoryReader.open())


@pytest.mark.parametrize("repo", ["", "acme", "/api", "acme/", "a b/c", "acme/api\n"])
def test_what_is_no_repository_is_refused(repo: str) -> None:
    with pytest.raises(FunesError, match="OWNER/NAME"):
        curate(repo)


def test_sessions_are_named_by_prefixes() -> None:
    found = curate().candidates()
    assert named_sessions(found, ["1a2b", "agent-77aa"]) == [CACHE, HELPER]
    with pytest.raises(FunesError, match="No session of this repository"):
        named_sessions(found, [PARSER])


def test_the_file_can_be_edited_by_hand(home: Path) -> None:
    curation = curate()
    path = curation.decide(curation.candidates(), {CACHE: "include", HELPER: "include"})
    assert path == home / "curation" / "acme%2Fmemory.txt" == decisions_file(MEMORY)
    text = path.read_text()
    assert "# 2026-05-02 codex: The cache returns stale prices after a deploy." in text
    lines = [line.replace("include", "exclude") if CACHE in line else f"{line}\r" for line in text.splitlines() if line]
    path.write_text("\n".join(lines))
    assert publishable(MEMORY) == Selection(frozenset({HELPER}), "acme/web")


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("includ abc 3 0123456789ab", "'includ' is none of include"),
        ("include abc", "`include SESSION BLOCKS DIGEST`"),
        ("include abc three 0123456789ab", "`include SESSION BLOCKS DIGEST`"),
        ("exclude abc 3 0123456789AB", "`exclude SESSION BLOCKS DIGEST`"),
        ("exclude s 3 0123456789ab", "two decisions about session s"),
        ("repo", "needs a name"),
        ("repo acme/api", "second `repo` line"),
        ("pending", "needs a session"),
    ],
)
def test_a_malformed_line_is_named(home: Path, line: str, fault: str) -> None:
    path = decisions_file(MEMORY)
    path.parent.mkdir(parents=True)
    path.write_text(f"memory {MEMORY}\nrepo acme/web\ninclude s 2 0123456789ab\n{line}  # why\n")
    with pytest.raises(FunesError, match="line 4") as caught:
        publishable(MEMORY)
    assert str(path) in caught.value.message
    assert fault in caught.value.message


@pytest.mark.parametrize("text", ["", "memory acme/memory\n", "repo acme/web\n"])
def test_a_file_that_does_not_say_what_it_is_about_is_refused(text: str) -> None:
    with pytest.raises(FunesError, match="is missing"):
        parse_decisions(text, Path("x.txt"))


def test_a_file_that_is_no_text_is_refused() -> None:
    decisions_file(MEMORY).parent.mkdir(parents=True)
    decisions_file(MEMORY).write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FunesError, match="cannot be read"):
        publishable(MEMORY)


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
        st.tuples(st.sampled_from(["include", "exclude"]), st.integers(0, 10**6), st.from_regex("\\A[0-9a-f]{12}\\Z")),
    ),
    st.text(),
)
def test_what_is_written_is_read_back(entries: dict[str, tuple[str, int, str]], title: str) -> None:
    decisions = Decisions(MEMORY, "acme/web", {key: Decision(*value) for key, value in entries.items()})  # type: ignore[arg-type]
    text = render_decisions(decisions, dict.fromkeys(entries, title))
    assert parse_decisions(text, Path("x.txt")) == decisions


def test_spellings_of_one_memory_have_one_file(tmp_path: Path) -> None:
    assert canonical("hf://datasets/acme/memory@abc") == canonical("acme/memory@v1") == "acme/memory"
    assert canonical("s3://bucket/m/") == "s3://bucket/m"
    assert canonical(f"{tmp_path}/x/../m") == str(tmp_path / "m")
    assert canonical("S3://bucket//m") == "s3://bucket/m"
    assert len(decisions_file("s3://" + "b" * 400).name) < 220
    assert read_decisions("acme/none") is None


def test_a_folder_has_the_same_decisions_before_and_after_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = destination("shared")[0]
    (tmp_path / "shared").mkdir()
    (tmp_path / "link").symlink_to("shared")
    assert (
        before == destination("shared")[0] == destination("link")[0] == canonical("./link") == str(tmp_path / "shared")
    )


def test_a_folder_called_like_the_repository_does_not_hide_its_decisions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    curation = curate()
    curation.decide(curation.candidates(), {})
    (tmp_path / MEMORY).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    label, place = destination(f"hf://datasets/{MEMORY}")
    assert (label, place.kind) == (MEMORY, "hub")
    assert publishable(label) == Selection(frozenset(), "acme/web")


@pytest.mark.parametrize(
    "name", ["acme/a--b", "acme/a..b", "acme/x.git", "acme/-x", "acme/two words", "acme/..", "acmé/x", "a/"]
)
def test_a_name_that_the_hub_does_not_allow_is_not_taken_for_a_new_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FunesError, match=r"^The Hub allows no repository of the name "):
        destination(name)
    assert destination(f"./{name}")[1].kind == "folder"
