from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funes.ui.safe import body, clean, one_line, unescape

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[H\x1b[?25lgone", "gone"),
        ("\x9b31mred", "red"),
        ("\x1b]0;owned\x07title", "title"),
        ("\x1b]52;c;cm0gLXJmIH4=\x1b\\clip", "clip"),
        ("\x9d52;c;cm0=\x9cclip", "clip"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP1$r\x1b\\dcs", "dcs"),
        ("\x1b]0;never ended", "␛]0;never ended"),
        ("\x1b]0;ends on\nthe next line\x07", "␛]0;ends on\nthe next line␇"),
        ("\x1bc reset", "␛c reset"),
        ("progress\rdone\r\nend", "progress\ndone\nend"),
        ("a\x00b\x08c\x7fd\x85e", "a␀b␈c␡d\ne"),
        ("tab\tand\nline stay", "tab\tand\nline stay"),
        ("line\u2028---\u2029end", "line\n---\nend"),
        ("user\u202egnp.exe", "user\\u{202e}gnp.exe"),
        ("hi\U000e0049\U000e0047", "hi\\u{e0049}\\u{e0047}"),
        ("half \ud83d pair", "half \ufffd pair"),
        ("héllo wörld 你好 🎉 👨‍👩‍👧", "héllo wörld 你好 🎉 👨‍👩‍👧"),
    ],
)
def test_clean(text, expected):
    assert clean(text) == expected


@given(st.text(alphabet=st.characters(codec=None) | st.sampled_from("\x1b[]\x07\\;m0\x9b\x9d\x9c\n"), max_size=200))
def test_nothing_unsafe_is_left(text):
    assert not CONTROL.search(clean(text))
    assert clean(clean(text)) == clean(text)


@given(st.text(max_size=200), st.integers(0, 50))
def test_one_line_is_one_line(text, limit):
    line = one_line(text, limit)
    assert len(line.splitlines()) <= 1
    assert not limit or len(line) <= limit
    assert line == line.strip()


@given(st.text(alphabet="\\-[]→ ~#get\n\t", max_size=60))
def test_backslashes_are_undone(text):
    assert unescape(body(text)) == text


def test_long_text_is_cleaned_in_linear_time():
    """Each of these takes minutes when an expression tries every start against every end."""
    for piece in ("\x1b]0;", "\x9d", "\x1b[", "[x] ", "\\", "\x1b[0;", " ", "→ get "):
        assert clean(piece * 200_000) is not None
        assert body(piece * 200_000) is not None
