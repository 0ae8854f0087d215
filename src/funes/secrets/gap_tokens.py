"""Finding self-identifying tokens fast.

A text is not searched once for each of the hundred literals of `gap_prefixes`. Nearly all of them contain `_`, `-`,
`.` or `J`, so those characters are searched for; the two characters before one then name the few rules that can apply.
The rest are searched for in groups with the same first character, which `re` finds as fast as one literal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

from funes.secrets.findings import Finding, Patience
from funes.secrets.gap_prefixes import TOKEN_RULES, TokenRule
from funes.secrets.gap_values import LOOK_AT, entropy, is_mixed, is_placeholder, is_words

# An anchor counts only where enough characters of a token follow it.
_ANCHORS = {
    "_": re.compile(r"_(?=[A-Za-z0-9_\-+/=.]{16})"),
    "-": re.compile(r"-(?=[A-Za-z0-9_\-+/=.]{16}|us[0-9])"),
    ".": re.compile(r"\.(?=[A-Za-z0-9_\-+/=.]{24})"),
    "J": re.compile(r"J(?=[A-Za-z0-9_\-+/=.]{16})"),
}

FIRST_READ = 4096
"""Characters of a token that are matched before it is accepted; bounds the work at each candidate."""

_LEAD = 48

# What may stand directly before a token although its last character is one of a word: an escape sequence of a
# terminal, of JSON or of a URL.
_ESCAPE_BEFORE = re.compile(r"(?:\[[0-9;]{0,11}m|\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|\\[nrtf]|%[0-9A-Fa-f]{2})\Z")


class TokenMatcher:
    """Finds the tokens of a table of rules.

    Args:
        rules: the table.
    """

    def __init__(self, rules: Iterable[TokenRule] = TOKEN_RULES) -> None:
        self._keyed: dict[str, list[_Candidate]] = {}
        self._unkeyed: dict[str, list[_Candidate]] = {anchor: [] for anchor in _ANCHORS}
        rest: list[_Candidate] = []
        for rule in rules:
            pattern = re.compile(rule.body)
            lead = re.compile(rf"(?:{rule.lead})\Z") if rule.lead else None
            for literal in rule.literals:
                position = max(literal.rfind(anchor) for anchor in _ANCHORS)
                candidate = _Candidate(rule, literal, position, pattern, lead)
                if position >= 2:
                    self._keyed.setdefault(literal[position - 2 : position + 1], []).append(candidate)
                elif position >= 0:
                    self._unkeyed[literal[position]].append(candidate)
                else:
                    rest.append(candidate)
        rest.sort(key=lambda candidate: candidate.literal)
        self._groups = [
            (initial, re.compile("|".join(re.escape(candidate.literal) for candidate in group)), group)
            for initial, group in (
                (initial, list(same)) for initial, same in groupby(rest, key=lambda candidate: candidate.literal[0])
            )
        ]

    def find(self, text: str) -> list[Finding]:
        """The tokens of a text in ASCII, in no particular order."""
        found: list[Finding] = []
        for anchor, pattern in _ANCHORS.items():
            if anchor in text:
                self._find_at(text, pattern, self._unkeyed[anchor], found)
        for initial, pattern, group in self._groups:
            gate = initial if len(group) > 1 else group[0].literal
            if gate in text:
                _find_group(text, pattern, group, found)
        return found

    def _find_at(self, text: str, anchor: re.Pattern[str], unkeyed: list[_Candidate], found: list[Finding]) -> None:
        """Add the tokens whose literal has its last anchor character where the pattern matches."""
        keyed = self._keyed
        patience = Patience()
        done = 0
        for match in anchor.finditer(text):
            position = match.start()
            candidates = keyed.get(text[position - 2 : position + 1] if position >= 2 else "", unkeyed)
            if not candidates or position < done:
                continue
            for candidate in candidates if candidates is unkeyed else (*candidates, *unkeyed):
                if finding := candidate.at(text, position - candidate.position, patience):
                    done = finding.end
                    found.append(finding)
                    break


class _Candidate:
    """One literal of one rule, ready to be tried at a position."""

    __slots__ = ("body", "lead", "literal", "position", "rule")

    def __init__(
        self, rule: TokenRule, literal: str, position: int, body: re.Pattern[str], lead: re.Pattern[str] | None
    ) -> None:
        self.rule = rule
        self.literal = literal
        self.position = position
        self.body = body
        self.lead = lead

    def at(self, text: str, start: int, patience: Patience) -> Finding | None:
        """The token whose literal starts at `start`, None when there is none."""
        body_start = start + len(self.literal)
        if start < 0 or not text.startswith(self.literal, start):
            return None
        if self.lead is None and not starts_token(text, start):
            return None
        body = self.body.match(text, body_start, body_start + FIRST_READ)
        if body is None:
            return None
        if self.lead is not None:
            lead = self.lead.search(text, max(0, start - _LEAD), start)
            if lead is None or not starts_token(text, lead.start()):
                return None
            start = lead.start()
        end = body.end()
        token = text[start : min(end, start + LOOK_AT)]
        if not _acceptable(token, token if self.lead else body[0][:LOOK_AT]):
            run = patience.run(start, end)
            return Finding(*run, self.rule.name) if run else None
        if end == body_start + FIRST_READ and (whole := self.body.match(text, body_start)):
            end = whole.end()
        return Finding(start, end, self.rule.name)


def _find_group(text: str, pattern: re.Pattern[str], group: list[_Candidate], found: list[Finding]) -> None:
    """Add the tokens of rules whose literals have the same first character."""
    patience = Patience()
    done = 0
    for match in pattern.finditer(text):
        if match.start() < done:
            continue
        for candidate in group:
            if finding := candidate.at(text, match.start(), patience):
                done = finding.end
                found.append(finding)
                break


def _acceptable(token: str, body: str) -> bool:
    """Whether the characters are random enough for a token, not a placeholder and not words."""
    return entropy(body) >= 3.0 and not is_placeholder(token) and (is_mixed(body) or not is_words(body))


def starts_token(text: str, position: int) -> bool:
    """Whether a token can start here: not inside a word, except behind an escape sequence."""
    before = text[position - 1 : position]
    if not (before.isalnum() or before == "_"):
        return True
    return _ESCAPE_BEFORE.search(text, max(0, position - 14), position) is not None
