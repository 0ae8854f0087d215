"""Spelling: words of a question that nobody wrote, and what was probably meant.

A typo falls into word pieces that match by chance, and no list of words has it. Where the memory's prose does not
contain a word at all, but a common word of it is one slip away (a letter left out, doubled, wrong, or two exchanged),
that word is looked for as well. The question's own word stays, so nothing that could be found is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from string import ascii_lowercase
from typing import TYPE_CHECKING

from funes.memory.filters import Filter
from funes.memory.reader import MemoryReader
from funes.memory.schema import PROSE
from funes.models.stop_words import STOP_WORDS

if TYPE_CHECKING:
    from funes.models.encoder import Encoder

COMMON = 5
"""Passages that contain a word before it is taken for what was meant."""

LOOKED_AT = 8
"""Words of a question that are looked up at most."""

_WORD = re.compile(r"(?<![\w./`'’-])[a-z]{5,24}(?![\w./`'’(-])")
"""Plain lower-case words: no part of a path, an identifier, a contraction or a name."""


def corrections(question: str, encoder: Encoder, reader: MemoryReader) -> dict[str, str]:
    """What was probably meant by words that the memory's prose does not contain.

    Args:
        question: as it was asked.
        encoder: the model, whose vocabulary knows the common words.
        reader: the memory, which knows how many passages have each of them.

    Returns:
        Words of the question, in its order, and for each the commonest word of the memory that is one slip away.
    """
    counts, _ = reader.piece_counts()
    found: dict[str, str] = {}
    looked_at = 0
    for word in dict.fromkeys(_WORD.findall(question)):
        if word in STOP_WORDS or encoder.tokens.id(word) is not None:
            continue
        known = {other: encoder.tokens.id(other) for other in set(_one_slip_away(word)) - STOP_WORDS}
        common = {other: int(counts[piece]) for other, piece in known.items() if piece is not None}
        meant = max(sorted(common), key=common.__getitem__, default=None)
        if meant is None or common[meant] < COMMON:
            continue
        if looked_at == LOOKED_AT:
            break
        looked_at += 1
        if not reader.words(word, Filter(types=PROSE), 1):
            found[word] = meant
    return found


def _one_slip_away(word: str) -> Iterator[str]:
    """Words from which `word` comes by leaving out, adding or replacing a letter, or by exchanging two neighbours."""
    for place in range(len(word) + 1):
        before, after = word[:place], word[place:]
        yield from (before + letter + after for letter in ascii_lowercase)
        if after:
            yield before + after[1:]
            yield from (before + letter + after[1:] for letter in ascii_lowercase)
            yield before + after[1:2] + after[0] + after[2:]
