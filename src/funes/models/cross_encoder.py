"""Cross-encoders: a BERT that reads a question and a passage together and says how well the one answers the other.

What runs is what transformers calls `BertForSequenceClassification` with one label: the encoder, the pooler (tanh of a
linear layer over the first token) and a linear classifier (https://arxiv.org/abs/1901.04085 uses it for ranking). The
score is the classifier's output before any activation; a sigmoid after it would not change an order.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from funes.errors import FunesError, ModelMissingError
from funes.models import threads
from funes.models.bert import Bert, BertConfig
from funes.models.chosen import chosen_cross_encoder
from funes.models.fetch import find
from funes.models.pinned import CONFIG, TOKENIZER, WEIGHTS
from funes.models.pinned import CROSS_ENCODER as PINNED
from funes.models.safetensors import read_tensors
from funes.models.tokens import clip

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Floats = NDArray[np.float32]
Tensors = dict[str, NDArray[Any]]
Pair = tuple[NDArray[np.int32], NDArray[np.int32]]
"""Word pieces of a question and a passage with the special tokens, and the type of each (0 question, 1 passage)."""

LONGEST = 512
"""Word pieces of a pair that are read at most; less where the model has learnt fewer positions."""

_BATCH = 512  # word pieces of one forward pass
_PREFIX = "bert."
_ARCHITECTURE = "BertForSequenceClassification"


class _UnfitError(Exception):
    """Why a folder is not a cross-encoder that can be run, as the middle of a sentence."""


class CrossEncoder:
    """A cross-encoder. Safe to use from several threads.

    Args:
        folder: holds `config.json`, `model.safetensors` (float32, float16 or bfloat16) and `tokenizer.json`, as
            transformers saves them.

    Attributes:
        folder: the same.
        longest: word pieces of a pair that are read; the longer text is cut first.

    Raises:
        FunesError: the folder holds another kind of model, or a damaged one; says which.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            config = _config(folder)
            tensors = _tensors(folder)
            heads = _checked(config, tensors)
            self.longest = min(LONGEST, len(tensors["bert.embeddings.position_embeddings.weight"]))
            self._tokenizer = _tokenizer(folder, self.longest, len(tensors["bert.embeddings.word_embeddings.weight"]))
        except _UnfitError as reason:
            raise FunesError(
                f"{folder} cannot be used as a cross-encoder: {reason}; `funes models use cross-encoder FOLDER` names "
                "another, `funes models remove cross-encoder` none."
            ) from reason
        self._bert = Bert(tensors, BertConfig(heads, float(config.get("layer_norm_eps", 1e-12))), _PREFIX)
        self._pooler = _float32(tensors["bert.pooler.dense.weight"]).T
        self._pooler_bias = _float32(tensors["bert.pooler.dense.bias"])
        self._classifier = _float32(tensors["classifier.weight"])[0]
        self._classifier_bias = float(tensors["classifier.bias"][0])

    def pairs(self, question: str, passages: Sequence[str]) -> list[Pair]:
        """Put the question beside each passage, as the model was trained to see them.

        Args:
            question: any characters.
            passages: the same.
        """
        question = clip(question)
        encodings = self._tokenizer.encode_batch([(question, clip(passage)) for passage in passages])
        return [(np.array(one.ids, np.int32), np.array(one.type_ids, np.int32)) for one in encodings]

    def scores(self, pairs: Sequence[Pair]) -> Floats:
        """How well each passage answers its question, on every core.

        Returns:
            `(n,)` float32, higher is better; comparable between passages of one question.
        """
        scores = np.zeros(len(pairs), np.float32)

        def work(batch: list[int]) -> None:
            first = self._bert.first_states([pairs[i][0] for i in batch], [pairs[i][1] for i in batch])
            pooled = np.tanh(first @ self._pooler + self._pooler_bias)
            scores[batch] = pooled @ self._classifier + self._classifier_bias

        threads.spread(work, list(_batches([len(ids) for ids, _ in pairs])))
        return scores


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Pairs in groups of at most `_BATCH` word pieces or one pair, and no fewer groups than cores, longest first."""
    if not lengths:
        return
    most = min(_BATCH, -(-sum(lengths) // threads.workers()))
    batch: list[int] = []
    size = 0
    for index in np.argsort(-np.asarray(lengths), kind="stable").tolist():
        if batch and size + lengths[index] > most:
            yield batch
            batch, size = [], 0
        batch.append(index)
        size += lengths[index]
    yield batch


def _config(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise _UnfitError("there is no such folder")
    if missing := [name for name in (CONFIG, WEIGHTS, TOKENIZER) if not (folder / name).is_file()]:
        raise _UnfitError(f"it has no {' and no '.join(missing)}")
    try:
        config = json.loads((folder / CONFIG).read_bytes())
    except (OSError, ValueError) as error:
        raise _UnfitError(f"{CONFIG} is not JSON") from error
    if not isinstance(config, dict):
        raise _UnfitError(f"{CONFIG} is not a JSON object")
    return config


def _tensors(folder: Path) -> Tensors:
    try:
        return read_tensors(folder / WEIGHTS)
    except (OSError, FunesError) as error:
        raise _UnfitError(f"{WEIGHTS} is not a complete safetensors file") from error


def _checked(config: dict[str, Any], tensors: Tensors) -> int:
    """The number of attention heads of a model that this program can run; `_UnfitError` for any other."""
    kind = config.get("model_type", "bert")
    architectures = config.get("architectures") or [_ARCHITECTURE]
    if kind != "bert" or _ARCHITECTURE not in architectures:
        raise _UnfitError(f"it is a {kind} model ({', '.join(map(str, architectures))}), not a {_ARCHITECTURE}")
    for name, known in (("hidden_act", "gelu"), ("position_embedding_type", "absolute")):
        if (value := config.get(name, known)) != known:
            raise _UnfitError(f"its {name} is {value!r}, and only {known!r} is known")
    heads = config.get("num_attention_heads")
    words = tensors.get("bert.embeddings.word_embeddings.weight")
    if words is None or words.ndim != 2:
        raise _UnfitError("its weights lack bert.embeddings.word_embeddings.weight")
    width = words.shape[1]
    if not isinstance(heads, int) or heads < 1 or width % heads:
        raise _UnfitError(f"{CONFIG} gives num_attention_heads as {heads!r}, which does not divide a width of {width}")
    layers = config.get("num_hidden_layers")
    if not isinstance(layers, int) or layers < 1 or f"bert.encoder.layer.{layers}.output.dense.weight" in tensors:
        raise _UnfitError(f"{CONFIG} gives num_hidden_layers as {layers!r}, and its weights have another number")
    labels = tensors["classifier.weight"].shape[0] if "classifier.weight" in tensors else 1
    if labels != 1:
        raise _UnfitError(f"it sorts into {labels} labels, and a cross-encoder for ranking has one")
    for name, shape in _shapes(layers, width).items():
        tensor = tensors.get(name)
        if tensor is None:
            raise _UnfitError(f"its weights lack {name}")
        if tensor.dtype.kind != "f":
            raise _UnfitError(f"its weights are stored as {tensor.dtype}, and only floating point is known")
        if tensor.ndim != len(shape) or any(b not in (-1, a) for a, b in zip(tensor.shape, shape, strict=True)):
            raise _UnfitError(f"{name} has the shape {tensor.shape}")
    if len(tensors["bert.embeddings.token_type_embeddings.weight"]) < 2:
        raise _UnfitError("it knows one token type, and a pair has two")
    return heads


def _shapes(layers: int, width: int) -> dict[str, tuple[int, ...]]:
    """The tensors of a complete model and their shapes, −1 for any length."""
    shapes: dict[str, tuple[int, ...]] = {}

    def linear(name: str, outputs: int, inputs: int) -> None:
        shapes[f"{name}.weight"] = (outputs, inputs)
        shapes[f"{name}.bias"] = (outputs,)

    def norm(name: str) -> None:
        shapes[f"{name}.weight"] = shapes[f"{name}.bias"] = (width,)

    for kind in ("word", "position", "token_type"):
        shapes[f"bert.embeddings.{kind}_embeddings.weight"] = (-1, width)
    norm("bert.embeddings.LayerNorm")
    for index in range(layers):
        layer = f"bert.encoder.layer.{index}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            linear(f"{layer}.attention.{part}", width, width)
        norm(f"{layer}.attention.output.LayerNorm")
        linear(f"{layer}.intermediate.dense", -1, width)
        linear(f"{layer}.output.dense", width, -1)
        norm(f"{layer}.output.LayerNorm")
    linear("bert.pooler.dense", width, width)
    linear("classifier", 1, width)
    return shapes


def _tokenizer(folder: Path, longest: int, vocabulary: int) -> Tokenizer:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # as in funes.models.tokens
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    except Exception as error:  # the library raises bare Exception
        raise _UnfitError(f"{TOKENIZER} is not a tokenizer file") from error
    if (pieces := tokenizer.get_vocab_size(with_added_tokens=True)) > vocabulary:
        raise _UnfitError(f"its tokenizer has {pieces:,} word pieces and its weights have {vocabulary:,}")
    tokenizer.no_padding()
    tokenizer.enable_truncation(longest, strategy="longest_first")
    return tokenizer


def _float32(tensor: NDArray[Any]) -> Floats:
    return cast("Floats", tensor.astype(np.float32, copy=False))


def find_cross_encoder() -> Path | None:
    """The folder of the cross-encoder that recall uses: the user's choice, else the pinned one where it is, else None.

    Raises:
        FunesError: the choice cannot be read.
    """
    if chosen := chosen_cross_encoder():
        return chosen.folder
    return find(PINNED)


def load_cross_encoder() -> CrossEncoder:
    """The cross-encoder that recall uses. Nothing is fetched.

    Raises:
        ModelMissingError: there is none on this machine.
        FunesError: the user's choice cannot be run.
    """
    folder = find_cross_encoder()
    if folder is None:
        raise ModelMissingError(
            f"There is no cross-encoder on this machine: run `{PINNED.pull}` once, with a connection, or leave "
            "`--rerank cross-encoder` out."
        )
    return CrossEncoder(folder)
