"""Which files of a table belong to the version that is open."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any

from funes.errors import CorruptMemoryError
from funes.memory.identity import manifest_version

VERSIONS = "_versions"
DELETIONS = "_deletions"


def newest_manifest(paths: Iterable[str], table: str) -> str:
    """The path of a table's newest manifest among the paths of a repository, empty when it has none."""
    manifests = {}
    for path in paths:
        parts = PurePosixPath(path).parts
        if len(parts) == 3 and parts[:2] == (table, VERSIONS) and (version := manifest_version(parts[2])):
            manifests[version] = path
    return manifests[max(manifests)] if manifests else ""


def live_paths(dataset: Any, table: str, paths: Iterable[str]) -> list[str]:
    """Paths of what the open version needs, its manifest apart.

    The dataset may consist of its manifest alone: nothing else is read.

    Args:
        dataset: the open version.
        table: the table's folder in the repository.
        paths: everything that the repository has, which tells the names of an index's files.

    Returns:
        Paths that start with the table's folder. They may be missing in `paths`, in which case the table is damaged.

    Raises:
        CorruptMemoryError: for a table that refers to files outside its folder.
    """
    needed = []
    for fragment in dataset.get_fragments():
        for file in fragment.data_files():
            _stay_inside(table, file.path, file.base_id)
            needed.append(f"{table}/data/{file.path}")
        if deletion := fragment.deletion_file():
            name = PurePosixPath(deletion).name
            _stay_inside(table, name, None)
            needed.append(f"{table}/{DELETIONS}/{name}")
    present = list(paths)
    for index in dataset.describe_indices():
        for segment in index.segments:
            _stay_inside(table, str(segment.uuid), segment.base_id)
            folder = f"{table}/_indices/{segment.uuid}/"
            needed += [path for path in present if path.startswith(folder)]
    return list(dict.fromkeys(needed))


def _stay_inside(table: str, path: str, base: int | None) -> None:
    if base is not None or path.startswith("/") or ".." in PurePosixPath(path).parts or "://" in path:
        raise CorruptMemoryError(f"{table} refers to files that lie elsewhere, which a shared memory may not.")
