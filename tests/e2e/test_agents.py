"""What a user does, with the real programs: add funes, work, ask, remove it."""

from __future__ import annotations

import contextlib
import re
import shutil
import sqlite3
import tempfile
import threading
import time
from pathlib import Path

import pytest

from funes.commands.opened import OpenMemory
from funes.errors import FunesError
from funes.memory.filters import Filter
from tests.e2e.comparing import changes, differences, mentions, touched
from tests.e2e.conftest import HomeMaker, Programs
from tests.e2e.homes import Home, wait_for_worker
from tests.e2e.table import Table
from tests.support.model_script import Call, Say
from tests.support.model_server import ModelServer

ASKED = ("claude", "codex", "pi")
INDEXED_WITHIN = 60
"""Seconds until a turn counts as not indexed; a quiet machine takes two."""

FIRST_PROMPT = "Where shall we keep the deploy key?"
FIRST_ANSWER = "We keep the deploy key in vault-7, since the wiki is readable by everybody."
PROMPT = "Where does the deploy key live, and how often is it rotated?"
DECISION = "The deploy key lives in vault-7. Decision heliotrope: it is rotated every 17 days, on Tuesdays."
QUESTION = "What did we decide about the rotation of the deploy key, decision heliotrope?"


class Watch(threading.Thread):
    """Notes when a word can first be found in a memory."""

    def __init__(self, home: Home, word: str) -> None:
        super().__init__(daemon=True)
        self.home = home
        self.word = word
        self.found = 0.0
        self.stop = threading.Event()

    def run(self) -> None:
        memory = OpenMemory(str(self.home.path / ".funes"))
        while not self.stop.is_set():
            try:
                if memory.reader().words(self.word, Filter(roles=("assistant",)), 1):
                    self.found = time.time()
                    return
            except FunesError:
                pass  # it is being written
            time.sleep(0.05)


def test_an_agents_life_with_funes(
    agent: str, programs: Programs, make_home: HomeMaker, server: ModelServer, table: Table
) -> None:
    installed = [programs.get(agent), programs.other(agent)]
    other = installed[1].name
    homes = [make_home(which, installed) for which in ("with", "without")]
    home, control = homes
    for each in homes:
        _first_runs(each, agent, other, server)
    before, control_before = (each.files() for each in homes)

    _add(home, agent, table)
    _recall(home, agent, server, table)
    _remember(home, other, server)
    table.set(agent, "cross-agent recall", f"yes, {other}")
    table.set(agent, "ask", _ask(home, agent, server))
    for name in (other, agent, agent):
        done = home.funes("remove", name)
        assert done.code == 0, done.err

    for name, prompt in ((agent, PROMPT), (other, QUESTION)):
        server.script = [Say(DECISION)]
        assert control.turn(name, prompt).code == 0
    after, control_after = _without_funes(home), _without_funes(control)
    found = differences(after, control_after, (home.path, control.path), (agent, other))
    assert not found, "\n".join(found)
    assert mentions(after, b"funes", (agent, other)) == []
    # What the agents leave alone is the same to the byte.
    assert touched(before, after, (agent, other)) <= touched(control_before, control_after, (agent, other))
    assert not touched(control_before, control_after, (agent, other)) & _CONFIGURED[agent]
    table.set(agent, "remove", "as before")


_CONFIGURED = {
    "claude": set[str](),
    "codex": {".codex/config.toml"},
    "pi": {".pi/agent/settings.json", ".pi/agent/models.json"},
    "hermes": {".hermes/config.yaml"},
}
"""The user's own files, which agents do not touch in a run."""


def _without_funes(home: Home) -> dict[str, bytes]:
    """The files of a HOME without funes's own folders: memory, traces and caches stay after `funes remove`."""
    return {name: content for name, content in home.files().items() if not name.startswith((".funes/", ".cache/funes"))}


def _first_runs(home: Home, agent: str, other: str, server: ModelServer) -> None:
    """Sessions from before funes: the agent's holds an answer, the other's only makes its files."""
    for name, prompt, said in ((other, "Hello.", "Hello."), (agent, FIRST_PROMPT, FIRST_ANSWER)):
        server.script = [Say(said)]
        done = home.turn(name, prompt)
        assert done.code == 0, done.err
        assert said in done.out


def _add(home: Home, agent: str, table: Table) -> None:
    began = time.time()
    trust = ["--trust-hooks"] if agent == "codex" else []
    done = home.funes("add", agent, "--yes", *trust)
    assert done.code == 0, done.err
    table.set(agent, "add", f"yes, {done.ended - began:.1f} s")


def _recall(home: Home, agent: str, server: ModelServer, table: Table) -> None:
    """One session in which the model recalls the earlier one; its own answer becomes recallable."""
    server.requests.clear()
    server.script = [Call("recall", {"query": "$PROMPT"}), Say(DECISION)]
    watch = Watch(home, "heliotrope")
    watch.start()
    done = home.turn(agent, PROMPT)
    assert done.code == 0, done.err
    assert DECISION in done.out
    assert [request.prompt for request in server.requests if any("vault-7" in result for result in request.results)]
    table.set(agent, "recall called", "yes")
    watch.join(INDEXED_WITHIN)
    watch.stop.set()
    assert watch.found, _hook_log(home)
    table.set(agent, "hook indexed", f"{watch.found - server.last_answer:.1f} s")
    assert "17 days" in home.funes("recall", QUESTION, "--harness", agent).out
    # What funes itself had said in that session is not remembered a second time.
    assert home.funes("recall", QUESTION, "--role", "tool").out == "no results\n"
    wait_for_worker(home)


def _remember(home: Home, other: str, server: ModelServer) -> None:
    """Another agent recalls what this one decided."""
    _add(home, other, Table())
    server.requests.clear()
    server.script = [Call("recall", {"query": "$PROMPT"}), Say("It was decided.")]
    done = home.turn(other, QUESTION)
    assert done.code == 0, done.err
    results = [result for request in server.requests for result in request.results]
    assert any("every 17 days" in result for result in results), results
    wait_for_worker(home)


def _ask(home: Home, agent: str, server: ModelServer) -> str:
    """An answer of the agent, after which everything is as before."""
    if agent not in ASKED:
        done = home.funes("ask", agent, QUESTION)
        assert done.code == 1
        assert "cannot be asked" in done.err
        return "not offered"
    # Files that the first run of this kind makes and later ones keep.
    server.script = [Say("Every 17 days, on Tuesdays [1].")]
    assert home.funes("ask", agent, QUESTION).code == 0
    server.requests.clear()
    before, memory, threads = home.files(), _passages(home), _threads(home)
    done = home.funes("ask", agent, QUESTION)
    assert done.code == 0, done.err
    assert done.out.startswith("Every 17 days, on Tuesdays [1].\n\nSources (local):\n[1] ")
    assert [name for name in changes(before, home.files()) if not _REWRITTEN.search(name)] == []
    assert _passages(home) == memory
    assert _threads(home) == threads
    (request,) = server.requests
    assert {name for _, name in request.tools} <= {"request_user_input"}
    assert "every 17 days, on Tuesdays" in request.prompt
    assert "passage" in request.prompt
    return "nothing left"


_REWRITTEN = re.compile(r"^\.claude/plugins/store/|^\.codex/(\.tmp/|[a-z_]+_\d+\.sqlite$)|-(shm|wal)$")
"""What programs write whenever they start: the use of Claude Code's own plugins; Codex's fetching of its list of
plugins, left half done by a run that ends early; databases, which the last one to close them copies the log into."""


def _threads(home: Home) -> set[str]:
    """The sessions that Codex's databases know of."""
    found = set()
    for file in (home.path / ".codex").glob("state_*.sqlite"):
        with tempfile.TemporaryDirectory() as folder:
            for part in file.parent.glob(f"{file.name}*"):  # with its log, which is not to be changed by looking
                shutil.copy(part, folder)
            with contextlib.closing(sqlite3.connect(Path(folder) / file.name)) as database:
                found |= {str(row[0]) for row in database.execute("SELECT id FROM threads")}
    return found


def _passages(home: Home) -> int:
    statistics = OpenMemory(str(home.path / ".funes")).reader().statistics()
    return statistics.passages


def _hook_log(home: Home) -> str:
    logs = sorted((home.path / ".funes" / "logs").glob("*"))
    return "\n".join(log.read_text() for log in logs) or "the hooks have logged nothing"


def test_nothing_is_reachable_but_this_machine(isolation: str) -> None:
    if isolation:
        pytest.skip(f"the network is there: {isolation}")
    import socket

    assert [name for _, name in socket.if_nameindex()] == ["lo"]
    with pytest.raises(OSError, match="unreachable"):
        socket.create_connection(("192.0.2.1", 443), timeout=5)
