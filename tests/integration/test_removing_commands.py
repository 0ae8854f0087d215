"""`funes scrub` and `funes forget` as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from funes.__main__ import main
from funes.commands.index import IndexOptions, run_index
from funes.commands.indexing import reading
from funes.paths import funes_home
from tests.support.claude_sessions import ClaudeSession, talk
from tests.support.disk import files_with
from tests.support.index_process import NoRedactor
from tests.support.secret_samples import Inventor

TOKEN = Inventor(5).github()


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClaudeSession:
    """A session with a credential in it, stored by a version that did not find it."""
    monkeypatch.setenv("FUNES_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FUNES_MODELS", str(tmp_path / "no models"))
    made = ClaudeSession(tmp_path / "projects", "deploy")
    made.prompt(f"Deploy with {TOKEN}.")
    talk(made, 1, "cache")
    with monkeypatch.context() as patch:
        patch.setattr(reading, "Redactor", NoRedactor)
        patch.setattr(reading, "ruleset_id", lambda: "old")
        run_index(IndexOptions(path=made.path, budget=0))
    return made


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


def test_scrub(session: ClaudeSession, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "scrub", "--dry-run")
    assert code == 0
    assert "1 block would be redacted; in 1 session\nfound: github-token 1\n" in out
    assert "Revoke" in out
    assert out.endswith("nothing was changed; leave out --dry-run to do it\n")
    assert files_with(funes_home(), TOKEN)
    code, out, _ = run(capsys, "scrub", "--stale")
    assert code == 0
    assert "1 block redacted; in 1 session\n" in out
    assert "vectors: 0 made, 1 waiting" in out
    assert TOKEN not in out
    assert files_with(funes_home(), TOKEN) == []
    code, out, _ = run(capsys, "scrub", "--stale")
    assert (code, out.splitlines()[0]) == (0, "0 blocks scanned: nothing found")
    code, out, _ = run(capsys, "scrub", "--json")
    document = json.loads(out)
    assert (document["done"], document["redacted"], document["counts"]) == (True, 0, {})


def test_forget(session: ClaudeSession, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "forget", session.id[:8])
    assert code == 0
    assert session.id in out
    assert out.endswith("nothing was removed; add --yes to remove them for good\n")
    code, out, _ = run(capsys, "forget", "--workdir", session.cwd, "--json")
    document = json.loads(out)
    assert (document["done"], [item["id"] for item in document["sessions"]]) == (False, [session.id])
    assert run(capsys, "forget", "--before", "2020-01-01", "--yes")[1] == "no session is left to forget\n"
    code, out, _ = run(capsys, "forget", session.id, "--yes")
    assert code == 0
    assert "1 session, 6 passages removed" in out
    assert session.id in run(capsys, "forget", "--list")[1]
    code, out, _ = run(capsys, "forget", session.id, "--yes")
    assert (code, out.splitlines()[1]) == (0, "no session is left to forget")
    assert "is forgotten already" in out
    assert json.loads(run(capsys, "forget", "--list", "--json")[1])["forgotten"][0]["id"] == session.id
    assert run(capsys, "index", str(session.path))[1].startswith("1 trace: nothing new")
    assert run(capsys, "forget", "--undo", "all")[0] == 0
    assert run(capsys, "forget", "--list")[1] == "no session is forgotten\n"
    assert "6 stored" in run(capsys, "index", str(session.path), "--budget", "0")[1]


@pytest.mark.parametrize(
    "arguments",
    [
        ("forget",),
        ("forget", "--undo"),
        ("forget", "--list", "abc"),
        ("forget", "--undo", "abc", "--yes"),
        ("forget", "abc", "--repo", "x"),
        ("forget", "--before", "soon"),
        ("forget", "unknown"),
        ("forget", "--undo", "unknown"),
    ],
)
def test_faults_are_one_sentence(
    session: ClaudeSession, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (1, "")
    assert len(err.splitlines()) == 1


def test_without_a_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FUNES_HOME", str(tmp_path))
    for arguments in (("scrub",), ("forget", "x")):
        code, out, err = run(capsys, *arguments)
        assert (code, out) == (1, "")
        assert "There is no memory" in err
    assert run(capsys, "forget", "--list")[1] == "no session is forgotten\n"
