"""Recall and precision on labelled texts: floors, so that a change that loses secrets or text does not pass.

The texts are invented (tests/support/secret_samples.py), and the rules were tuned on such texts; the floors say that
nothing gets worse, not how good the scanner is on texts that nobody labelled.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from funes.secrets import Redactor, gap_rules
from funes.secrets.findings import Finding, merge
from tests.support.corpus import shared_corpus
from tests.support.secret_samples import Sample, negatives, positives

SEEDS = (101, 202, 303)


@dataclass
class Score:
    """What a scanner did with labelled texts."""

    secrets: int = 0
    covered: int = 0
    right: int = 0
    wrong: int = 0
    touched: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    @property
    def recall(self) -> float:
        """Share of the secrets that were covered in full."""
        return self.covered / self.secrets

    @property
    def precision(self) -> float:
        """Share of the findings that overlap a secret."""
        return self.right / (self.right + self.wrong)


def score(scan: Callable[[str], list[Finding]], samples: Iterable[Sample]) -> Score:
    """Scan labelled texts."""
    total = Score()
    for sample in samples:
        findings = scan(sample.text)
        covered = {position for finding in findings for position in range(finding.start, finding.end)}
        labelled: set[int] = set()
        for secret in sample.secrets:
            start = sample.text.find(secret)
            while start >= 0:
                span = set(range(start, start + len(secret)))
                labelled |= span
                total.secrets += 1
                total.covered += span <= covered
                if not span <= covered:
                    total.missed.append(f"{sample.kind}, {sample.shape}")
                start = sample.text.find(secret, start + 1)
        right = sum(not labelled.isdisjoint(range(finding.start, finding.end)) for finding in findings)
        total.right += right
        if not sample.secrets and findings:
            total.touched.append(f"{sample.kind}: {[finding.rule for finding in findings]}")
            total.wrong += len(findings)
    return total


def own(text: str) -> list[Finding]:
    return merge(gap_rules.scan(text))


@pytest.fixture(scope="module")
def both() -> Redactor:
    made = Redactor()
    if made.missing_engine:
        pytest.skip(made.missing_engine)
    return made


def check(total: Score, recall: float, touched: int) -> None:
    assert total.recall >= recall, total.missed
    assert total.precision >= 0.99
    assert len(total.touched) <= touched, total.touched


@pytest.mark.parametrize("seed", SEEDS)
def test_both_engines_together(both: Redactor, seed: int) -> None:
    check(score(both.scan, [*positives(seed), *negatives(seed)]), recall=0.985, touched=0)


@pytest.mark.parametrize("seed", SEEDS)
def test_our_rules_alone(seed: int) -> None:
    check(score(own, [*positives(seed), *negatives(seed)]), recall=0.97, touched=0)


@pytest.mark.parametrize("seed", SEEDS)
def test_redacted_text_holds_no_secret_and_is_never_dropped(both: Redactor, seed: int) -> None:
    leaks = 0
    samples = list(positives(seed))
    for sample in samples:
        redacted = both.redact(sample.text).text
        assert redacted is not None
        leaks += any(secret in redacted for secret in sample.secrets)
    assert leaks <= len(samples) * 0.015


@pytest.mark.parametrize("seed", SEEDS)
def test_hard_negatives_come_back_as_they_are(both: Redactor, seed: int) -> None:
    for sample in negatives(seed):
        assert both.redact(sample.text).text == sample.text


@pytest.mark.real_corpus
@pytest.mark.parametrize("seed", ["20261130", "7"])
def test_the_labelled_set_of_the_engines_study(both: Redactor, tmp_path: Path, seed: str) -> None:
    script = shared_corpus().parents[1] / "tools" / "secrets" / "make_set.py"
    target = tmp_path / "set.jsonl"
    subprocess.run([sys.executable, str(script), str(target), "--seed", seed], check=True, capture_output=True)
    samples = []
    for line in target.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        data = record["text"].encode()
        secrets = tuple(data[start:end].decode() for start, end, _ in record["spans"])
        samples.append(Sample(record["kind"], record["shape"], record["text"], secrets))
    check(score(both.scan, samples), recall=0.985, touched=2)
