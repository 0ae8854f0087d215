"""The program that agents run: it notes the event whatever the circumstances, and never disturbs the agent."""

from __future__ import annotations

import ast
import json
import os
import pwd
import resource
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from funes import hook
from funes.commands.following import log
from funes.commands.following.events import read_event
from tests.support.hooks import PATIENT, environment, fire, noted, worker_busy

HOOK = [sys.executable, "-I", "-S", str(Path(hook.__file__))]
STOP = {"hook_event_name": "Stop", "session_id": "s1", "transcript_path": "/work/s1.jsonl", "cwd": "/work"}


def silent(done: subprocess.CompletedProcess[bytes]) -> bool:
    return (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_an_event_is_noted_with_its_payload(tmp_path: Path) -> None:
    payload = STOP | {"last_assistant_message": "Done: naïve → 完了"}
    with worker_busy(tmp_path):
        began = time.time()
        done = fire([*HOOK, "claude"], json.dumps(payload).encode(), environment(tmp_path, CODEX_HOME="/c"))
    assert silent(done)
    (event,) = noted(tmp_path)
    assert (event.harness, event.name, event.session) == ("claude", "Stop", "s1")
    assert event.traces == (Path("/work/s1.jsonl"),)
    assert event.answer == "Done: naïve → 完了"
    assert event.variables["CODEX_HOME"] == "/c"
    assert began - 1 <= event.time <= time.time() + 1
    assert event.path.stat().st_mode & 0o077 == 0


def test_options_say_what_the_payload_does_not(tmp_path: Path) -> None:
    with worker_busy(tmp_path):
        arguments = ["hermes", "--event", "on_session_end", "--memory", "acme/kb", "--of-a-later-version"]
        assert silent(fire([*HOOK, *arguments], b"{}", environment(tmp_path)))
    (event,) = noted(tmp_path)
    assert (event.harness, event.name, event.memory) == ("hermes", "on_session_end", "acme/kb")


def test_where_a_bound_memory_is_goes_with_the_event(tmp_path: Path) -> None:
    variables = environment(tmp_path, HF_HOME="/hf", HF_TOKEN="a-token", AWS_PROFILE="team")
    for name in (*hook.PLACE_VARIABLES,):
        variables = variables if name in ("HF_HOME", "AWS_PROFILE") else variables | {name: ""}
    with worker_busy(tmp_path):
        assert silent(fire([*HOOK, "claude", "--memory", "acme/kb"], b"{}", variables))
        assert silent(fire([*HOOK, "claude"], b"{}", variables))
    bound, local = noted(tmp_path)
    assert bound.place == {"HF_HOME": "/hf", "AWS_PROFILE": "team"}
    assert local.place == {}
    assert b"a-token" not in bound.path.read_bytes()


def test_a_folder_that_is_gone_is_no_obstacle(tmp_path: Path) -> None:
    gone = tmp_path / "project"
    gone.mkdir()
    line = f"cd {shlex.quote(str(gone))} && rmdir {shlex.quote(str(gone))} && exec {shlex.join([*HOOK, 'claude'])}"
    with worker_busy(tmp_path / "home"):
        assert silent(fire(["/bin/sh", "-c", line], json.dumps(STOP).encode(), environment(tmp_path / "home")))
    (event,) = noted(tmp_path / "home")
    assert event.session == "s1"


@pytest.mark.parametrize(
    "payload",
    [b"", b"no json", b'{"hook_event_name":', b"[1, 2]", b"\xff\xfe\x00", b'{"session_id": 7}', b"[" * 99_999],
)
def test_a_payload_that_cannot_be_read_is_an_event_all_the_same(tmp_path: Path, payload: bytes) -> None:
    with worker_busy(tmp_path):
        assert silent(fire([*HOOK, "codex"], payload, environment(tmp_path)))
    (event,) = noted(tmp_path)
    assert (event.harness, event.name, event.traces, event.session) == ("codex", "", (), "")


def test_of_a_huge_payload_only_the_beginning_is_kept(tmp_path: Path) -> None:
    with worker_busy(tmp_path):
        assert silent(fire([*HOOK, "claude"], b'"' + b"x" * (3 * hook.MAX_PAYLOAD), environment(tmp_path)))
        wait_for_events(tmp_path)
    (event,) = noted(tmp_path)
    assert hook.MAX_PAYLOAD <= event.path.stat().st_size < 1.2 * hook.MAX_PAYLOAD


def test_nobody_waits_for_a_stdin_that_does_not_end(tmp_path: Path) -> None:
    with worker_busy(tmp_path):
        process = subprocess.Popen([*HOOK, "claude"], env=environment(tmp_path), stdin=subprocess.PIPE)
        assert process.stdin is not None
        assert process.wait(PATIENT) == 0  # although stdin is still open
        process.stdin.write(json.dumps(STOP).encode())
        process.stdin.close()
        wait_for_events(tmp_path)
    (event,) = noted(tmp_path)
    assert event.session == "s1"


def wait_for_events(home: Path) -> None:
    deadline = time.monotonic() + PATIENT
    while not noted(home) and time.monotonic() < deadline:
        time.sleep(0.02)


def test_closed_streams_are_no_obstacle(tmp_path: Path) -> None:
    line = shlex.join([*HOOK, "claude"])
    with worker_busy(tmp_path):
        done = fire(["/bin/sh", "-c", f"{line} <&- >&- 2>&-"], b"", environment(tmp_path))
    assert silent(done)
    assert len(noted(tmp_path)) == 1


def test_a_run_of_ask_leaves_no_event(tmp_path: Path) -> None:
    assert silent(fire([*HOOK, "claude"], json.dumps(STOP).encode(), environment(tmp_path, FUNES_ASK="1")))
    assert list(tmp_path.iterdir()) == []


def test_a_home_that_is_missing_is_made(tmp_path: Path) -> None:
    home = tmp_path / "not" / "yet"
    with worker_busy(home):
        assert silent(fire([*HOOK, "claude"], b"{}", environment(home)))
    assert len(noted(home)) == 1


def test_a_home_that_cannot_be_written_is_no_fault_of_the_agent(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert silent(fire([*HOOK, "claude"], b"{}", environment(tmp_path / "file" / "home")))
    sealed = tmp_path / "sealed"
    sealed.mkdir(0o500)
    assert silent(fire([*HOOK, "claude", "--event", "Stop"], b"{}", environment(sealed, FUNES_ASK="")))


def test_without_a_home_variable_the_user_database_is_asked(tmp_path: Path) -> None:
    with worker_busy(tmp_path):
        for home in ({}, {"HOME": ""}):
            variables = {name: value for name, value in environment(tmp_path).items() if name != "HOME"} | home
            assert silent(fire([*HOOK, "claude"], b"{}", variables))
    assert [event.variables["HOME"] for event in noted(tmp_path)] == [pwd.getpwuid(os.getuid()).pw_dir] * 2


def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path) -> None:
    def no_space() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))

    with worker_busy(tmp_path):
        done = subprocess.run(
            [*HOOK, "claude"], input=b"{}", env=environment(tmp_path), capture_output=True, preexec_fn=no_space
        )
    assert silent(done)
    assert [path.name for path in (tmp_path / hook.FOLDER).iterdir()] == [hook.LOCK]


def test_a_spool_that_nobody_empties_does_not_grow_forever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / hook.FOLDER
    folder.mkdir()
    for number in range(hook.MAX_WAITING):
        (folder / f"{number:020}-1{hook.SUFFIX}").touch()
    with worker_busy(tmp_path):
        assert silent(fire([*HOOK, "claude"], b"{}", environment(tmp_path)))
    assert len(noted(tmp_path)) == hook.MAX_WAITING


def test_the_installed_command_knows_its_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "a home; with 'quotes' $HOME"
    monkeypatch.setenv("FUNES_HOME", str(home))
    monkeypatch.setenv("FUNES_MODELS", str(tmp_path / "models"))
    command = hook.hook_command("pi", memory="acme/kb")
    with worker_busy(home):
        assert silent(fire(command, b"{}", environment(None)))
        # Hermes splits the string itself, the others have a shell do it.
        assert silent(fire(shlex.split(shlex.join(command)), b"{}", environment(None)))
        assert silent(fire(["/bin/sh", "-c", shlex.join(command)], b"{}", environment(None)))
    assert [(event.harness, event.memory) for event in noted(home)] == [("pi", "acme/kb")] * 3


def test_the_installed_command_succeeds_without_its_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "gone" / "python"))
    assert silent(fire(hook.hook_command("claude"), json.dumps(STOP).encode(), environment(tmp_path)))


def test_the_installed_command_finds_a_module_that_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = subprocess.run(
        [sys.executable, "-E", "-P", "-c", "import funes.hook"], capture_output=True, check=False
    )
    if installed.returncode:
        pytest.skip("funes is not installed for this interpreter")
    monkeypatch.setattr(hook, "__file__", str(tmp_path / "lib" / "python3.1" / "funes" / "hook.py"))
    with worker_busy(tmp_path):
        assert silent(fire(hook.hook_command("claude"), json.dumps(STOP).encode(), environment(tmp_path)))
    (event,) = noted(tmp_path)
    assert event.session == "s1"


def test_nothing_is_imported_that_takes_time() -> None:
    tree = ast.parse(Path(hook.__file__).read_text(encoding="utf-8"))
    imported = {name.name for node in tree.body if isinstance(node, ast.Import) for name in node.names}
    imported |= {str(node.module) for node in tree.body if isinstance(node, ast.ImportFrom)}
    assert imported == {"__future__", "os", "select", "sys", "time"}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    payload=st.one_of(
        st.binary(max_size=300),
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        ).map(lambda value: json.dumps(value).encode()),
        st.fixed_dictionaries(
            {}, optional=dict.fromkeys(("hook_event_name", "session_id", "transcript_path"), st.text() | st.integers())
        ).map(lambda value: json.dumps(value).encode()),
    ),
    memory=st.text(),
)
def test_any_event_can_be_read_back(tmp_path: Path, payload: bytes, memory: str) -> None:
    hook._write_event(
        str(tmp_path), {"plain": {"harness": "claude", "event": "E", "memory": memory}, "env": {}}, payload
    )
    (name,) = hook.waiting_events(str(tmp_path))
    event = read_event(tmp_path / name)
    event.done()
    assert hook.waiting_events(str(tmp_path)) == []
    assert event.harness == "claude"
    assert all(trace.is_absolute() for trace in event.traces)


def test_the_log_keeps_two_generations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook, "LOG_BYTES", 4000)
    for number in range(300):
        log.Entry(harness="claude", event="Stop", stored=number).write(tmp_path)
    names = sorted(path.name for path in (tmp_path / "logs").iterdir())
    assert names == [hook.LOG, f"{hook.LOG}.1"]
    assert all(path.stat().st_size < 4200 for path in (tmp_path / "logs").iterdir())
    success, error = log.last_entries(tmp_path)
    assert success is not None
    assert (success.stored, error) == (299, None)


def test_the_last_success_and_the_last_error_are_found_across_a_rotation(tmp_path: Path) -> None:
    log.Entry(harness="codex", event="Stop", error="no space left").write(tmp_path)
    (tmp_path / "logs" / hook.LOG).rename(tmp_path / "logs" / f"{hook.LOG}.1")
    log.Entry(harness="claude", event="Stop", stored=3).write(tmp_path)
    with (tmp_path / "logs" / hook.LOG).open("a") as stream:
        stream.write('{"time": "cut by a full di\n[]\n')
    success, error = log.last_entries(tmp_path)
    assert success is not None
    assert error is not None
    assert (success.harness, error.error) == ("claude", "no space left")


def test_without_a_log_nothing_is_known(tmp_path: Path) -> None:
    assert log.last_entries(tmp_path) == (None, None)


@pytest.mark.parametrize(
    ("memory", "baked"),
    [
        ("", {"FUNES_HOME"}),
        ("/data/team", {"FUNES_HOME"}),
        ("acme/decisions", {"FUNES_HOME", "HF_HOME", "HF_ENDPOINT"}),
        ("s3://team/memory", {"FUNES_HOME", "AWS_PROFILE", "AWS_CONFIG_FILE"}),
    ],
)
def test_what_a_bound_agent_has_to_know_is_baked_in_and_no_credential(monkeypatch, tmp_path, memory, baked):
    for name in (*hook.BAKED_VARIABLES, *hook.HUB_VARIABLES, *hook.STORE_VARIABLES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    given = {"FUNES_HOME": "home", "HF_HOME": "hf", "HF_ENDPOINT": "http://hub.test:8", "AWS_PROFILE": "team"}
    given |= {"AWS_CONFIG_FILE": "aws", "HF_TOKEN": "a-token", "AWS_SECRET_ACCESS_KEY": "a-key"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    found = hook.baked_variables(memory)
    assert set(found) == baked
    for name, value in found.items():
        assert value == (given[name] if name in ("HF_ENDPOINT", "AWS_PROFILE") else str(tmp_path / given[name]))
    command = hook.hook_command("pi", memory=memory)[-1]
    assert not any(secret in command for secret in ("a-token", "a-key"))
    options = hook._options(["pi", "--memory", memory])
    assert options["plain"]["memory"] == memory
    read = hook._options([part for name, value in found.items() for part in ("--env", f"{name}={value}")])
    assert read["env"] == found
