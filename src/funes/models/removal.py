"""Taking a pinned model off this machine."""

from __future__ import annotations

import contextlib
from pathlib import Path

from funes.models.fetch import find
from funes.models.pinned import PinnedModel


def remove(model: PinnedModel) -> list[Path]:
    """Delete a model's files wherever `find` finds them: the models folder, the Hugging Face cache.

    Another program that used the files in the Hugging Face cache fetches them again.

    Returns:
        The folders that held it, none when it was not on this machine.

    Raises:
        OSError: a file cannot be deleted.
    """
    removed: list[Path] = []
    while folder := find(model):
        removed.append(folder)
        for file in model.files:
            path = folder / file.name
            content = path.resolve()  # in the Hugging Face cache a link to it
            path.unlink()
            content.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # other files are in it
            folder.rmdir()
    return removed
