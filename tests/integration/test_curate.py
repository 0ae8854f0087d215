"""`funes curate` without a screen, and the screen, driven by its keys."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from funes.__main__ import main
from funes.cli.curate import _Reviewer
from funes.commands.curate import Curating, curate, stop
from funes.commands.curating.decisions import decisions_file
from funes.commands.curation import publishable
from funes.commands.forget import Wanted, forget
from funes.errors import FunesError
from funes.memory.store import MemoryWriter
from funes.paths import memory_folder
from funes.ui.review import ReviewApp
from tests.support.small_memory import CACHE, HELPER, PARSER, blocks, header, make_memory

MEMORY = "acme/memory"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FUNES_HOME", str(tmp_path / "home"))
    make_memory(memory_folder())
    where = {"repo": "acme/web", "workdir": "/home/dev/web"}
    with MemoryWriter(memory_folder()) as writer:
        writer.append(blocks(CACHE, 3, [("text", "", "The token is [REDACTED:github-token].")], "user", **where))
        writer.append([header(CACHE, "Stale \x1b[31mprices", repo="acme/web", harness="codex")])
    return tmp_path / "home"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


def test_decisions_by_options(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "curate", MEMORY, "acme/web", "--list")
    assert code == 0
    assert out.startswith("acme/memory: sessions of acme/web: 0 included, 0 excluded, 2 pending\n")
    assert "not curated yet" in out
    assert publishable(MEMORY) is None
    code, out, _ = run(capsys, "curate", MEMORY, "acme/web", "--include", CACHE[:8], HELPER, "--json")
    document = json.loads(out)
    assert (code, document["curated"], document["repo"]) == (0, True, "acme/web")
    assert {item["id"]: item["status"] for item in document["sessions"]} == {CACHE: "included", HELPER: "included"}
    code, out, _ = run(capsys, "curate", MEMORY, "--exclude", HELPER)
    assert "1 included, 1 excluded, 0 pending" in out
    assert f"excluded - {HELPER}" in out or f"excluded 2026-05-02 {HELPER}" in out
    selection = publishable(MEMORY)
    assert selection is not None
    assert selection.sessions == {CACHE}
    assert run(capsys, "curate", MEMORY, "--pending", CACHE, "--list")[0] == 1
    assert "0 included" in run(capsys, "curate", MEMORY, "--pending", CACHE)[1]
    assert run(capsys, "curate", MEMORY, "--off")[1] == "acme/memory is not curated any more\n"
    assert run(capsys, "curate", MEMORY, "--off")[1] == "acme/memory was not curated, so nothing was changed\n"
    assert publishable(MEMORY) is None


def test_without_a_terminal_it_begins_and_lists(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "curate", MEMORY, "acme/web")
    assert (code, decisions_file(MEMORY).exists()) == (0, True)
    assert "2 pending" in out
    assert "\x1b" not in out
    selection = publishable(MEMORY)
    assert selection is not None
    assert not selection.sessions


@pytest.mark.parametrize(
    "arguments",
    [
        (MEMORY,),
        ("local", "acme/web"),
        (MEMORY, "web"),
        (MEMORY, "acme/web", "--include", PARSER),
        (MEMORY, "acme/web", "--include", CACHE, "--exclude", CACHE),
        (MEMORY, "acme/web", "--include"),
        (MEMORY, "--off", "--list"),
        ("https://example.org/x", "acme/web"),
    ],
)
def test_faults_are_one_sentence(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    code, out, err = run(capsys, "curate", *arguments)
    assert (code, out) == (1, "")
    assert len(err.splitlines()) == 1
    assert publishable(MEMORY) is None


def test_a_repository_without_sessions_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "curate", MEMORY, "acme/else")[1]
    assert "no session of acme/else; it has sessions of: acme/web, acme/api." in out


def test_a_grown_session_says_what_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    curate(MEMORY, "acme/web", include=[CACHE])
    with MemoryWriter(memory_folder()) as writer:
        writer.append(blocks(CACHE, 9, [("text", "", "More.")], "user", repo="acme/web"))
    assert f"grown (was included) 2026-05-02 {CACHE}" in run(capsys, "curate", MEMORY)[1]


def test_a_decision_is_about_what_was_shown() -> None:
    curating = Curating(MEMORY, "acme/web")
    with MemoryWriter(memory_folder()) as writer:
        writer.append(blocks(CACHE, 9, [("text", "", "Not shown.")], "user", repo="acme/web"))
    curating.decide([CACHE], "include")
    selection = publishable(MEMORY)
    assert selection is not None
    assert not selection.sessions


def test_it_can_be_stopped() -> None:
    assert not stop(MEMORY)
    with pytest.raises(FunesError, match="name the repository"):
        curate(MEMORY)


def drive(steps: Callable[[ReviewApp, Pilot[None]], Coroutine[Any, Any, None]]) -> None:
    """Open the screen and do some steps."""
    curating = Curating(MEMORY, "acme/web")
    curating.begin()

    async def run_steps() -> None:
        app = ReviewApp(_Reviewer(curating))
        async with app.run_test(size=(160, 40)) as pilot:
            await pilot.pause()
            await steps(app, pilot)

    asyncio.run(run_steps())


def shown(app: ReviewApp, name: str) -> str:
    return str(app.query_one(name, Static).render())


def statuses(app: ReviewApp) -> dict[str, str]:
    return {item.id: item.status for item in app.items.values()}


def test_the_screen_shows_prompts_and_redactions() -> None:
    async def steps(app: ReviewApp, pilot: Pilot[None]) -> None:
        assert app.current == CACHE
        preview = shown(app, "#text")
        assert "The cache returns stale prices after a deploy." in preview
        assert "redacted: github-token 1" in preview
        assert "Invalidate" not in preview  # what the agent said is not a prompt
        assert "\x1b" not in preview
        assert "sub-agents' sessions: 1" in preview
        assert "0 included, 0 excluded, 2 pending" in shown(app, "#summary")
        await pilot.press("down")
        assert app.current == HELPER
        assert "Search the code for callers" in shown(app, "#text")

    drive(steps)


def test_keys_decide_and_are_stored_at_once() -> None:
    async def steps(app: ReviewApp, pilot: Pilot[None]) -> None:
        await pilot.press("i")
        assert statuses(app) == {CACHE: "included", HELPER: "pending"}
        assert app.current == HELPER
        selection = publishable(MEMORY)
        assert selection is not None
        assert selection.sessions == {CACHE}
        await pilot.press("x")
        assert statuses(app) == {CACHE: "included", HELPER: "excluded"}
        assert "1 included, 1 excluded, 0 pending" in shown(app, "#summary")
        await pilot.press("up", "p")
        assert statuses(app) == {CACHE: "pending", HELPER: "excluded"}
        await pilot.press("up", "I")
        assert statuses(app) == {CACHE: "included", HELPER: "included"}
        await pilot.press("up", "X")
        assert statuses(app) == {CACHE: "excluded", HELPER: "excluded"}

    drive(steps)
    text = decisions_file(MEMORY).read_text()
    assert f"exclude {CACHE} " in text
    assert f"exclude {HELPER} " in text


def test_what_cannot_be_stored_or_shown_is_said_and_the_screen_stays() -> None:
    async def steps(app: ReviewApp, pilot: Pilot[None]) -> None:
        path = decisions_file(MEMORY)
        kept = path.read_text()
        path.write_text("include [half a line]\n")
        await pilot.press("i")
        said = [notification.message for notification in app._notifications]
        assert len(said) == 1
        assert "line 1: a decision is `include SESSION BLOCKS DIGEST`" in said[0]
        assert set(statuses(app).values()) == {"pending"}
        assert path.read_text() == "include [half a line]\n"
        path.write_text(kept)
        await pilot.press("i")
        assert list(statuses(app).values()).count("included") == 1
        shutil.rmtree(memory_folder())
        await pilot.press("up")
        assert "this session cannot be shown" in shown(app, "#text")

    drive(steps)


def test_a_session_that_is_forgotten_while_it_is_on_the_screen_leaves_no_trace() -> None:
    async def steps(app: ReviewApp, pilot: Pilot[None]) -> None:
        assert app.current == CACHE
        forget(Wanted((CACHE,)), do=True)
        await pilot.press("i")
        assert "has been forgotten meanwhile" in next(iter(app._notifications)).message
        assert CACHE not in decisions_file(MEMORY).read_text()

    drive(steps)


def test_the_list_can_be_searched_and_narrowed() -> None:
    async def steps(app: ReviewApp, pilot: Pilot[None]) -> None:
        await pilot.press("slash", *"prices")
        assert app.table.row_count == 1
        assert app.current == CACHE
        assert "1 shown" in shown(app, "#summary")
        await pilot.press("enter", "i")
        assert statuses(app)[CACHE] == "included"
        await pilot.press("escape")
        assert app.query_one("#search", Input).value == ""
        assert app.table.row_count == 2
        await pilot.press("o")
        assert app.table.row_count == 1
        assert app.current == HELPER
        await pilot.press("x")
        assert app.table.row_count == 0
        assert app.current == ""
        assert "nothing found" in shown(app, "#text")
        await pilot.press("i", "o")
        assert app.table.row_count == 2
        await pilot.press("slash", *"ixpq", "enter")
        assert app.table.row_count == 0
        assert statuses(app) == {CACHE: "included", HELPER: "excluded"}

    drive(steps)


def test_the_screen_can_be_left() -> None:
    async def steps(app: ReviewApp, pilot: Pilot[None]) -> None:
        await pilot.press("q")
        await pilot.pause()
        assert not app.is_running

    drive(steps)
