"""The extension for pi, run by Node without pi: faults that a real session cannot be made to have."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from funes.agents.assets import copy_assets, json_bytes
from funes.agents.pi import PROMPTS
from funes.mcp.tools import TOOLS

PROGRAMS = Path(__file__).parents[1] / "support" / "programs"


def node() -> str | None:
    """A Node that runs TypeScript as it is (22.18 or newer): on PATH, or among the agents of the end-to-end tests."""
    cache = os.environ.get("FUNES_AGENTS_CACHE")
    folder = Path(cache) if cache else Path(__file__).parents[2] / ".cache" / "agents"
    found = sorted(folder.glob("node-*/node_modules/.bin/node"), reverse=True)
    for program in [*map(str, found), shutil.which("node")]:
        if program:
            said = subprocess.run([program, "--version"], text=True, capture_output=True, check=False).stdout
            if [int(part) for part in said.strip().lstrip("v").split(".")[:2]] >= [22, 18]:
                return program
    return None


@pytest.fixture
def host(tmp_path):
    """Runs steps in the extension; returns the recall tool as registered, and what came of each step."""
    program = node()
    if program is None:
        pytest.skip("there is no Node 22.18 or newer")
    log, hooks = tmp_path / "messages", tmp_path / "hooks"
    settings = {
        "command": [sys.executable, "-I", "-S", str(PROGRAMS / "mcp_server.py")],
        "env": {"STAND_IN_LOG": str(log)},
        "hook": ["/bin/sh", "-c", f"cat >> {shlex.quote(str(hooks))}"],
        "tools": TOOLS,
        "prompts": PROMPTS,
    }

    def host(*steps, **changed):
        folder = tmp_path / "funes"
        copy_assets("pi", folder, {"funes.json": json_bytes(settings | changed)})
        done = subprocess.run(
            [program, str(PROGRAMS / "pi_host.mjs"), str(folder / "index.ts"), *map(json.dumps, steps)],
            text=True,
            capture_output=True,
            timeout=600,
            check=True,
        )
        registered, *results = map(json.loads, done.stdout.splitlines())
        return registered, results

    host.log, host.hooks = log, hooks
    return host


def recall(query, **more):
    return {"tool": "funes_recall", "args": {"query": query}, **more}


def test_tools_are_those_of_the_server_with_prompts_of_pi(host):
    registered, _ = host()
    assert registered["name"] == "funes_recall"
    assert registered["description"] == TOOLS[0]["description"]
    assert registered["parameters"] == TOOLS[0]["inputSchema"]
    assert registered["promptSnippet"]
    assert all("funes_" in rule for rule in registered["promptGuidelines"])


def test_one_server_answers_all_calls(host):
    _, (first, second) = host(recall("a"), recall("noise"))
    assert first["text"].split()[0] == second["text"].split()[0]
    methods = [json.loads(line)["method"] for line in host.log.read_text().splitlines()]
    assert methods == ["initialize", "notifications/initialized", "tools/call", "tools/call"]


def test_arguments_are_taken_as_models_write_them(host):
    arguments = {"session_id": "s", "turn_uuid": "t", "window": "3", "from": None, "offset": 2}
    _, (result,) = host({"tool": "funes_get", "args": arguments})
    assert json.loads(result["text"].split(" ", 1)[1]) == {"session": "s", "turn": "t", "window": 3, "offset": 2}
    _, (result,) = host({"tool": "funes_recall", "args": {"query": "x", "type": ["text", "thinking"]}})
    assert json.loads(result["text"].split(" ", 1)[1]) == {"query": "x", "type": "text,thinking"}


def test_a_fault_of_the_tool_is_an_error(host):
    _, (result,) = host(recall("fail"))
    assert result == {"error": "no such thing"}


def test_a_server_that_dies_is_started_again_by_the_next_call(host):
    _, (first, died, again) = host(recall("a"), recall("die"), recall("b"))
    assert died == {"error": "the memory server has ended"}
    assert again["text"].split()[0] != first["text"].split()[0]


def test_an_aborted_call_ends_and_pi_can_exit(host):
    _, (result,) = host(recall("sleep", abort=300))
    assert result == {"error": "cancelled"}


def test_a_program_that_is_gone_is_an_error(host):
    _, results = host(recall("a"), recall("b"), command=["/nowhere/funes", "mcp"])
    assert all("ENOENT" in result["error"] for result in results)


def test_hooks_get_the_session(host):
    _, results = host(*({"event": event} for event in ("session_start", "agent_end", "session_shutdown")))
    assert all(result["quick"] for result in results)
    said = [json.loads(line) for line in host.hooks.read_text().splitlines()]
    common = {"session_id": "s1", "transcript_path": "/sessions/s1.jsonl", "cwd": "/project"}
    assert said == [
        {"hook_event_name": "session_start", **common, "reason": "quit"},
        {"hook_event_name": "agent_end", **common},
        {"hook_event_name": "session_shutdown", **common, "reason": "quit"},
    ]


def test_hooks_that_fail_or_hang_cost_the_session_nothing(host):
    steps = [{"event": "agent_end"}, {"event": "session_shutdown"}]
    for hook in (["/nowhere/python"], ["/bin/sh", "-c", "exit 1"], ["/bin/sh", "-c", "sleep 30"]):
        _, results = host(*steps, hook=hook)
        assert [result["quick"] for result in results] == [True, True]
