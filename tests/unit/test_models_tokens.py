from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funes.errors import FunesError
from funes.models.pinned import TOKENIZER
from funes.models.tokens import LONGEST, Tokens, clip
from tests.support.models import pinned_model

CLS, SEP, UNK = 101, 102, 100


@pytest.fixture(scope="module")
def tokens():
    return Tokens(pinned_model() / TOKENIZER)


def names(tokens, text):
    return [tokens.name(int(piece)) for piece in tokens.encode([text])[0]]


def test_word_pieces_of_code_and_prose(tokens):
    assert names(tokens, "Retry embedding_batch()") == [
        "[CLS]", "re", "##try", "em", "##bed", "##ding", "_", "batch", "(", ")", "[SEP]",
    ]  # fmt: skip


def test_a_text_is_cut_at_256_pieces_and_closed(tokens):
    pieces = tokens.encode(["word " * 1000])[0]
    assert len(pieces) == LONGEST == 256
    assert (pieces[0], pieces[-1]) == (CLS, SEP)
    assert pieces.dtype == np.uint16


def test_an_empty_text_is_only_the_special_tokens(tokens):
    assert [ids.tolist() for ids in tokens.encode(["", "  \n", "\0"])] == [[CLS, SEP]] * 3
    assert tokens.encode([]) == []


@given(st.lists(st.text(st.characters(), max_size=300), max_size=6))
@settings(max_examples=150, deadline=None)
def test_any_text_gives_pieces_alone_as_in_a_batch(tokens, texts):
    together = tokens.encode(texts)
    assert len(together) == len(texts)
    for text, ids in zip(texts, together, strict=True):
        assert 2 <= len(ids) <= LONGEST
        assert ids.max() < tokens.size
        np.testing.assert_array_equal(ids, tokens.encode([text])[0])


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("a" * 10_000_000, 3),
        ("hello world " * 900_000, 256),
        (" \n\t" * 3_000_000, 2),
        ("\0" * 10_000_000, 2),
        ("\ud800" * 5_000_000, 2),
        ("漢" * 3_000_000, 256),
        ("e" + "\u0301" * 5_000_000, 3),
    ],
    ids=["one word", "words", "blanks", "NUL", "surrogates", "ideographs", "accents"],
)
def test_a_huge_text_is_cut_before_it_is_tokenised(tokens, text, count):
    assert len(clip(text)) <= 8192
    assert len(tokens.encode([text])[0]) == count


def test_words_behind_much_blank_space_are_seen(tokens):
    assert names(tokens, "a" + " " * 100_000 + "b") == ["[CLS]", "a", "b", "[SEP]"]


def test_a_lone_surrogate_does_not_hide_its_neighbours(tokens):
    assert names(tokens, "before \ud83d after") == ["[CLS]", "before", "after", "[SEP]"]


def test_a_damaged_tokenizer_is_one_sentence(tmp_path):
    path = tmp_path / TOKENIZER
    path.write_text('{"version": "1.0"}')
    with pytest.raises(FunesError, match="is not a tokenizer file: delete it and run the command again"):
        Tokens(path)


def test_nothing_is_printed_after_a_fork(tokens):
    code = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from funes.models.tokens import Tokens\n"
        "tokens = Tokens(Path(sys.argv[1]))\n"
        "tokens.encode(['some text'] * 100)\n"
        "child = os.fork()\n"
        "tokens.encode(['some text'] * 100)\n"
        "if child: sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    if not hasattr(sys, "getwindowsversion"):
        done = subprocess.run(
            [sys.executable, "-c", code, str(pinned_model() / TOKENIZER)], capture_output=True, timeout=600, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
