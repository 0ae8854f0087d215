"""The bundles of long_session.py with a real agent: what it answers, and what that costs. It spends the user's money.

    python bench/long_session_agent.py claude --home DIR            # says what it would run
    python bench/long_session_agent.py claude --home DIR --yes      # runs it
    python bench/long_session_agent.py codex --home DIR --bundles gemini-tools --arms handoff,recall --repeat 3 --yes

The program is the user's own `claude` or `codex`, logged in as it is, in an empty folder, with hooks off and no MCP
server but funes (in the arm recall). The answer is graded with the facts' patterns; the cost is what the program
reports. No test and no other benchmark runs this.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import corpus
from bundles import Bundle, find_trace, load, session_text
from handing_over import Prices, Tokens, covered
from measure import environment, funes
from tables import Table, parser, publish, start

ARMS = ("nothing", "handoff", "compaction", "whole session", "recall")
SECONDS = 1800
TOOLS = [f"mcp__funes__{name}" for name in ("recall", "get", "sessions", "scan", "status")]
REQUEST = """\
{task}

You cannot see the code here; there is nothing in this folder. Answer in one message, as completely as you can, from
what you know. Say what you do not know.
{material}"""


@dataclass(slots=True)
class Answer:
    """What an agent said.

    Attributes:
        text: its last message.
        tokens: paid, where the program says.
        dollars: what the program says it cost, None where it does not.
    """

    text: str
    tokens: Tokens
    dollars: float | None


def claude(prompt: str, home: Path | None, folder: Path) -> Answer:
    """Ask Claude Code."""
    servers: dict[str, Any] = {}
    if home is not None:
        command = funes("mcp")
        variables = {name: environment(home)[name] for name in ("FUNES_HOME", "PYTHONPATH")}
        servers = {"funes": {"command": command[0], "args": command[1:], "env": variables}}
    config = folder.parent / "mcp.json"
    config.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    call = ["claude", "-p", "--output-format", "json", "--no-session-persistence", "--disable-slash-commands"]
    call += ["--settings", '{"disableAllHooks":true}', "--strict-mcp-config", "--mcp-config", str(config)]
    call += ["--tools", ""]  # none of its own: it could read the sessions from the disk
    # An option that takes several values comes last: it would swallow the next one.
    call += ["--allowedTools", *TOOLS] if home is not None else []
    said = json.loads(_run(call, prompt, folder))
    usage = said.get("usage", {})
    paid = Tokens(
        usage.get("cache_creation_input_tokens", 0) + usage.get("input_tokens", 0),
        usage.get("cache_read_input_tokens", 0),
        usage.get("output_tokens", 0),
    )
    return Answer(said.get("result", ""), paid, said.get("total_cost_usd"))


def codex(prompt: str, home: Path | None, folder: Path) -> Answer:
    """Ask Codex. It keeps its own MCP servers and a shell that can read the disk: hide sessions that are on it."""
    call = ["codex", "exec", "--json", "--skip-git-repo-check", "--ephemeral", "--disable", "hooks", "-s", "read-only"]
    if home is not None:
        command = funes("mcp")
        call += ["-c", f"mcp_servers.funes.command={json.dumps(command[0])}"]
        call += ["-c", f"mcp_servers.funes.args={json.dumps(command[1:])}"]
        variables = ", ".join(
            f"{name} = {json.dumps(environment(home)[name])}" for name in ("FUNES_HOME", "PYTHONPATH")
        )
        call += ["-c", f"mcp_servers.funes.env={{ {variables} }}"]
    text, paid = "", Tokens()
    for line in _run([*call, "-"], prompt, folder).splitlines():
        event = json.loads(line)
        item = event.get("item", {})
        if item.get("type") == "agent_message":
            text = item.get("text", "")
        if usage := event.get("usage"):
            cached = usage.get("cached_input_tokens", 0)
            paid += Tokens(usage.get("input_tokens", 0) - cached, cached, usage.get("output_tokens", 0))
    return Answer(text, paid, None)


PROGRAMS: dict[str, Callable[[str, Path | None, Path], Answer]] = {"claude": claude, "codex": codex}


def _run(command: list[str], prompt: str, folder: Path) -> str:
    done = subprocess.run(
        command, input=prompt, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    if done.returncode:
        sys.exit(f"{command[0]} ended with {done.returncode}: {(done.stderr or done.stdout)[-500:]}")
    return done.stdout


def prompt_of(bundle: Bundle, arm: str, traces: Path) -> str:
    """What the agent is given."""
    material = ""
    if arm in ("handoff", "compaction"):
        text = bundle.handoff if arm == "handoff" else bundle.summary
        material = f"\nNotes of the agent that worked on it before:\n\n{text}\n"
    elif arm == "whole session":
        trace = find_trace(bundle.session, traces)
        assert trace is not None, bundle.session
        material = f"\nThe session so far:\n\n{session_text(trace, bundle.until)}\n"
    return REQUEST.format(task="\n".join(bundle.task), material=material)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("program", choices=list(PROGRAMS))
    options.add_argument("--home", type=Path, required=True, metavar="DIR", help="a FUNES_HOME with the sessions")
    options.add_argument("--traces", type=Path, metavar="DIR", help="the unpacked team sessions")
    options.add_argument("--bundles", type=lambda text: text.split(","), metavar="NAMES", help="some bundles")
    options.add_argument("--arms", type=lambda text: text.split(","), default=list(ARMS), metavar="NAMES")
    options.add_argument("--repeat", type=int, default=1, metavar="N")
    options.add_argument("--yes", action="store_true", help="run it, and pay for it")
    arguments = options.parse_args()
    began = start()
    traces = corpus.find(arguments.traces, arguments.work, quick=False).folder
    bundles = [bundle for bundle in load() if arguments.bundles is None or bundle.name in arguments.bundles]
    bundles = [bundle for bundle in bundles if find_trace(bundle.session, traces)]
    runs = len(bundles) * len(arguments.arms) * arguments.repeat
    if not shutil.which(arguments.program):
        sys.exit(f"There is no `{arguments.program}` on PATH.")
    if not arguments.yes:
        sys.exit(f"This would run `{arguments.program}` {runs} times at your cost; add --yes to do it.")
    if unknown := set(arguments.arms) - set(ARMS):
        sys.exit(f"There is no arm {', '.join(sorted(unknown))}; there are {', '.join(ARMS)}.")
    found: dict[str, list[dict[str, Any]]] = {arm: [] for arm in arguments.arms}
    for bundle in bundles:
        for arm in arguments.arms:
            for _ in range(arguments.repeat):
                answer = _ask(arguments, bundle, arm, traces)
                hit = [covered(fact.patterns, answer.text) for fact in bundle.facts]
                found[arm].append({"bundle": bundle.name, "found": hit, "dollars": answer.dollars,
                                   "cost": answer.tokens.cost(Prices()), "answer": answer.text})  # fmt: skip
                print(f"{bundle.name}, {arm}: {sum(hit)} of {len(hit)} facts", flush=True)
    publish(table(arguments.program, found, runs), began, arguments)


def _ask(arguments: Any, bundle: Bundle, arm: str, traces: Path) -> Answer:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "empty"
        folder.mkdir()
        home = arguments.home.resolve() if arm == "recall" else None
        return PROGRAMS[arguments.program](prompt_of(bundle, arm, traces), home, folder)


def table(program: str, found: dict[str, list[dict[str, Any]]], runs: int) -> Table:
    """Facts in the answers and costs, arm by arm."""
    result = Table("long-session-agent", f"The way out of a long session, with {program}", [
        "arm", "facts answered", "cost, thousands of input tokens", "as reported",
    ])  # fmt: skip
    for arm, answers in found.items():
        right, total = sum(sum(one["found"]) for one in answers), sum(len(one["found"]) for one in answers)
        dollars = [one["dollars"] for one in answers if one["dollars"] is not None]
        result.rows.append(
            [
                arm,
                f"{right} of {total}",
                f"{mean(one['cost'] for one in answers) / 1000:,.1f}",
                f"{mean(dollars):.2f} dollars" if dollars else "–",
            ]
        )
    graded = (
        f"{runs} runs of {program}; its version is the one on PATH. Answers are graded with the facts' patterns, so a "
        "fact told in quite other words is missed. What handoff and summary cost to write is not in these figures."
    )
    result.conditions = [graded]
    result.data = {"answers": found}
    return result


if __name__ == "__main__":
    main()
