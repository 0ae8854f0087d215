"""The Kingfisher engine: the patterns of some 490 vendors, in process, through its Python SDK.

Only `Rules` and `Scanner` of the SDK are used. A scan never uses the network; the SDK's parts that validate or revoke
a credential with its vendor are not touched. `Scanner` is used without a policy, because a policy makes comments in the
scanned text (`kingfisher:ignore` …) switch findings off.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from importlib import util
from pathlib import Path
from typing import Any

from funes import paths
from funes.secrets.findings import GENERIC, POSITIONAL, SPECIFIC, EngineError, Finding
from funes.secrets.gap_values import is_placeholder

DISTRIBUTION = "kingfisher-secret-scanner"
MODULE = "kingfisher_sdk"
FEWEST_RULES = 480
"""Fewer rules than this in the catalogue mean that it is damaged (version 1.5.0 has 488)."""

_TIMEOUT = 30.0
_BUILD_WAIT = 60.0

# Kingfisher reports parts of composite credentials as invisible findings. Most are ids (a tenant, a client, a host),
# which people search by; these are the secret ones.
_SECRET_HELPERS = frozenset(
    {
        "alibaba-sts-security-token",
        "aws-secret-access-key",
        "cloudinary-api-key",
        "exoscale-api-secret",
        "ovh-application-key",
        "ovh-consumer-key",
        "packagistsecret-api-key",
        "polymarket-api-secret",
        "polymarket-passphrase",
    }
)
_POSITIONAL = re.compile(r"generic-|curl-auth-|kubernetes-secret-yaml|jwt-base64")


class EngineUnavailableError(Exception):
    """Kingfisher cannot be used in this installation.

    Args:
        reason: one clause that says why.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def cache_folder() -> Path:
    """Folder of the compiled rules and of the catalogue's digest."""
    return paths.cache_folder() / "kingfisher"


@lru_cache(maxsize=1)
def version() -> str:
    """Installed version of the SDK, empty when it is not installed. Does not import it."""
    spec = util.find_spec(MODULE)
    if spec is None:
        return ""
    if spec.origin:  # the usual place; `importlib.metadata` takes long to import, and this runs after every turn
        for folder in Path(spec.origin).parent.parent.glob(f"{DISTRIBUTION.replace('-', '_')}-*.dist-info"):
            return folder.name.removesuffix(".dist-info").partition("-")[2]
    from importlib import metadata

    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "unknown"


def marker_name(rule_id: str) -> str:
    """Name of a Kingfisher rule in a marker: `betterleaks.langfuse-secret-key.1` is `langfuse-secret-key`."""
    name = rule_id.removeprefix("betterleaks.").removeprefix("veles.secrets/")
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"\.\d+$", "", name).lower()).strip("-")


class Kingfisher:
    """A loaded engine. Threads may share one; a scan releases the interpreter lock.

    The first load ever compiles the rules (5 to 18 s) and keeps them in `cache_folder()`; later ones take about half a
    second. Where the folder cannot be written, every process compiles them.

    Raises:
        EngineUnavailableError: the SDK is not installed, or does not work here.
    """

    def __init__(self) -> None:
        if util.find_spec(MODULE) is None:
            raise EngineUnavailableError(f"{DISTRIBUTION} is not installed")
        try:
            from kingfisher_sdk import Rules, Scanner

            with _one_builder(cache_folder()):
                self._rules = Rules(confidence="low", cache_dir=cache_folder())
            self._scanner = Scanner(self._rules, base64=True, dedup=False, redact=False)
        except Exception as error:  # whatever a native module raises
            raise EngineUnavailableError(
                f"{DISTRIBUTION} does not load here ({type(error).__name__}: {error})"
            ) from error
        if len(self._rules) < FEWEST_RULES:
            raise EngineUnavailableError(f"{DISTRIBUTION} has only {len(self._rules)} rules")
        self.names = frozenset(marker_name(rule["id"]) for rule in self._rules.metadata())

    def catalogue(self) -> list[dict[str, Any]]:
        """The definitions of all rules, in the SDK's order."""
        return [self._rules.detail(rule["id"]) for rule in self._rules.metadata()]

    def scan(self, text: str) -> list[Finding]:
        """Find credentials in a text.

        Args:
            text: a text without NUL characters, many of which the engine takes for UTF-16.

        Returns:
            Findings in no particular order, in characters of `text`; they may overlap.

        Raises:
            EngineError: the engine failed or took longer than 30 s; nothing is known about the text.
        """
        data = text.encode("utf-8", "replace")  # a lone surrogate becomes one question mark
        try:
            found = [
                (f.location["start_offset"], f.location["end_offset"], marker_name(f.rule_id), f)
                for f in self._scanner.scan(data, timeout=_TIMEOUT)
            ]
        except TimeoutError as error:
            raise EngineError("kingfisher timed out") from error
        except Exception as error:  # whatever a native module raises
            raise EngineError("kingfisher failed") from error
        spans = []
        for start, end, name, finding in found:
            if not finding.visible and name not in _SECRET_HELPERS:
                continue
            if not 0 <= start < end <= len(data):
                raise EngineError("kingfisher gave an impossible position")
            if not finding.is_base64_encoded and data[start:end] != finding.secret.encode("utf-8", "replace"):
                raise EngineError("kingfisher gave a wrong position")
            if name == "curl-auth-user":  # user:password
                start = data.find(b":", start, end) + 1 or start
            if name.startswith("generic-") and is_placeholder(finding.secret):
                continue
            spans.append((start, end, name, _rank(name, finding.visible)))
        return list(_in_characters(text, data, spans))


def _rank(name: str, visible: bool) -> int:
    """How specific a rule is; the helpers take any value behind a word such as "token"."""
    if not visible:
        return GENERIC
    return POSITIONAL if _POSITIONAL.match(name) else SPECIFIC


def _in_characters(text: str, data: bytes, spans: list[tuple[int, int, str, int]]) -> Iterator[Finding]:
    """Turn spans in bytes of `data` into findings in characters of `text`."""
    if len(data) == len(text):
        position = {edge: edge for span in spans for edge in span[:2]}
    else:
        position = {}
        characters = done = 0
        for edge in sorted({edge for span in spans for edge in span[:2]}):
            characters += len(data[done:edge].decode("utf-8", "replace"))
            done = edge
            position[edge] = characters
    for start, end, name, rank in spans:
        yield Finding(position[start], position[end], name, rank)


@contextmanager
def _one_builder(folder: Path) -> Iterator[None]:
    """Let one process compile the rules while the others wait for the result, where the folder allows a lock.

    Only a hint that saves time: the SDK's own cache is safe with several writers and damaged files.
    """
    handle = None
    with suppress(OSError):  # a folder that cannot be written: every process compiles for itself
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not any(folder.glob("*.vscdb")):
            handle = (folder / "building.lock").open("a")
    if handle is None:
        yield
        return
    with handle:
        _wait_for_lock(handle)
        yield


def _wait_for_lock(handle: Any) -> None:
    """Take an advisory lock on an open file, or give up after a minute."""
    try:
        import fcntl
    except ImportError:  # Windows: every process compiles for itself
        return
    import time

    deadline = time.monotonic() + _BUILD_WAIT
    while time.monotonic() < deadline:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            time.sleep(0.1)
        else:
            return


_lock = threading.Lock()
_engine: Kingfisher | None = None
_failure = ""


def engine() -> Kingfisher:
    """The process's engine, loaded at the first call.

    Raises:
        EngineUnavailableError: it cannot be loaded; tried once.
    """
    global _engine, _failure
    with _lock:
        if _failure:
            raise EngineUnavailableError(_failure)
        if _engine is None:
            try:
                _engine = Kingfisher()
            except EngineUnavailableError as error:
                _failure = error.reason
                raise
        return _engine


def failure() -> str:
    """Why the engine did not load in this process, empty when it did or nobody tried."""
    return _failure
