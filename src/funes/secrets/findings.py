"""What a scan returns: spans of text with the name of the rule that found them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

SPECIFIC = 0
"""Rank of a rule that knows one vendor's format."""

POSITIONAL = 1
"""Rank of a rule that knows a syntactic position (a header, a URL's userinfo)."""

GENERIC = 2
"""Rank of a rule that only knows that a name says "secret"."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One credential in a text.

    Attributes:
        start: position of its first character, in characters of the scanned text.
        end: position behind its last character.
        rule: name of the rule, as it appears in a marker.
        rank: how specific the rule is; the smallest one names a span that several rules found.
    """

    start: int
    end: int
    rule: str
    rank: int = SPECIFIC


class EngineError(Exception):
    """An engine failed on a text, so nothing is known about it: it must not pass for clean.

    Args:
        reason: short phrase under which the failure is counted, without any part of the text.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Patience:
    """Ends the judging of candidates inside candidates, as in a run `token=token=token=…`.

    Each candidate of such a run reaches to its end, so that judging all of them takes time that grows with the square
    of its length. Nothing that people or programs write has more than a few; a run that has is redacted whole, because
    a secret may stand in it.
    """

    LIMIT = 40

    def __init__(self) -> None:
        self._start = 0
        self._end = 0
        self._rejected = 0

    def run(self, start: int, end: int) -> tuple[int, int] | None:
        """Note a rejected candidate.

        Args:
            start: where it starts; candidates come in text order.
            end: where it ends.

        Returns:
            The span of the run that it is in, once that has too many of them; else None.
        """
        if start >= self._end:
            self._start = start
            self._rejected = 0
        self._rejected += 1
        self._end = max(self._end, end)
        return (self._start, self._end) if self._rejected > self.LIMIT else None


def merge(findings: Iterable[Finding]) -> list[Finding]:
    """Unite overlapping findings.

    Args:
        findings: in any order.

    Returns:
        Disjoint findings in text order. A united span covers all that its parts cover, and has the name of the most
        specific of them, the longest one where several are equally specific, then the one that comes first.
    """
    merged: list[Finding] = []
    best: list[tuple[int, int]] = []
    for finding in sorted(findings, key=lambda f: (f.start, -f.end)):
        quality = (finding.rank, finding.start - finding.end)
        if merged and finding.start < merged[-1].end:
            last = merged[-1]
            named = finding if quality < best[-1] else last
            merged[-1] = Finding(last.start, max(last.end, finding.end), named.rule, named.rank)
            best[-1] = min(best[-1], quality)
        else:
            merged.append(finding)
            best.append(quality)
    return merged


def splice(text: str, findings: Iterable[Finding]) -> str:
    """Replace each finding by its marker.

    Args:
        text: the scanned text.
        findings: disjoint and in text order, as `merge` returns them.
    """
    parts: list[str] = []
    position = 0
    for finding in findings:
        parts += (text[position : finding.start], f"[REDACTED:{finding.rule}]")
        position = finding.end
    parts.append(text[position:])
    return "".join(parts)


def count(findings: Iterable[Finding]) -> Counter[str]:
    """Number of findings of each rule."""
    return Counter(finding.rule for finding in findings)
