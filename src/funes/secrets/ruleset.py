"""The id of the rules that a text was scanned with.

Texts whose id is not the current one are scanned again before they are published.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from functools import lru_cache
from importlib import util
from pathlib import Path

from funes.secrets import kingfisher
from funes.secrets.gap_rules import GAP_VERSION
from funes.secrets.views import MASK_VERSION

_DIGITS = 12


def ruleset_id() -> str:
    """Id of the rules in force here, e.g. `kf-1.5.0-808848aef524+gap-1.0-51b2c0f19a3e+mask-1`.

    Kingfisher's part is its version and a digest of its rules; it is missing where the engine is. Ours is a version and
    a digest of the source of the modules that decide what is found.
    """
    parts = [f"gap-{GAP_VERSION}-{_own_digest()}", f"mask-{MASK_VERSION}"]
    version = kingfisher.version()
    if version and not kingfisher.failure():
        with suppress(kingfisher.EngineUnavailableError):  # then our rules alone are in force
            parts.insert(0, f"kf-{version}-{_catalogue_digest(version)}")
    return "+".join(parts)


def is_compiled() -> bool:
    """Whether Kingfisher's rules were compiled here before, so that loading them takes no more than a moment.

    Also where the engine is not installed.
    """
    version = kingfisher.version()
    if not version:
        return True
    try:
        known = json.loads((kingfisher.cache_folder() / "catalogue.json").read_bytes())["key"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return known == _key(version) and any(kingfisher.cache_folder().glob("*.vscdb"))


@lru_cache(maxsize=1)
def _own_digest() -> str:
    """Digest of the source of our rules, of the views they read and of the adapter that filters Kingfisher's."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".py") and file.name.startswith(("gap_", "kingfisher", "views")):
            digest.update(file.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()[:_DIGITS]


@lru_cache(maxsize=1)
def _catalogue_digest(version: str) -> str:
    """Digest of all of Kingfisher's rules; kept on disk, because computing it means loading the engine."""
    key = _key(version)
    kept = kingfisher.cache_folder() / "catalogue.json"
    with suppress(OSError, ValueError, KeyError, TypeError):  # not there or damaged: computed anew
        entry = json.loads(kept.read_bytes())
        if entry["key"] == key:
            return str(entry["digest"])
    catalogue = json.dumps(kingfisher.engine().catalogue(), sort_keys=True)
    digest = hashlib.sha256(catalogue.encode()).hexdigest()[:_DIGITS]
    with suppress(OSError):  # a folder that cannot be written: computed by every process
        kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = kept.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_text(json.dumps({"key": key, "digest": digest}), encoding="ascii")
        temporary.replace(kept)
    return digest


def _key(version: str) -> str:
    """What the rules that are kept on disk belong to."""
    return f"{version} {_native_stamp()}"


def _native_stamp() -> str:
    """Sizes and times of the engine's native library, which change when another build of one version is installed."""
    spec = util.find_spec(kingfisher.MODULE)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    natives = sorted(path for folder in folders for path in Path(folder).glob("_native*"))
    return " ".join(f"{path.name}:{path.stat().st_size}:{path.stat().st_mtime_ns}" for path in natives)
