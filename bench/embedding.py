"""Embedding speed: the project's forward pass against onnxruntime in float32, in turns, on the same passages."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from funes.memory.reader import MemoryReader
from funes.models import fetch, threads
from funes.models.bert import Bert, BertConfig
from funes.models.onnx import OnnxBert
from funes.models.pinned import MINILM, WEIGHTS
from funes.models.safetensors import read_tensors
from measure import Row, busy, cores, costs_of

if TYPE_CHECKING:
    from funes.models.encoder import Encoder

BATCH_TOKENS = 1536
"""Word pieces of a batch, for both."""

PASSAGES = 512
"""Passages that are put into batches by length, as many as an index run sorts together, so that onnxruntime, which has
to pad, pads little."""

BATCHES_A_CORE = 2

Ids = npt.NDArray[np.uint16]
States = list[npt.NDArray[np.float32]]
Forward = Callable[[list[Ids]], States]


def against_onnxruntime(home: Path, encoder: Encoder, rounds: int) -> Row:
    """Compare the two on random passages of a memory, whatever their tier, as an index run meets them.

    On one core by CPU time, without tokenizing; and on every core by wall time, from text to sentence vectors.
    Both get the same batches of passages of similar length.
    """
    folder = fetch.find(MINILM)
    assert folder is not None, "the model was there a moment ago"
    tensors = read_tensors(folder / WEIGHTS)
    ours, alone = Bert(tensors, BertConfig(heads=12)), OnnxBert(tensors, BertConfig(heads=12), threads=1)
    texts = _passages(home, PASSAGES)
    pieces = encoder.tokens.encode(texts)
    batches = _batches([len(one) for one in pieces])
    chance = random.Random(1)
    one_core, tokens, passages = [], [], []
    with threads.one_blas_thread():
        _check(ours.hidden_states, alone.hidden_states, pieces[:16])
        for number, batch in enumerate(_drawn(batches, rounds, chance)):
            part = [pieces[index] for index in batch]
            times = _in_turns(number, partial(ours.hidden_states, part), partial(alone.hidden_states, part))
            one_core.append([cpu for _, cpu in times])
            tokens.append(sum(map(len, part)))
            passages.append(len(part))
    every = OnnxBert(tensors, BertConfig(heads=12))
    all_cores = []
    for number in range(max(2, rounds // 2)):
        some = chance.sample(batches, min(len(batches), BATCHES_A_CORE * cores()))
        times = _in_turns(
            number,
            partial(encoder.encode_passages, [texts[index] for batch in some for index in batch], with_codes=False),
            partial(_sentence_vectors, encoder, every, [[texts[index] for index in batch] for batch in some]),
        )
        all_cores.append([wall for wall, _ in times])
    by_cpu = statistics.median(theirs / mine for mine, theirs in one_core)
    by_wall = statistics.median(theirs / mine for mine, theirs in all_cores)
    rate = sum(tokens) / sum(mine for mine, _ in one_core)
    chosen = "first, since the machine is busy" if busy() else "second"
    figure = by_cpu if busy() else by_wall
    return Row(
        "embedding, against onnxruntime float32",
        f"{figure:.2f} ×",
        "1.0 ×",
        "yes" if round(figure, 2) >= 1 else "no",
        f"speed relative to onnxruntime, in turns, medians of the ratios: {by_cpu:.2f} × on one "
        f"core by CPU time ({len(one_core)} batches, {rate:,.0f} word pieces a second, "
        f"{sum(tokens) / sum(passages):.0f} in a passage), "
        f"{by_wall:.2f} × on {cores()} cores by wall time ({len(all_cores)} times); the figure is the {chosen}",
        {"one_core_cpu": one_core, "all_cores_wall": all_cores, "by_cpu": by_cpu, "by_wall": by_wall},
    )


def _in_turns(number: int, *works: Callable[[], object]) -> list[tuple[float, float]]:
    """Wall and CPU seconds of two works, the second of which goes first in odd rounds."""
    return costs_of(works) if number % 2 == 0 else costs_of(works[::-1])[::-1]


def _passages(home: Path, count: int) -> list[str]:
    reader = MemoryReader.open(str(home))
    identifiers = reader._chunks.scan(["id"], "block_type != 'session'").column("id").to_pylist()
    drawn = random.Random(1).sample(identifiers, min(count, len(identifiers)))
    rows = reader.rows(drawn)
    texts = [rows[identifier].text or "" for identifier in drawn if identifier in rows]
    return (texts * (count // len(texts) + 1))[:count]


def _check(ours: Forward, theirs: Forward, pieces: list[Ids]) -> None:
    """Stop when the two do not compute the same: their speeds could not be compared."""
    for mine, other in zip(ours(pieces), theirs(pieces), strict=True):
        first, second = mine.mean(axis=0), other.mean(axis=0)
        if float(first @ second) < 0.999 * float(np.linalg.norm(first) * np.linalg.norm(second)):
            raise SystemExit("The two forward passes disagree.")


def _sentence_vectors(encoder: Encoder, model: OnnxBert, batches: list[list[str]]) -> npt.NDArray[np.float32]:
    """Do with onnxruntime what `encode_passages` does; `(n, 384)` float32, unit rows."""
    states: States = []
    for batch in batches:
        states += model.hidden_states(encoder.tokens.encode(batch))
    means = np.stack([one.mean(axis=0) for one in states])
    vectors: npt.NDArray[np.float32] = means / np.linalg.norm(means, axis=1, keepdims=True)
    return vectors


def _batches(lengths: list[int]) -> list[list[int]]:
    """Indexes of passages, by length, in groups of at most `BATCH_TOKENS` word pieces."""
    batches: list[list[int]] = []
    size = BATCH_TOKENS
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        if size + lengths[index] > BATCH_TOKENS:
            batches.append([])
            size = 0
        batches[-1].append(index)
        size += lengths[index]
    return batches


def _drawn(batches: list[list[int]], count: int, chance: random.Random) -> list[list[int]]:
    """Some batches, each once before any comes twice."""
    order: list[list[int]] = []
    while len(order) < count:
        order += chance.sample(batches, len(batches))
    return order[:count]
