"""The pinned model for tests that need the real one."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from unittest import mock

import pytest

from funes.errors import ModelMissingError
from funes.models.fetch import ensure, find
from funes.models.pinned import MINILM

OWN_CACHE = Path(__file__).parents[2] / ".cache" / "models"


def pinned_model() -> Path:
    """The folder of the pinned model: this machine's, or fetched once into the checkout; without it, skip the test."""
    folder = _folder()
    if folder is None:
        pytest.skip("the embedding model is neither on this machine nor to be fetched")
    return folder


@cache
def _folder() -> Path | None:
    if folder := find(MINILM):
        return folder
    with mock.patch.dict(os.environ, {"FUNES_MODELS": str(OWN_CACHE)}):
        try:
            return ensure(MINILM)
        except ModelMissingError:
            return None
