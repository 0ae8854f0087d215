"""Which characters behind `password =` or `token:` are a credential, and which are code, prose or a placeholder.

A name or a position says that a secret may follow; these filters look at the value alone. None of them flags a value
for its entropy only: that would redact commit hashes, ids and digests, which is what people recall by.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter
from itertools import pairwise

QUOTE = r"(?:\\{0,4}[\"'`])"
"""A quote, escaped by up to two levels of JSON."""

LONGEST = 8192
"""Longest value, in characters; what follows is not looked at."""

LOOK_AT = 128
"""Characters of a value that the filters read; bounds their work on long values."""

_PLACEHOLDER = re.compile(
    r"""
      x{5,} | \*{3,} | \.{3} | … | \?{4,} | _{5,}                     # xxxxx ***** ... ?????
    | ^< | >$ | ^\$ | \$\{ | \$\( | ^%[A-Za-z_({]               # <key> $VAR ${VAR} $(command) %VAR%
    | \{\{ | ^\{ | ^@\{ | ^\#\{                                 # {{value}} {value} @{value} #{value}
    | \$[A-Z][A-Z_]{2,}
    | REDACTED | example | change[-_]?me | change-in | placeholder | replace[-_]?(?:me|with|this)
    | your[-_ ] | ^your | [-_]your | my[-_](?:secret|token|key|password|api)
    | foobar | notasecret | not-a-secret | hunter2 | wrong[-_]
    | (?:^|[-_])(?:dummy|sample|insert|todo|fixme|masked|hidden|lorem|fake|invalid|test)(?:[-_]|$)
    | (?:dummy|fake|sample|test)[-_]?(?:key|token|secret|password|pass|value)
    | ^(?:none|null|nil|true|false|undefined|str|string|bytes|int|bool|optional|any)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)

_CODE = re.compile(
    r"""
      [A-Za-z_][\w.]*(?:\(|\[|::|->|\?\.)             # a call, an index, a path of C++ or Rust
    | (?:self|this|process\.env|os|env|cfg|config|settings|secrets|vars|req|request|args|opts|options|params)\.
    | (?:await|async|new|lambda|return|function|typeof)\b
    | [rbfu]{0,2}["'`]                                # the start of a string in code
    | [&*(!\[]                                        # a reference, a dereference, a bracket
    | \w*=value
    """,
    re.VERBOSE,
)

_ATTRIBUTES = re.compile(r"[A-Za-z_$]\w*(?:\??\.[A-Za-z_]\w*)+[!?]?[();,\]]*\Z")

_LOCATION = re.compile(
    r"""
      https?://[^@]*\Z | [a-z][a-z0-9+.-]*://[^@]*\Z | git@ | urn: | data: | file:
    | \./ | \.\./ | ~/ | [A-Za-z]:\\                                # paths
    | [\w@.-]+(?:/[\w@.-]+)+\.[a-z]{1,5}(?::\d+){0,2}\Z           # src/app/main.py:12
    | arn: | alias/ | projects/ | refs/ | sha\d+[:-] | md5: | SHA256: | h1: | ssh-(?:rsa|ed25519)
    """,
    re.VERBOSE,
)

_WORDS = re.compile(r"[A-Za-z]+(?:[_\-./ :][A-Za-z]+)*\d{0,2}\Z")
_WORDS_AND_NUMBERS = re.compile(r"(?:[A-Za-z]+|\d+)(?:[_\-./ :](?:[A-Za-z]+|\d+))+\Z")
_LETTERS = re.compile(r"[A-Za-z_\-./:]+\Z")
_LOWER_WORDS = re.compile(r"[a-z]+(?:[_\-./ :][a-z]+)*\d{0,2}\Z")
_CAMEL = re.compile(r"[A-Za-z]?[a-z]+(?:[A-Z][a-z]+)+\Z")
_CONSTANT = re.compile(r"[A-Z]+(?:[_-][A-Z0-9]+)*\Z")
_NUMBERED_CONSTANT = re.compile(r"[A-Z]+\d{0,4}(?:_[A-Z0-9]+)+\Z")
_TYPE = re.compile(r"_{0,2}(?:[A-Z]+[a-z]{2,}\d{0,5}|[A-Z][a-z]\d{1,5}|[A-Z]{2,}\d{1,5}){2,}\Z")
_IDENTIFIER = re.compile(r"[A-Za-z]+(?:[_./:-]+[A-Za-z0-9]+)*\Z")
_NUMBER = re.compile(r"[-+]?[\d_,.:/-]+(?:[eE][-+]?\d+|[a-zA-Z%]{1,3})?\Z|#[0-9a-fA-F]{3,8}\Z")
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]|\Z)")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z", re.IGNORECASE)
_CHOSEN = re.compile(r"[A-Z][a-z]{2,}[-_.]?[a-z]{3,}\d{2,4}[!#$%*?]?\Z")  # Copper.velvet78!
_COMPOSED = re.compile(r"[A-Za-z][A-Za-z0-9]{0,15}[-_/:.][A-Za-z0-9]{1,24}[-_/:.]")
_COMMON = frozenset(
    [
        *("admin", "default", "guest", "letmein", "mysql", "pass", "passwd", "password", "postgres", "qwerty"),
        *("redis", "root", "secret", "test", "user"),
    ]
)


def entropy(value: str) -> float:
    """Shannon entropy of the value's own characters, in bits per character."""
    length = len(value)
    return -sum(n / length * math.log2(n / length) for n in Counter(value).values()) if length else 0.0


def character_classes(value: str) -> int:
    """How many of lower case, upper case, digits and other characters occur."""
    return (
        any("a" <= c <= "z" for c in value)
        + any("A" <= c <= "Z" for c in value)
        + any("0" <= c <= "9" for c in value)
        + any(not (c.isascii() and c.isalnum()) for c in value)
    )


def is_placeholder(value: str) -> bool:
    """Whether the value says itself that it stands for something else (`<token>`, `your-api-key`, `sk-...`)."""
    value = value[:LOOK_AT]
    return _PLACEHOLDER.search(value) is not None or value.lower() in _COMMON


def is_code(value: str, literal: bool) -> bool:
    """Whether the value is an expression, a path or an address.

    Args:
        value: the candidate.
        literal: whether it stands where only a literal can (quoted, or behind `NAME=` in an environment), so that
            `Tulip.falcon67` is not an attribute.
    """
    if _CODE.match(value) or _LOCATION.match(value):
        return True
    if value.startswith("/"):  # a path, or base64 that happens to begin with a slash
        return not (len(value) >= 32 and is_mixed(value))
    return _ATTRIBUTES.match(value) is not None and not (literal and any(c.isdigit() for c in value))


def is_words(value: str, literal: bool = False) -> bool:
    """Whether the value is made of words, as an identifier or a constant is.

    Args:
        value: the candidate.
        literal: whether it stands where only a literal can, so that `Copper_ember14` is a password.
    """
    if _CAMEL.match(value) or _CONSTANT.match(value) or _LOWER_WORDS.match(value):
        return True
    if literal:
        return False
    if _WORDS.match(value):
        return not (len(value) >= 20 and is_mixed(value))
    return bool(_NUMBERED_CONSTANT.match(value) or _TYPE.match(value))


def is_composed(value: str) -> bool:
    """Whether the value is the key of a cache or a table that a program puts together (`build-linux-0a1b2c`)."""
    return _COMPOSED.match(value) is not None


def is_measure(value: str) -> bool:
    """Whether the value is a number, a time, a date or a version."""
    return bool(_NUMBER.match(value) or _TIME.match(value))


def plausible_password(value: str, literal: bool = False) -> bool:
    """Whether a value behind a password's name is one.

    People choose passwords, so six characters of two kinds suffice; what has the form of code or of words does not.
    """
    value = value[:LOOK_AT].rstrip(".,;:")
    if len(value) < 6 or is_placeholder(value):
        return False
    if value.isdigit():
        return len(value) >= 8
    if _CHOSEN.match(value):
        return True
    if is_code(value, literal) or is_words(value, literal) or is_measure(value):
        return False
    if not literal and _IDENTIFIER.match(value) and not is_mixed(value):
        return False
    return character_classes(value) >= 2 and entropy(value) >= 2.3


def plausible_token(value: str, literal: bool = False) -> bool:
    """Whether a value behind the name of a token, key or secret is one: long, and not made of words."""
    value = value[:LOOK_AT].rstrip(".,;:")
    if (
        len(value) < 12
        or is_placeholder(value)
        or is_code(value, literal)
        or is_words(value, literal)
        or is_measure(value)
    ):
        return False
    if _UUID.match(value):
        return True
    if _WORDS_AND_NUMBERS.match(value):  # origin/20260206-secrets
        return False
    bits = entropy(value)
    if _LETTERS.match(value):
        return (len(value) >= 24 and bits > 4.0) or (len(value) >= 20 and is_mixed(value))
    return bits >= (2.9 if len(value) < 20 else 3.1)


def is_mixed(value: str) -> bool:
    """Whether letters and digits alternate as they do in random characters and seldom do in words."""
    value = value[:LOOK_AT]
    digits = sum(c.isdigit() for c in value)
    pairs = [(a, b) for a, b in pairwise(value) if a.isalnum() and b.isalnum()]
    switches = sum(a.isdigit() != b.isdigit() for a, b in pairs)
    cases = sum((a.isupper() and b.islower()) or (a.islower() and b.isupper()) for a, b in pairs)
    return (
        switches >= 3
        or (digits > 0 and cases + switches >= max(4, len(value) // 5))
        or cases >= max(6, len(value) // 3)
    )


def decode_base64(value: str) -> str | None:
    """The text that the value encodes in standard base64, None when it encodes none.

    At least 97 % of the characters must be printable, so that a chance hit in binary data does not count.
    """
    try:
        text = base64.b64decode(value + "=" * (-len(value) % 4), validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None
    printable = len(text) - sum(not (c.isprintable() or c in "\n\r\t") for c in text)
    return text if text and printable >= len(text) * 0.97 else None
