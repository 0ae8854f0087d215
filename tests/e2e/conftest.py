"""The end-to-end tests: real agents, a scripted model, no network. `make e2e` runs them and prints the table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.installing import AGENTS, CannotInstallError, Program, install
from tests.e2e.table import Table
from tests.support.model_server import ModelServer

_HERE = Path(__file__).parent
_TABLE = pytest.StashKey[Table]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_TABLE] = Table()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.e2e)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for line in config.stash[_TABLE].lines():
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def table(pytestconfig: pytest.Config) -> Table:
    return pytestconfig.stash[_TABLE]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture(scope="session")
def program(table: Table) -> Callable[[str], Program]:
    """Installs an agent, or skips the test with the reason."""
    known: dict[str, Program | str] = {}

    def program(name: str) -> Program:
        if name not in known:
            try:
                known[name] = install(name)
            except CannotInstallError as error:
                known[name] = str(error)
        found = known[name]
        if isinstance(found, str):
            table.skip(name, found)
            pytest.skip(found)
        table.set(name, "version", found.version)
        return found

    return program


@pytest.fixture(params=AGENTS)
def agent(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def isolation() -> str:
    """Empty when this process has no network but loopback, else why not."""
    return os.environ.get("FUNES_E2E_NETWORK", "run by `make e2e`, which leaves the network")
