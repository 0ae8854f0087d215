"""`funes ask` with small programs in the place of the agents."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from funes.__main__ import main
from funes.agents import running
from tests.support.fake_agents import SAYS, FakeAgent, alive, claude_says, codex_says, pi_says
from tests.support.hooks import PATIENT, until
from tests.support.rpc import environment
from tests.support.small_memory import PARSER, make_memory

QUESTION = "why did we move off the streaming parser?"
PROMPT = re.compile(r"<passage (\w{8}) number=1 .*?\n</passage \1>\n.*\nQuestion: (.*)\n\Z", re.DOTALL)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    make_memory(home / "memory")
    return home


@pytest.fixture
def agents(home, tmp_path, monkeypatch):
    """The folder for the programs, the only one on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("HOME", str(tmp_path))  # an installer may have put a program elsewhere in it
    monkeypatch.setenv("FUNES_HOME", str(home))
    monkeypatch.setenv("FUNES_MODELS", str(home / "no-models"))
    monkeypatch.setattr(running, "LINGER", PATIENT)  # a slow machine may take its time to hand on what was printed
    return folder


@pytest.fixture
def deadline(monkeypatch):
    """Has the deadline come as soon as a number of lines has been handed on and something else is so."""
    run = running.run_program
    monkeypatch.setattr(running, "LINGER", 0.1)  # how often the clock is looked at

    def deadline(lines: int, ready: Callable[[], bool] = lambda: True) -> None:
        handed_on = []

        def run_program(command, prompt, on_line, **more):
            def noting(line):
                on_line(line)
                handed_on.append(line)

            return run(command, prompt, noting, **more)

        def monotonic():
            return 1e9 if len(handed_on) >= lines and ready() else 0.0

        monkeypatch.setattr(running, "time", SimpleNamespace(monotonic=monotonic))
        monkeypatch.setattr(running, "run_program", run_program)

    return deadline


@pytest.mark.parametrize("name", SAYS)
def test_the_answer_and_its_sources(agents, capsys, name):
    agent = FakeAgent(agents, name, SAYS[name]("It held the file ", "in memory [1]."))
    assert main(["ask", name, QUESTION, "-k", "2"]) == 0
    captured = capsys.readouterr()
    answer, _, sources = captured.out.partition("\n\nSources (local):\n")
    assert "".join(answer.split()) == "Itheldthefileinmemory[1]."
    assert sources.splitlines()[:2] == [
        "[1] 2026-05-02T10:11:12Z claude_code acme/api seq0 user text",
        f"    funes get {PARSER} cafe0000-1a2b3c4d",
    ]
    assert len(sources.splitlines()) == 4
    assert "words only" in captured.err
    record = agent.record()
    found = PROMPT.search(record["stdin"])
    assert found[2] == QUESTION
    assert "The streaming parser held the whole file in memory anyway" in record["stdin"]
    assert record["environment"]["FUNES_ASK"] == "1"
    assert not any("streaming" in argument for argument in record["arguments"])


def test_what_each_agent_is_kept_from(agents, monkeypatch):
    monkeypatch.setenv("CLAUDECODE", "1")
    started = {}
    for name, says in SAYS.items():
        servers = '[{"name": "funes", "enabled": true}, {"name": "github"}]'
        agent = FakeAgent(agents, name, says("Yes."), servers=servers)
        assert main(["ask", name, QUESTION]) == 0
        started[name] = agent.record()
    claude = started["claude"]["arguments"]
    assert claude[:3] == ["-p", "--tools", ""]
    assert {"--no-session-persistence", "--strict-mcp-config", '{"disableAllHooks": true}'} < set(claude)
    assert started["claude"]["environment"]["CLAUDE_CODE_SAFE_MODE"] == "1"
    assert "CLAUDECODE" not in started["claude"]["environment"]
    codex = started["codex"]["arguments"]
    assert codex[0] == "exec"
    assert codex[-1] == "-"
    assert {"--ephemeral", "features.hooks=false", "features.shell_tool=false", 'web_search="disabled"'} < set(codex)
    assert {"mcp_servers.funes.enabled=false", "mcp_servers.github.enabled=false"} < set(codex)
    assert started["pi"]["arguments"] == ["-p", "--mode", "json", "--no-session", "-nt", "-ne", "-nc", "-ns", "-np"]


def test_the_first_agent_found_is_asked(agents):
    codex, pi = (FakeAgent(agents, name, SAYS[name]("Yes.")) for name in ("codex", "pi"))
    assert main(["ask", *QUESTION.split()]) == 0
    assert codex.ran
    assert not pi.ran


def test_without_an_agent_the_passages_are_printed(agents, capsys):
    assert main(["ask", QUESTION]) == 0
    captured = capsys.readouterr()
    assert f"→ get {PARSER} " in captured.out
    assert "none of claude, codex and pi is on this machine" in captured.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["codex", QUESTION], "`codex` is not on this machine; install it"),
        (["hermes", QUESTION], "Hermes cannot be asked"),
        (["gemini", QUESTION], "There is no agent 'gemini' to ask; it is one of claude, codex, pi."),
        (["claude"], "The question is missing"),
        (["claude", " "], "The question is missing"),
        ([""], "The question is empty"),
        ([QUESTION, "-k", "0"], "number of hits (k) is 0"),
        ([QUESTION, "--memory", "/no/such/folder"], "/no/such/folder"),
        ([QUESTION, "--timeout", "0"], "--timeout"),
        (["zyzzyva"], "The memory holds nothing on that, so no agent was asked"),
    ],
)
def test_faults_are_one_sentence_and_nothing_is_started(agents, capsys, words, said):
    claude = FakeAgent(agents, "claude", claude_says("Yes."))
    assert main(["ask", *words]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert captured.err.count("\n") == 1
    assert not claude.ran


def test_a_memory_that_cannot_be_read(agents, home, tmp_path, capsys):
    claude = FakeAgent(agents, "claude", claude_says("Yes."))
    shutil.copytree(home / "memory", tmp_path / "memory")
    for data in (tmp_path / "memory" / "chunks.lance").rglob("*.manifest"):
        data.write_bytes(b"nonsense")
    assert main(["ask", QUESTION, "--memory", str(tmp_path / "memory")]) == 1
    assert not claude.ran


@pytest.mark.parametrize(
    ("name", "lines", "said"),
    [
        (
            "claude",
            [{"type": "result", "is_error": True, "result": "Invalid API key"}],
            "(exit code 3): Invalid API key.",
        ),
        ("codex", [{"type": "turn.failed", "error": {"message": "401"}}], "(exit code 3): 401."),
        ("pi", ["not an event"], "(exit code 3): two of stderr three."),
    ],
)
def test_a_failure_is_quoted(agents, capsys, name, lines, said):
    FakeAgent(agents, name, lines, errors="two\x1b[31m of stderr\n\nthree\n", code=3)
    assert main(["ask", name, QUESTION]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.endswith(f"funes: {name} gave no answer {said}\n")


def test_pi_fails_with_exit_code_0(agents, capsys):
    failed = {"type": "message_end", "message": {"role": "assistant", "stopReason": "error", "errorMessage": "500"}}
    FakeAgent(agents, "pi", [failed])
    assert main(["ask", QUESTION]) == 1
    assert "pi gave no answer (exit code 0): 500." in capsys.readouterr().err


def test_an_agent_that_tried_again_has_not_failed(agents, capsys):
    attempts = [{"type": "error", "message": "Reconnecting... 1/5"}, *codex_says("Here.", "There.")]
    FakeAgent(agents, "codex", attempts)
    assert main(["ask", QUESTION]) == 0
    assert capsys.readouterr().out.startswith("Here.\nThere.\n\nSources")


def test_silence_is_a_failure_and_stderr_is_shown_only_then(agents, capsys):
    FakeAgent(agents, "claude", errors="WARNING: odd\n")
    assert main(["ask", QUESTION]) == 1
    assert "(exit code 0): WARNING: odd." in capsys.readouterr().err
    FakeAgent(agents, "claude", claude_says("Yes."), errors="WARNING: odd\n")
    assert main(["ask", QUESTION]) == 0
    assert "odd" not in capsys.readouterr().err


def test_a_part_of_an_answer_stays_and_the_failure_is_told(agents, capsys):
    lines = [*claude_says("It held")[:-1], {"type": "result", "is_error": True, "result": "overloaded"}]
    FakeAgent(agents, "claude", lines, code=1)
    assert main(["ask", QUESTION]) == 1
    captured = capsys.readouterr()
    assert captured.out == "It held\n"
    assert "overloaded" in captured.err


def test_claude_without_partial_messages(agents, capsys):
    whole = [event for event in claude_says("All at once.") if event["type"] != "stream_event"]
    FakeAgent(agents, "claude", whole)
    assert main(["ask", QUESTION]) == 0
    assert capsys.readouterr().out.startswith("All at once.\n\nSources")


def test_an_answer_cannot_drive_the_terminal(agents, capsys):
    FakeAgent(agents, "pi", pi_says("red \x1b[31", "m\x1b]0;title\x07 and\u202e back\n"))
    assert main(["ask", QUESTION]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\u202e" not in out


def test_odd_events_are_no_answer(agents, capsys):
    odd = ["[1]", "null", '{"type": "message_update", "assistantMessageEvent": 3}', '{"message": []}', "[" * 100_000]
    FakeAgent(agents, "pi", [*odd, *pi_says("Fine.")])
    assert main(["ask", QUESTION]) == 0
    assert capsys.readouterr().out.startswith("Fine.\n\nSources")


@pytest.mark.parametrize("listed", [("not json", 0), ("[]", 1)])
def test_codex_is_not_asked_when_its_servers_are_unknown(agents, capsys, listed):
    codex = FakeAgent(agents, "codex", codex_says("Yes."), servers=listed[0], list_code=listed[1])
    assert main(["ask", QUESTION]) == 1
    assert "funes: codex could not be run: " in capsys.readouterr().err
    assert not codex.ran


def test_a_program_that_cannot_be_run(agents, capsys):
    (agents / "claude").write_text("#!/no/such/interpreter\n")
    (agents / "claude").chmod(0o755)
    assert main(["ask", QUESTION]) == 1
    assert "funes: claude could not be run: " in capsys.readouterr().err


def pids(file: Path) -> list[int]:
    """What processes have written into a file, a line each."""
    lines = file.read_text().splitlines(keepends=True) if file.exists() else []
    return [int(line) for line in lines if line.endswith("\n")]


def test_the_deadline_ends_the_agent(agents, tmp_path, capsys, deadline):
    said = claude_says("It ")
    FakeAgent(agents, "claude", said, more=_STAY.format(pids=str(tmp_path / "pids")))
    deadline(len(said), lambda: len(pids(tmp_path / "pids")) == 2)
    assert main(["ask", QUESTION, "--timeout", "1"]) == 1
    captured = capsys.readouterr()
    assert captured.out == "It \n"
    assert "funes: claude was not done after 1 s and was ended" in captured.err
    agent, child = pids(tmp_path / "pids")
    assert agent != child
    until(lambda: not alive(agent) and not alive(child))


# The agent and a child of it that do not heed the request to end.
_STAY = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.fork()
with open({pids!r}, "a") as stream:
    stream.write(f"{{os.getpid()}}\\n")
time.sleep(600)
"""


def test_the_deadline_ends_an_agent_that_goes_on_printing(agents, capsys, deadline):
    said = claude_says("Partly.")
    FakeAgent(agents, "claude", said, more="while True: print('not an event', flush=True)")
    deadline(len(said) + 1)
    assert main(["ask", QUESTION, "--timeout", "2"]) == 1
    captured = capsys.readouterr()
    assert captured.out == "Partly.\n"
    assert "claude was not done after 2 s and was ended" in captured.err


def test_of_a_flood_little_is_kept(agents, capsys, monkeypatch):
    monkeypatch.setattr("funes.agents.running.LONGEST_LINE", 1000)
    monkeypatch.setattr("funes.agents.running.LINES_AHEAD", 2)
    flood = ["x" * 5000, *claude_says("Whole."), "y" * 999, "z" * 1000, *claude_says(" Still.")]
    FakeAgent(agents, "claude", flood, errors="e" * 100_000)
    assert main(["ask", QUESTION]) == 0
    assert capsys.readouterr().out.startswith("Whole. Still.")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interruption_ends_the_agent(home, agents, tmp_path, number, code):
    stay = f'open({str(tmp_path / "pid")!r}, "w").write(f"{{os.getpid()}}\\n")\ntime.sleep(600)'
    FakeAgent(agents, "claude", claude_says("It "), more=stay)
    process = subprocess.Popen(
        [sys.executable, "-m", "funes", "ask", QUESTION],
        env=environment(home, PATH=str(agents)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while not pids(tmp_path / "pid"):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    # What was said so far has to be through before the interruption, or there may be nothing to end with.
    said = os.read(process.stdout.fileno(), 100)
    process.send_signal(number)
    out, _ = process.communicate(timeout=PATIENT)
    assert process.returncode == code
    assert said + out == b"It \n"
    assert not any(map(alive, pids(tmp_path / "pid")))


def test_a_reader_that_leaves_ends_the_agent(home, agents, tmp_path):
    more = f"""
open({str(tmp_path / "pid")!r}, "w").write(f"{{os.getpid()}}\\n")
while True:
    print({claude_says("more ")[3]!r}.__repr__().replace("'", '"').replace("None", "null"), flush=True)
    time.sleep(0.01)
"""
    FakeAgent(agents, "claude", claude_says("It "), more=more)
    process = subprocess.Popen(
        [sys.executable, "-m", "funes", "ask", QUESTION],
        env=environment(home, PATH=str(agents)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout.read(2) == b"It"
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait(PATIENT) == 1
    assert b"Traceback" not in errors
    assert not any(map(alive, pids(tmp_path / "pid")))


def test_a_question_of_200_kilobytes(agents):
    claude = FakeAgent(agents, "claude", claude_says("Yes."))
    assert main(["ask", "claude", QUESTION + " x" * 100_000]) == 0
    assert len(claude.record()["stdin"]) > 200_000


def test_the_agent_works_where_the_user_is(agents, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    claude = FakeAgent(agents, "claude", claude_says("Yes."))
    assert main(["ask", QUESTION]) == 0
    assert os.path.samefile(claude.record()["folder"], tmp_path)
