"""The end-to-end tests: real agents, a scripted model, no network. `make e2e` runs them and prints the table."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pytest

from tests.e2e.homes import Home
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


class Programs:
    """The agents' programs, each installed when it is first wanted."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._known: dict[str, Program | str] = {}

    def get(self, name: str) -> Program:
        """An agent's program; without it the test is skipped with the reason."""
        found = self._find(name)
        if isinstance(found, str):
            self._table.skip(name, found)
            pytest.skip(found)
        self._table.set(name, "version", found.version)
        return found

    def other(self, name: str) -> Program:
        """Another agent's program, Codex's if it can be."""
        others = [other for other in ("codex", "claude", "pi", "hermes") if other != name]
        found = next((found for other in others if isinstance(found := self._find(other), Program)), None)
        return found or pytest.skip("no second agent could be installed")

    def _find(self, name: str) -> Program | str:
        if name not in self._known:
            try:
                self._known[name] = install(name)
            except CannotInstallError as error:
                self._known[name] = str(error)
        return self._known[name]


@pytest.fixture(scope="session")
def programs(table: Table) -> Programs:
    return Programs(table)


class HomeMaker(Protocol):
    """Makes a HOME below the test's folder."""

    def __call__(self, name: str, programs: Sequence[Program], handshakes: Path | None = None) -> Home: ...


@pytest.fixture
def make_home(server: ModelServer, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> HomeMaker:
    cache = tmp_path_factory.getbasetemp() / "cache"
    cache.mkdir(exist_ok=True)

    def make_home(name: str, programs: Sequence[Program], handshakes: Path | None = None) -> Home:
        # All end alike, so that what contains the path can be compared.
        return Home(tmp_path / name / "home", server.url, programs, cache, handshakes)

    return make_home


@pytest.fixture(params=AGENTS)
def agent(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def isolation() -> str:
    """Empty when this process has no network but loopback, else why not."""
    return os.environ.get("FUNES_E2E_NETWORK", "run by `make e2e`, which leaves the network")
