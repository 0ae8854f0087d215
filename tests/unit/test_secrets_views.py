"""What the rules read in place of the text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from funes.secrets import views


@given(st.text())
def test_the_view_in_ascii_has_the_length_of_the_text(text: str) -> None:
    folded = views.fold(text)
    assert len(folded) == len(text)
    assert folded.isascii()
    assert all(a == b for a, b in zip(text, folded, strict=True) if a.isascii())


def test_full_width_signs_are_read_as_their_twins() -> None:
    assert views.fold("token：abc＝1\u00a0x") == "token:abc=1 x"


def test_a_lone_surrogate_does_no_harm() -> None:
    assert views.fold("a\ud800b") == "a?b"


def test_only_markers_of_known_rules_are_masked() -> None:
    text = "a [REDACTED:password] b [REDACTED:" + "gh" + "p_abcdefgh] c"
    masked = views.mask_markers(text, {"password"})
    assert masked == "a " + "*" * len("[REDACTED:password]") + text[len("a [REDACTED:password]") :]


@given(st.text(alphabet="[REDACT:password] x", max_size=60))
def test_masking_keeps_positions(text: str) -> None:
    assert len(views.mask_markers(text, {"password"})) == len(text)


def test_typographic_quotes_are_no_part_of_a_value() -> None:
    text = "is “Tulip”."
    assert views.trim(text, 3, 10) == (4, 9)


def test_text_without_nuls_and_the_positions_in_it() -> None:
    assert views.drop_nuls("a\0b\0") == ("ab", [0, 2])
    assert views.looks_like_utf16("a\0b\0c\0")
    assert not views.looks_like_utf16("A=1\0B=2\0PATH=/usr/bin\0")


def test_nuls_end_lines() -> None:
    assert views.part_at_nuls("A=1\0B=2") == "A=1\nB=2"
