"""Views of a text for scanning: what the rules read in place of the text itself.

Every view but the last has the length of the text, so that a position in it is a position in the text.
"""

from __future__ import annotations

import re
from collections.abc import Container

MASK_VERSION = 1
"""Part of the ruleset id; raised whenever a view changes."""

_MARKER = re.compile(r"\[REDACTED:([a-z0-9][a-z0-9._/-]{0,80})\]")

# Typed in place of their ASCII twins by word processors and East Asian keyboards; any other character is only a
# character to the rules.
_TWINS = (("\uff1a", ":"), ("\uff1d", "="), ("\u00a0", " "))

_ODD_ENDS = (
    "\u2018\u2019\u201c\u201d\u00ab\u00bb\u2039\u203a\u2026"  # quotes, ellipsis
    "\u300c\u300d\u300e\u300f\u3001\u3002\uff0c\uff1b\uff08\uff09\uff01"  # their East Asian kin
)


def mask_markers(text: str, known: Container[str]) -> str:
    """Blank the markers of earlier redactions, which would otherwise look like credentials (`user:[REDACTED:x]@host`).

    Args:
        text: any text.
        known: names of our rules. A marker with another name is left to be scanned: it may be a secret that someone
            wrote in the form of a marker.
    """
    if "[REDACTED:" not in text:
        return text
    return _MARKER.sub(lambda match: "*" * len(match[0]) if match[1] in known else match[0], text)


def part_at_nuls(text: str) -> str:
    """Turn NUL characters into line ends.

    They separate the entries of a process environment, and Kingfisher takes a text with many of them for UTF-16.
    """
    return text.replace("\0", "\n") if "\0" in text else text


def fold(text: str) -> str:
    """The text in ASCII: look-alikes of `:`, `=` and blank replaced by them, anything else by a question mark."""
    if text.isascii():
        return text
    for twin, plain in _TWINS:
        text = text.replace(twin, plain)
    return text.encode("ascii", "replace").decode("ascii")


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Leave typographic quotes and punctuation at the ends of a span in `fold`'s view out of it."""
    while start < end and text[start] in _ODD_ENDS:
        start += 1
    while start < end and text[end - 1] in _ODD_ENDS:
        end -= 1
    return start, end


def looks_like_utf16(text: str) -> bool:
    """Whether a quarter of the characters or more are NULs: UTF-16 that was decoded as something else."""
    return "\0" in text and text.count("\0") * 4 >= len(text)


def drop_nuls(text: str) -> tuple[str, list[int]]:
    """The text without its NUL characters, and the position in `text` of each character that is left."""
    positions = [position for position, character in enumerate(text) if character != "\0"]
    return text.replace("\0", ""), positions
