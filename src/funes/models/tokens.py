"""Text to word pieces.

The `tokenizers` library does the work; this module keeps it safe to call with anything: text is cut before it is
tokenised, so that a 10 MB log costs what a passage costs, and code points that UTF-8 cannot carry are replaced.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from funes.errors import FunesError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Pieces = NDArray[np.uint16]

LONGEST = 256  # word pieces of a passage, special tokens included: what the model was trained with
# A word piece stands for a dozen characters at most in practice; blanks stand for none, so runs of them count once.
_CHARACTERS = 32 * LONGEST
_BLANKS = re.compile(r"\s{2,}")
_SURROGATES = re.compile(r"[\ud800-\udfff]")


class Tokens:
    """A word-piece vocabulary and its rules.

    Args:
        path: a `tokenizer.json`; its padding and truncation settings are not used.
        longest: word pieces kept of a text, special tokens included.

    Raises:
        FunesError: the file is not a tokenizer.
    """

    def __init__(self, path: Path, longest: int = LONGEST) -> None:
        # Its own threads hang in a process forked after their first use, or warn on stderr unless this is set.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        from tokenizers import Tokenizer

        try:
            self._tokenizer: Tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare Exception
            raise FunesError(f"{path} is not a tokenizer file: delete it and run the command again.") from error
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(longest)

    def encode(self, texts: Sequence[str]) -> list[Pieces]:
        """Word pieces of each text with the special tokens, at most `longest`; never raises, whatever the text."""
        encodings = self._tokenizer.encode_batch_fast([clip(text) for text in texts])
        return [np.array(encoding.ids, np.uint16) for encoding in encodings]

    @property
    def size(self) -> int:
        """How many word pieces there are."""
        return int(self._tokenizer.get_vocab_size(with_added_tokens=True))

    def name(self, piece: int) -> str:
        """How a word piece is written; one that continues a word begins with `##`."""
        return str(self._tokenizer.id_to_token(piece))

    def id(self, name: str) -> int | None:
        """The word piece that is written so, None when there is none."""
        found: int | None = self._tokenizer.token_to_id(name)
        return found


def clip(text: str) -> str:
    """The part of a text that can matter to the first `LONGEST` pieces, fit for UTF-8."""
    if len(text) > _CHARACTERS:
        text = _BLANKS.sub(" ", text[: 16 * _CHARACTERS])[:_CHARACTERS]
    return _SURROGATES.sub("�", text)
