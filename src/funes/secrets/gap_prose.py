"""Credentials in sentences: "the deploy token for staging is X", "API key: X"."""

from __future__ import annotations

import re

from funes.secrets.findings import GENERIC, Finding
from funes.secrets.gap_values import (
    LONGEST,
    QUOTE,
    character_classes,
    is_code,
    is_composed,
    is_mixed,
    is_placeholder,
    is_words,
    plausible_password,
    plausible_token,
)

RULES = {"prose-secret": "a value that a sentence names"}
"""Rules of this module, and what each finds."""

_KEYWORDS = frozenset({"pass", "pw", "secret", "token", "key", "cred", " pat "})
_REST_OF_WORD = re.compile(r"(?:word|wd|phrase|code|ential|d)?s?", re.IGNORECASE)
_SENTENCE = re.compile(
    rf"(?:[ ][ \w'\-]{{0,40}}?)??(?:[ ](?:is|are|was)|:)[ \n]{{1,2}}{QUOTE}?(?P<value>[^\s\"'`\\,;()<>]{{8,}})",
    re.IGNORECASE,
)


def find_in_sentence(text: str, position: int, keyword: str) -> Finding | None:
    """The credential that a sentence names behind a keyword, None when there is none.

    Args:
        text: the text in ASCII.
        position: where the keyword starts.
        keyword: one of `gap_names.KEYWORDS`.
    """
    if keyword not in _KEYWORDS or text[position - 1 : position] in ("-", "_", ".", "/", "\\"):
        return None
    word = _REST_OF_WORD.match(text, position + len(keyword.rstrip()))
    if word is None or (keyword == "pass" and not word[0].strip("sS")):  # "PASS: TestLogin"
        return None
    match = _SENTENCE.match(text, word.end(), word.end() + 64 + LONGEST)
    if match is None or is_placeholder(match["value"]):
        return None
    value = match["value"].rstrip(".:|")
    if "=" in value[:-2] or not (sum(c.isdigit() for c in value) >= 2 or is_mixed(value)):
        return None
    if keyword == "key" and is_composed(value):
        return None
    if not plausible_token(value) and not (keyword in ("pass", "pw") and _is_chosen(value)):
        return None
    return Finding(match.start("value"), match.start("value") + len(value), "prose-secret", GENERIC)


def _is_chosen(value: str) -> bool:
    """Whether a word looks like a password that a person chose."""
    return plausible_password(value) or (
        character_classes(value) >= 3
        and not is_placeholder(value)
        and not is_code(value, literal=True)
        and not is_words(value)
    )
