"""The shared corpus of real traces, which lies beside the checkout when it is there at all."""

from __future__ import annotations

from pathlib import Path

import pytest


def shared_corpus() -> Path:
    """Folder `corpus/traces` of the shared folder beside the checkout; without one the test is skipped."""
    folder = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "traces"
    if not folder.is_dir():
        pytest.skip("the shared corpus is not beside the checkout")
    return folder
