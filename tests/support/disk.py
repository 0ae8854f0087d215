"""What can be read from the files of a folder, the compressed ones of Lance included."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def files_with(folder: Path, needle: str) -> list[str]:
    """Names of the files below a folder from which a text can be read, upper and lower case alike.

    Lance compresses what it stores, so that looking at bytes says nothing: every column of each of its files is
    decoded, those of its indexes too. (What stays closed is the automaton in which its words index keeps the words.)
    """
    wanted = needle.lower()
    found = []
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        raw = path.read_bytes().lower()
        if wanted.encode() in raw or (path.suffix == ".lance" and any(wanted in text for text in _texts(path))):
            found.append(str(path.relative_to(folder)))
    return found


def _texts(path: Path) -> list[str]:
    from lance.file import LanceFileReader

    rows = LanceFileReader(str(path)).read_all().to_table()
    return [text for column in rows.columns for value in column.to_pylist() for text in _strings(value)]


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value.lower()]
    if isinstance(value, bytes):
        return [value.decode("utf-8", "replace").lower()]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [text for item in value for text in _strings(item)]
    return []
