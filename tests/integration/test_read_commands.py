"""get, sessions, scan and status on a memory made by the real writer, through the real command line."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from funes.__main__ import main
from funes.commands.opened import NO_MODEL
from tests.support.small_memory import CACHE, HELPER, LONG_OUTPUT, NEEDLE, PARSER, make_memory


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    return make_memory(tmp_path_factory.mktemp("home") / "memory")


@pytest.fixture
def home(memory, tmp_path, monkeypatch):
    monkeypatch.setenv("FUNES_HOME", str(memory.parent))
    monkeypatch.setenv("FUNES_MODELS", str(tmp_path / "no-models"))
    return memory.parent


@pytest.fixture
def run(home, capsys):
    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def ok(result):
    code, out, err = result
    assert (code, err) == (0, "")
    return out


def fault(result):
    """The sentence of a command that failed: one line on stderr, exit code 1, nothing on stdout."""
    code, out, err = result
    assert (code, out) == (1, "")
    assert re.fullmatch(r"funes: [^\n]+\.\n", err)
    return err


def test_get_shows_one_turn_whole(run):
    out = ok(run("get", PARSER, "beef0001"))
    assert out == (
        f"[2026-05-02T10:12:12Z] assistant seq1 turn=beef0001-{PARSER[:8]}\n"
        "  # thinking\nThey mean the XML one.\n"
        "  # text\nThe streaming parser held the whole file in memory anyway, and its errors had no position.\n"
        '  # tool_use Bash\n{"command": "make build"}\n'
        "---\n"
    )


def test_get_stitches_the_chunks_of_a_block(run):
    out = ok(run("get", PARSER[:9], "cafe0002", "--json"))
    (turn,) = json.loads(out)["turns"]
    assert turn["blocks"] == [
        {"type": "tool_result", "tool_name": "Bash", "text": LONG_OUTPUT[:1195] + NEEDLE + LONG_OUTPUT[1195:]}
    ]


def test_get_without_a_turn_reads_the_session(run):
    turns = [line for line in ok(run("get", PARSER)).splitlines() if " turn=" in line]
    assert [re.search(r"seq(\d+)", line)[1] for line in turns] == ["0", "1", "2", "3"]
    assert [turn["seq"] for turn in json.loads(ok(run("get", PARSER, "--from", 1, "--to", 2, "--json")))["turns"]] == [
        1,
        2,
    ]
    window = json.loads(ok(run("get", PARSER, "cafe0002", "--window", 1, "--json")))
    assert [turn["seq"] for turn in window["turns"]] == [1, 2, 3]


def test_get_shows_a_copied_turn_in_both_sessions(run):
    assert "Why did we move off the streaming parser?" in ok(run("get", PARSER, "cafe0000"))
    assert "Why did we move off the streaming parser?" in ok(run("get", CACHE, "cafe0002-copy"))


def test_get_is_safe_for_a_terminal(run):
    out = ok(run("get", CACHE, "beef0001"))
    assert "\x1b" not in out
    assert "Invalidate it by version, not by time.\n\\---\nDone.\n---\n" in out
    human = ok(run("get", CACHE, "beef0001", "--format", "human"))
    assert "\x1b" not in human
    verbatim = json.loads(ok(run("get", CACHE, "beef0001", "--json")))
    assert verbatim["turns"][0]["blocks"][0]["text"].startswith("\x1b[31mInvalidate")


def test_an_oversized_answer_is_read_on_as_it_says(run, monkeypatch):
    monkeypatch.setattr("funes.ui.agent.GET_CHARACTERS", 5000)
    monkeypatch.setattr("funes.ui.agent.get_text.__kwdefaults__", {"limit": 5000})
    command, text = ["get", PARSER, "--from", "2"], ""
    for _ in range(20):
        out = ok(run(*command))
        assert len(out) <= 5000
        more = re.search(r"continue with: funes (get .*)\n\Z", out)
        if not more:
            break
        text += "".join(line + "\n" for line in out.splitlines()[2:-1]) if "cut after" in out else ""
        command = more[1].split()
    else:
        pytest.fail("reading on never ends")
    assert "Good. Use the recursive descent parser then.\n---\n" in out


def test_sessions_lists_and_filters(run):
    document = json.loads(ok(run("sessions", "--json")))
    found = {session["id"]: session for session in document["sessions"]}
    assert set(found) == {PARSER, CACHE, HELPER}
    assert (found[PARSER]["title"], found[PARSER]["turns"]) == ("Parser rewrite", 4)
    assert found[CACHE]["first_prompt"].startswith("The cache returns stale prices")
    assert (found[HELPER]["parent_id"], found[HELPER]["kind"]) == (CACHE, "subagent")
    assert [s["id"] for s in json.loads(ok(run("sessions", "--harness", "codex", "--json")))["sessions"]] == [CACHE]
    assert len(json.loads(ok(run("sessions", "--harness", "claude", "--repo", "acme/api", "--json")))["sessions"]) == 1
    assert ok(run("sessions", "--since", "2026-06-01")) == "no results\n"
    out = ok(run("sessions", "--limit", 1))
    assert out.endswith("note: there are more; raise the limit or narrow the search\n")
    human = ok(run("sessions", "--format", "human"))
    assert "Parser rewrite" in human
    assert "1a2b3c4d" in human


def test_scan_finds_across_the_border_of_two_chunks(run):
    out = ok(run("scan", PARSER, NEEDLE))
    assert out.count("---\n") == 1
    assert f" tool seq2 turn=cafe0002-{PARSER[:8]} tool_result Bash at=1195\n" in out
    assert out.endswith(f"1 match in session {PARSER} (4 turns)\n")
    assert ok(run("scan", PARSER, NEEDLE.lower())) == "no results\n"
    assert "1 match" in ok(run("scan", PARSER, "-i", NEEDLE.lower()))
    many = json.loads(ok(run("scan", PARSER, "build step", "--limit", 3, "--json")))
    assert (len(many["matches"]), many["total"]) == (3, 400)
    assert many["matches"][1]["before"] == "line 1: "


def test_fail_empty_is_exit_code_3(run):
    assert run("scan", PARSER, "nowhere to be found", "--fail-empty")[:2] == (3, "no results\n")
    assert run("sessions", "--since", "2026-06-01", "--fail-empty")[0] == 3
    assert run("sessions", "--fail-empty")[0] == 0


def test_status_counts(run):
    out = ok(run("status"))
    assert "sessions: 3\n" in out
    assert "harness: claude_code: 2 sessions" in out
    assert "harness: codex: 1 session" in out
    assert "model: sentence-transformers/all-MiniLM-L6-v2 pca192-2bit (not on this machine; `funes models pull`" in out
    document = json.loads(ok(run("status", "--json")))
    assert document["sessions_by_harness"] == {"claude_code": 2, "codex": 1}
    assert document["copies"] == 1
    assert document["waiting"] == document["passages"]
    assert "sessions" in ok(run("status", "--format", "human"))


def test_status_names_who_writes(run, home):
    from funes.memory.lock import WriterLock

    with WriterLock(home / "memory", doing="indexing"):
        assert re.search(r"writing now: process \d+ on .* is indexing since", ok(run("status")))
    assert "writing now" not in ok(run("status"))


def test_a_memory_by_path(run, home, monkeypatch, tmp_path):
    monkeypatch.setenv("FUNES_HOME", str(tmp_path / "empty"))
    assert "→ get " in ok(run("sessions", "--memory", home / "memory"))
    assert f"--memory {home}" in ok(run("sessions", "--memory", home))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["get", "ffff"], "No session begins with 'ffff'; `funes sessions` lists them"),
        (["get", "1a2b"], f"several session ids: {PARSER}, {CACHE}"),
        (["get", PARSER, "dead"], "No turn begins with 'dead'"),
        (["get", PARSER, "cafe"], "several turn ids: cafe0000"),
        (["get", PARSER, "cafe0000", "--from", "1"], "either a turn or a range"),
        (["get", PARSER, "--from", "3", "--to", "1"], "lies behind"),
        (["get", PARSER, "--from", "-1"], "--from is -1"),
        (["get", PARSER, "--from", "99"], "has turns 0 to 3"),
        (["get", PARSER, "cafe0000", "--offset", "9999"], "nothing is left"),
        (["get", PARSER, "--window", "2"], "--window needs a turn"),
        (["get", " "], "The session id is empty"),
        (["scan", PARSER, ""], "The text to look for is empty"),
        (["scan", "ffff", "x"], "No session begins with"),
        (["sessions", "--since", "someday"], "Cannot read 'someday' as a time"),
        (["sessions", "--since", "2d", "--until", "2026-01-01"], "later than"),
        (["sessions", "--limit", "-1"], "The limit is -1"),
        (["sessions", "--type", "prose"], "see `funes sessions --help`"),
        (["sessions", "--memory", "ftp://acme/kb"], "no place that funes reads"),
        (["recall", "  "], "The question is empty"),
        (["recall", "x", "-k", "0"], "between 1 and"),
        (["recall", "x", "--half-life", "-1"], "half-life"),
        (["recall", "x", "--half-life", "nan"], "half-life"),
        (["recall", "x", "--session", "ffff"], "No session begins with"),
        (["recall", "x", "--since", "2026-02-30"], "Cannot read"),
    ],
)
def test_bad_input_is_one_sentence(run, arguments, said):
    assert said in fault(run(*arguments))


@pytest.mark.parametrize("command", [["recall", "x"], ["get", "x"], ["sessions"], ["scan", "x", "y"], ["status"]])
def test_no_memory_yet(run, command, monkeypatch, tmp_path):
    monkeypatch.setenv("FUNES_HOME", str(tmp_path / "fresh"))
    assert "run `funes index`" in fault(run(*command))
    assert not (tmp_path / "fresh").exists()


@pytest.mark.parametrize("command", [["recall", "x"], ["sessions"], ["status"]])
def test_a_folder_that_is_no_memory(run, command, tmp_path):
    (tmp_path / "notes.txt").write_text("not a memory")
    assert "There is no memory in" in fault(run(*command, *([] if command == ["status"] else ["--memory"]), tmp_path))


@pytest.mark.parametrize("command", [["recall", "x"], ["get", PARSER], ["sessions"], ["status"]])
@pytest.mark.parametrize("damage", ["manifest", "data"])
def test_a_corrupt_table(run, home, command, damage, monkeypatch, tmp_path):
    shutil.copytree(home, tmp_path / "broken")
    table = tmp_path / "broken" / "memory" / "chunks.lance"
    for path in table.rglob("*.manifest" if damage == "manifest" else "*.lance"):
        path.write_bytes(b"\xff" * 64)
    monkeypatch.setenv("FUNES_HOME", str(tmp_path / "broken"))
    assert "damaged" in fault(run(*command))


def test_recall_by_words_says_so_in_one_line(run):
    code, out, err = run("recall", "why did we leave the streaming parser?")
    assert code == 0
    assert err == f"note: {NO_MODEL}\n"
    assert re.match(
        r"\[2026-05-02T\S+Z\] claude_code /home/dev/api/1a2b3c4d text  score=\d\.\d{3}( weak)?\n  → get ", out
    )
    document = json.loads(run("recall", "streaming", "parser", "--json")[1])
    assert document["query"] == "streaming parser"
    assert document["hits"][0]["session_id"] == PARSER
    assert document["notes"] == [NO_MODEL]
    human = run("recall", "streaming parser", "--format", "human")[1]
    assert f"funes get {PARSER} " in human


def test_recall_filters_combine(run):
    def found(*arguments):
        document = json.loads(run("recall", "the XML cache parser", "--json", *arguments)[1])
        return {hit["session_id"] for hit in document["hits"]}

    assert found() == {PARSER, CACHE, HELPER}
    assert found("--harness", "codex") == {CACHE}
    assert found("--harness", "claude", "--repo", "web") == {HELPER}
    assert found("--harness", "codex", "--repo", "web") == {CACHE, PARSER}  # a passage of CACHE that PARSER stores
    assert found("--branch", "fix/cache") == {CACHE, PARSER}
    assert found("--workdir", "/home/dev/web") == {CACHE, PARSER}
    assert PARSER in found("--session", PARSER[:8])
    assert found("--role", "user", "--harness", "codex", "--until", "2026-05-02T10:11:30Z") == {CACHE}
    assert found("--type", "thinking") == {PARSER}
    assert found("--type", "summary") == set()


def test_filters_that_exclude_everything_are_named(run):
    code, out, err = run("recall", "parser", "--since", "2026-06-01", "--fail-empty")
    assert (code, out) == (3, "no results\n")
    assert "note: no passage meets the filters" in err
    assert "filters" not in run("recall", "zeppelin")[2]


def test_a_very_long_question_is_cut_and_says_so(run):
    code, out, err = run("recall", "the streaming parser " + "filler " * 5000)
    assert code == 0
    assert "note: only the first 10,000 characters of the question were used\n" in err
    assert PARSER in out


def test_hits_k_and_neighbors(run):
    hits = json.loads(run("recall", "parser", "-k", 1, "--neighbors", 0, "--json")[1])["hits"]
    assert len(hits) == 1
    assert hits[0]["before"] == hits[0]["after"] == []


def test_a_terminal_gets_the_human_layout(home):
    """The same command in a pseudo-terminal and in a pipe."""
    import os
    import pty
    import subprocess
    import sys

    from tests.support.rpc import environment

    command = [sys.executable, "-m", "funes", "sessions"]
    env = environment(home, TERM="xterm-256color")
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, env=env, stdout=theirs, stderr=theirs, stdin=theirs) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # Linux: the other end is closed
                break
            if not part:
                break
            shown += part
    os.close(ours)
    assert process.returncode == 0
    assert b"\x1b[" in shown
    assert b"Parser rewrite" in shown
    assert "→ get".encode() not in shown
    piped = subprocess.run(command, env=env, capture_output=True, check=True)
    assert f"  → get {PARSER} --memory local\nParser rewrite\n".encode() in piped.stdout
