"""Invented sessions in the layouts of Claude Code and Codex: as many as are wanted, the same ones for the same seed.

    python bench/generate.py FOLDER --sessions 1000 [--seed 1]

A session is about one component and what is wrong with it; it has a cause and a decision, which are said once. Several
sessions are about the same component with other symptoms, and many about the same symptom of other components, so a
question is answered by one session only, and others come close. One session in four is Codex's.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from invented import (
    CAUSES,
    DECISIONS,
    FOLLOW_UPS,
    LANGUAGES,
    PARTS,
    QUALITIES,
    REMARKS,
    REQUESTS,
    SYMPTOMS,
)

FORM = 3
"""Raised when what is generated changes."""

END = datetime(2026, 6, 30, 18, tzinfo=UTC)
DAYS = 365
NOTE = "pile.note"
Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """A question that one session answers.

    Attributes:
        question: in other words than the session's.
        plain: the same question in the session's own words.
        answer: what the session says, verbatim; a passage of the session that contains it is the evidence.
        session_id: the session.
        at: how new the session is: 0 for the oldest, 1 for the newest.
    """

    question: str
    plain: str
    answer: str
    session_id: str
    at: float


@dataclass(frozen=True, slots=True)
class Pile:
    """Generated sessions.

    Attributes:
        folder: what to index: `claude/projects/…`, `codex/sessions/…` and so on below it.
        sessions: how many there are.
        size: their bytes.
        questions: one for each of up to 200 sessions, spread evenly over time, oldest first.
    """

    folder: Path
    sessions: int
    size: int
    questions: list[Question]


def generate(folder: Path, sessions: int, seed: int = 1, layouts: Sequence[type[Trace]] = ()) -> Pile:
    """Write sessions, or take those that an earlier call with the same arguments wrote.

    Args:
        folder: where; made when it is not there. A note beside the sessions says what was written.
        sessions: how many.
        seed: of everything that is drawn.
        layouts: whose sessions they are, in turns; none for three of Claude Code's and one of Codex's.
    """
    note = folder / NOTE
    layouts = layouts or (Claude, Claude, Claude, Codex)
    names = " ".join(layout.__name__ for layout in layouts)
    key = {"form": FORM, "sessions": sessions, "seed": seed, "layouts": names}
    if note.exists() and (made := json.loads(note.read_text(encoding="utf-8")))["key"] == key:
        return Pile(folder, sessions, made["size"], [Question(**question) for question in made["questions"]])
    asked = {round(place * (sessions - 1) / max(1, min(200, sessions) - 1)) for place in range(min(200, sessions))}
    size, questions = 0, []
    for number, subject in enumerate(_subjects(sessions, seed)):
        chance = random.Random(f"{seed} {number}")
        start = END - timedelta(days=DAYS * (sessions - number) / sessions)
        session = layouts[number % len(layouts)](folder, chance, start, subject.project)
        for role, text in _conversation(subject, chance):
            session.say(role, text)
        size += session.write()
        if number in asked:
            question = f"Why did the {subject.component} {SYMPTOMS[subject.symptom][1]}, and what did we decide?"
            plain = f"The {subject.component} {SYMPTOMS[subject.symptom][0]}: why?"
            questions.append(Question(question, plain, subject.cause, session.id, number / max(1, sessions - 1)))
    content = {"key": key, "size": size, "questions": [asdict(question) for question in questions]}
    note.write_text(json.dumps(content), encoding="utf-8")
    return Pile(folder, sessions, size, questions)


@dataclass(frozen=True, slots=True)
class _Subject:
    """What a session is about; `cause` names the component, so that it stands for one session only."""

    project: str
    component: str
    symptom: int
    cause: str
    decision: str


def _subjects(count: int, seed: int) -> Iterator[_Subject]:
    """As many subjects, no component with the same symptom twice while there are enough of them."""
    chance = random.Random(seed)
    components = [f"{quality} {part}" for quality in QUALITIES for part in PARTS]
    chance.shuffle(components)
    # About five sessions to a component, so that a question has rivals whatever the number of sessions.
    components = components[: max(1, min(len(components), count // 5))]
    pairs = [(component, symptom) for component in components for symptom in range(len(SYMPTOMS))]
    chance.shuffle(pairs)
    causes: dict[str, list[str]] = {}
    for number in range(count):
        component, symptom = pairs[number % len(pairs)]
        digest = hashlib.blake2b(component.encode(), digest_size=2).hexdigest()
        if not causes.get(component):
            causes[component] = chance.sample(CAUSES, len(CAUSES))
        cause = f"in the {component} {causes[component].pop()}"
        yield _Subject(f"{component.split()[0]}-{digest}", component, symptom, cause, chance.choice(DECISIONS))


def _conversation(subject: _Subject, chance: random.Random) -> Iterator[tuple[str, str]]:
    """Roles (`user`, `assistant`, `call`, `output`) and texts; cause and decision are said once each."""
    extension, command = chance.choice(LANGUAGES)
    name = subject.component.replace(" ", "_")
    file = f"src/{name}/{chance.choice(PARTS)}.{extension}"
    symptom = SYMPTOMS[subject.symptom][0]

    def remark() -> str:
        number = chance.randint(2, 900)
        function = f"{chance.choice(QUALITIES)}_{chance.choice(PARTS)}"
        values = {"component": f"the {subject.component}", "file": file, "function": function}
        return chance.choice(REMARKS).format(number=number, number2=number + chance.randint(1, 99), **values)

    yield "user", chance.choice(REQUESTS).format(component=f"The {subject.component}", symptom=symptom)
    rounds = chance.randint(2, 4)
    for turn in range(rounds):
        yield "assistant", " ".join(remark() for _ in range(chance.randint(2, 4)))
        yield "call", f"sed -n {turn + 1},{turn + chance.randint(20, 90)}p {file}" if turn % 2 == 0 else command
        yield "output", "\n".join(_line(chance) for _ in range(chance.randint(5, 18)))
        if turn == rounds // 2:
            yield "assistant", f"I found it. It {symptom} because {subject.cause}. {remark()}"
        elif turn == rounds - 1:
            yield "assistant", f"{remark()} As agreed, {subject.decision}. {remark()}"
        yield "user", chance.choice(FOLLOW_UPS)
    yield "assistant", f"Done. {remark()} {remark()}"


def _line(chance: random.Random) -> str:
    """A line of tool output."""
    left, right = chance.choice(QUALITIES), chance.choice(PARTS)
    return f"    {left}_{right} = {chance.choice(PARTS)}({chance.randint(0, 9999)}, {left}.{chance.choice(QUALITIES)})"


class Trace:
    """A session being written.

    Args:
        folder: of all sessions.
        chance: what is drawn comes from.
        start: when it begins.
        project: name of the folder in which the agent works.
    """

    def __init__(self, folder: Path, chance: random.Random, start: datetime, project: str) -> None:
        self.folder, self.chance, self.now, self.project = folder, chance, start, project
        self.id = str(uuid.UUID(int=chance.getrandbits(128), version=4))
        self.records: list[Record] = []

    def say(self, role: str, text: str) -> None:
        """Append what one side says."""
        raise NotImplementedError

    def path(self) -> Path:
        """Where the harness keeps it."""
        raise NotImplementedError

    def tick(self) -> str:
        """The time a few seconds later, as text."""
        self.now += timedelta(seconds=self.chance.randint(2, 40))
        return self.now.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def write(self) -> int:
        """Write the file, last changed when the session ended; its bytes."""
        path = self.path()
        path.parent.mkdir(parents=True, exist_ok=True)
        content = "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in self.records).encode()
        path.write_bytes(content)
        os.utime(path, (self.now.timestamp(), self.now.timestamp()))
        return len(content)


class Claude(Trace):
    """A session of Claude Code."""

    _call = ""

    def say(self, role: str, text: str) -> None:
        """Append what one side says."""
        identifier = str(uuid.UUID(int=self.chance.getrandbits(128), version=4))
        if role == "call":
            self._call = f"toolu_{self.chance.getrandbits(96):024x}"
            content: object = [{"type": "tool_use", "id": self._call, "name": "Bash", "input": {"command": text}}]
        elif role == "output":
            content = [{"type": "tool_result", "tool_use_id": self._call, "content": text}]
        else:
            content = text if role == "user" else [{"type": "text", "text": text}]
        speaker = "user" if role in ("user", "output") else "assistant"
        message: Record = {"role": speaker, "content": content}
        if speaker == "assistant":
            message |= {"id": f"msg_{self.chance.getrandbits(96):024x}", "type": "message", "model": "invented"}
        self.records.append(
            {
                "parentUuid": self.records[-1]["uuid"] if self.records else None,
                "isSidechain": False,
                "userType": "external",
                "cwd": f"/home/dev/{self.project}",
                "sessionId": self.id,
                "version": "2.1.100",
                "gitBranch": "main",
                "type": speaker,
                "message": message,
                "uuid": identifier,
                "timestamp": self.tick(),
            }
        )

    def path(self) -> Path:
        """Where the harness keeps it."""
        return self.folder / "claude" / "projects" / f"-home-dev-{self.project}" / f"{self.id}.jsonl"


class Codex(Trace):
    """A rollout of Codex."""

    def __init__(self, folder: Path, chance: random.Random, start: datetime, project: str) -> None:
        super().__init__(folder, chance, start, project)
        self.start = start
        self._call = ""
        about = {"id": self.id, "timestamp": self.tick(), "cwd": f"/home/dev/{project}", "source": "cli"}
        self.records.append({"timestamp": about["timestamp"], "type": "session_meta", "payload": about})

    def say(self, role: str, text: str) -> None:
        """Append what one side says."""
        if role == "call":
            self._call = f"call_{self.chance.getrandbits(96):024x}"
            arguments = json.dumps({"cmd": text})
            payload: Record = {"type": "function_call", "name": "exec_command", "arguments": arguments}
            payload["call_id"] = self._call
        elif role == "output":
            payload = {"type": "function_call_output", "call_id": self._call, "output": text}
        else:
            kind = "input_text" if role == "user" else "output_text"
            payload = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        self.records.append({"timestamp": self.tick(), "type": "response_item", "payload": payload})

    def path(self) -> Path:
        """Where the harness keeps it."""
        name = f"rollout-{self.start:%Y-%m-%dT%H-%M-%S}-{self.id}.jsonl"
        return self.folder / "codex" / "sessions" / f"{self.start:%Y/%m/%d}" / name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    pile = generate(arguments.folder, arguments.sessions, arguments.seed)
    print(f"{pile.sessions:,} sessions, {pile.size / 1e6:,.0f} MB, {len(pile.questions)} questions: {pile.folder}")


if __name__ == "__main__":
    main()
