"""A BERT encoder's forward pass in numpy, on packed batches.

Packed: the sequences of a batch lie one after the other without padding, so linear layers see every token of the batch
in one multiplication and attention runs per sequence. Equations: Devlin et al. 2018, https://arxiv.org/abs/1810.04805;
post-layer-norm, learnt positions, exact (erf) GELU, as in the reference checkpoints.

The pass is plain enough to run any BERT checkpoint: `Bert` takes its shapes from the tensors and a `BertConfig`, accepts
token types, and returns every token's last hidden state; what is built on top (pooling, a classification head) is the
caller's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

_ROWS = 128  # rows of the feed-forward's inner activation that are worked on while they are in the core's cache
_SCORES = 65_536  # attention scores worked on at once, for the same reason
_SAFE_SCORE = 60.0  # below this, exp() neither overflows nor loses a row's small terms in float32


@dataclass(frozen=True, slots=True)
class BertConfig:
    """What the tensors do not say.

    Attributes:
        heads: attention heads in a layer.
        epsilon: layer-norm epsilon.
    """

    heads: int
    epsilon: float = 1e-12


@dataclass(frozen=True, slots=True)
class _Layer:
    """One layer's weights, each matrix as (inputs, outputs)."""

    qkv: Floats
    qkv_bias: Floats
    mix: Floats
    mix_bias: Floats
    mix_gain: Floats
    mix_shift: Floats
    up: Floats
    up_bias: Floats
    down: Floats
    down_bias: Floats
    down_gain: Floats
    down_shift: Floats


class Bert:
    """The encoder.

    Args:
        tensors: the checkpoint's tensors, named as the transformers library names them.
        config: what the tensors do not say.
        prefix: what stands in front of the names (`"bert."` in checkpoints with a head).
    """

    def __init__(self, tensors: Mapping[str, NDArray[np.generic]], config: BertConfig, prefix: str = "") -> None:
        self._config = config
        self._prefix = prefix
        self.words = _get(tensors, f"{prefix}embeddings.word_embeddings.weight")
        self._positions = _get(tensors, f"{prefix}embeddings.position_embeddings.weight")
        self._types = _get(tensors, f"{prefix}embeddings.token_type_embeddings.weight")
        self._gain = _get(tensors, f"{prefix}embeddings.LayerNorm.weight")
        self._shift = _get(tensors, f"{prefix}embeddings.LayerNorm.bias")
        self._layers: list[_Layer] = []
        while f"{prefix}encoder.layer.{len(self._layers)}.output.dense.weight" in tensors:
            self._layers.append(self._layer(tensors, f"{prefix}encoder.layer.{len(self._layers)}."))

    @property
    def width(self) -> int:
        """Length of a hidden state."""
        return int(self.words.shape[1])

    @property
    def longest(self) -> int:
        """The longest sequence that has learnt positions."""
        return int(self._positions.shape[0])

    def _layer(self, tensors: Mapping[str, NDArray[np.generic]], name: str) -> _Layer:
        scale = np.float32((self.width / self._config.heads) ** -0.5)

        def pair(part: str) -> tuple[Floats, Floats]:
            return _get(tensors, f"{name}{part}.weight"), _get(tensors, f"{name}{part}.bias")

        query, query_bias = pair("attention.self.query")
        key, key_bias = pair("attention.self.key")
        value, value_bias = pair("attention.self.value")
        mix, mix_bias = pair("attention.output.dense")
        up, up_bias = pair("intermediate.dense")
        down, down_bias = pair("output.dense")
        return _Layer(
            np.concatenate([query * scale, key, value]).T,
            np.concatenate([query_bias * scale, key_bias, value_bias]),
            mix.T,
            mix_bias,
            *pair("attention.output.LayerNorm"),
            up.T,
            up_bias,
            down.T,
            down_bias,
            *pair("output.LayerNorm"),
        )

    def hidden_states(self, sequences: Sequence[NDArray[np.integer]], types: Sequence[NDArray[np.integer]] | None = None) -> list[Floats]:
        """Every token's last hidden state.

        Args:
            sequences: word-piece ids of each sequence, special tokens included, 1 to `longest` of them.
            types: token types of each sequence, aligned with `sequences`; zeros when absent.

        Returns:
            One (tokens, width) array per sequence, views of one array.
        """
        if not sequences:
            return []
        bounds = np.cumsum([0, *map(len, sequences)]).tolist()
        states = self.words[np.concatenate(sequences)]
        for (first, last), sequence in zip(pairwise(bounds), sequences, strict=True):
            states[first:last] += self._positions[: len(sequence)]
        states += self._types[0] if types is None else self._types[np.concatenate(types)]
        self._normalise(states, self._gain, self._shift)
        context = np.empty_like(states)
        mixed = np.empty_like(states)
        with np.errstate(over="ignore"):  # gelu's tail divides by infinity on purpose
            for layer in self._layers:
                self._attend(states, bounds, layer, context)
                np.matmul(context, layer.mix, out=mixed)
                mixed += layer.mix_bias
                mixed += states
                self._normalise(mixed, layer.mix_gain, layer.mix_shift)
                self._feed_forward(mixed, layer, states)
        return [states[first:last] for first, last in pairwise(bounds)]

    def _attend(self, states: Floats, bounds: list[int], layer: _Layer, context: Floats) -> None:
        heads, width = self._config.heads, self.width
        joined = states @ layer.qkv
        joined += layer.qkv_bias
        for first, last, length in _runs(bounds, _SCORES // heads):
            # (sequences, 3, heads, tokens, head width)
            split = joined[first:last].reshape(-1, length, 3, heads, width // heads).transpose(0, 2, 3, 1, 4)
            target = context[first:last].reshape(-1, length, heads, width // heads).transpose(0, 2, 1, 3)
            step = max(1, _SCORES // (length * length * len(split)))
            for head in range(0, heads, step):
                part = slice(head, head + step)
                query, key, value = split[:, 0, part], split[:, 1, part], split[:, 2, part]
                scores = query @ key.transpose(0, 1, 3, 2)
                if max(float(scores.max()), -float(scores.min())) > _SAFE_SCORE:
                    scores -= scores.max(axis=-1, keepdims=True)
                np.exp(scores, out=scores)
                out = target[:, part]
                np.matmul(scores, value, out=out)
                out /= scores.sum(axis=-1, keepdims=True)

    def _feed_forward(self, states: Floats, layer: _Layer, out: Floats) -> None:
        for first in range(0, len(states), _ROWS):
            rows = states[first : first + _ROWS]
            inner = rows @ layer.up
            inner += layer.up_bias
            gelu_twice(inner)
            np.matmul(inner, layer.down, out=out[first : first + _ROWS])
        out *= np.float32(0.5)
        out += layer.down_bias
        out += states
        self._normalise(out, layer.down_gain, layer.down_shift)

    def _normalise(self, states: Floats, gain: Floats, shift: Floats) -> None:
        """Layer norm, in place."""
        states -= states.mean(axis=1, keepdims=True)
        spread = np.einsum("ij,ij->i", states, states)
        spread /= np.float32(self.width)
        spread += np.float32(self._config.epsilon)
        states /= np.sqrt(spread, out=spread)[:, None]
        states *= gain
        states += shift


def _get(tensors: Mapping[str, NDArray[np.generic]], name: str) -> Floats:
    return tensors[name].astype(np.float32, copy=False)


def _runs(bounds: list[int], most: int) -> Iterator[tuple[int, int, int]]:
    """Neighbours of equal length as one run: (first token, last token, length), `most` squared lengths in a run."""
    index = 0
    while index < len(bounds) - 1:
        length = bounds[index + 1] - bounds[index]
        end = index + 1
        while (
            end < len(bounds) - 1
            and bounds[end + 1] - bounds[end] == length
            and (end + 1 - index) * length * length <= most
        ):
            end += 1
        yield bounds[index], bounds[end], length
        index = end


# 2 * gelu(x) = x + |x| - 2|x| erfc(|x|/√2)/2, and erfc(a/√2)/2 ≈ p(a)^-16 as in Abramowitz & Stegun 7.1.28, with the six
# coefficients of p refitted so that |x| times the error is least (bench/fit_gelu.py): 5e-7 at most, float32's rounding
# included. Divisions and multiplications are several times cheaper in numpy than exp or tanh, and no sign is needed.
_TAIL = (6.988019351364221e-06, 3.964917628037867e-05, 7.532232228983361e-05, 0.0033705105914056377,
         0.022113716686534356, 0.052063978031040244, 1.04427484111615)  # fmt: skip
_TAIL_HALVED = tuple(np.float32(c * 2 ** (-1 / 16)) for c in _TAIL)


def gelu_twice(values: Floats) -> None:
    """Twice the exact (erf) GELU, in place; the factor is taken out where it is cheaper.

    Args:
        values: C-contiguous, any shape.
    """
    flat = values.reshape(-1)
    for first in range(0, len(flat), 65_536):
        x = flat[first : first + 65_536]
        size = np.abs(x)
        tail = size * _TAIL_HALVED[0]
        for coefficient in _TAIL_HALVED[1:-1]:
            tail += coefficient
            tail *= size
        tail += _TAIL_HALVED[-1]
        for _ in range(4):
            np.multiply(tail, tail, out=tail)
        np.divide(size, tail, out=tail)
        x += size
        x -= tail
