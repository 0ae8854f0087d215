from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funes.traces.repo import parse_remote, repo_identity


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://github.com/owner/name.git", "owner/name"),
        ("https://github.com/owner/name", "owner/name"),
        ("https://user:token@github.com/owner/name.git/", "owner/name"),
        ("http://host:8080/owner/name.git", "owner/name"),
        ("ssh://git@host.org:22/owner/name.git", "owner/name"),
        ("git://host/owner/name.git", "owner/name"),
        ("git@github.com:owner/name.git", "owner/name"),
        ("github-work:owner/name", "owner/name"),
        ("git@host:/owner/name.git", "owner/name"),
        ("git@gitlab.com:group/sub/name.git", "sub/name"),
        ("https://dev.azure.com/org/project/_git/name", "project/name"),
        ("git@github.com:owner/name.with.dots", "owner/name.with.dots"),
        ("https://github.com/owner/.github", "owner/.github"),
        ("https://github.com/name", ""),
        ("file:///srv/git/owner/name.git", ""),
        ("/srv/git/owner/name.git", ""),
        ("../owner/name", ""),
        ("C:/repos/owner/name", ""),
        ("git@host:name.git", ""),
        ("", ""),
        ("https://github.com/../..", ""),
    ],
)
def test_parse_remote(url: str, name: str):
    assert parse_remote(url) == name


@given(st.text(max_size=60))
def test_any_remote_can_be_parsed(url: str):
    name = parse_remote(url)
    assert name == "" or len(name.split("/")) == 2


def repository(folder: Path, **remotes: str) -> Path:
    config = "[core]\n\tbare = false\n"
    for name, url in remotes.items():
        config += f'[remote "{name}"]\n\tfetch = +refs/heads/*:refs/remotes/{name}/*\n\turl = {url} # main\n'
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "config").write_text(config)
    return folder


def test_remotes_in_order_of_preference(tmp_path: Path):
    first, second, third = "https://h/a/one", "https://h/b/two", "https://h/c/three"
    assert repo_identity(str(repository(tmp_path / "1", fork=first, upstream=second, origin=third))) == "c/three"
    assert repo_identity(str(repository(tmp_path / "2", fork=first, upstream=second))) == "b/two"
    assert repo_identity(str(repository(tmp_path / "3", fork=first, other=second))) == "a/one"
    assert repo_identity(str(repository(tmp_path / "4", origin="/srv/x.git", fork=first))) == "a/one"
    assert repo_identity(str(repository(tmp_path / "5"))) == ""


def test_folders_inside_and_outside(tmp_path: Path):
    repo = repository(tmp_path / "repo", origin="git@h:o/n.git")
    (repo / "src" / "deep").mkdir(parents=True)
    assert repo_identity(str(repo / "src" / "deep")) == "o/n"
    assert repo_identity(str(repo / "was" / "here")) == "o/n"
    (tmp_path / "plain").mkdir()
    assert repo_identity(str(tmp_path / "plain")) == ""
    inner = repository(repo / "vendor" / "inner")
    assert repo_identity(str(inner)) == ""


@pytest.mark.parametrize("workdir", ["", "relative/path", "~/x", "/nowhere/at/all", "\\\\server\\share", "C:\\x", "\0"])
def test_folders_that_are_none(workdir: str):
    assert repo_identity(workdir) == ""


@pytest.mark.parametrize("place", [".claude/worktrees/brave-fox", ".worktrees/2", ".worktrees/alex/fix"])
def test_worktrees_that_are_gone(tmp_path: Path, place: str):
    repo = repository(tmp_path / "repo", origin="git@h:o/n.git")
    assert repo_identity(str(repo / place)) == "o/n"
    assert repo_identity(str(repo / place / "src" / "x")) == "o/n"
    remembered = {str(tmp_path / "gone"): "o/gone", "relative": "o/relative"}
    assert repo_identity(str(tmp_path / "gone" / place), remembered) == "o/gone"
    assert repo_identity(str(tmp_path / "gone"), remembered) == "o/gone"
    assert repo_identity("relative", remembered) == "o/relative"


def test_a_folder_that_is_there_is_not_taken_from_memory(tmp_path: Path):
    repo = repository(tmp_path / "repo", origin="git@h:o/new.git")
    assert repo_identity(str(repo), {str(repo): "o/old"}) == "o/new"


def test_a_home_folder_under_version_control_does_not_own_what_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    home = repository(tmp_path / "home", origin="git@h:me/dotfiles.git")
    monkeypatch.setenv("HOME", str(home))
    (home / "work").mkdir()
    assert repo_identity(str(home / "work")) == "me/dotfiles"
    assert repo_identity(str(home / "gone")) == ""
    assert repo_identity(str(home / "work" / "gone")) == ""


def test_real_worktrees_submodules_and_bare_repositories(tmp_path: Path):
    def git(*arguments: str, at: Path) -> None:
        settings = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"]
        subprocess.run(["git", *settings, *arguments], cwd=at, check=True, capture_output=True)

    repo = tmp_path / "repo"
    repo.mkdir()
    git("init", "-q", at=repo)
    git("remote", "add", "origin", "https://example.org/owner/name.git", at=repo)
    git("commit", "-q", "--allow-empty", "-m", "x", at=repo)
    git("worktree", "add", "-q", str(tmp_path / "tree"), at=repo)
    (tmp_path / "tree" / "sub").mkdir()
    assert repo_identity(str(tmp_path / "tree" / "sub")) == "owner/name"
    git("submodule", "add", "-q", str(repo), "module", at=repo)
    git("remote", "set-url", "origin", "git@example.org:other/module.git", at=repo / "module")
    assert repo_identity(str(repo / "module")) == "other/module"
    git("init", "-q", "--bare", str(tmp_path / "bare.git"), at=tmp_path)
    git("remote", "add", "origin", "https://example.org/o/bare.git", at=tmp_path / "bare.git")
    assert repo_identity(str(tmp_path / "bare.git")) == "o/bare"


def test_configurations_nobody_wrote(tmp_path: Path):
    repo = tmp_path / "repo"
    (repo / ".git").mkdir(parents=True)
    for content in (b"\xff\xfe[remote", b'[remote "a"]url=https://h/o/n', b'[remote "a"]\nurl\n', b""):
        (repo / ".git" / "config").write_bytes(content)
        assert repo_identity(str(repo)) == ("o/n" if b"h/o/n" in content else "")
    (tmp_path / "other").mkdir()
    for pointer in (b"gitdir: /nowhere", b"nonsense\0", b"gitdir: ../repo/.git", b""):
        (tmp_path / "other" / ".git").write_bytes(pointer)
        assert repo_identity(str(tmp_path / "other")) == ""
