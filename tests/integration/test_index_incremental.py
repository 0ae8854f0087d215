"""What a second run does with traces that are unchanged, grown, rewritten, moved, copied, vanished or unreadable."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from funes.commands.index import IndexOptions, IndexReport, run_index
from funes.commands.indexing import pool
from funes.commands.indexing.state import UNKNOWN, IndexState, TraceState
from funes.errors import FunesError
from funes.memory.filters import Filter
from funes.memory.identity import newest_version
from funes.memory.reader import MemoryReader
from funes.memory.schema import CHUNKS, VECTORS
from funes.paths import memory_folder, state_file
from funes.traces.codex import CodexSource
from tests.support import codex
from tests.support.claude_sessions import ClaudeSession, talk


@pytest.fixture
def projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FUNES_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FUNES_MODELS", str(tmp_path / "no models"))
    folder = tmp_path / "claude" / "projects"
    folder.mkdir(parents=True)
    return folder


def index(path: Path, **options: object) -> IndexReport:
    return run_index(IndexOptions(path=path, budget=0, **options))  # type: ignore[arg-type]


def versions() -> tuple[int, int]:
    return newest_version(memory_folder(), CHUNKS), newest_version(memory_folder(), VECTORS)


def places() -> list[tuple[str, str, int, int]]:
    """Every row's place; a repeated one is a row that was stored twice."""
    import lance

    rows = lance.dataset(str(memory_folder() / CHUNKS)).to_table().to_pylist()
    found = [
        (row["session_id"], row["turn_uuid"], row["block_idx"], row["split_idx"]) for row in rows if row["seq"] >= 0
    ]
    assert len(found) == len(set(found))
    stored = [row["id"] for row in rows if row["seq"] >= 0 and row["offset"] >= 0]
    assert len(stored) == len(set(stored))
    return found


def seqs(session: str) -> list[int]:
    chunks = MemoryReader.open().session_chunks(session)
    return sorted({chunk.seq for chunk in chunks})


def states() -> dict[str, TraceState]:
    with IndexState(state_file()) as state:
        return state.traces()


def test_a_second_run_writes_nothing(projects: Path) -> None:
    for name in ("one", "two"):
        talk(ClaudeSession(projects, name), 4, name)
    first = index(projects)
    assert (first.traces, first.read, first.sessions, first.new_sessions) == (2, 2, 2, 2)
    assert first.stored == first.parsed > 0
    assert first.waiting == first.stored
    before, rows = versions(), places()
    second = index(projects)
    assert (second.traces, second.unchanged, second.read, second.stored) == (2, 2, 0, 0)
    assert second.waiting == first.stored
    assert versions() == before
    assert places() == rows


def test_touched_files_are_read_again_but_nothing_is_written(projects: Path) -> None:
    session = ClaudeSession(projects, "one")
    talk(session, 3, "cache")
    index(projects)
    before = versions()
    os.utime(session.path, (1, 1))
    report = index(projects)
    assert (report.read, report.stored) == (1, 0)
    assert versions() == before


def test_a_grown_file_adds_only_its_new_turns(projects: Path) -> None:
    session = ClaudeSession(projects, "one")
    talk(session, 3, "cache")
    index(projects)
    old = places()
    session.prompt("and now the quokka?")
    session.answer("The quokka is new.")
    report = index(projects)
    assert (report.turns, report.stored, report.known) == (2, 2, 0)
    assert report.new_sessions == 0
    assert places()[: len(old)] == old
    assert seqs(session.id) == list(range(len(seqs(session.id))))
    chunks = MemoryReader.open().session_chunks(session.id)
    assert chunks[-1].text == "The quokka is new."
    outcome = states()[os.path.realpath(session.path)].outcome
    assert outcome.passages == outcome.stored == len(places())


def test_an_unfinished_last_line_is_read_when_it_is_finished(projects: Path) -> None:
    session = ClaudeSession(projects, "one")
    talk(session, 1, "cache")
    whole = session.path.read_bytes()
    session.answer("The answer that was caught half-written.")
    more = session.path.read_bytes()
    session.path.write_bytes(more[: len(whole) + 40])
    first = index(projects)
    assert states()[os.path.realpath(session.path)].outcome.torn_tail
    session.path.write_bytes(more)
    assert index(projects).stored == 1
    assert MemoryReader.open().session_chunks(session.id)[-1].text == "The answer that was caught half-written."
    assert first.stored + 1 == len(places())


def test_a_rewritten_file_adds_only_what_is_new(projects: Path) -> None:
    session = ClaudeSession(projects, "one")
    talk(session, 3, "cache")
    index(projects)
    old = places()
    records = [json.loads(line) for line in session.path.read_text().splitlines()]
    records[2]["message"]["content"][0]["text"] = "This answer was edited afterwards."
    extra = ClaudeSession(projects.parent / "elsewhere", "one")
    talk(extra, 3, "cache")
    extra.answer("An answer added by the rewrite.")
    records.append(json.loads(extra.path.read_text().splitlines()[-1]))
    session.path.write_text("".join(json.dumps(record) + "\n" for record in reversed(records)))
    report = index(projects)
    assert report.stored == 2
    assert places()[: len(old)] == old
    texts = [chunk.text for chunk in MemoryReader.open().session_chunks(session.id)]
    assert {"This answer was edited afterwards.", "An answer added by the rewrite."} <= set(texts)
    assert "Part 0 of the cache is fine, but its error handling is not." in texts
    assert index(projects).read == 0


def test_history_appended_again_is_stored_once(projects: Path) -> None:
    session = ClaudeSession(projects, "one")
    talk(session, 2, "cache")
    whole = session.path.read_bytes()
    index(projects)
    old = places()
    session.path.write_bytes(whole * 3)
    assert index(projects).stored == 0
    assert places() == old
    new = ClaudeSession(projects, "fresh")
    new.path.write_bytes(whole.replace(session.id.encode(), new.id.encode()) * 2)
    report = index(projects)
    assert report.stored == 0
    assert seqs(new.id) == seqs(session.id)


def test_a_fork_shares_its_passages_and_reads_whole(projects: Path) -> None:
    session, fork = ClaudeSession(projects, "one"), ClaudeSession(projects, "fork")
    talk(session, 2, "cache")
    fork.path.write_bytes(session.path.read_bytes().replace(session.id.encode(), fork.id.encode()))
    os.utime(session.path, (1e9, 1e9))
    fork.count, fork.clock, fork.last = session.count, session.clock, session.last
    fork.prompt("What about the wombat?")
    report = index(projects)
    reader = MemoryReader.open()
    original, forked = reader.session_chunks(session.id), reader.session_chunks(fork.id)
    assert report.copies == len(original)
    assert report.stored == len(original) + 1
    assert [chunk.text for chunk in forked[:-1]] == [chunk.text for chunk in original]
    assert len(reader.phrases(["needs a closer look"], Filter(), 100)) == 2
    assert reader.statistics().copies == len(original)
    places()


def test_a_copy_of_a_file_elsewhere_adds_nothing(projects: Path, tmp_path: Path) -> None:
    session = ClaudeSession(projects, "one")
    talk(session, 2, "cache")
    index(projects)
    before = versions()
    shutil.copytree(projects, tmp_path / "backup")
    report = index(tmp_path / "backup")
    assert (report.read, report.stored, report.copies, report.known) == (1, 0, 0, report.parsed)
    assert versions() == before


def test_rows_of_a_vanished_file_stay(projects: Path) -> None:
    gone, kept = ClaudeSession(projects, "gone"), ClaudeSession(projects, "kept")
    talk(gone, 2, "quokka")
    talk(kept, 2, "cache")
    index(projects)
    rows = places()
    gone.path.unlink()
    report = index(projects)
    assert (report.traces, report.unchanged) == (1, 1)
    assert places() == rows
    assert MemoryReader.open().words("quokka", Filter(), 5)


def test_a_title_that_is_written_behind_the_last_turn_is_found(projects: Path) -> None:
    session = ClaudeSession(projects, "late")
    talk(session, 2, "cache")
    index(projects)
    before = places()
    for kind, key in (("ai-title", "aiTitle"), ("custom-title", "customTitle")):
        with session.path.open("a") as stream:
            stream.write(json.dumps({"type": kind, key: f"Named by {kind}", "sessionId": session.id}) + "\n")
        report = index(projects)
        assert (report.read, report.stored, report.turns) == (1, 0, 0)
        assert MemoryReader.open().sessions()[0].title == f"Named by {kind}"
        assert places() == before


def test_a_credential_in_a_late_title_is_stored_nowhere(projects: Path) -> None:
    session = ClaudeSession(projects, "late")
    talk(session, 2, "cache")
    index(projects)
    secret = "gh" + "p_" + "".join("abcdefghijklmnopqrstuvwxyz0123456789"[(7 * n) % 36] for n in range(36))
    with session.path.open("a") as stream:
        stream.write(
            json.dumps({"type": "custom-title", "customTitle": f"deploy {secret}", "sessionId": session.id}) + "\n"
        )
    index(projects)
    assert "[REDACTED:" in MemoryReader.open().sessions()[0].title
    stored = b"".join(path.read_bytes() for path in (projects.parents[1] / "home").rglob("*") if path.is_file())
    assert secret.encode() not in stored


def test_a_name_that_codex_gives_later_is_found(projects: Path) -> None:
    home = projects.parent / "codex"
    rollout = home / "sessions" / f"rollout-2026-03-04T10-20-00-{codex.SESSION}.jsonl"
    rollout.parent.mkdir(parents=True)
    named = {"type": "thread_name_updated", "thread_id": codex.SESSION, "thread_name": "Kiln logs"}
    records = [codex.meta(), codex.user("why does the kiln log twice?"), codex.event(named)]
    rollout.write_text("".join(json.dumps(record) + "\n" for record in records[:-1]))
    index(home)
    assert MemoryReader.open().sessions()[0].title == ""
    with rollout.open("a") as stream:
        stream.write(json.dumps(records[-1]) + "\n")
    index(home)
    assert MemoryReader.open().sessions()[0].title == "Kiln logs"
    (home / "session_index.jsonl").write_text(json.dumps({"id": codex.SESSION, "thread_name": "Kiln, by hand"}) + "\n")
    index(home)
    assert MemoryReader.open().sessions()[0].title == "Kiln, by hand"
    assert "Kiln, by hand" not in CodexSource().stamp(rollout)  # stamps are stored as they are


def test_a_title_given_later_is_found(projects: Path) -> None:
    session = ClaudeSession(projects, "one")
    talk(session, 1, "cache")
    index(projects)
    assert MemoryReader.open().sessions()[0].title == ""
    session.title("Cache repairs")
    index(projects)
    session.prompt("one more thing")
    index(projects)
    summary = MemoryReader.open().sessions()[0]
    assert (summary.title, summary.first_prompt[:6]) == ("Cache repairs", "cache:")


def test_thinking_left_out_is_read_when_it_is_wanted(projects: Path) -> None:
    session = ClaudeSession(projects, "one")
    talk(session, 2, "cache")
    first = index(projects, thinking=False)
    assert first.skipped["thinking, as asked"] == 2
    assert "thinking" not in MemoryReader.open().statistics().passages_by_type
    assert index(projects, thinking=False).read == 0
    second = index(projects)
    assert (second.read, second.stored) == (1, 2)
    assert MemoryReader.open().statistics().passages_by_type["thinking"] == 2
    assert index(projects, thinking=False).read == 0


def test_limit_takes_the_newest(projects: Path) -> None:
    for number in range(4):
        session = ClaudeSession(projects, f"s{number}")
        talk(session, 1, ("wombat", "quokka", "numbat", "dunnart")[number])
        os.utime(session.path, (1e9 + number, 1e9 + number))
    report = index(projects, limit=2)
    assert (report.traces, report.sessions) == (2, 2)
    reader = MemoryReader.open()
    assert reader.words("dunnart", Filter(), 1)
    assert not reader.words("quokka", Filter(), 1)
    assert index(projects).new_sessions == 2


def test_waiting_passages_are_counted_after_a_killed_run(projects: Path) -> None:
    talk(ClaudeSession(projects, "one"), 2, "cache")
    stored = index(projects).stored
    with IndexState(state_file()) as state:
        state.waiting = UNKNOWN
    assert index(projects).waiting == stored
    with IndexState(state_file()) as state:
        assert state.waiting == stored


def test_a_deleted_memory_is_built_again(projects: Path) -> None:
    talk(ClaudeSession(projects, "one"), 2, "cache")
    stored = index(projects).stored
    shutil.rmtree(memory_folder())
    assert index(projects).stored == stored


def test_a_memory_from_a_backup_is_caught_up(projects: Path, tmp_path: Path) -> None:
    talk(ClaudeSession(projects, "one"), 2, "cache")
    index(projects)
    shutil.copytree(memory_folder(), tmp_path / "backup")
    talk(ClaudeSession(projects, "two"), 2, "quokka")
    index(projects)
    rows = sorted(places())
    shutil.rmtree(memory_folder())
    shutil.copytree(tmp_path / "backup", memory_folder())
    index(projects)
    assert sorted(places()) == rows


def test_a_lost_state_file_costs_a_read_and_nothing_else(projects: Path) -> None:
    talk(ClaudeSession(projects, "one"), 2, "cache")
    index(projects)
    before = versions()
    state_file().unlink()
    report = index(projects)
    assert (report.read, report.stored, report.known) == (1, 0, report.parsed)
    assert versions() == before
    state_file().write_bytes(b"garbage" * 1000)
    with pytest.raises(FunesError, match="delete that file"):
        index(projects)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_named_and_tried_again(projects: Path) -> None:
    session = ClaudeSession(projects, "one")
    talk(session, 1, "cache")
    session.path.chmod(0)
    report = index(projects)
    assert [path for path, _ in report.failed] == [session.path]
    session.path.chmod(0o600)
    assert index(projects).stored > 0


def test_a_failing_reader_is_reported_and_tried_again(projects: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from funes.traces.claude import ClaudeSource

    good, bad = ClaudeSession(projects, "good"), ClaudeSession(projects, "bad")
    talk(good, 1, "cache")
    talk(bad, 1, "quokka")
    read = ClaudeSource.read

    def fails(self: ClaudeSource, path: Path, *rest: object) -> object:
        if path == bad.path:
            raise ZeroDivisionError("oops")
        return read(self, path, *rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(ClaudeSource, "read", fails)
        report = index(projects)
    assert [(path, "ZeroDivisionError" in reason) for path, reason in report.failed] == [(bad.path, True)]
    assert MemoryReader.open().words("cache", Filter(), 1)
    assert states()[os.path.realpath(bad.path)].outcome.failed
    report = index(projects)
    assert (report.unchanged, report.read, report.failed) == (1, 1, [])
    assert MemoryReader.open().words("quokka", Filter(), 1)


def test_unrecognised_files_are_named_and_not_opened_again(projects: Path) -> None:
    talk(ClaudeSession(projects, "one"), 1, "cache")
    strange = projects / "strange.jsonl"
    strange.write_text('{"hello": "world"}\n')
    (projects / "README.md").write_text("# hi")
    assert index(projects).unrecognised == [strange]
    strange.chmod(0)
    assert index(projects).unrecognised == [strange]
    assert states()[os.path.realpath(strange)].outcome.unrecognised
    with pytest.raises(FunesError, match="not a trace"):
        index(projects / "README.md")
    with pytest.raises(FunesError, match="nothing at"):
        index(projects / "absent")


def test_worker_processes_store_the_same_as_one_process(projects: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import lance

    for number in range(6):
        talk(ClaudeSession(projects, f"s{number}"), 5 + number, f"topic{number}")

    def rows() -> list[dict[str, object]]:
        # The id of the secret rules is left out: it follows their source, which may be edited while this runs.
        return lance.dataset(str(memory_folder() / CHUNKS)).to_table().drop(["ruleset"]).to_pylist()

    one = index(projects)
    expected = rows()
    shutil.rmtree(memory_folder())
    monkeypatch.setattr(pool, "SMALL_RUN_BYTES", 0)
    many = index(projects)
    assert rows() == expected
    assert (one.stored, one.parsed, one.skipped) == (many.stored, many.parsed, many.skipped)


def test_a_target_has_to_be_named_without_a_terminal(projects: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(projects.parent))
    for variable in ("CODEX_HOME", "PI_CODING_AGENT_DIR", "HERMES_HOME"):
        monkeypatch.setenv(variable, str(projects / "none"))
    talk(ClaudeSession(projects, "one"), 1, "cache")
    with pytest.raises(FunesError, match="PATH"):
        run_index(IndexOptions())
    with pytest.raises(FunesError, match="no trace source"):
        run_index(IndexOptions(harness="emacs"))
    with pytest.raises(FunesError, match="no sessions of codex"):
        run_index(IndexOptions(harness="codex", budget=0))
    for options in ({"limit": 0}, {"budget": -1.0}):
        with pytest.raises(FunesError):
            run_index(IndexOptions(path=projects, **options))  # type: ignore[arg-type]
    asked = []
    with pytest.raises(FunesError, match="Nothing was indexed"):
        run_index(IndexOptions(interactive=True), confirm=lambda found: bool(asked.append(found)))
    assert [(harness.name, harness.traces) for harness in asked[0]] == [("claude", 1)]
    assert run_index(IndexOptions(harness="claude_code", budget=0)).sessions == 1
    assert run_index(IndexOptions(yes=True, budget=0)).unchanged == 1
    assert run_index(IndexOptions(path=projects, harness="claude", budget=0)).unchanged == 1
    with pytest.raises(FunesError, match="no sessions"):
        run_index(IndexOptions(path=projects, harness="codex", budget=0))


def test_words_only_without_a_model_says_so_once(projects: Path) -> None:
    talk(ClaudeSession(projects, "one"), 1, "cache")
    report = run_index(IndexOptions(path=projects, fetch_model=False))
    assert [note for note in report.notes if "words only" in note]
    assert report.waiting == report.stored > 0
    assert versions()[1] == 0
