"""The worker behind the hooks: every finished turn is found, once, by one worker, whatever else goes on."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from funes import hook
from funes.commands import follow as worker
from funes.commands.following.events import MAX_TRIES
from funes.commands.index import IndexOptions, IndexReport, run_index, run_vectors
from funes.commands.opened import OpenMemory
from funes.commands.status import status
from funes.errors import NoMemoryError
from funes.memory.filters import Filter
from funes.memory.lock import VECTORS_LOCK, WriterLock
from funes.memory.reader import MemoryReader
from funes.memory.schema import OUTPUT
from funes.memory.store import MemoryWriter
from funes.models import encoder
from funes.paths import memory_folder
from funes.traces.text import ASK_PROMPT
from funes.ui.status_text import status_json, status_text
from tests.support.claude_sessions import ClaudeSession, talk
from tests.support.corpus import shared_corpus
from tests.support.hooks import entries, environment, fire, home_of_a_user, note, noted, wait_for_worker
from tests.support.index_process import FakeEncoder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return home_of_a_user(tmp_path, monkeypatch)


@pytest.fixture
def projects(home: Path) -> Path:
    folder = home.parent / "user" / ".claude" / "projects"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeEncoder:
    model = FakeEncoder()
    monkeypatch.setattr(encoder, "load_encoder", lambda **_: model)
    return model


def stop(session: ClaudeSession, **more: Any) -> dict[str, Any]:
    return {"hook_event_name": "Stop", "session_id": session.id, "transcript_path": str(session.path), **more}


def stored(session: str) -> list[str]:
    try:
        reader = MemoryReader.open()
    except NoMemoryError:
        return []
    return [chunk.text or "" for chunk in reader.session_chunks(session)]


def found(word: str) -> bool:
    return bool(MemoryReader.open().words(word, Filter(), 5))


def test_a_finished_turn_is_found_by_its_words(home: Path, projects: Path) -> None:
    session = ClaudeSession(projects, "a")
    talk(session, 1, "harbour")
    payload = json.dumps(stop(session)).encode()
    done = fire(hook.hook_command("claude"), payload, environment(home))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    (entry,) = wait_for_worker(home)
    assert (entry["harness"], entry["event"], entry["traces"]) == ("claude", "Stop", 1)
    assert entry["stored"] == len(stored(session.id)) == 5
    assert "error" not in entry
    assert found("harbour")
    session.answer("The lighthouse is finished.")
    fire(hook.hook_command("claude"), payload, environment(home))
    wait_for_worker(home, logged=2)
    assert stored(session.id)[-1] == "The lighthouse is finished."
    assert len(stored(session.id)) == 6


def test_many_hooks_at_once_share_the_work(home: Path, projects: Path) -> None:
    sessions = [ClaudeSession(projects, f"s{number}") for number in range(4)]
    for session in sessions:
        talk(session, 1, "harbour")
    command, variables = hook.hook_command("claude"), environment(home)
    agents = [
        subprocess.Popen(command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(20)
    ]
    for number, agent in enumerate(agents):
        assert agent.stdin is not None
        agent.stdin.write(json.dumps(stop(sessions[number % 4])).encode())
        agent.stdin.close()
    assert [agent.wait() for agent in agents] == [0] * 20
    for agent in agents:
        assert agent.stdout is not None
        with agent.stdout:
            assert agent.stdout.read() == b""
    lines = wait_for_worker(home)
    assert sum(line["events"] for line in lines) == 20
    assert len(lines) < 20
    assert not any("error" in line for line in lines)
    for session in sessions:
        assert len(stored(session.id)) == 5


def test_the_worker_outlives_its_agent_and_holds_none_of_its_pipes(home: Path, projects: Path) -> None:
    session = ClaudeSession(projects, "a")
    talk(session, 1, "harbour")
    with WriterLock(memory_folder()):  # so that the worker is still there below
        script = f"{' '.join(map(_quoted, hook.hook_command('claude')))}; kill -HUP 0; sleep 60"
        reading, writing = os.pipe()
        agent = subprocess.Popen(
            ["/bin/sh", "-c", script],
            env=environment(home),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[writing],
            start_new_session=True,
        )
        os.close(writing)
        output, _ = agent.communicate(json.dumps(stop(session)).encode())
        assert output == b""
        assert agent.returncode == -signal.SIGHUP
        assert os.read(reading, 1) == b""  # the end: nobody has the other side any more
        os.close(reading)
        assert noted(home)
    wait_for_worker(home)
    assert found("harbour")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def test_the_last_message_is_waited_for(home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "ANSWER_SECONDS", 300.0)
    session = ClaudeSession(projects, "a")
    talk(session, 1, "harbour")
    note(home, "claude", stop(session, last_assistant_message="Moored:\n  the \u201charbour\u201d is done.\n"))
    late = threading.Timer(0.5, session.answer, ["First.\n\nMoored:\n  the \u201charbour\u201d is done."])
    late.start()
    worker.follow(None)
    late.join()
    assert stored(session.id)[-1].endswith("is done.")


def test_a_message_that_never_comes_does_not_stop_the_rest(
    home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "ANSWER_SECONDS", 0.2)
    session = ClaudeSession(projects, "a")
    talk(session, 1, "harbour")
    note(home, "claude", stop(session, last_assistant_message="This was never written down anywhere."))
    note(home, "claude", stop(session, transcript_path=str(projects / "gone.jsonl"), last_assistant_message="Nor this"))
    worker.follow(None)
    assert found("harbour")
    assert noted(home) == []


def test_an_event_that_comes_during_the_work_is_not_lost(
    home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = (ClaudeSession(projects, name) for name in "abc")
    for session in (first, second, third):
        talk(session, 1, "harbour")
    waiting = {"index": second, "unlock": third}

    def interrupted(action: Callable[..., Any], moment: str) -> Callable[..., Any]:
        def act(*given: Any) -> Any:
            result = action(*given)
            if session := waiting.pop(moment, None):
                note(home, "claude", stop(session))
            return result

        return act

    monkeypatch.setattr(worker, "run_index", interrupted(run_index, "index"))
    # Between the last look and the release: the hook finds the lock taken and relies on the worker.
    monkeypatch.setattr(hook, "unlock", interrupted(hook.unlock, "unlock"))
    note(home, "claude", stop(first))
    worker.follow(None)
    assert [len(stored(session.id)) for session in (first, second, third)] == [5, 5, 5]
    assert noted(home) == []


def test_only_one_worker_works(home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = ClaudeSession(projects, "a")
    talk(session, 1, "harbour")
    note(home, "claude", stop(session))
    command = [sys.executable, "-E", "-P", str(Path(hook.__file__)), "--work"]
    workers = [subprocess.Popen(command, env=environment(home)) for _ in range(3)]
    assert [process.wait() for process in workers] == [0, 0, 0]
    wait_for_worker(home)
    assert len(entries(home)) == 1


def test_a_locked_memory_is_tried_again_and_then_left_to_the_next_event(
    home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "RETRY_SECONDS", (0.0, 0.0))
    monkeypatch.setattr(MemoryWriter.__init__, "__defaults__", (0.0,))
    first, second = ClaudeSession(projects, "a"), ClaudeSession(projects, "b")
    for session in (first, second):
        talk(session, 1, "harbour")
    note(home, "claude", stop(first))
    attempts: list[IndexOptions] = []

    def index(options: IndexOptions) -> IndexReport:
        attempts.append(options)
        return run_index(options)

    monkeypatch.setattr(worker, "run_index", index)
    with WriterLock(memory_folder()):
        worker.follow(None)
    assert len(attempts) == 3
    (entry,) = entries(home)
    assert "Another funes is writing" in entry["error"]
    (event,) = noted(home)
    assert event.tries == 0  # it was not the event's fault
    note(home, "claude", stop(second))
    worker.follow(None)
    assert [len(stored(session.id)) for session in (first, second)] == [5, 5]
    assert noted(home) == []


def test_new_prose_and_calls_get_vectors_and_what_waits_does_not(home: Path, projects: Path, fake: FakeEncoder) -> None:
    old, session = ClaudeSession(projects, "old"), ClaudeSession(projects, "a")
    talk(old, 3, "attic")
    talk(session, 1, "harbour")
    run_index(IndexOptions(path=projects, budget=0))
    session.prompt("Which quay?")
    session.tool("Bash", {"command": "quay"}, "quay 7")
    session.answer("Quay 7.")
    note(home, "claude", stop(session))
    worker.follow(None)
    (entry,) = entries(home)
    assert (entry["stored"], entry["embedded"]) == (4, 3)
    reader = MemoryReader.open()
    assert reader.statistics().embedded == 3
    (vector,) = fake.encode_passages(["Quay 7."]).dense
    ((nearest, _),) = reader.nearest(vector, Filter(), 1)
    assert reader.rows([nearest])[nearest].text == "Quay 7."
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "nice", lambda _: 0)
        note(home, "claude", stop(session) | {"hook_event_name": "SessionEnd"})
        worker.follow(None)
    assert MemoryReader.open().statistics().waiting == 0


def test_vectors_make_way_for_the_next_event(home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = ClaudeSession(projects, "a"), ClaudeSession(projects, "b")
    talk(first, 1, "harbour")
    talk(second, 1, "attic")
    asked: list[bool] = []
    wanted: list[int] = []

    def vectors(*, stop: Callable[[], bool], passages: Sequence[str], budget: float) -> IndexReport:
        if not asked:
            note(home, "claude", second_stop)
        asked.append(stop())
        wanted.append(len(passages))
        return IndexReport()

    second_stop = stop(second)

    monkeypatch.setattr(worker, "run_vectors", vectors)
    note(home, "claude", stop(first))
    worker.follow(None)
    assert asked == [True, False]
    assert wanted == [4, 8]  # what was put off comes with the next
    assert found("attic")


def test_vectors_that_another_process_computes_are_left_to_it(
    home: Path, projects: Path, fake: FakeEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("funes.commands.index.WAIT_SECONDS", 0.0)
    session = ClaudeSession(projects, "a")
    talk(session, 1, "harbour")
    note(home, "claude", stop(session))
    with WriterLock(memory_folder(), VECTORS_LOCK):
        worker.follow(None)
    (entry,) = entries(home)
    assert entry["stored"] == 5
    assert "embedded" not in entry
    assert "error" not in entry


def test_vectors_of_another_model_are_not_replaced_by_a_few(home: Path, projects: Path, fake: FakeEncoder) -> None:
    session = ClaudeSession(projects, "a")
    talk(session, 2, "harbour")
    run_index(IndexOptions(path=projects))
    before = MemoryReader.open().statistics().embedded
    fake.model_id = "another"  # type: ignore[misc]
    session.answer("The lighthouse is finished.")
    note(home, "claude", stop(session))
    worker.follow(None)
    assert MemoryReader.open().statistics().embedded == before > 0
    assert found("lighthouse")


def test_sub_agents_come_with_their_session(home: Path, projects: Path) -> None:
    session = ClaudeSession(projects, "a")
    talk(session, 1, "harbour")
    folder = session.path.parent / session.id / "subagents"
    folder.mkdir(parents=True)
    helper = ClaudeSession(projects, "helper")
    helper.prompt("Count the gulls.")
    helper.answer("There are forty gulls.")
    helper.path.rename(folder / "agent-a1b2c3.jsonl")
    note(home, "claude", stop(session))
    worker.follow(None)
    assert stored("agent-a1b2c3") == ["Count the gulls.", "There are forty gulls."]
    assert entries(home)[0]["traces"] == 2


def test_a_start_catches_up_with_what_is_newer_than_the_memory(home: Path, projects: Path) -> None:
    old, indexed, missed = (ClaudeSession(projects, name) for name in ("old", "indexed", "missed"))
    for session in (old, indexed, missed):
        talk(session, 1, "harbour")
    a_day_ago = time.time() - 86_400
    os.utime(old.path, (a_day_ago, a_day_ago))
    run_index(IndexOptions(path=indexed.path, budget=0))
    indexed.answer("A turn whose hook never ran.")
    note(home, "claude", {"hook_event_name": "SessionStart", "source": "startup", "transcript_path": str(projects)})
    worker.follow(None)
    assert len(stored(indexed.id)) == 6
    assert len(stored(missed.id)) == 5
    assert stored(old.id) == []  # whoever made the memory without it wanted it so


def test_an_event_without_a_trace_has_the_agents_folders_looked_at(home: Path, projects: Path) -> None:
    session = ClaudeSession(projects, "a")
    talk(session, 1, "harbour")
    path = note(home, "claude", {})
    path.write_bytes(path.read_bytes() + b"no json")
    worker.follow(None)
    assert len(stored(session.id)) == 5
    (entry,) = entries(home)
    assert (entry["event"], entry["stored"]) == ("?", 5)


def test_nothing_to_index_is_no_error(home: Path) -> None:
    note(home, "claude", {"hook_event_name": "SessionStart"})
    note(home, "an agent of tomorrow", {"hook_event_name": "Stop"})
    worker.follow(None)
    assert [(entry["harness"], entry.get("error")) for entry in entries(home)] == [
        ("claude", None),
        ("an agent of tomorrow", None),
    ]


def test_the_agents_own_folders_count_not_those_of_the_worker(home: Path, projects: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    session = ClaudeSession(elsewhere / "projects", "a")
    talk(session, 1, "harbour")
    note(home, "claude", {"hook_event_name": "SessionStart"}, CLAUDE_CONFIG_DIR=str(elsewhere), HOME=str(tmp_path))
    worker.follow(None)
    assert len(stored(session.id)) == 5
    assert "CLAUDE_CONFIG_DIR" not in os.environ
    assert os.environ["HOME"] == str(tmp_path / "user")


def test_an_event_over_which_workers_die_is_given_up(
    home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class KilledError(BaseException):
        pass

    def die(_: IndexOptions) -> IndexReport:
        raise KilledError

    session = ClaudeSession(projects, "a")
    talk(session, 1, "harbour")
    note(home, "claude", stop(session))
    monkeypatch.setattr(worker, "run_index", die)
    for _ in range(MAX_TRIES):
        with pytest.raises(KilledError):
            worker.follow(None)
    assert [event.tries for event in noted(home)] == [MAX_TRIES]
    worker.follow(None)
    assert noted(home) == []


def test_an_event_that_cannot_be_read_keeps_nobody_busy(home: Path, projects: Path) -> None:
    session = ClaudeSession(projects, "a")
    talk(session, 1, "harbour")
    (home / hook.FOLDER / f"0-1{hook.SUFFIX}").mkdir(parents=True)
    note(home, "claude", stop(session))
    worker.follow(None)
    assert found("harbour")
    assert [path.name for path in (home / hook.FOLDER).iterdir() if path.name != hook.LOCK] == [f"0-1{hook.SUFFIX}"]


def test_a_worker_that_is_told_to_end_leaves_its_events(
    home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = ClaudeSession(projects, "a")
    talk(session, 1, "harbour")
    note(home, "claude", stop(session))

    monkeypatch.setattr(worker, "run_index", lambda _: IndexReport(interrupted=True))
    with pytest.raises(SystemExit):
        worker.follow(None)
    assert [event.tries for event in noted(home)] == [0]
    assert entries(home) == []


def test_a_fault_is_logged_and_shown_and_the_next_event_gets_its_chance(
    home: Path, projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = ClaudeSession(projects, "a")
    talk(session, 1, "harbour")

    def full(_: IndexOptions) -> IndexReport:
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker, "run_index", full)
        note(home, "claude", stop(session))
        worker.follow(None)
    assert noted(home) == []
    with pytest.raises(NoMemoryError, match="No space left on device"):
        status(OpenMemory(None))
    note(home, "claude", stop(session))
    worker.follow(None)
    report = status(OpenMemory(None))
    assert report.last_hook is not None
    assert report.failed_hook is not None
    assert (report.last_hook.harness, report.last_hook.event, report.last_hook.stored) == ("claude", "Stop", 5)
    assert "No space left on device" in report.failed_hook.error
    shown = status_text(report)
    assert f"last hook: {report.last_hook.time} claude Stop: 5 passages stored\n" in shown
    assert f"hook failed: {report.failed_hook.time} claude Stop" in shown
    assert status_json(report)["hooks"]["last_success"]["stored"] == 5


def test_a_trace_that_cannot_be_read_is_an_error(home: Path, projects: Path) -> None:
    strange = projects / "strange.jsonl"
    strange.write_text('{"of": "another program"}\n')
    note(home, "claude", {"hook_event_name": "Stop", "transcript_path": str(strange)})
    worker.follow(None)
    (entry,) = entries(home)
    assert "strange.jsonl: it is not a trace that funes can read" in entry["error"]


def test_a_worker_that_cannot_start_says_so(home: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken" / "funes"
    (broken / "commands").mkdir(parents=True)
    shutil.copy(hook.__file__, broken / "hook.py")
    (broken / "__init__.py").write_text("")
    (broken / "commands" / "__init__.py").write_text("")
    (broken / "commands" / "follow.py").write_text("import a_package_that_is_gone")
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(broken / "hook.py"), "--work"], env=environment(home), capture_output=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    (entry,) = entries(home)
    assert "a_package_that_is_gone" in entry["error"]


def test_runs_of_ask_are_not_indexed(home: Path, projects: Path) -> None:
    session = ClaudeSession(projects, "a")
    session.prompt(f"{ASK_PROMPT} They are excerpts.")
    session.answer("Quay 7.")
    note(home, "claude", stop(session))
    worker.follow(None)
    assert stored(session.id) == []
    session.answer("And quay 8.")  # read on from where the first read stopped
    note(home, "claude", stop(session))
    worker.follow(None)
    assert stored(session.id) == []
    other = ClaudeSession(projects, "b")
    other.prompt("How does the prompt of ask begin?")
    other.answer(ASK_PROMPT)
    note(home, "claude", stop(other))
    worker.follow(None)
    assert len(stored(other.id)) == 2


@pytest.fixture
def corpus() -> Path:
    return shared_corpus()


def test_a_turn_of_codex(home: Path, corpus: Path, tmp_path: Path) -> None:
    sessions = tmp_path / "user" / ".codex" / "sessions"
    shutil.copytree(corpus / "codex" / "real-0.171.0" / "sessions", sessions)
    trace = next(iter(sorted(sessions.rglob("rollout-*.jsonl"))))
    note(home, "codex", {"hook_event_name": "Stop", "session_id": "x", "transcript_path": str(trace)})
    worker.follow(None)
    assert MemoryReader.open().statistics().sessions_by_harness == {"codex": entries(home)[0]["traces"]}


def test_a_turn_of_pi(home: Path, corpus: Path, tmp_path: Path) -> None:
    sessions = tmp_path / "user" / ".pi" / "agent" / "sessions"
    shutil.copytree(corpus / "pi" / "real-1.6.0", sessions)
    trace = next(iter(sorted(sessions.rglob("*.jsonl"))))
    note(home, "pi", {"hook_event_name": "agent_end", "transcript_path": str(trace)})
    worker.follow(None)
    assert MemoryReader.open().statistics().sessions_by_harness == {"pi": 1}


def test_a_turn_of_hermes(home: Path, corpus: Path, tmp_path: Path) -> None:
    folder = tmp_path / "hermes"
    folder.mkdir()
    shutil.copy(corpus / "hermes" / "compaction" / "state.db", folder)
    (folder / "state.db").touch()
    note(home, "hermes", {"hook_event_name": "post_llm_call", "session_id": "x"}, HERMES_HOME=str(folder))
    worker.follow(None)
    (entry,) = entries(home)
    assert (entry["event"], entry["traces"]) == ("post_llm_call", 1)
    assert entry["stored"] > 0


def test_the_whole_output_tier_waits_for_a_boundary(home: Path, projects: Path, fake: FakeEncoder) -> None:
    session = ClaudeSession(projects, "a")
    talk(session, 1, "harbour")
    note(home, "claude", stop(session))
    worker.follow(None)
    assert set(MemoryReader.open().statistics().waiting_by_type) == set(OUTPUT)
    assert run_vectors(budget=3600.0, stop=lambda: False).waiting == 0
