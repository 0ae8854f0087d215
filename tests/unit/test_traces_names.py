"""Names made of what was said tell nothing of the credentials in it, and are what they always were without any."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from funes.traces import identity
from funes.traces.codex import CodexSource
from funes.traces.detect import detect
from funes.traces.model import Block, ReadReport, Turn
from funes.traces.registry import sources
from tests.support import codex
from tests.support.secret_traces import FORMATS

Told = dict[str, Any]


def read(path: Path, redact: Callable[[str], str]) -> tuple[list[tuple[Any, ...]], list[str], Told | None]:
    """The names in a trace, the former ones, and the state for the next read."""
    source = detect(path, sources())
    assert source is not None
    report = ReadReport(redact=redact)
    pairs = list(source.read(path, report))
    assert pairs
    assert not report.failed
    names = [
        (session.id, session.parent_id, turn.uuid, turn.parent_uuid, [block.anchor for block in turn.blocks])
        for session, turn in pairs
    ]
    return names, [turn.former for _, turn in pairs], report.resume


def without(secret: str) -> Callable[[str], str]:
    return lambda text: text.replace(secret, "[REDACTED]")


def told(state: Told | None) -> Told:
    """A state without what is allowed to differ: how the file begins and ends where the read stopped."""
    return {key: value for key, value in (state or {}).items() if key not in ("prefix", "tail")}


@pytest.mark.parametrize("name", FORMATS)
def test_no_name_depends_on_a_credential(name: str, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    found = []
    for secret in ("Falcon-tulip41!", "Walnut-river77!"):
        path = FORMATS[name](tmp_path / "t", secret, 3)
        found.append(read(path, without(secret)))
    (names, formers, state), (other_names, other_formers, other_state) = found
    assert names == other_names
    assert told(state) == told(other_state)
    # The same traces read without taking anything out: those names do depend on it, except where the format has ids.
    raw = read(path, str)[0]
    assert (raw == names) is (name == "pi_session")
    assert any(formers) is (name != "pi_session")
    assert not any(one == other for one, other in zip(formers, other_formers, strict=True) if one)


@pytest.mark.parametrize(
    "name", sorted(FORMATS.keys() - {"parquet_without_ids"})
)  # its sessions, too, have another name
def test_a_former_name_is_the_one_of_the_text_as_recorded(name: str, tmp_path: Path) -> None:
    secret = "Falcon-tulip41!"
    path = FORMATS[name](tmp_path, secret, 2)
    names, formers, _ = read(path, without(secret))
    raw = read(path, str)[0]
    assert [former or turn[2] for former, turn in zip(formers, names, strict=True)] == [turn[2] for turn in raw]
    for former, turn in zip(formers, names, strict=True):
        assert not former or identity.is_plain(former)
        assert identity.is_made(turn[2]) == identity.is_made(former or turn[2])
        assert not (former and identity.is_plain(turn[2]))


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("hermes_database", "d7e63a6ffe0971e446bc38fe"),
        ("hermes_export", "d7e63a6ffe0971e446bc38fe"),
        ("codex_without_turns", "e293d27eba2251fdb8d96564"),
        ("codex_with_turns", "396684ebd0caa82b31dc1da7"),
        ("codex_events", "e9e5d948de0f3bb2e4dece26"),
        ("claude_queue", "queued-47bdcf4cc967338ff2f9572c"),
        ("parquet_messages", "bb8a124ffe715b41f71ffa51"),
        ("parquet_without_ids", "parquet-26db365a46b1d1dd"),
        ("parquet_trace", "e293d27eba2251fdb8d96564"),
    ],
)
def test_texts_without_credentials_have_the_names_that_they_always_had(name: str, made: str, tmp_path: Path) -> None:
    names, formers, _ = read(FORMATS[name](tmp_path, "plain", 1), without("never said"))
    assert not any(formers)
    assert made in {value for turn in names for value in (turn[0], turn[2])}


def test_equal_texts_without_their_credentials_are_different_turns() -> None:
    names = identity.ContentNames("s", redact=lambda text: text.replace("one", "*").replace("two", "*"))
    turns = [Turn("", "user", "human", None, [Block("text", f"it is {word}")]) for word in ("one", "two", "*", "one")]
    found = [names.name(turn) for turn in turns]
    assert len({name.uuid for name in found}) == len({name.anchors[0] for name in found}) == 4
    plain = identity.ContentNames("s")
    assert [name.former or name.uuid for name in found] == [plain.name(turn).uuid for turn in turns]
    assert not found[2].former


def test_a_stamp_does_not_depend_on_what_a_session_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    path = codex.write(tmp_path / "sessions", [codex.meta(), codex.user("Which flour?")])
    stamps = []
    for index, name in enumerate(("Falcon-tulip41!", "Walnut-river77!", "Walnut-river77!")):
        line = json.dumps({"id": codex.SESSION, "thread_name": f"password={name}"}) + "\n"
        (tmp_path / "session_index.jsonl").write_text(line * max(index, 1))
        os.utime(tmp_path / "session_index.jsonl", (index, index))
        stamps.append(CodexSource().stamp(path))
    assert stamps[0] == stamps[1] != stamps[2]
