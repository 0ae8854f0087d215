"""What a question with typos meant, by the words that a memory has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from funes.memory.reader import MemoryReader
from funes.models.encoder import Encoder
from funes.search.spelling import COMMON, LOOKED_AT, corrections

VOCABULARY = {"checkpoint": 90, "settings": 40, "setting": 60, "drop": 50, "droop": 1, "rare": COMMON - 1, "which": 900}


class _Memory:
    """The words of a memory, each with the number of passages that contain it."""

    def __init__(self, *unusual: str) -> None:
        self._words = {*VOCABULARY, *unusual}
        self.asked: list[str] = []

    def piece_counts(self) -> tuple[np.ndarray, int]:
        return np.array([*VOCABULARY.values()]), 1000

    def words(self, query: str, *_: Any) -> list[tuple[str, float]]:
        self.asked.append(query)
        return [("passage", 1.0)] if query in self._words else []


def corrected(question: str, *unusual: str) -> dict[str, str]:
    return in_memory(question, _Memory(*unusual))


def in_memory(question: str, memory: _Memory) -> dict[str, str]:
    pieces = {word: piece for piece, word in enumerate(VOCABULARY)}
    encoder = SimpleNamespace(tokens=SimpleNamespace(id=pieces.get))
    return corrections(question, cast("Encoder", encoder), cast("MemoryReader", memory))


def test_one_slip_is_corrected() -> None:
    for typo in ("chekpoint", "checkkpoint", "chackpoint", "chcekpoint"):
        assert corrected(f"why is the {typo} gone?") == {typo: "checkpoint"}
    assert corrected("chkpnt checkpointing") == {}


def test_the_commonest_word_is_meant() -> None:
    assert corrected("settinks or settingz") == {"settinks": "settings", "settingz": "setting"}
    assert corrected("setings") == {"setings": "settings"}
    assert corrected("settinng") == {"settinng": "setting"}


def test_a_word_of_the_memory_is_no_typo() -> None:
    assert corrected("droop the chekpoint") == {"chekpoint": "checkpoint"}
    assert corrected("chekpoint", "chekpoint") == {}


def test_what_is_meant_is_common_and_says_something() -> None:
    assert corrected("raree whicch") == {}


def test_names_paths_and_identifiers_are_left_alone() -> None:
    for word in (
        "Chekpoint",
        "chekpoint_id",
        "x/chekpoint",
        "chekpoint.go",
        "chekpoint()",
        "`chekpoint`",
        "chekpoint's",
    ):
        assert corrected(f"where is {word}") == {}


def test_few_words_are_looked_up() -> None:
    memory = _Memory()
    question = " ".join(f"checkpoint{letter}" for letter in "abcdefghijklmnop")
    assert len(in_memory(question, memory)) == len(memory.asked) == LOOKED_AT


@given(st.text(max_size=60))
def test_any_question_is_read(question: str) -> None:
    found = corrected(question)
    assert all(word in question and other in VOCABULARY for word, other in found.items())
