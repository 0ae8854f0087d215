"""`funes models`: the pinned models on this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from funes.errors import FunesError


@dataclass(frozen=True, slots=True)
class ModelState:
    """A pinned model.

    Attributes:
        name: what `funes models pull` calls it.
        model_id: its name on the Hugging Face Hub, stamped into memories.
        revision: the pinned commit.
        purpose: what it is for, in a few words.
        size: bytes of its files.
        folder: where it is on this machine, None when it is not.
    """

    name: str
    model_id: str
    revision: str
    purpose: str
    size: int
    folder: Path | None


def list_models() -> list[ModelState]:
    """Every pinned model, on this machine or not."""
    from funes.models.fetch import find
    from funes.models.pinned import MINILM

    purpose = "vectors and late interaction"
    return [ModelState("embedding", MINILM.model_id, MINILM.revision, purpose, MINILM.size, find(MINILM))]


def pull_model(name: str = "embedding", progress: Callable[[str, int, int], None] | None = None) -> ModelState:
    """Fetch a pinned model unless it is on this machine.

    Args:
        name: as `list_models` gives it, or the model's full id.
        progress: called with a file's name, bytes so far and bytes in all (0 when unknown).

    Raises:
        FunesError: for an unknown name.
        ModelMissingError: when no source has the model.
    """
    from funes.models.fetch import ensure
    from funes.models.pinned import MINILM

    if name not in ("embedding", MINILM.model_id):
        raise FunesError(f"There is no pinned model {name!r}; `funes models list` shows those there are.")
    ensure(MINILM, progress)
    return next(state for state in list_models() if state.model_id == MINILM.model_id)
