"""The stages of recall, one after the other: each is the product's own pipeline with what comes later turned off.

Nothing is computed here. A stage is a set of options of `funes.search.pipeline.recall`, a weight or a step of one of
its modules set to nothing, or a list of candidates that stays empty.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from funes.memory.reader import MemoryReader
from funes.search import evidence, pipeline, ranking
from funes.search.model import Hit, RecallOptions, RecallResult

if TYPE_CHECKING:
    from funes.models.cross_encoder import CrossEncoder
    from funes.models.encoder import Encoder

Setting = tuple[ModuleType, str, Any]


def _by_itself(own: Any, *_: object) -> Any:
    """What `context.completed` gives where nothing stands around a passage."""
    return own


NO_CONTEXT: tuple[Setting, ...] = ((ranking, "completed", _by_itself), (ranking, "WIDENED", 0))
NO_EVIDENCE: tuple[Setting, ...] = ((evidence, "WEIGHT", 0.0),)


@dataclass(frozen=True, slots=True)
class Stage:
    """A configuration of the pipeline.

    Attributes:
        name: for the table.
        says: what it is, for the conditions.
        options: of the pipeline.
        without: weights and steps of its modules that are set to nothing.
        words: whether there are candidates by words.
        dense: whether the question is encoded at all.
        reads: whether the cross-encoder takes part.
    """

    name: str
    says: str
    options: RecallOptions
    without: tuple[Setting, ...] = field(default=(), repr=False)
    words: bool = True
    dense: bool = True
    reads: bool = False


_FUSED = RecallOptions(rerank="off", half_life_days=0, neighbors=0)
_LATE = RecallOptions(rerank="late", half_life_days=0, neighbors=0)

STAGES: Sequence[Stage] = (
    Stage("words", "BM25 alone", _FUSED, dense=False),
    Stage("dense", "the dense vector alone", _FUSED, words=False),
    Stage("fused", "both lists, by rank", _FUSED),
    Stage("late interaction", "over the fused candidates", _LATE, NO_CONTEXT + NO_EVIDENCE),
    Stage("+ context", "and over what stands around them", _LATE, NO_EVIDENCE),
    Stage("+ sessions", "and other close passages of the same session count", _LATE),
    Stage("+ recency", "a tie-breaker: what recall does by default", replace(_LATE, half_life_days=None)),
    Stage(
        "+ cross-encoder",
        "over the first 20, without a limit of time",
        RecallOptions(rerank="cross-encoder", neighbors=0, rerank_seconds=1e9),
        reads=True,
    ),
)


class Recall:
    """The pipeline in one configuration, on one memory.

    Args:
        stage: the configuration.
        reader: the memory, or one that remembers what it was asked.
        encoder: its model, or the same.
        cross_encoder: the last stage's, which may be absent for the others.
    """

    def __init__(
        self,
        stage: Stage,
        reader: MemoryReader | Remembered,
        encoder: Encoder | Remembered | None,
        cross_encoder: CrossEncoder | None = None,
    ) -> None:
        self._stage = stage
        self._reader = reader if stage.words else _Wordless(reader)
        self._encoder = encoder if stage.dense else None
        self._cross_encoder = cross_encoder if stage.reads else None

    def __call__(self, question: str, k: int) -> list[Hit]:
        """The hits of one question, best first."""
        options = replace(self._stage.options, k=k)
        with _set(self._stage.without):
            result: RecallResult = pipeline.recall(
                self._reader,
                self._encoder,
                question,
                options,
                self._cross_encoder,  # type: ignore[arg-type]
            )
        return result.hits


class Remembered:
    """An object some of whose methods are called once for the same arguments: the stages ask a memory the same things.

    Args:
        real: a `MemoryReader` or an `Encoder`.
        methods: names of those methods; their results are not changed by whoever gets them.
    """

    READER = ("words", "nearest", "codes", "pieces", "passages", "texts", "rows")
    ENCODER = ("encode_query",)

    def __init__(self, real: object, methods: Sequence[str]) -> None:
        self._real = real
        self._methods = methods
        self._known: dict[Any, Any] = {}

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._real, name)
        if name not in self._methods:
            return method

        def remembered(*arguments: Any) -> Any:
            # Ids come as iterators, too.
            given = [tuple(one) if isinstance(one, Iterable) and not isinstance(one, str) else one for one in arguments]
            key = (name, *given)
            if key not in self._known:
                self._known[key] = method(*(np.array(g, np.float32) if _is_vector(g) else g for g in given))
            return self._known[key]

        return remembered


def _is_vector(value: object) -> bool:
    return isinstance(value, tuple) and bool(value) and isinstance(value[0], np.floating)


class _Wordless:
    """A memory in which no word is ever found."""

    def __init__(self, reader: MemoryReader | Remembered) -> None:
        self._reader = reader

    def words(self, *_: object) -> list[tuple[str, float]]:
        """Nothing."""
        return []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)


@contextlib.contextmanager
def _set(settings: Sequence[Setting]) -> Iterator[None]:
    """Module-level values that are others for a while; one that is not there is an error, not a silent no-op."""
    before = [(module, name, getattr(module, name)) for module, name, _ in settings]
    try:
        for module, name, value in settings:
            setattr(module, name, value)
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)
