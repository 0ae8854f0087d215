"""From what a user calls a memory to where it is: this machine, a folder, the Hub, an object store."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from funes.errors import FunesError
from funes.paths import memory_folder

LOCAL = "local"
STORE_SCHEMES = ("s3", "gs", "az")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_NAME = r"(?![^/@]*(?:--|\.\.|\.git(?:[/@]|$)))[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?"
_REPO = re.compile(rf"({_NAME}/{_NAME})(?:@(.+))?")
_REVISION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9_-])?")

Kind = Literal["local", "folder", "hub", "store"]


@dataclass(frozen=True, slots=True)
class MemoryPlace:
    """Where a memory is.

    Attributes:
        label: what to call it in output and in `--memory`; empty for none.
        kind: `local` for this machine's own memory, `folder`, `hub` for a dataset repository, `store` for an object
            store.
        folder: the folder of its tables, for `local` and `folder`.
        repo: `<org>/<name>`, for `hub`.
        revision: branch, tag or commit, for `hub`; empty for the main branch.
        url: where its tables are, without a slash at the end, for `store`.
    """

    label: str
    kind: Kind
    folder: Path | None = None
    repo: str = ""
    revision: str = ""
    url: str = ""


def resolve(location: str | None) -> MemoryPlace:
    """Find out where a memory is, without the network.

    Args:
        location: None or `local` for this machine's own memory, else the path of a folder, `<org>/<name>` or
            `hf://datasets/<org>/<name>[@revision]` for a dataset on the Hub, or an `s3://`, `gs://` or `az://` address.
            The home of a whole `FUNES_HOME`, which holds the tables in `memory/`, is accepted as a folder too. An
            existing path wins over `<org>/<name>`.

    Raises:
        FunesError: for an address of another kind, or one that is not complete.

    Example:
        >>> resolve("acme/decisions").repo
        'acme/decisions'
        >>> resolve("hf://datasets/acme/decisions@v2").revision
        'v2'
    """
    if location is None or location in ("", LOCAL):
        return MemoryPlace(LOCAL, "local", memory_folder())
    scheme = _SCHEME.match(location)
    if scheme is not None:
        return _remote(location, scheme[1].lower(), location[scheme.end() :])
    folder = Path(os.path.expanduser(location))
    match = _REPO.fullmatch(location)
    if match is not None and not os.path.exists(folder):
        return _hub(location, match)
    if not os.path.isdir(folder / "chunks.lance") and os.path.isdir(folder / "memory" / "chunks.lance"):
        folder = folder / "memory"
    return MemoryPlace(location, "folder", folder)


def from_anywhere(location: str | None) -> str | None:
    """A location that means the same in every current folder: `<org>/<name>` as the address of the repository.

    An agent starts its server in whatever project it works on, and a project must not put a folder in the memory's
    place.
    """
    if location is not None and _REPO.fullmatch(location):
        return f"hf://datasets/{location}"
    return location


def place_name(place: MemoryPlace) -> str:
    """The one name of a memory for all spellings of its place.

    Returns:
        `local`, `<org>/<name>` without a revision, the address in a store, or the real path of a folder. It is no
        location: where a folder is called like a repository, `resolve` would take the name for that folder.
    """
    if place.kind == "hub":
        return place.repo
    if place.kind == "store":
        return place.url
    return LOCAL if place.folder is None or place.kind == LOCAL else os.path.realpath(place.folder)


def _remote(location: str, scheme: str, rest: str) -> MemoryPlace:
    if scheme in STORE_SCHEMES:
        path = re.sub("/{2,}", "/", rest).strip("/")
        if not path:
            raise FunesError(f"{location} names no bucket; write {scheme}://bucket/folder.")
        return MemoryPlace(location, "store", url=f"{scheme}://{path}")
    if scheme == "hf":
        match = _REPO.fullmatch(rest.removeprefix("datasets/").strip("/"))
        if match is None or not rest.startswith("datasets/"):
            raise FunesError(
                f"{location} is not the address of a dataset; write hf://datasets/<org>/<name>, with @<revision> "
                "behind it for another than the main branch."
            )
        return _hub(location, match)
    if scheme in ("http", "https"):
        raise FunesError(
            f"{location} is a web page; write <org>/<name> for a memory on the Hub, or an s3://, gs:// or az:// "
            "address."
        )
    raise FunesError(f"{location} is no place that funes reads; it knows paths, hf://, s3://, gs:// and az://.")


def _hub(location: str, match: re.Match[str]) -> MemoryPlace:
    revision = unquote(match[2] or "")
    if revision and (not _REVISION.fullmatch(revision) or ".." in revision):
        raise FunesError(f"{location} has no valid revision behind the @; write a branch, a tag or a commit there.")
    # The shortest that leads here again.
    short = location if os.path.exists(match[0]) else match[0]
    return MemoryPlace(short, "hub", repo=match[1], revision=revision)
