"""Credentials that fill a block of text: private keys in PEM, and text wrapped in base64."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator

from funes.secrets.findings import POSITIONAL, SPECIFIC, Finding
from funes.secrets.gap_values import decode_base64

Span = tuple[int, int]

RULES = {
    "private-key": "a private key in PEM (RFC 7468, RFC 4880) or PuTTY's format",
    "base64-secret": "text in base64 that has a credential in it",
}
"""Rules of this module, and what each finds."""

_LONGEST_KEY = 20_000
_KEY_HEADER = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_KEY_FOOTER = re.compile(r"-----END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:\\{1,4}n)?")
_KEY_MATERIAL = re.compile(r"[A-Za-z0-9+/]{30}")

# One line of a key whose end is missing, with what editors, diffs and escaping put around it.
_KEY_LINE = re.compile(
    r"(?:\\{1,4}[nr]|[\s>|+\-\"']|\d{1,5}[?:|\t ])*"
    r"(?:(?:Proc-Type|DEK-Info|Version|Comment|Hash)[^\n\\]{0,80}|[A-Za-z0-9+/]{16,}=*|[A-Za-z0-9+/]{2,}={1,2})"
)
_PUTTY = re.compile(
    r"Private-Lines: \d{1,3}(?P<key>(?:\s{1,2}|\\r|\\n){1,4}(?:[A-Za-z0-9+/=]{4,80}(?:\s{1,2}|\\r|\\n|\Z){1,4}){1,200})"
)


def find_private_keys(text: str) -> Iterator[Finding]:
    """Yield the private keys of a text: header, body and footer.

    A key whose footer is missing, because a tool cut its output, is covered as far as its lines look like one.
    """
    footer: re.Match[str] | None = None
    searched = 0
    end = 0
    for header in _KEY_HEADER.finditer(text):
        if header.start() < end:
            continue
        if (footer is None or footer.start() < header.end()) and searched <= len(text):
            footer = _KEY_FOOTER.search(text, header.end())
            searched = footer.end() if footer else len(text) + 1
        end = _key_end(text, header.end(), footer)
        if _KEY_MATERIAL.search(text, header.end(), end):
            yield Finding(header.start(), end, "private-key", SPECIFIC)
    if "Private-Lines:" in text:
        for match in _PUTTY.finditer(text):
            yield Finding(*match.span("key"), "private-key", SPECIFIC)


def _key_end(text: str, start: int, footer: re.Match[str] | None) -> int:
    """Where the key whose header ends at `start` ends."""
    if (
        footer is not None
        and start <= footer.start() <= start + _LONGEST_KEY
        and "-----BEGIN" not in text[start : footer.start()]
    ):
        return footer.end()
    end = start
    while end < start + _LONGEST_KEY and (line := _KEY_LINE.match(text, end)):
        end = line.end()
    return end


_BASE64 = bytes(chr(byte) in string.ascii_letters + string.digits + "+/" for byte in range(256))
_SHORTEST_RUN = 40
_RUN = bytes([1]) * _SHORTEST_RUN
_NEXT_LINE = re.compile(r"(?:\r?\n|\\n)([A-Za-z0-9+/]+)(?==*(?:[\s\\\"'`]|\Z))")
_SHORTEST_LINE = 60


def long_runs(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of a text in ASCII where at least 40 characters of base64 follow one another.

    A search for 40 bytes of 1, in a copy of the text with 1 for a character of base64 and 0 for any other, skips most
    of an ordinary text; a pattern would look at each character more than once.
    """
    marks = text.encode("ascii").translate(_BASE64)
    start = marks.find(_RUN)
    while start >= 0:
        end = marks.find(0, start)
        end = len(marks) if end < 0 else end
        yield start, end
        start = marks.find(_RUN, end)


def find_base64(text: str, contains_secret: Callable[[str], bool]) -> Iterator[Finding]:
    """Yield the base64 in a text that encodes text with a credential in it.

    Args:
        text: the text in ASCII.
        contains_secret: tells whether decoded text has one.
    """
    done = 0
    for start, end in long_runs(text):
        if start < done:
            continue
        lines = _lines(text, start, end)
        done = start
        for part in _readings(text, lines):
            if part[0][0] < done:
                continue
            decoded = decode_base64("".join(text[first:last] for first, last in part))
            if decoded is not None and contains_secret(decoded):
                done = part[-1][1] + _padding(text, part[-1][1])
                yield Finding(part[0][0], done, "base64-secret", POSITIONAL)
        done = max(done, lines[-1][1])


def _lines(text: str, start: int, end: int) -> list[Span]:
    """The spans of a run and of the lines that continue it.

    `base64` breaks its output into lines of one length, of which only the last may be shorter.
    """
    width = end - start
    lines = [(start, end)]
    while width >= _SHORTEST_LINE and (line := _NEXT_LINE.match(text, lines[-1][1])) and len(line[1]) <= width:
        lines.append(line.span(1))
        if len(line[1]) < width:
            break
    return lines


def _readings(text: str, lines: list[Span]) -> Iterator[list[Span]]:
    """What to decode together: all lines, all but the last (it may be the next word of the text), each alone."""
    for number in (len(lines), len(lines) - 1):
        characters = sum(last - first for first, last in lines[:number])
        if number > 1 and (characters + _padding(text, lines[number - 1][1])) % 4 == 0:
            yield lines[:number]
    for line in lines:
        yield [line]


def _padding(text: str, end: int) -> int:
    """Number of `=` behind a run, at most two."""
    following = text[end : end + 2]
    return len(following) - len(following.lstrip("="))
