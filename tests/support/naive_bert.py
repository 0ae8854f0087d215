"""BERT as in the paper, one sequence and one head at a time in float64: too plain to be wrong in the same way."""

from __future__ import annotations

import math

import numpy as np


def random_checkpoint(
    seed, layers=2, heads=2, head_width=4, inner=24, vocabulary=40, positions=32, prefix="", scale=0.4
):
    """Tensors of a BERT encoder with random weights, named as the transformers library names them."""
    random = np.random.default_rng(seed)
    width = heads * head_width
    tensors = {}

    def make(name, *shape):
        tensors[f"{prefix}{name}"] = (random.standard_normal(shape) * scale).astype(np.float32)

    def norm(name):
        make(f"{name}.bias", width)
        make(f"{name}.weight", width)
        tensors[f"{prefix}{name}.weight"] += 1

    def linear(name, inputs, outputs):
        make(f"{name}.weight", outputs, inputs)
        make(f"{name}.bias", outputs)

    make("embeddings.word_embeddings.weight", vocabulary, width)
    make("embeddings.position_embeddings.weight", positions, width)
    make("embeddings.token_type_embeddings.weight", 2, width)
    norm("embeddings.LayerNorm")
    for index in range(layers):
        layer = f"encoder.layer.{index}"
        for part in ("query", "key", "value"):
            linear(f"{layer}.attention.self.{part}", width, width)
        linear(f"{layer}.attention.output.dense", width, width)
        norm(f"{layer}.attention.output.LayerNorm")
        linear(f"{layer}.intermediate.dense", width, inner)
        linear(f"{layer}.output.dense", inner, width)
        norm(f"{layer}.output.LayerNorm")
    return tensors


def hidden_states(tensors, heads, ids, types=None, epsilon=1e-12, prefix=""):
    """The last hidden states of one sequence, (tokens, width) float64."""
    weights = {name.removeprefix(prefix): value.astype(np.float64) for name, value in tensors.items()}

    def linear(name, x):
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(name, x):
        centred = x - x.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + epsilon)
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    ids = list(map(int, ids))
    types = [0] * len(ids) if types is None else list(map(int, types))
    x = np.array(
        [
            weights["embeddings.word_embeddings.weight"][piece]
            + weights["embeddings.position_embeddings.weight"][position]
            + weights["embeddings.token_type_embeddings.weight"][kind]
            for position, (piece, kind) in enumerate(zip(ids, types, strict=True))
        ]
    )
    x = norm("embeddings.LayerNorm", x)
    width = x.shape[1] // heads
    index = 0
    while f"encoder.layer.{index}.output.dense.weight" in weights:
        layer = f"encoder.layer.{index}"
        query, key, value = (linear(f"{layer}.attention.self.{part}", x) for part in ("query", "key", "value"))
        contexts = []
        for head in range(heads):
            columns = slice(head * width, (head + 1) * width)
            scores = query[:, columns] @ key[:, columns].T / math.sqrt(width)
            scores -= scores.max(axis=1, keepdims=True)
            shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
            contexts.append(shares @ value[:, columns])
        mixed = linear(f"{layer}.attention.output.dense", np.concatenate(contexts, axis=1))
        x = norm(f"{layer}.attention.output.LayerNorm", mixed + x)
        inner = gelu(linear(f"{layer}.intermediate.dense", x))
        x = norm(f"{layer}.output.LayerNorm", linear(f"{layer}.output.dense", inner) + x)
        index += 1
    return x


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))
