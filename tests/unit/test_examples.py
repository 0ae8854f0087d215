from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_committed_files_are_what_the_scripts_give():
    done = subprocess.run([sys.executable, EXAMPLES / "build.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_harness_is_there_with_several_sessions():
    sessions = EXAMPLES / "sessions"
    count = Counter(p.relative_to(sessions).parts[0] for p in sessions.rglob("*.jsonl"))
    assert count["claude"] >= 8
    assert count["codex"] >= 6
    assert count["pi"] >= 5
    assert len((sessions / "hermes" / "sessions-export.jsonl").read_text(encoding="utf-8").splitlines()) >= 5


def test_every_line_is_json():
    for path in EXAMPLES.rglob("*.jsonl"):
        for line in path.read_bytes().splitlines():
            assert isinstance(json.loads(line), dict), path


@pytest.mark.parametrize("kind", ["lexical", "paraphrased", "identifier", "time", "dead end", "reversal", "preference"])
def test_every_kind_of_question_is_asked(kind: str):
    questions = [json.loads(line) for line in (EXAMPLES / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(questions) >= 30
    assert any(q["kind"] == kind for q in questions)
