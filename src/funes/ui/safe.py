"""Recalled text is data: nothing in it may drive a terminal, hide from the reader, or pass for the format around it."""

from __future__ import annotations

import re

_SEQUENCES = re.compile(
    # CSI: colours, cursor movements, clearing of the screen
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    # OSC, DCS and the like: titles, the clipboard, links
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f\n]*(?:\x07|\x1b\\|\x9c)"
)
_LINE_ENDS = re.compile("\r\n?|[\u0085\u2028\u2029]")
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]")
_SUSPECT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]")
_STRUCTURE = re.compile(
    r"^(?=\\*(?:"
    r"---\s*$"  # the end of a hit or turn
    r"|\[[^\]\n]*\] \S+ .*score=-?[\d.]"  # the head of a hit
    r"|\[[^\]\n]*\] \S+ seq-?\d+ turn="  # the head of a turn
    r"|[ \t]*→ get "
    r"|  ~ |  # "  # a neighbour, the label of a block
    r"))",
    re.MULTILINE,
)
_BLANKS = re.compile(r"\s+")


def clean(text: str) -> str:
    r"""Make text harmless for a terminal and honest to its reader; line feeds and tabs stay.

    Whole escape sequences are removed, other line ends become line feeds, a remaining control character becomes its
    picture (`␛`) and an invisible character that reorders or hides text its code (`\u{202e}`).
    """
    if not _SUSPECT.search(text):
        return text
    text = _SEQUENCES.sub("", text)
    text = _LINE_ENDS.sub("\n", text)
    return _UNSAFE.sub(_visible, text)


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    return f"\\u{{{code:x}}}"


def one_line(text: str, limit: int = 0) -> str:
    """Clean text on a single line: every run of blanks is one space, cut to `limit` characters (0: whole)."""
    if limit:
        # Enough for `limit` characters unless most of the text is blanks and escapes; keeps a huge block cheap.
        text = text[: 20 * limit + 200]
    line = _BLANKS.sub(" ", clean(text)).strip()
    return line[:limit].rstrip() if limit else line


def body(text: str) -> str:
    r"""Clean text for the agent format: a line that would read as part of the format gets a backslash in front.

    A line that already has backslashes before such a form gets one more, so that a reader who drops one backslash
    in front of every such line has the text back.
    """
    return _STRUCTURE.sub(r"\\", clean(text))


def unescape(text: str) -> str:
    """Undo the backslashes of `body`."""
    return re.sub(r"^\\" + _STRUCTURE.pattern[1:], "", text, flags=re.MULTILINE)
