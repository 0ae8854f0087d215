"""Finding the pinned model on this machine, or fetching it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from funes.models.pinned import PinnedModel
from funes.paths import models_folder

Progress = Callable[[str, int, int], None]


def find(model: PinnedModel) -> Path | None:
    """The folder with all files of the model, None when it is not on this machine."""
    folder = models_folder() / model.folder
    return folder if all((folder / file.name).is_file() for file in model.files) else None


def ensure(model: PinnedModel, progress: Progress | None = None) -> Path:
    """The folder with all files of the model, fetched when it is not on this machine."""
    folder = find(model)
    if folder is None:
        raise NotImplementedError
    return folder
