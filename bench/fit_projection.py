"""Fit the projections of funes.models.codes on neutral text, and write them to src/funes/models/assets.

usage: python bench/fit_projection.py [--tokens 200000] [--out src/funes/models/assets]

The text is Python's: docstrings and sources of the standard library, descriptions of the installed packages. Nothing
that the project is evaluated on is read. The fit is deterministic for a given Python installation; the shipped files
were made with the installation that docs/models.md names.
"""

from __future__ import annotations

import argparse
import ast
import importlib.metadata
import random
import sysconfig
from pathlib import Path

import numpy as np

from funes.models import codes
from funes.models.encoder import Encoder, load_encoder

SEED = 20_240


def neutral_texts() -> list[str]:
    """Passages of about 1,000 characters: docstrings, sources, package descriptions, shuffled."""
    documents: list[str] = []
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).rglob("*.py")):
        if {"site-packages", "test", "tests", "idle_test", "lib2to3"} & set(path.parts):
            continue
        try:
            source = path.read_text(encoding="utf-8")
            tree = ast.parse(source)
        except (UnicodeDecodeError, SyntaxError):
            continue
        documents.append(source)
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                documents.append(ast.get_docstring(node) or "")  # noqa: PERF401
    for distribution in sorted(importlib.metadata.distributions(), key=lambda d: d.metadata["Name"]):
        body = distribution.metadata.get_payload()
        documents.append(body if isinstance(body, str) else "")
    passages = [
        document[start : start + 1000]
        for document in documents
        if len(document) >= 40
        for start in range(0, len(document), 1000)
    ]
    prose = [p for p in passages if p.count("\n    ") < 5]
    source = [p for p in passages if p.count("\n    ") >= 5]
    shuffle = random.Random(SEED)
    shuffle.shuffle(prose)
    shuffle.shuffle(source)
    # Half prose, half source, alternating.
    return [text for pair in zip(prose, source, strict=False) for text in pair]


def token_vectors(encoder: Encoder, wanted: int) -> tuple[np.ndarray, np.ndarray]:
    """Last hidden states and word-piece ids of about `wanted` kept tokens."""
    states: list[np.ndarray] = []
    pieces: list[np.ndarray] = []
    texts = neutral_texts()
    total = 0
    for first in range(0, len(texts), 64):
        vectors, ids = encoder.kept_states(texts[first : first + 64])
        states += vectors
        pieces += ids
        total += sum(map(len, ids))
        if total >= wanted:
            break
    return np.concatenate(states)[:wanted], np.concatenate(pieces)[:wanted]


def principal(vectors: np.ndarray) -> np.ndarray:
    """Directions of the 192 largest second moments of unit vectors, turned by a random rotation: (width, 192)."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    values, directions = np.linalg.eigh(unit.T.astype(np.float64) @ unit / len(unit))
    print(f"share of the second moment kept: {values[-codes.DIMENSIONS :].sum() / values.sum():.3f}")
    return directions[:, : -codes.DIMENSIONS - 1 : -1] @ rotation()


def rotation() -> np.ndarray:
    """A random rotation of the codes' space, (192, 192)."""
    gaussian = np.random.default_rng(SEED).standard_normal((codes.DIMENSIONS, codes.DIMENSIONS))
    q, r = np.linalg.qr(gaussian)
    return q * np.sign(np.diag(r))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=200_000)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent.parent / "src/funes/models/assets")
    arguments = parser.parse_args()
    encoder = load_encoder(fetch=True)
    states, pieces = token_vectors(encoder, arguments.tokens)
    # Each piece once: frequent pieces say little about a passage, so the space is not fitted to them.
    words = encoder.word_vectors(np.unique(pieces))
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, vectors in {"tokens": states, "pieces": words}.items():
        basis = principal(vectors).astype(np.float16)
        np.save(arguments.out / f"{name}.npy", basis)
        print(f"{name}: {len(vectors)} vectors, {basis.nbytes} bytes")


if __name__ == "__main__":
    main()
