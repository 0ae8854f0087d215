"""Text to vectors: the one object that search and indexing use."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from funes.errors import FunesError, ModelMissingError
from funes.models import codes, threads
from funes.models import fetch as fetching
from funes.models.bert import Bert, BertConfig
from funes.models.fetch import Progress
from funes.models.pinned import MINILM, TOKENIZER, VECTORS_ID, WEIGHTS
from funes.models.safetensors import read_tensors
from funes.models.stop_words import STOP_WORDS
from funes.models.tokens import Pieces, Tokens

if TYPE_CHECKING:
    from funes.models.onnx import OnnxBert

Floats = NDArray[np.float32]

MODEL_ID = VECTORS_ID

_BACKENDS = ("numpy", "onnxruntime")
_CONFIG = BertConfig(heads=12)
_TEXTS = 32  # texts tokenised at once
_UNKNOWN = -1
_BATCH = 1536  # tokens of one packed forward pass: enough for fast multiplications, few enough for the cache


@dataclass(slots=True)
class PassageEncodings:
    """What is stored of passages.

    Attributes:
        dense: (n, 384) float32, unit rows: the passages' sentence vectors.
        codes: per passage (tokens, 48) uint8, the kept tokens' vectors; None when they were not asked for.
        pieces: per passage (tokens,) uint16, the kept tokens' word pieces, aligned with `codes`.
    """

    dense: Floats
    codes: list[codes.Codes] | None
    pieces: list[Pieces]


@dataclass(slots=True)
class QueryEncoding:
    """What a query is compared by.

    Attributes:
        dense: (384,) float32, unit length.
        tokens: (q, 192) float32, unit rows, in the codes' space.
        static: (q, 192) float32, unit rows, in the word pieces' space.
        pieces: (q,) uint16, aligned with both.
    """

    dense: Floats
    tokens: Floats
    static: Floats
    pieces: Pieces


class Encoder:
    """The pinned model: tokenizer, forward pass, projections. Safe to use from several threads.

    Args:
        folder: the folder with the pinned model's files.
        backend: what runs the forward pass, `"numpy"` or `"onnxruntime"`.

    Raises:
        FunesError: a file is damaged, or there is no such backend.
    """

    model_id = MODEL_ID

    def __init__(self, folder: Path, backend: str = "numpy") -> None:
        if backend not in _BACKENDS:
            raise FunesError(f"FUNES_BACKEND must be {' or '.join(_BACKENDS)}, not {backend!r}.")
        self._tensors = read_tensors(folder / WEIGHTS)
        self._backend = backend
        self.tokens = Tokens(folder / TOKENIZER)
        self._known = np.full(self.tokens.size, _UNKNOWN, np.int8)

    @cached_property
    def _bert(self) -> Bert | OnnxBert:
        """The forward pass, made at its first use: scoring by word pieces needs none."""
        if self._backend == "numpy":
            return Bert(self._tensors, _CONFIG)
        from funes.models.onnx import OnnxBert

        return OnnxBert(self._tensors, _CONFIG, threads=1)  # the batches are spread over the cores already

    @cached_property
    def _static(self) -> tuple[Floats, NDArray[np.bool_]]:
        """The vocabulary's vectors in their own space, made as they are asked for, and which ones there are.

        Most passages share most of their pieces, so a server projects few of them again.
        """
        return np.empty((self.tokens.size, codes.DIMENSIONS), np.float32), np.zeros(self.tokens.size, bool)

    @property
    def _words(self) -> Floats:
        return self._tensors["embeddings.word_embeddings.weight"]

    def _kept(self, pieces: Pieces) -> NDArray[np.bool_]:
        """Which tokens count: those with a letter or digit, in any script, that are no function words.

        Remembered piece by piece, because going through the whole vocabulary takes longer than a question.
        """
        known = self._known[pieces]
        for piece in set(pieces[known == _UNKNOWN].tolist()):
            self._known[piece] = _counts(self.tokens.name(piece))
        return cast("NDArray[np.bool_]", self._known[pieces] == 1)

    def encode_passages(self, texts: Sequence[str], with_codes: bool = True) -> PassageEncodings:
        """Sentence vectors and token codes of passages, on every core.

        Args:
            texts: the passages, any characters; what follows the 256th word piece is not seen.
            with_codes: whether token codes are made (tool output has none).
        """
        pieces = self._tokenised(texts)
        dense = np.zeros((len(texts), self._words.shape[1]), np.float32)
        token_codes: list[codes.Codes] = [np.zeros((0, codes.BYTES), np.uint8)] * len(texts)
        kept = [self._kept(ids) for ids in pieces]

        def work(batch: list[int]) -> None:
            states = self._bert.hidden_states([pieces[i] for i in batch])
            for i, state in zip(batch, states, strict=True):
                dense[i] = _pooled(state)
            if with_codes:
                made = codes.quantize(np.concatenate([state[kept[i]] for i, state in zip(batch, states, strict=True)]))
                ends = np.cumsum([int(kept[i].sum()) for i in batch])
                for i, part in zip(batch, np.split(made, ends[:-1]), strict=True):
                    token_codes[i] = part

        threads.spread(work, _batches([len(ids) for ids in pieces]))
        kept_pieces = [ids[keep] for ids, keep in zip(pieces, kept, strict=True)]
        return PassageEncodings(dense, token_codes if with_codes else None, kept_pieces)

    def encode_query(self, text: str) -> QueryEncoding:
        """What a query is compared by; tokens that passages do not store are left out."""
        ids = self.tokens.encode([text])[0]
        with threads.one_blas_thread():
            states = self._bert.hidden_states([ids])[0]
            keep = self._kept(ids)
            pieces = ids[keep]
            return QueryEncoding(_pooled(states), codes.project(states[keep]), self.static_matrix(pieces), pieces)

    def pieces(self, texts: Sequence[str]) -> list[Pieces]:
        """The kept word pieces of each text, as `encode_passages` gives them, without a forward pass."""
        return [ids[self._kept(ids)] for ids in self._tokenised(texts)]

    def kept_states(self, texts: Sequence[str]) -> tuple[list[Floats], list[Pieces]]:
        """The kept tokens' last hidden states, uncompressed, and their word pieces: what projections are fitted on.

        Returns:
            Per text a (tokens, 384) float32 array, and the aligned (tokens,) word-piece ids.
        """
        pieces = self._tokenised(texts)
        states: list[Floats] = [np.zeros((0, self._words.shape[1]), np.float32)] * len(texts)

        def work(batch: list[int]) -> None:
            for i, state in zip(batch, self._bert.hidden_states([pieces[i] for i in batch]), strict=True):
                states[i] = state[self._kept(pieces[i])]

        threads.spread(work, _batches([len(ids) for ids in pieces]))
        return states, [ids[self._kept(ids)] for ids in pieces]

    def word_vectors(self, pieces: Pieces) -> Floats:
        """Word pieces' input vectors as the checkpoint has them, (t, 384) float32."""
        return self._words[pieces]

    def static_matrix(self, pieces: Pieces) -> Floats:
        """Word pieces' input vectors in their own space, for passages that have no codes.

        Args:
            pieces: (t,) word-piece ids.

        Returns:
            (t, 192) float32, unit rows.
        """
        matrix, made = self._static
        if len(new := pieces[~made[pieces]]):
            with threads.one_blas_thread():
                matrix[new] = codes.project(self._words[new], "pieces")
            made[new] = True
        return cast("Floats", np.take(matrix, pieces, axis=0))

    def _tokenised(self, texts: Sequence[str]) -> list[Pieces]:
        """Word pieces of each text with the special tokens, on every core."""
        parts = [texts[first : first + _TEXTS] for first in range(0, len(texts), _TEXTS)]
        return [ids for part in threads.spread(self.tokens.encode, parts) for ids in part]


def _counts(piece: str) -> bool:
    special = len(piece) > 2 and piece.startswith("[") and piece.endswith("]")
    return not special and piece not in STOP_WORDS and any(map(str.isalnum, piece))


def _pooled(states: Floats) -> Floats:
    """Mean of the token states, scaled to length 1."""
    mean = states.mean(axis=0)
    mean /= max(float(np.linalg.norm(mean)), 1e-12)
    return cast("Floats", mean)


def _batches(lengths: Sequence[int]) -> list[list[int]]:
    """Passages by length, longest first, in groups of about `_BATCH` tokens."""
    batches: list[list[int]] = []
    size = _BATCH
    for index in np.argsort(-np.asarray(lengths, np.int64), kind="stable").tolist():
        if size + lengths[index] > _BATCH:
            batches.append([])
            size = 0
        batches[-1].append(index)
        size += lengths[index]
    return batches


def model_available() -> bool:
    """Whether the pinned model is on this machine."""
    return fetching.find(MINILM) is not None


def load_encoder(*, fetch: bool, progress: Progress | None = None) -> Encoder:
    """The encoder of the pinned model.

    Args:
        fetch: whether the model may be downloaded when it is not on this machine.
        progress: called with the name of what is fetched, bytes so far and bytes in all (0 when unknown).

    Environment: `FUNES_BACKEND`, `numpy` (default) or `onnxruntime`.

    Raises:
        ModelMissingError: the model is not on this machine and cannot or may not be fetched.
        FunesError: the model is damaged, or the backend is not there.
    """
    folder = fetching.ensure(MINILM, progress) if fetch else fetching.find(MINILM)
    if folder is None:
        raise ModelMissingError(
            f"The model {MINILM.model_id} is not on this machine: run `funes models pull` once, with a connection."
        )
    return Encoder(folder, os.environ.get("FUNES_BACKEND") or "numpy")
