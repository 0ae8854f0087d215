"""The real agent programs, installed once into a cache folder of the repository.

One folder for each program and version; a stamp in it says that it is complete. Nothing is installed globally, and
nothing but the cache folder is written (npm and pip keep their own caches).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PINS = Path(__file__).with_name("agents.toml")
AGENTS = ("claude", "codex", "pi", "hermes")
_REASONS = "FUNES_E2E_MISSING"
STAMP = ".complete"
PATIENCE = 600
"""Seconds for one installation; the largest program is 420 MB."""


class CannotInstallError(Exception):
    """Why a program cannot be had here, in one sentence."""


@dataclass(frozen=True)
class Program:
    """One installed program: its name, its version, and the folders that belong in front of PATH."""

    name: str
    version: str
    folders: tuple[Path, ...]

    @property
    def binary(self) -> Path:
        """The program itself."""
        return self.folders[0] / self.name


def cache_folder() -> Path:
    """Where the programs go: `.cache/agents` of the repository, or `FUNES_AGENTS_CACHE`."""
    override = os.environ.get("FUNES_AGENTS_CACHE")
    return Path(override) if override else REPOSITORY / ".cache" / "agents"


def install_all() -> dict[str, str]:
    """Install every agent.

    Returns:
        Reasons by agent, for those that cannot be had. They are also remembered for the processes started from here,
        which have no network to try again.
    """
    reasons = {}
    for name in AGENTS:
        try:
            install(name)
        except CannotInstallError as error:
            reasons[name] = str(error)
    os.environ[_REASONS] = json.dumps(reasons)
    return reasons


def install(name: str) -> Program:
    """Install a program unless its version is there already.

    Raises:
        CannotInstallError: when a registry does not answer, or a tool that is needed is missing.
    """
    if reason := json.loads(os.environ.get(_REASONS, "{}")).get(name):
        raise CannotInstallError(reason)
    pin = tomllib.loads(PINS.read_text())[name]
    folder = cache_folder() / f"{name}-{pin['version']}"
    if not (folder / STAMP).exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        print(f"installing {name} {pin['version']} into {folder}", file=sys.stderr, flush=True)
        if "npm" in pin:
            _install_from_npm(folder, f"{pin['npm']}@{pin['version']}")
        else:
            _install_from_pypi(folder, f"{pin['pypi']}=={pin['version']}")
        (folder / STAMP).touch()
    folders = [folder / ("node_modules/.bin" if "npm" in pin else "bin")]
    if "needs" in pin:
        folders += install(pin["needs"]).folders
    return Program(name, pin["version"], tuple(folders))


def _install_from_npm(folder: Path, requirement: str) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise CannotInstallError(f"npm is not on this machine, and {requirement} comes from npm")
    (folder / "package.json").write_text('{"private": true}\n')
    quiet = ("--no-audit", "--no-fund", "--no-progress", "--loglevel=error", "--fetch-retries=1")
    _run([npm, "install", *quiet, requirement], folder, requirement)


def _install_from_pypi(folder: Path, requirement: str) -> None:
    _run([sys.executable, "-m", "venv", str(folder)], folder, requirement)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "-q", "install", "--retries=1"]
    _run([*pip, requirement], folder, requirement)


def _run(command: list[str], folder: Path, requirement: str) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CannotInstallError(f"{requirement} was not installed within {PATIENCE} s") from error
    if done.returncode:
        raise CannotInstallError(f"{requirement} could not be installed: {_reason(done.stdout)}")


def _reason(output: str) -> str:
    """What npm or pip said went wrong, without their warnings and hints."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith(("error", "npm error")) and "complete log" not in line]
    return " / ".join(errors[:3] or lines[-1:])[:300] or "no message"
