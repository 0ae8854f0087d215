"""`funes models`: the models on this machine, fetching them, choosing another cross-encoder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from funes.errors import FunesError

if TYPE_CHECKING:
    from funes.models.pinned import PinnedModel

EMBEDDING, CROSS_ENCODER = "embedding", "cross-encoder"
CHOSEN = "folder chosen with funes models use"


@dataclass(frozen=True, slots=True)
class ModelState:
    """A model that this program uses.

    Attributes:
        name: what the commands call it.
        model_id: its name on the Hugging Face Hub, empty for a folder of the user's.
        revision: the pinned commit, or empty.
        purpose: what it is for, in a few words.
        size: bytes of its files.
        folder: where it is on this machine, None when it is not.
        source: what kind of place that is, empty when it is nowhere.
        state: `verified` (every file has the pinned sha256), `changed` (files are there, with other bytes), `absent`;
            for a folder of the user's `unchanged` since it was chosen, `changed` or `absent`.
    """

    name: str
    model_id: str
    revision: str
    purpose: str
    size: int
    folder: Path | None
    source: str
    state: str


@dataclass(frozen=True, slots=True)
class Removal:
    """What was taken away.

    Attributes:
        name: what the commands call the model.
        folders: where its files were deleted.
        size: bytes of its files in one such folder.
        forgotten: the folder that was the user's choice, which is left as it is; then nothing was deleted.
    """

    name: str
    folders: list[Path]
    size: int
    forgotten: Path | None = None


def list_models() -> list[ModelState]:
    """Every model that is used, on this machine or not.

    Raises:
        FunesError: the note of the user's choice cannot be read.
    """
    from funes.models.chosen import chosen_cross_encoder
    from funes.models.pinned import CROSS_ENCODER as PINNED
    from funes.models.pinned import MINILM

    chosen = chosen_cross_encoder()
    return [
        _pinned(MINILM, "vectors and late interaction"),
        _chosen(chosen.folder, chosen.sha256) if chosen else _pinned(PINNED, _READS),
    ]


_READS = "reads the best passages and orders them (optional)"


def _pinned(model: PinnedModel, purpose: str) -> ModelState:
    from funes.models.fetch import changed, find
    from funes.paths import models_folder

    folder, source, state = find(model), "", "verified"
    if folder is None:
        folder = changed(model)
        state = "changed" if folder else "absent"
    if folder:
        source = "models folder" if folder.is_relative_to(models_folder()) else "Hugging Face cache"
    return ModelState(model.name, model.model_id, model.revision, purpose, model.size, folder, source, state)


def _chosen(folder: Path, sha256: str) -> ModelState:
    from funes.models.fetch import digest
    from funes.models.pinned import CROSS_ENCODER as PINNED
    from funes.models.pinned import WEIGHTS

    files = [folder / file.name for file in PINNED.files]
    try:
        size = sum(path.stat().st_size for path in files)
        state = "unchanged" if digest(folder / WEIGHTS) == sha256 else "changed"
    except OSError:
        size, state = 0, "absent"
    return ModelState(CROSS_ENCODER, "", "", _READS, size, folder, CHOSEN, state)


def pull_model(name: str = EMBEDDING, progress: Callable[[str, int, int], None] | None = None) -> ModelState:
    """Fetch a pinned model unless it is on this machine.

    Args:
        name: as `list_models` gives it, or the model's full id.
        progress: called with a file's name, bytes so far and bytes in all (0 when unknown).

    Raises:
        FunesError: for an unknown name.
        ModelMissingError: when no source has the model.
    """
    from funes.models.fetch import ensure

    model = _named(name)
    ensure(model, progress)
    return _pinned(model, "")


def remove_model(name: str) -> Removal:
    """Go back from the user's choice to the pinned model; without a choice, delete the pinned model's files.

    Args:
        name: as `list_models` gives it, or the model's full id.

    Raises:
        FunesError: for an unknown name, a model that is not on this machine, or files that cannot be deleted.
    """
    from funes.models.chosen import chosen_cross_encoder, forget_cross_encoder
    from funes.models.removal import remove

    model = _named(name)
    if model.name == CROSS_ENCODER and (chosen := chosen_cross_encoder()):
        forget_cross_encoder()
        return Removal(model.name, [], 0, chosen.folder)
    try:
        folders = remove(model)
    except OSError as error:
        raise FunesError(f"{error.filename} cannot be deleted ({error.strerror}); delete it by hand.") from error
    if not folders:
        raise FunesError(f"The model {model.model_id} is not on this machine; there is nothing to remove.")
    return Removal(model.name, folders, model.size)


def use_model(name: str, folder: Path) -> ModelState:
    """Use the cross-encoder in a folder from now on.

    Args:
        name: `cross-encoder`; the embedding model cannot be chosen, since memories are made with it.
        folder: holds config.json, model.safetensors and tokenizer.json of a BERT with one label.

    Raises:
        FunesError: for another name, or a folder whose model cannot be run.
    """
    from funes.models.chosen import ChosenModel, choose_cross_encoder
    from funes.models.cross_encoder import CrossEncoder
    from funes.models.fetch import digest
    from funes.models.pinned import WEIGHTS

    if _named(name).name != CROSS_ENCODER:
        raise FunesError("The embedding model cannot be chosen, because memories are made with it; only cross-encoder.")
    folder = folder.expanduser().absolute()
    model = CrossEncoder(folder)
    score = float(model.scores(model.pairs("What does it cost?", ["It costs nothing."]))[0])
    if score != score or abs(score) == float("inf"):
        raise FunesError(
            f"The model in {folder} gives {score} as a score; its weights are damaged, name another folder."
        )
    choose_cross_encoder(ChosenModel(folder, digest(folder / WEIGHTS)))
    return list_models()[-1]


def _named(name: str) -> PinnedModel:
    from funes.models.pinned import CROSS_ENCODER as PINNED
    from funes.models.pinned import MINILM

    for model in (MINILM, PINNED):
        if name in (model.name, model.model_id):
            return model
    raise FunesError(f"There is no pinned model {name!r}; `funes models list` shows those there are.")
