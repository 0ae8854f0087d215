"""A BERT encoder's forward pass in numpy, on packed batches.

Packed: the sequences of a batch lie one after the other without padding, so linear layers see every token of the batch
in one multiplication and attention runs per sequence. Equations: Devlin et al. 2018, https://arxiv.org/abs/1810.04805;
post-layer-norm, learnt positions, exact (erf) GELU, as in the reference checkpoints.

The pass is plain enough to run any BERT checkpoint: `Bert` takes its shapes from the tensors and a `BertConfig`,
accepts token types, and returns every token's last hidden state; what is built on top (pooling, a classification head)
is the caller's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from funes.models.space import Space, aligned

Floats = NDArray[np.float32]

_GELU_VALUES = 49_152  # activations worked on at once, so that the dozen passes over them find them in the core's cache
_SCORES = 65_536  # attention scores worked on at once, for the same reason
_SMALLEST, _LARGEST = 1e-25, 1e35  # sums of exp() in this range lost nothing to overflow or underflow


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
    query_bias: Floats
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
        self._spaces: list[Space] = []
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
        key, _ = pair("attention.self.key")
        value, value_bias = pair("attention.self.value")
        mix, mix_bias = pair("attention.output.dense")
        up, up_bias = pair("intermediate.dense")
        down, down_bias = pair("output.dense")
        return _Layer(
            np.concatenate([query * scale, key, value]).T,
            # A key's bias adds the same to all scores of a query, which softmax takes out again; a value's bias reaches
            # the output whole, because a softmax's weights sum to 1.
            query_bias * scale,
            mix.T,
            mix_bias + mix @ value_bias,
            *pair("attention.output.LayerNorm"),
            up.T,
            up_bias,
            down.T,
            down_bias,
            *pair("output.LayerNorm"),
        )

    def hidden_states(
        self, sequences: Sequence[NDArray[np.integer]], types: Sequence[NDArray[np.integer]] | None = None
    ) -> list[Floats]:
        """Every token's last hidden state.

        Args:
            sequences: word-piece ids of each sequence, special tokens included, 1 to `longest` of them.
            types: token types of each sequence, aligned with `sequences`; zeros when absent.

        Returns:
            One (tokens, width) array per sequence, views of one array.
        """
        if not sequences:
            return []
        states, bounds = self._embedded(sequences, types)
        with self._space() as space:
            self._run(self._layers, states, bounds, space)
        return [states[first:last] for first, last in pairwise(bounds)]

    def first_states(
        self, sequences: Sequence[NDArray[np.integer]], types: Sequence[NDArray[np.integer]] | None = None
    ) -> Floats:
        """The last hidden state of each sequence's first token, which is what a pooler reads.

        The last layer then has to be computed for that token alone; only its keys and values take all of them.

        Args:
            sequences: as `hidden_states` takes them.
            types: the same.

        Returns:
            `(sequences, width)`.
        """
        if not sequences:
            return np.zeros((0, self.width), np.float32)
        states, bounds = self._embedded(sequences, types)
        with self._space() as space:
            self._run(self._layers[:-1], states, bounds, space)
            layer = self._layers[-1]
            firsts = states[bounds[:-1]]
            mixed = self._attend_first(states, firsts, bounds, layer) @ layer.mix
            mixed += layer.mix_bias
            mixed += firsts
            self._normalise(mixed, layer.mix_gain, layer.mix_shift)
            self._feed_forward(mixed, layer, firsts, space)
        return firsts

    def _embedded(
        self, sequences: Sequence[NDArray[np.integer]], types: Sequence[NDArray[np.integer]] | None
    ) -> tuple[Floats, list[int]]:
        """The states before the first layer, and where each sequence begins and the last one ends."""
        bounds = np.cumsum([0, *map(len, sequences)]).tolist()
        states = aligned(bounds[-1] * self.width).reshape(-1, self.width)
        np.take(self.words, np.concatenate(sequences), axis=0, out=states, mode="clip")
        for (first, last), sequence in zip(pairwise(bounds), sequences, strict=True):
            states[first:last] += self._positions[: len(sequence)]
        states += self._types[0] if types is None else self._types[np.concatenate(types)]
        self._normalise(states, self._gain, self._shift)
        return states, bounds

    @contextlib.contextmanager
    def _space(self) -> Iterator[Space]:
        """Working memory that no other thread uses meanwhile."""
        try:
            space = self._spaces.pop()
        except IndexError:  # all in use by other threads
            space = Space()
        # gelu's tail divides by infinity on purpose; attention's overflow is looked for and repaired.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            yield space
        self._spaces.append(space)

    def _run(self, layers: Sequence[_Layer], states: Floats, bounds: list[int], space: Space) -> None:
        """Run layers, in place."""
        context, mixed = space.take("context", *states.shape), space.take("mixed", *states.shape)
        for layer in layers:
            self._attend(states, bounds, layer, context, space)
            np.matmul(context, layer.mix, out=mixed)
            mixed += layer.mix_bias
            mixed += states
            self._normalise(mixed, layer.mix_gain, layer.mix_shift)
            self._feed_forward(mixed, layer, states, space)

    def _attend_first(self, states: Floats, firsts: Floats, bounds: list[int], layer: _Layer) -> Floats:
        """Self-attention of each sequence's first token, before its output matrix."""
        heads, width = self._config.heads, self.width
        queries = firsts @ layer.qkv[:, :width]
        queries += layer.query_bias
        joined = states @ layer.qkv[:, width:]
        context = np.empty_like(firsts)
        for row, (first, last) in enumerate(pairwise(bounds)):
            # (2, heads, tokens, head width)
            keys, values = joined[first:last].reshape(-1, 2, heads, width // heads).transpose(1, 2, 0, 3)
            scores = keys @ queries[row].reshape(heads, -1, 1)
            scores -= scores.max(axis=1, keepdims=True)
            np.exp(scores, out=scores)
            scores /= scores.sum(axis=1, keepdims=True)
            context[row] = (scores.swapaxes(1, 2) @ values).reshape(width)
        return context

    def _attend(self, states: Floats, bounds: list[int], layer: _Layer, context: Floats, space: Space) -> None:
        """Self-attention of each sequence, before its output matrix, into `context`."""
        heads, width = self._config.heads, self.width
        joined = space.take("joined", len(states), 3 * width)
        np.matmul(states, layer.qkv, out=joined)
        joined[:, :width] += layer.query_bias
        for first, last, length in _runs(bounds, _SCORES // heads):
            # (sequences, 3, heads, tokens, head width)
            split = joined[first:last].reshape(-1, length, 3, heads, width // heads).transpose(0, 2, 3, 1, 4)
            target = context[first:last].reshape(-1, length, heads, width // heads).transpose(0, 2, 1, 3)
            totals = space.take("totals", len(split), heads, length, 1)
            step = max(1, _SCORES // (length * length * len(split)))
            for head in range(0, heads, step):
                part = slice(head, head + step)
                _weighted(split[:, :, part], target[:, part], totals[:, part], space, in_range=True)
            if not (totals.min() > _SMALLEST and totals.max() < _LARGEST):
                for head in range(heads):
                    part = slice(head, head + 1)
                    if not (totals[:, part].min() > _SMALLEST and totals[:, part].max() < _LARGEST):
                        _weighted(split[:, :, part], target[:, part], totals[:, part], space, in_range=False)
            target /= totals

    def _feed_forward(self, states: Floats, layer: _Layer, out: Floats, space: Space) -> None:
        inner = space.take("inner", len(states), len(layer.up_bias))
        np.matmul(states, layer.up, out=inner)
        step = max(1, _GELU_VALUES // len(layer.up_bias))
        for first in range(0, len(states), step):
            block = inner[first : first + step]
            block += layer.up_bias
            gelu_twice(block, space.take("size", *block.shape), space.take("tail", *block.shape))
        np.matmul(inner, layer.down, out=out)
        out *= np.float32(0.5)
        out += layer.down_bias
        out += states
        self._normalise(out, layer.down_gain, layer.down_shift)

    def _normalise(self, states: Floats, gain: Floats, shift: Floats) -> None:
        """Layer norm, in place."""
        # A product with a constant vector is the fastest mean.
        states -= (states @ np.full(self.width, 1 / self.width, np.float32))[:, None]
        spread = np.einsum("ij,ij->i", states, states)
        spread /= np.float32(self.width)
        spread += np.float32(self._config.epsilon)
        np.sqrt(spread, out=spread)
        states *= np.divide(1, spread, out=spread)[:, None]
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


def _weighted(split: Floats, target: Floats, totals: Floats, space: Space, *, in_range: bool) -> None:
    """Attention of some heads before it is divided by the sums of its weights.

    Args:
        split: queries, keys and values, (sequences, 3, heads, tokens, head width).
        target: takes the values weighted by exp of the scores, (sequences, heads, tokens, head width).
        totals: takes the sums of the weights, (sequences, heads, tokens, 1).
        space: working memory.
        in_range: whether the scores are known to be in range; unless they are, the largest is subtracted first.
    """
    query, key, value = split[:, 0], split[:, 1], split[:, 2]
    scores = space.take("scores", *query.shape[:3], query.shape[2])
    np.matmul(query, key.swapaxes(-1, -2), out=scores)
    if not in_range:
        scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    np.matmul(scores, space.ones(query.shape[2]), out=totals)
    np.matmul(scores, value, out=target)


# 2 gelu(x) = x + |x| - |x| erfc(|x|/√2), with erfc(a/√2) ≈ p(a)^-16 in the manner of Abramowitz & Stegun 7.1.28. The
# coefficients of p, highest first, were fitted by iteratively reweighted least squares and then rounded so that the
# error of gelu is least, evaluated in float32: 5e-7 at most. Multiplications and divisions are many times cheaper in
# numpy than exp or tanh, and this form needs no sign.
_TAIL = tuple(
    np.float32(c)
    for c in (6.691955150017748e-06, 3.796884629991837e-05, 7.212957279989496e-05, 0.003227624576538801,
              0.021176112815737724, 0.049856606870889664, 1.000001072883606)
)  # fmt: skip


def gelu_twice(x: Floats, size: Floats, tail: Floats) -> None:
    """Twice the exact (erf) GELU, in place; the factor is taken out where that is cheaper.

    Args:
        x: the values, any shape.
        size: working memory of that shape.
        tail: the same.
    """
    np.abs(x, out=size)
    np.multiply(size, _TAIL[0], out=tail)
    for coefficient in _TAIL[1:-1]:
        tail += coefficient
        tail *= size
    tail += _TAIL[-1]
    for _ in range(4):
        np.multiply(tail, tail, out=tail)
    np.divide(size, tail, out=tail)
    x += size
    x -= tail
