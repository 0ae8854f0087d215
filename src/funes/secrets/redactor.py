"""Scanning whole blocks and replacing the credentials in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from funes.errors import FunesError
from funes.secrets import gap_rules, kingfisher, views
from funes.secrets.findings import EngineError, Finding, count, merge, splice

EXTRA_PASSES = 2
"""How often a redacted text may still have findings before the block is dropped."""

WHOLE = 1_000_000
"""Longest block, in characters, that is scanned in one piece."""

WINDOW = 256 * 1024
OVERLAP = 32 * 1024

DROPPED = "block dropped"
"""What the names under which dropped blocks are counted begin with."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """What became of a block.

    Attributes:
        text: the block with every finding replaced by a marker; None when it was dropped, because it never scans clean
            or an engine failed on it.
        counts: findings by rule; a dropped block is counted as `block dropped: <reason>`.
    """

    text: str | None
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def dropped(self) -> str:
        """Why the block was dropped, empty when it was not."""
        return next((name.partition(": ")[2] for name in self.counts if name.startswith(DROPPED)), "")


class Redactor:
    """Finds and replaces credentials with both engines, or with our rules alone where Kingfisher is not installed.

    Threads may share one. It can be sent to another process, which loads the engines itself.

    Args:
        require_both: refuse to work without Kingfisher, as publishing does.

    Raises:
        FunesError: `require_both` is set and Kingfisher does not load.

    Example:
        >>> Redactor().redact("password = 'Tulip-falcon67!'").text  # doctest: +SKIP
        "password = '[REDACTED:password]'"
    """

    def __init__(self, require_both: bool = False) -> None:
        self._require_both = require_both
        self._kingfisher: kingfisher.Kingfisher | None = None
        self.missing_engine = ""
        """One sentence for a warning when only our rules are in force, else empty."""
        try:
            self._kingfisher = kingfisher.engine()
        except kingfisher.EngineUnavailableError as error:
            if require_both:
                raise FunesError(
                    f"Both secret scanners are needed for this, but {error.reason}; "
                    f"install it with: pip install {kingfisher.DISTRIBUTION}"
                ) from error
            self.missing_engine = (
                f"Secrets are searched for with funes's own rules only, because {error.reason}; "
                "fewer vendors' tokens are found."
            )
        self._known = gap_rules.RULE_NAMES | (self._kingfisher.names if self._kingfisher else frozenset())

    def __reduce__(self) -> tuple[type[Redactor], tuple[bool]]:
        return Redactor, (self._require_both,)

    @property
    def engines(self) -> list[str]:
        """Names of the engines in use."""
        return ["kingfisher", "gap"] if self._kingfisher else ["gap"]

    def scan(self, text: str) -> list[Finding]:
        """Find the credentials in a whole block.

        Args:
            text: the block, in the form in which it is stored.

        Returns:
            Disjoint findings in text order. Markers of earlier redactions are none.

        Raises:
            EngineError: an engine failed, so nothing is known about the text.
        """
        found = self._scan_view(views.part_at_nuls(views.mask_markers(text, self._known)))
        if views.looks_like_utf16(text):
            plain, positions = views.drop_nuls(text)
            for finding in self._scan_view(views.mask_markers(plain, self._known)):
                start, end = positions[finding.start], positions[finding.end - 1] + 1
                found.append(Finding(start, end, finding.rule, finding.rank))
        return merge(found) if found else found

    def redact(self, text: str) -> Redaction:
        """Replace every credential in a whole block by `[REDACTED:<rule>]`.

        Args:
            text: the block, before it is cut into chunks.
        """
        counts: Counter[str] = Counter()
        try:
            for _ in range(1 + EXTRA_PASSES):
                findings = self.scan(text)
                if not findings:
                    return Redaction(text, counts)
                counts += count(findings)
                text = splice(text, findings)
        except EngineError as error:
            return Redaction(None, Counter({f"{DROPPED}: {error.reason}": 1}))
        return Redaction(None, Counter({f"{DROPPED}: never clean": 1}))

    def _scan_view(self, text: str) -> list[Finding]:
        """Findings of both engines in a view of the block."""
        if len(text) <= WHOLE:
            return self._scan_window(text)
        return [
            Finding(finding.start + offset, finding.end + offset, finding.rule, finding.rank)
            for offset, window in _windows(text)
            for finding in self._scan_window(window)
        ]

    def _scan_window(self, text: str) -> list[Finding]:
        """Findings of both engines in one piece of text."""
        try:
            found = gap_rules.scan(text)
        except Exception as error:  # a fault of ours must not let a text pass for clean
            raise EngineError("own rules failed") from error
        if self._kingfisher:
            found += self._kingfisher.scan(text)
        return found


def _windows(text: str) -> Iterator[tuple[int, str]]:
    """Cut a very long text into overlapping windows, at a line end where there is one."""
    start = 0
    while start < len(text):
        yield start, text[start : start + WINDOW]
        if start + WINDOW >= len(text):
            return
        following = start + WINDOW - OVERLAP
        line = text.find("\n", following, following + OVERLAP // 8)
        start = line + 1 if line >= 0 else following
