"""Projects of the ignore file stay out of the memory, whatever reads their traces."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from funes.commands.ignoring import IgnoreRules, ignore_file, read_ignore_rules
from funes.commands.index import IndexOptions, IndexReport, run_index
from funes.commands.indexing import pool
from funes.commands.opened import OpenMemory
from funes.commands.status import status
from funes.errors import FunesError
from funes.memory.reader import MemoryReader
from tests.support.claude_sessions import ClaudeSession, talk


@pytest.fixture
def projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FUNES_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FUNES_MODELS", str(tmp_path / "no models"))
    (tmp_path / "home").mkdir()
    folder = tmp_path / "claude" / "projects"
    folder.mkdir(parents=True)
    return folder


def ignore(*lines: str) -> None:
    ignore_file().write_text("".join(f"{line}\n" for line in lines))


def index(path: Path, **options: object) -> IndexReport:
    return run_index(IndexOptions(path=path, budget=0, **options))  # type: ignore[arg-type]


def stored() -> set[str]:
    return {session.id for session in MemoryReader.open().sessions()}


@pytest.mark.parametrize(
    ("lines", "workdir", "repo", "ignored"),
    [
        (["~/work/secret"], "{home}/work/secret", "", True),
        (["~/work/secret"], "{home}/work/secret/sub/folder", "", True),
        (["~/work/secret/"], "{home}/work/secret", "", True),
        (["~/work/secret"], "{home}/work/secrets", "", False),
        (["~/work/secret"], "/other/work/secret", "", False),
        (["~"], "{home}/anything", "", True),
        (["/srv/data"], "/srv/data/x", "", True),
        (["/srv/data"], "/home/srv/data", "", False),
        (["secret"], "/a/b/secret", "", True),
        (["secret"], "/a/secret/b", "", True),
        (["sec*"], "/a/secret/b", "", True),
        (["clients/acme"], "/home/u/clients/acme/site", "", True),
        (["clients/acme"], "/home/u/acme", "", False),
        (["clients/*/private"], "/x/clients/one/private", "", True),
        (["acme/api"], "/a/b", "acme/api", True),
        (["acme/api"], "/a/b", "acme/api-docs", False),
        (["acme/*"], "/a/b", "acme/web", True),
        (["acme/"], "/a/b", "acme/web", True),
        (["Acme/API"], "/a/b", "acme/Api", True),
        (["api"], "/a/b", "acme/api", True),
        (["acme/*", "!acme/docs"], "/a/b", "acme/docs", False),
        (["~/work", "!acme/docs"], "{home}/work/docs", "acme/docs", False),
        (["~/work", "!acme/docs"], "{home}/work/api", "acme/api", True),
        (["!acme/docs", "~/work"], "{home}/work/docs", "acme/docs", True),
        (["~/work/", "!~/work/open/"], "{home}/work/open/x", "", False),
        (["*"], "/a", "", True),
        (["*"], "", "", False),
        ([], "/a", "a/b", False),
        (["\\!odd"], "/a/!odd", "", True),
        (["C:\\Users\\me\\secret"], "C:\\Users\\me\\secret\\x", "", True),
    ],
)
def test_patterns(projects: Path, lines: list[str], workdir: str, repo: str, ignored: bool) -> None:
    ignore("# comment", "", *lines)
    rules = read_ignore_rules()
    assert rules.lines == tuple(lines)
    pattern = rules.ignores(workdir.replace("{home}", str(Path.home())), repo)
    assert bool(pattern) is ignored
    assert not ignored or pattern in lines


def test_the_pattern_that_decided_is_named(projects: Path) -> None:
    ignore("secret", "clients/acme", "other")
    assert read_ignore_rules().ignores("/x/clients/acme/secret", "") == "clients/acme"


def test_a_pattern_is_named_as_it_stands_in_the_file() -> None:
    assert IgnoreRules((" secret",)).ignores("/x/ secret", "") == " secret"
    assert IgnoreRules(("\r0",)).ignores("", "\r0") == "\r0"


@given(st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]))), st.text(), st.text())
@example(["\r0"], "", "\r0")
def test_any_pattern_and_any_folder_can_be_compared(lines: list[str], workdir: str, repo: str) -> None:
    patterns = tuple(line for line in lines if line.strip())
    with contextlib.suppress(ValueError):  # read_ignore_rules says which line
        pattern = IgnoreRules(patterns).ignores(workdir, repo)
        assert not pattern or pattern in patterns


@pytest.mark.parametrize("text", [b"secret\n!\n", b"ok\n\\\n"])
def test_a_line_that_is_no_pattern_is_named(projects: Path, text: bytes) -> None:
    ignore_file().write_bytes(text)
    ClaudeSession(projects, "one").prompt("hello")
    with pytest.raises(FunesError, match="line 2"):
        index(projects)


def test_a_file_that_is_no_text_stops_indexing(projects: Path) -> None:
    ignore_file().write_bytes(b"\xff\xfe\x00")
    ClaudeSession(projects, "one").prompt("hello")
    with pytest.raises(FunesError, match="cannot be read"):
        index(projects)


@pytest.mark.parametrize("workers", [False, True])
def test_ignored_projects_are_counted_not_stored(
    projects: Path, monkeypatch: pytest.MonkeyPatch, workers: bool
) -> None:
    if workers:
        monkeypatch.setattr(pool, "SMALL_RUN_BYTES", 0)
    ignore("secret")
    kept, left = ClaudeSession(projects, "kept"), ClaudeSession(projects, "left", cwd="/home/dev/secret/x")
    talk(kept, 1, "kept")
    talk(left, 2, "left")
    report = index(projects)
    assert stored() == {kept.id}
    assert report.skipped["session in the ignore file (secret)"] == 1
    assert report.sessions == report.new_sessions == 1
    totals = status(OpenMemory()).traces
    assert totals is not None
    assert totals.parsed == totals.stored == report.stored
    assert totals.skipped["session in the ignore file (secret)"] == 1


def test_a_session_that_is_followed_stays_out(projects: Path) -> None:
    ignore("secret")
    left = ClaudeSession(projects, "left", cwd="/home/dev/secret")
    talk(left, 2, "left")
    other = ClaudeSession(projects, "other")
    talk(other, 1, "other")
    follow = {"traces": (left.path, other.path), "harness": "claude"}
    run_index(IndexOptions(budget=0, **follow))  # type: ignore[arg-type]
    for _ in range(3):
        left.cwd = "/home/dev/shop"  # the agent changed to another folder; the session is still the same
        left.prompt("More about what is secret.")
        report = run_index(IndexOptions(budget=0, **follow))  # type: ignore[arg-type]
        assert (report.read, report.stored) == (1, 0)
    assert stored() == {other.id}
    totals = status(OpenMemory()).traces
    assert totals is not None
    assert totals.skipped["session in the ignore file (secret)"] == 1


def test_turns_in_an_ignored_folder_are_left_out(projects: Path) -> None:
    ignore("secret")
    session = ClaudeSession(projects, "one")
    session.prompt("Look at both projects.")
    session.cwd = "/home/dev/secret"
    session.answer("The secret project has a quokka.")
    session.cwd = "/home/dev/shop"
    session.answer("The shop has none.")
    report = index(projects)
    assert report.skipped["turn in a folder of the ignore file"] == 1
    texts = [chunk.text for chunk in MemoryReader.open().session_chunks(session.id)]
    assert texts == ["Look at both projects.", "The shop has none."]


def test_a_repository_is_ignored_by_its_name(projects: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / ".git").mkdir(parents=True)
    (work / ".git" / "config").write_text('[remote "origin"]\nurl = git@example.org:acme/api.git\n')
    ignore("acme/*")
    session = ClaudeSession(projects, "one", cwd=str(work / "src"))
    talk(session, 1, "one")
    other = ClaudeSession(projects, "other")
    talk(other, 1, "other")
    assert index(projects).skipped["session in the ignore file (acme/*)"] == 1
    assert stored() == {other.id}


def test_a_changed_file_takes_effect_on_unchanged_traces(projects: Path) -> None:
    ignore("secret")
    left, kept = ClaudeSession(projects, "left", cwd="/home/dev/secret"), ClaudeSession(projects, "kept")
    talk(left, 2, "left")
    talk(kept, 1, "kept")
    index(projects)
    assert index(projects).read == 0
    ignore_file().unlink()
    report = index(projects)
    assert (report.read, report.skipped) == (1, {})
    assert stored() == {left.id, kept.id}
    totals = status(OpenMemory()).traces
    assert totals is not None
    assert not totals.skipped
    assert index(projects).read == 0


def test_what_is_stored_stays_and_is_named(projects: Path) -> None:
    session = ClaudeSession(projects, "one", cwd="/home/dev/secret")
    talk(session, 1, "one")
    index(projects)
    ignore("secret")
    report = index(projects)
    [note] = [note for note in report.notes if "forget --ignored" in note]
    assert note.startswith("1 stored session is named by ")
    assert stored() == {session.id}
    before = len(MemoryReader.open().session_chunks(session.id))
    session.prompt("And this is new.")
    report = index(projects)
    assert not [note for note in report.notes if "forget --ignored" in note]
    assert len(MemoryReader.open().session_chunks(session.id)) == before
    assert any("forget --ignored" in note for note in status(OpenMemory()).notes)


def test_a_run_of_one_path_obeys_too(projects: Path) -> None:
    ignore("secret")
    left = ClaudeSession(projects, "left", cwd="/home/dev/secret")
    talk(left, 1, "left")
    report = index(left.path)
    assert report.stored == 0
    os.utime(left.path, (1, 1))
    assert index(left.path).stored == 0
