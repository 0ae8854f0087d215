"""Sets of questions with known answers, each with the memory or memories that it asks.

Three sets: LoCoMo (long conversations of two people, in /shared; it may be used, not published), the questions on the
team's real sessions, and a pile of invented sessions in the layouts of all four harnesses, as a user has them on the
first day.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import kept
import team_memory
from funes.search.model import Hit
from generate import generate
from layouts import FOUR
from measure import ROOT, funes, run

SHARED = ROOT.parent / "shared" / "eval"
LOCOMO = SHARED / "locomo10.json"
TEAM = SHARED / "team-questions.jsonl"
SESSION = re.compile(r"session_\d+")
ADVERSARIAL = 5
"""LoCoMo's category of questions that have no answer."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and its answer.

    Attributes:
        question: as it is asked.
        style: kind of question, for the figures by kind.
        home: the `FUNES_HOME` that is asked.
        evidence: keys of what answers it; none for a question that has no answer.
        covers: which keys a hit has.
        sessions: in which sessions the evidence stands.
        group: what it is drawn with in a bootstrap.
    """

    question: str
    style: str
    home: Path
    evidence: frozenset[str]
    covers: Callable[[Hit], frozenset[str]]
    sessions: frozenset[str]
    group: str


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Questions.

    Attributes:
        name: for the table.
        asked: the questions.
        k: hits that are asked for.
        by_turn: whether several hits of one turn count as one, as where a turn is one sentence.
        conditions: what corpus, how many questions, when a hit counts.
    """

    name: str
    asked: list[Asked]
    k: int
    by_turn: bool
    conditions: str


class SkippedError(Exception):
    """Why a set cannot be measured here."""


def locomo(work: Path, conversations: int) -> QuestionSet:
    """The LoCoMo questions with evidence, categories 1 to 4.

    Args:
        work: where the memories are kept, one for each conversation.
        conversations: how many of the ten.

    Raises:
        SkippedError: the file is not beside the checkout.
    """
    if not LOCOMO.exists():
        raise SkippedError(f"LoCoMo is not measured: there is no {_shown(LOCOMO)} beside the checkout.")
    asked: list[Asked] = []
    samples = json.loads(LOCOMO.read_text(encoding="utf-8"))[:conversations]
    for sample in samples:
        name = sample["sample_id"]
        turns = {
            turn["dia_id"] for key, said in sample["conversation"].items() if SESSION.fullmatch(key) for turn in said
        }
        home = _indexed(work / "locomo" / name, partial(_lay_out, sample))
        for qa in sample["qa"]:
            gold = frozenset(f"{name}-{turn}" for turn in qa.get("evidence", []) if turn in turns)
            if qa["category"] == ADVERSARIAL or not gold:
                continue
            sessions = frozenset(f"{name}-session_{_dialogue(turn)}" for turn in gold)
            covers = partial(_turn, gold)
            asked.append(Asked(qa["question"], f"category {qa['category']}", home, gold, covers, sessions, name))
    return QuestionSet(
        "LoCoMo",
        asked,
        30,
        True,
        f"LoCoMo: {len(asked):,} questions with evidence, categories 1 to 4, on {len(samples)} conversations, each a "
        "memory of its own; @k is the share of a question's evidence turns among the first k turns (all its evidence "
        "counts, not any hit); MRR is of the first evidence turn; 30 hits asked for. "
        + (
            "A conversation is drawn as a whole in the bootstrap."
            if len(samples) > 1
            else "Of one conversation questions are drawn, so the interval says nothing about other conversations."
        ),
    )


def team(work: Path, home: Path | None, traces: Path | None, seconds: float) -> QuestionSet:
    """The questions on the team's sessions.

    Args:
        work: where the memory is kept when it has to be made.
        home: a `FUNES_HOME` with the sessions; None to make one.
        traces: the unpacked sessions; None to find them.
        seconds: for making vectors, when the memory has to be made.

    Raises:
        SkippedError: the questions are not beside the checkout.
    """
    if not TEAM.exists():
        raise SkippedError(f"The team's questions are not asked: there is no {_shown(TEAM)} beside the checkout.")
    home = home or team_memory.build(traces, work, seconds)[0]
    status = json.loads(run(funes("status", "--json"), home).output)
    waiting = team_memory.waiting_prose(home)
    questions = [json.loads(line) for line in TEAM.read_text(encoding="utf-8").splitlines()]
    asked = []
    for one in questions:
        evidence = frozenset({"answer"} if one["gold_turns"] else ())
        covers = partial(_answers, frozenset(one["gold_turns"]), tuple(one["must"]))
        sessions = frozenset({one["session_id"]})
        asked.append(Asked(one["question"], one["style"], home, evidence, covers, sessions, one["id"]))
    answerable = sum(bool(one.evidence) for one in asked)
    return QuestionSet(
        "team sessions",
        asked,
        10,
        False,
        f"team sessions: {answerable} answerable questions on {status['sessions']} real sessions, "
        f"{status['passages']:,} passages ({waiting:,} of prose without a vector); any hit: a passage of a gold turn, "
        f"or one with all patterns of the answer, among the first k; {len(asked) - answerable} more questions have no "
        "answer; 10 hits asked for.",
    )


def day_zero(work: Path, sessions: int, seed: int) -> list[QuestionSet]:
    """A pile of sessions with planted facts: asked in their own words, and in others.

    Args:
        work: where pile and memory are kept.
        sessions: how many, a quarter of each harness.
        seed: of the pile.
    """
    folder = work / f"day-zero-{sessions}-{seed}"
    pile = generate(folder / "sessions", sessions, seed, FOUR)
    home = _indexed(folder, lambda _: None)
    status = json.loads(run(funes("status", "--json"), home).output)
    made = []
    for style, about in (("plain", "in the session's own words"), ("question", "in other words")):
        asked = [
            Asked(
                getattr(one, style), style, home, frozenset({"answer"}), partial(_contains, one.answer),
                frozenset({one.session_id}), one.session_id,
            )
            for one in pile.questions
        ]  # fmt: skip
        name = f"day zero, {'lexical' if style == 'plain' else 'paraphrased'}"
        made.append(
            QuestionSet(
                name,
                asked,
                10,
                False,
                f"{name}: {len(asked)} questions {about}, each on one planted fact, over all {sessions:,} invented "
                f"sessions of all four harnesses (seed {seed}, {status['passages']:,} passages); any hit: a passage "
                "with the planted cause, verbatim, among the first k; 10 hits asked for.",
            )
        )
    return made


def _indexed(folder: Path, lay_out: Callable[[Path], None]) -> Path:
    """The memory of `folder/sessions` with all its vectors, made unless an earlier run of the same code made it."""
    home = folder / "home"
    if not kept.current(home):
        print(f"making the memory of {folder.name}", flush=True)
        shutil.rmtree(home, ignore_errors=True)
        lay_out(folder / "sessions")
        run(funes("index", str(folder / "sessions"), "--yes"), home)
        kept.mark(home)
    return home


def _lay_out(sample: dict[str, Any], root: Path) -> None:
    """Write one conversation of LoCoMo as Claude Code session files: a session each, a record for each turn."""
    name, conversation = sample["sample_id"], sample["conversation"]
    for key, turns in conversation.items():
        if not SESSION.fullmatch(key):
            continue
        path = root / "projects" / "-home-dev-locomo" / f"{name}-{key}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        start = datetime.strptime(conversation[f"{key}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        records = _records(name, f"{name}-{key}", turns, conversation["speaker_a"], start)
        path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def _records(
    name: str, session: str, turns: list[dict[str, str]], first_speaker: str, start: datetime
) -> Iterator[dict[str, Any]]:
    parent = None
    for number, turn in enumerate(turns):
        role = "user" if turn["speaker"] == first_speaker else "assistant"
        text = f"{turn['speaker']}: {turn['text']}"
        if caption := turn.get("blip_caption"):
            text += f" [shares {caption}]"
        identifier = f"{name}-{turn['dia_id']}"
        yield {
            "type": role,
            "uuid": identifier,
            "parentUuid": parent,
            "sessionId": session,
            "cwd": "/home/dev/locomo",
            "timestamp": f"{start + timedelta(seconds=30 * number):%Y-%m-%dT%H:%M:%S.000Z}",
            "version": "2.0.22",
            "message": {"role": role, "content": [{"type": "text", "text": text}] if role == "assistant" else text},
        }
        parent = identifier


def _dialogue(turn: str) -> str:
    """Number of the session that a LoCoMo turn belongs to."""
    return turn.rsplit("-D", 1)[1].split(":")[0]


def _turn(gold: frozenset[str], hit: Hit) -> frozenset[str]:
    return gold & {hit.chunk.turn_uuid}


def _answers(gold: frozenset[str], must: tuple[str, ...], hit: Hit) -> frozenset[str]:
    text = hit.chunk.text or ""
    right = hit.chunk.turn_uuid in gold or all(re.search(pattern, text, re.IGNORECASE | re.DOTALL) for pattern in must)
    return frozenset({"answer"} if right else ())


def _contains(answer: str, hit: Hit) -> frozenset[str]:
    return frozenset({"answer"} if answer in (hit.chunk.text or "") else ())


def _shown(path: Path) -> str:
    return str(path.relative_to(ROOT.parent))
