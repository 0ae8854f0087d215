"""A small cross-encoder with random weights: tests/data/cross_encoder_reference.npz as the folder it stands for."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).parents[1] / "data" / "cross_encoder_reference.npz"
_NAMES = {"float32": "F32", "float16": "F16", "int8": "I8"}


@cache
def reference() -> dict[str, Any]:
    """`config`, `tokenizer` (text), `variants`, `pairs`, `scores` and `weights` of the file."""
    with np.load(FILE) as file:
        weights = {name.removeprefix("weight "): file[name] for name in file.files if name.startswith("weight ")}
        return {
            "config": json.loads(str(file["config"])),
            "tokenizer": str(file["tokenizer"]),
            "variants": json.loads(str(file["variants"])),
            "pairs": [(str(question), str(passage)) for question, passage in file["pairs"]],
            "scores": file["scores"],
            "weights": weights,
        }


def write_cross_encoder(
    folder: Path,
    dtype: str = "float32",
    change: Callable[[dict[str, Any]], None] = lambda _: None,
    **config: Any,
) -> Path:
    """The model as transformers saves it.

    Args:
        folder: where.
        dtype: how its weights are stored.
        change: may change the weights, a dictionary by name.
        config: entries of config.json in the place of its own; None takes one out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    merged = {**reference()["config"], **config}
    written = {name: value for name, value in merged.items() if value is not None}
    (folder / "config.json").write_text(json.dumps(written), encoding="utf-8")
    (folder / "tokenizer.json").write_text(reference()["tokenizer"], encoding="utf-8")
    weights = dict(reference()["weights"])
    change(weights)
    (folder / "model.safetensors").write_bytes(_safetensors(weights, dtype))
    return folder


class KnownAnswers:
    """In the place of a cross-encoder: the scores are known, and a step takes `cost` seconds of its own clock."""

    def __init__(self, answers: dict[str, float], cost: float = 0.0) -> None:
        self.answers = answers
        self.cost = cost
        self.now = 100.0
        self.read: list[str] = []
        self.questions: list[str] = []

    def pairs(self, question: str, passages: Sequence[str]) -> list[Any]:
        self.questions.append(question)
        return list(passages)

    def scores(self, pairs: Sequence[Any]) -> np.ndarray:
        self.now += self.cost
        self.read += pairs
        return np.array([self.answers[text] for text in pairs], np.float32)

    def clock(self) -> float:
        return self.now


def _safetensors(tensors: dict[str, Any], dtype: str) -> bytes:
    header, body = {}, b""
    for name, value in tensors.items():
        data = value.astype(dtype).tobytes()
        places = [len(body), len(body) + len(data)]
        header[name] = {"dtype": _NAMES[dtype], "shape": list(value.shape), "data_offsets": places}
        body += data
    encoded = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    return len(encoded).to_bytes(8, "little") + encoded + body
