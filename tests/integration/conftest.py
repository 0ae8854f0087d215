"""Fixtures of the tests about sharing: a Hub, two machines, the command line."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from funes.__main__ import main
from tests.support.hub_server import HubServer
from tests.support.s3_server import S3Server
from tests.support.sharing import Machine


@pytest.fixture(autouse=True)
def time_for_tokenising(monkeypatch):
    """How many passages are tokenised in half a second says something about the machine."""
    monkeypatch.setattr("funes.search.late.TOKENISING_SECONDS", 3600.0)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    with HubServer(tmp_path / "hub") as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("HF_TOKEN", server.token)
        for name in ("XET", "PROGRESS_BARS", "TELEMETRY"):  # as funes does, should a test import the client before it
            monkeypatch.setenv(f"HF_HUB_DISABLE_{name}", "1")
        monkeypatch.setattr("funes.memory.remote.publish._FIRST_PAUSE", 0.001)
        yield server


@pytest.fixture
def machines(tmp_path, monkeypatch):
    """Two machines; the first is in use."""
    one, two = Machine(tmp_path, "one"), Machine(tmp_path, "two")
    one.use(monkeypatch)
    return one, two


@pytest.fixture
def run(capsys):
    def run(*arguments):
        code = main(list(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """An S3 server that Lance finds."""
    pytest.importorskip("moto.server")
    with S3Server() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        yield server
