"""What holds for every test: none reaches the real Hub, or uses the token of whoever runs them; none asserts a time.

And none leaves a process behind: the worker behind the hooks waits for further events only where a test is about that.
"""

from __future__ import annotations

import contextlib
import os
import signal

import pytest
from hypothesis import HealthCheck, settings

from funes.secrets import kingfisher, ruleset

# How long an example takes says something about the machine. Property tests draw new examples in every run, and the
# same ones in continuous integration: a failure there is the change's, one elsewhere may have been there always.
settings.register_profile(
    "funes",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=os.environ.get("FUNES_TEST_EXAMPLES") == "same",
)
settings.load_profile("funes")

# Under `nohup` and in the background of a script these are ignored, which is inherited; programs under test heed them.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_TOKEN")
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def no_real_hub(request, monkeypatch):
    if request.node.get_closest_marker("hub"):
        return
    monkeypatch.setenv("HF_ENDPOINT", NOWHERE)
    monkeypatch.setenv("HF_TOKEN_PATH", os.devnull)
    for name in TOKENS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True, scope="session")
def compiled_rules():
    """The rules of the secret scanner, which the first test to need them would compile otherwise, and say so."""
    if not ruleset.is_compiled():
        with contextlib.suppress(kingfisher.EngineUnavailableError):
            kingfisher.engine()
            ruleset.ruleset_id()


@pytest.fixture(autouse=True)
def no_lingering(monkeypatch):
    monkeypatch.setenv("FUNES_LINGER", "0")
