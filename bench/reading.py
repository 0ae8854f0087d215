"""What the cross-encoder's stage costs: CPU and wall time for a pair, by its length.

    python bench/reading.py
    python bench/reading.py --lengths 64,256 --rounds 5

The time depends on a model's shape and not on its weights, so a model of the pinned one's shape is made of random
numbers. Pairs are read as `funes.search.reranking` reads them, as many at a time as there are cores.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np

from funes.models import threads
from funes.models.cross_encoder import CrossEncoder, Pair, _shapes
from funes.models.fetch import ensure
from funes.models.pinned import CONFIG, MINILM, TOKENIZER, WEIGHTS
from funes.search.model import DEFAULT_RERANK_SECONDS, DEFAULT_RERANK_TOP
from measure import costs_of, spread
from tables import Table, parser, publish, sizes, start

LAYERS, WIDTH, HEADS, INNER, VOCABULARY, POSITIONS = 6, 384, 12, 1536, 30_522, 512
QUESTION = 12
"""Word pieces of the question in a pair."""


def random_model(folder: Path) -> CrossEncoder:
    """Make a cross-encoder of the pinned one's shape, or take the one that an earlier run made."""
    if not (folder / WEIGHTS).exists():
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(ensure(MINILM) / TOKENIZER, folder / TOKENIZER)
        config = {"model_type": "bert", "num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
        (folder / CONFIG).write_text(json.dumps(config), encoding="utf-8")
        _write_weights(folder / WEIGHTS)
    return CrossEncoder(folder)


def _write_weights(path: Path) -> None:
    """Write random weights as safetensors; small enough that nothing overflows, which would take another path."""
    free = {"word": VOCABULARY, "position": POSITIONS, "token_type": 2}
    chance = np.random.default_rng(1)
    header, parts, end = {}, [], 0
    for name, shape in _shapes(LAYERS, WIDTH).items():
        kind = name.removeprefix("bert.embeddings.").removesuffix("_embeddings.weight")
        full = tuple(free.get(kind, INNER) if size == -1 else size for size in shape)
        values = 0.02 * chance.standard_normal(full, np.float32) + name.endswith("LayerNorm.weight")
        parts.append(values.astype(np.float32).tobytes())
        header[name] = {"dtype": "F32", "shape": full, "data_offsets": [end, end + len(parts[-1])]}
        end += len(parts[-1])
    encoded = json.dumps(header).encode()
    unfinished = path.with_suffix(".part")
    unfinished.write_bytes(len(encoded).to_bytes(8, "little") + encoded + b"".join(parts))
    unfinished.rename(path)


def pairs(length: int, count: int) -> list[Pair]:
    """Pairs of random word pieces."""
    chance = np.random.default_rng(length)
    types = (np.arange(length) > QUESTION).astype(np.int32)
    return [(chance.integers(1000, VOCABULARY, length, dtype=np.int32), types) for _ in range(count)]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--lengths", type=sizes, default=[64, 128, 256, 512], help="word pieces of a pair")
    options.add_argument("--rounds", type=int, default=3)
    arguments = options.parse_args()
    began = start()
    model, step = random_model(arguments.work / "random-cross-encoder"), max(1, threads.workers())
    columns = ("word pieces", "CPU, ms a pair", "wall, ms a pair", f"pairs in {DEFAULT_RERANK_SECONDS} s")
    table = Table("reading", "The cross-encoder, by the length of a pair", columns)
    for length in arguments.lengths:
        made = pairs(length, DEFAULT_RERANK_TOP)
        steps = [made[first : first + step] for first in range(0, len(made), step)]
        model.scores(steps[0])
        works = [lambda one=one: model.scores(one) for one in steps]
        costs = [cost for _ in range(1 if arguments.quick else arguments.rounds) for cost in costs_of(works)]
        wall, cpu = (spread([1e3 * cost[which] / step for cost in costs]) for which in (0, 1))
        within = min(DEFAULT_RERANK_TOP, int(1e3 * DEFAULT_RERANK_SECONDS / wall["median"]))
        table.rows.append((str(length), f"{cpu['median']:.0f}", f"{wall['median']:.0f}", str(within)))
        table.data[str(length)] = {"cpu": cpu, "wall": wall}
    table.conditions.append(
        f"medians over {arguments.rounds} rounds of {DEFAULT_RERANK_TOP} pairs, {step} at a time, a thread each; "
        f"random weights in the shape of the pinned model ({LAYERS} layers, width {WIDTH}); CPU time is that of all "
        "threads. A passage of 1,200 characters, the longest there is, has about 300 word pieces."
    )
    publish(table, began, arguments)


if __name__ == "__main__":
    main()
