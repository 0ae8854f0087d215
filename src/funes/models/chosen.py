"""The cross-encoder of the user's own choice, in the place of the pinned one.

The choice is a folder, noted in `FUNES_HOME/models.json` with the sha256 that its weights had when it was made.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from funes.errors import FunesError
from funes.paths import funes_home

_KEY = "cross-encoder"


@dataclass(frozen=True, slots=True)
class ChosenModel:
    """A folder with a model, and the sha256 of its weights when it was chosen."""

    folder: Path
    sha256: str


def choices_file() -> Path:
    """Where choices are noted."""
    return funes_home() / "models.json"


def chosen_cross_encoder() -> ChosenModel | None:
    """The user's choice, None where there is none.

    Raises:
        FunesError: the note cannot be read; guessing would use a model that was not chosen.
    """
    path = choices_file()
    try:
        chosen = json.loads(path.read_bytes()).get(_KEY)
        return ChosenModel(Path(chosen["folder"]), str(chosen["sha256"])) if chosen else None
    except FileNotFoundError:
        return None
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        raise FunesError(
            f"{path} cannot be read: delete it, and choose models again with `funes models use`."
        ) from error


def choose_cross_encoder(choice: ChosenModel) -> None:
    """Use a folder's model from now on.

    Args:
        choice: an absolute folder.
    """
    path = choices_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    data = {_KEY: {"folder": str(choice.folder), "sha256": choice.sha256}}
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}-", delete=False) as file:
        json.dump(data, file)
    os.replace(file.name, path)


def forget_cross_encoder() -> None:
    """Go back to the pinned model; the folder stays as it is."""
    with contextlib.suppress(FileNotFoundError):
        choices_file().unlink()
