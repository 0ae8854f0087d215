"""Table 1, retrieval: what each stage of recall is worth, on three sets of questions, with bootstrap intervals.

    python bench/retrieval.py                                   # all sets that are here; an hour the first time
    python bench/retrieval.py --sets day-zero --sessions 1000   # one of locomo, team, day-zero
    python bench/retrieval.py --team-home DIR                   # a FUNES_HOME with the team's sessions
    python bench/retrieval.py --cross-encoder DIR               # a cross-encoder that is not the installed one
    python bench/retrieval.py --quick

Every stage is the product's own pipeline (`bench/stages.py`). A row's gain is that over the row above it, question by
question; that of the fused lists is over the better one of the two. Sets that need what is not here are named with the
reason.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

from funes.errors import FunesError
from funes.memory.reader import MemoryReader
from funes.search.model import Hit
from intervals import interval
from question_sets import Asked, QuestionSet, SkippedError, day_zero, locomo, team
from stages import STAGES, Recall, Remembered, Stage
from tables import Table, parser, publish, start

if TYPE_CHECKING:
    from funes.models.cross_encoder import CrossEncoder
    from funes.models.encoder import Encoder

SETS = ("locomo", "team", "day-zero")
DEPTHS = (1, 5, 10)
METRICS = ("@1", "@5", "@10", "MRR", "session @1")
GAIN = "@5"
"""The metric whose gain over the stage before is shown."""


@dataclass(slots=True)
class Grades:
    """What one stage did with one set.

    Attributes:
        stage: the stage.
        values: for each metric a number for each answerable question, in the order of the set.
        weak: of the questions without an answer, whether nothing but weak hits came.
        weak_answerable: the same of those with one.
    """

    stage: Stage
    values: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    weak: list[bool] = field(default_factory=list)
    weak_answerable: list[bool] = field(default_factory=list)


def grade(asked: Asked, hits: Sequence[Hit], by_turn: bool) -> dict[str, float]:
    """Grade the hits of one question.

    Args:
        asked: the question.
        hits: best first.
        by_turn: whether hits of one turn count as one.

    Returns:
        The metrics, 0 to 1; `any @10` and `all @10` besides those of the table.
    """
    places: dict[str, set[str]] = {}
    for number, hit in enumerate(hits):
        key = hit.chunk.turn_uuid if by_turn else str(number)
        places.setdefault(key, set()).update(asked.covers(hit))
    covered = list(places.values())
    found = {depth: set().union(*covered[:depth]) for depth in DEPTHS}
    grades = {f"@{depth}": len(found[depth]) / len(asked.evidence) for depth in DEPTHS}
    grades["MRR"] = next((1 / rank for rank, keys in enumerate(covered, start=1) if keys), 0.0)
    sessions = list(dict.fromkeys(hit.chunk.session_id for hit in hits))
    grades["session @1"] = float(bool(asked.sessions & set(sessions[:1])))
    grades["any @10"] = float(bool(found[10]))
    grades["all @10"] = float(found[10] == asked.evidence)
    return grades


def measure(
    questions: QuestionSet,
    stages: Sequence[Stage],
    encoder: Encoder,
    cross_encoder: CrossEncoder | None,
    readers: Readers,
) -> list[Grades]:
    """Ask all questions of a set in every stage.

    Args:
        questions: the set.
        stages: the configurations of recall.
        encoder: the model.
        cross_encoder: for the stage that reads with it.
        readers: open memories.
    """
    graded = [Grades(stage) for stage in stages]
    for number, asked in enumerate(questions.asked, start=1):
        reader = Remembered(readers[asked.home], Remembered.READER)
        once = Remembered(encoder, Remembered.ENCODER)
        for grades in graded:
            hits = Recall(grades.stage, reader, once, cross_encoder)(asked.question, questions.k)
            weak = all(hit.weak for hit in hits)
            if not asked.evidence:
                grades.weak.append(weak)
                continue
            grades.weak_answerable.append(weak)
            for metric, value in grade(asked, hits, questions.by_turn).items():
                grades.values[metric].append(value)
        if number % 50 == 0:
            print(f"{questions.name}: {number:,} of {len(questions.asked):,} questions", flush=True)
    return graded


class Readers(dict[Path, MemoryReader]):
    """Memories, opened once."""

    def __missing__(self, home: Path) -> MemoryReader:
        self[home] = MemoryReader.open(str(home / "memory"))
        return self[home]


def rows(questions: QuestionSet, graded: Sequence[Grades]) -> list[list[str]]:
    """The table's rows of one set."""
    groups = _groups(questions)
    made = []
    for number, grades in enumerate(graded):
        cells = [questions.name, grades.stage.name]
        for metric in METRICS:
            low, high = interval(grades.values[metric], groups)
            value = mean(grades.values[metric])
            if metric == "MRR":
                cells.append(f"{value:.3f} ({low:.3f}–{high:.3f})")
            else:
                cells.append(f"{100 * value:.1f} ({100 * low:.1f}–{100 * high:.1f})")
        cells.append(_gain(_before(graded[:number]), grades, groups))
        made.append(cells)
    return made


def _before(earlier: Sequence[Grades]) -> Grades | None:
    """What a stage is compared with: the one before it, or the better one of the two lists that it fuses."""
    if len(earlier) < 2:
        return None
    return earlier[-1] if earlier[-1].stage.words else max(earlier, key=lambda grades: mean(grades.values[GAIN]))


def _gain(before: Grades | None, after: Grades, groups: list[str] | None) -> str:
    # What either of the two first lists gains over the other is no worth of a stage.
    if before is None or not after.stage.dense:
        return "–"
    differences = [b - a for a, b in zip(before.values[GAIN], after.values[GAIN], strict=True)]
    low, high = interval(differences, groups)
    return f"{100 * mean(differences):+.1f} ({100 * low:+.1f} to {100 * high:+.1f})"


def _groups(questions: QuestionSet) -> list[str] | None:
    groups = [asked.group for asked in questions.asked if asked.evidence]
    return groups if 1 < len(set(groups)) < len(groups) else None


def numbers(questions: QuestionSet, graded: Sequence[Grades]) -> dict[str, Any]:
    """What goes into the JSON file of one set: means, intervals, means by kind of question."""
    groups = _groups(questions)
    styles = [asked.style for asked in questions.asked if asked.evidence]
    made: dict[str, Any] = {"questions": len(styles), "conditions": questions.conditions, "stages": {}}
    for grades in graded:
        by_style: dict[str, dict[str, float]] = {}
        for style in sorted(set(styles)):
            chosen = [number for number, one in enumerate(styles) if one == style]
            values = {metric: mean(v[n] for n in chosen) for metric, v in grades.values.items()}
            by_style[style] = {"questions": len(chosen), **values}
        made["stages"][grades.stage.name] = {
            "says": grades.stage.says,
            "means": {metric: mean(values) for metric, values in grades.values.items()},
            "intervals": {metric: interval(values, groups) for metric, values in grades.values.items()},
            "by style": by_style,
            f"each question's {GAIN}": grades.values[GAIN],
            "all weak, no answer": mean(grades.weak) if grades.weak else None,
            "all weak, with an answer": mean(grades.weak_answerable),
        }
    return made


def _sets(arguments: argparse.Namespace) -> tuple[list[QuestionSet], list[str]]:
    """The sets that are here, and why the others are not."""
    quick = arguments.quick
    makers = {
        "locomo": lambda: [locomo(arguments.work, 1 if quick else arguments.conversations)],
        "team": lambda: [team(arguments.work, arguments.team_home, arguments.traces, 60 if quick else arguments.embed)],
        "day-zero": lambda: day_zero(arguments.work, 100 if quick else arguments.sessions, arguments.seed),
    }
    if unknown := set(arguments.sets) - set(makers):
        sys.exit(f"There is no set {', '.join(sorted(unknown))}; there are {', '.join(makers)}.")
    found: list[QuestionSet] = []
    skipped: list[str] = []
    for name in arguments.sets:
        try:
            found += makers[name]()
        except SkippedError as reason:
            skipped.append(str(reason))
            print(reason, flush=True)
    skipped += [f"{name} was not asked for (--sets)." for name in SETS if name not in arguments.sets]
    return found, skipped


def _some(questions: QuestionSet) -> QuestionSet:
    """One in eight of the questions, for a quick run."""
    return replace(
        questions,
        asked=questions.asked[::8],
        conditions=f"{questions.conditions} Of all these, one in eight was asked.",
    )


def _cross_encoder(folder: Path | None) -> tuple[CrossEncoder | None, str]:
    """The last stage's model, or the reason why there is none."""
    from funes.models.cross_encoder import CrossEncoder, load_cross_encoder

    try:
        model = CrossEncoder(folder) if folder else load_cross_encoder()
    except FunesError as error:
        return None, f"the cross-encoder's row is missing: {error.message}"
    return model, f"the cross-encoder is the one in {model.folder.name}; it reads 20 passages, without a limit of time."


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--sets", type=lambda text: text.split(","), default=list(SETS), metavar="SETS")
    options.add_argument("--conversations", type=int, default=10, help="of LoCoMo")
    options.add_argument("--sessions", type=int, default=1000, help="of the invented pile")
    options.add_argument("--seed", type=int, default=1, help="of the invented pile")
    options.add_argument("--team-home", type=Path, metavar="DIR", help="a FUNES_HOME with the team's sessions")
    options.add_argument("--traces", type=Path, metavar="DIR", help="the unpacked team sessions")
    options.add_argument(
        "--embed", type=float, default=7200, metavar="SECONDS", help="for the team's vectors, when they have to be made"
    )
    options.add_argument("--cross-encoder", type=Path, metavar="DIR", help="a folder as `funes models use` takes it")
    arguments = options.parse_args()
    began = start()
    from funes.models.encoder import load_encoder

    encoder, readers = load_encoder(fetch=True), Readers()
    cross_encoder, said = _cross_encoder(arguments.cross_encoder)
    stages = [stage for stage in STAGES if cross_encoder is not None or not stage.reads]
    columns = ("questions", "stage", *METRICS, f"gain {GAIN}")
    table = Table("retrieval", "Retrieval, stage by stage (95 % intervals in brackets)", columns)
    found, skipped = _sets(arguments)
    for questions in map(_some, found) if arguments.quick else found:
        graded = measure(questions, stages, encoder, cross_encoder, readers)
        table.rows += rows(questions, graded)
        table.conditions.append(questions.conditions)
        if graded[-1].weak:
            table.conditions.append(
                f"{questions.name}: in the last row all hits are weak for {100 * mean(graded[-1].weak):.0f} % of the "
                f"questions without an answer and {100 * mean(graded[-1].weak_answerable):.0f} % of the others."
            )
        table.data[questions.name] = numbers(questions, graded)
    if not table.rows:
        sys.exit("None of the sets is here, so there is no table.")
    table.conditions.append(
        f"stages: {'; '.join(f'{stage.name}: {stage.says}' for stage in stages)}. A row has everything of the rows "
        f"above it from fused on. Gain: of {GAIN} over the row above, question by question; of the fused lists over "
        "the better one of the two. Percent, but for the mean reciprocal rank."
    )
    table.conditions += [said, *skipped]
    publish(table, began, arguments)


if __name__ == "__main__":
    main()
