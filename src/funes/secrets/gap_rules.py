"""Our own rules: what Kingfisher's patterns for single vendors leave open, in pure Python.

They know context without vendors (a name, a header, a command line), Kingfisher knows vendors without context. On our
labelled set neither reaches two thirds of what both find together.
"""

from __future__ import annotations

from funes.secrets import gap_assignments, gap_blocks, gap_prose
from funes.secrets.findings import Finding
from funes.secrets.gap_context import CONTEXT_RULES, find_in_context
from funes.secrets.gap_prefixes import TOKEN_RULES
from funes.secrets.gap_tokens import TokenMatcher
from funes.secrets.views import fold, trim

GAP_VERSION = "1.0"
"""Version of the rules, part of the ruleset id together with a hash of their source."""

RULE_NAMES = frozenset(
    {rule.name for rule in TOKEN_RULES}
    | {rule.name for rule in CONTEXT_RULES}
    | set(gap_assignments.RULES)
    | set(gap_prose.RULES)
    | set(gap_blocks.RULES)
)
"""Names of all rules."""

_SHORTEST = 8
"""Texts of fewer characters have no credential with the name or position that the rules need."""

_DEEPEST = 2
"""How many layers of base64 are unwrapped."""

_tokens = TokenMatcher()


def scan(text: str) -> list[Finding]:
    """Find credentials in a text.

    Args:
        text: any text; lone surrogates and NUL characters do no harm.

    Returns:
        Findings in no particular order; they may overlap.
    """
    if len(text) < _SHORTEST:
        return []
    folded = fold(text)
    found = _scan(folded, 0)
    if folded is text:
        return found
    findings = []
    for finding in found:
        start, end = trim(text, finding.start, finding.end)
        findings.append(Finding(start, end, finding.rule, finding.rank))
    return findings


def _scan(text: str, depth: int) -> list[Finding]:
    """Find credentials in a text in ASCII that was unwrapped from base64 `depth` times."""
    low = text.lower()
    found = _tokens.find(text)
    found += gap_assignments.find_assignments(text, low)
    found += find_in_context(text, low)
    if "PRIVATE KEY" in text or "Private-Lines" in text:
        found += gap_blocks.find_private_keys(text)
    if depth < _DEEPEST:
        found += gap_blocks.find_base64(text, lambda decoded: bool(_scan(fold(decoded), depth + 1)))
    return found
