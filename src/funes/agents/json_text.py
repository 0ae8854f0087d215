"""Changing one member of a JSON file and no other byte of it.

Agents and people lay their files out as they like; a file that is parsed and written again has lost that. So the file
is read for where its parts begin and end, and only the part is cut out or put in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from funes.agents import files

Key = str | int
_BLANK = re.compile(r"[ \t\r\n]*")
_PLAIN = re.compile(r"[^\s,\]}]+")
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_MARK = "\ufeff"


@dataclass(slots=True)
class Node:
    """A value and where it stands.

    Attributes:
        start, stop: its first character, and the one after its last.
        entries: for an object or array: name or number, where the entry begins (the name, for an object) and its value.
    """

    start: int
    stop: int = 0
    entries: list[tuple[Key, int, Node]] = field(default_factory=list)

    def get(self, key: Key) -> Node | None:
        """The value of the last entry with this name or number, which is the one that counts."""
        return next((node for name, _, node in reversed(self.entries) if name == key), None)


def load(path: Path) -> tuple[str, Any]:
    """Text and value of a JSON file; a missing or empty one is an empty text and None.

    Raises:
        FunesError: when it cannot be read or is not JSON.
    """
    data = files.read(path)
    if data is None or not data.strip():
        return "", None
    try:
        text = data.decode("utf-8")
        value = json.loads(text.removeprefix(_MARK))
        parse(text)
        return text, value
    except (ValueError, RecursionError) as error:
        where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise files.unfit(path, f"is not valid JSON{where}") from error


def parse(text: str) -> Node:
    """Find the parts of a text that `json.loads` accepts."""
    return _value(text, len(_MARK) if text.startswith(_MARK) else 0)


def without(text: str, path: Sequence[Key]) -> str:
    """Cut one entry out, with its comma; a text without it is returned as it is.

    Args:
        text: JSON.
        path: names and numbers that lead to the entry.
    """
    *above, key = path
    holder = find(parse(text), above)
    if holder is None:
        return text
    found = [number for number, (name, _, _) in enumerate(holder.entries) if name == key]
    for number in reversed(found):
        entries = holder.entries
        if number + 1 < len(entries):
            start, stop = entries[number][1], entries[number + 1][1]
        elif number:
            start, stop = entries[number - 1][2].stop, entries[number][2].stop
        else:
            start, stop = holder.start + 1, holder.stop - 1
        text = text[:start] + text[stop:]
    return text


def with_item(text: str, path: Sequence[Key], item: Any) -> str:
    """Put an item at the end of an array, laid out like the file around it.

    Args:
        text: JSON.
        path: names and numbers that lead to the array, which has to be there.
        item: the value.
    """
    array = find(parse(text), path)
    if array is None:
        raise KeyError(path)
    close = array.stop - 1
    if "\n" not in text:
        return text[:close] + (", " if array.entries else "") + json.dumps(item, ensure_ascii=False) + text[close:]
    outer = _indent(text, array.start)
    if array.entries:
        begin = array.entries[-1][2].stop
        inner = _indent(text, array.entries[-1][1])
        return text[:begin] + "," + _laid_out(item, inner) + text[begin:]
    return text[: array.start + 1] + _laid_out(item, outer + "  ") + "\n" + outer + text[close:]


def strip(path: Path, own: Iterable[Sequence[Key]], absent: Iterable[Sequence[Key]]) -> None:
    """Cut entries out of a file, and the objects and arrays that are empty then and had not been there.

    Args:
        path: the file; a missing one is left alone.
        own: names and numbers that lead to the entries; of several items of one array the last has to come first.
        absent: those that lead to objects and arrays to remove if they are empty, the deepest first; an empty path
            means the file.

    Raises:
        FunesError: when the file is not JSON or cannot be written.
    """
    before, value = load(path)
    if value is None:
        return
    text = before
    for entry in own:
        text = without(text, entry)
    for container in absent:
        node = find(parse(text), container)
        if node is None or node.entries or text[node.start] not in "{[":
            continue
        if not container:
            files.delete(path)
            return
        text = without(text, container)
    if text != before:
        files.write(path, text.encode("utf-8"))


def find(node: Node | None, path: Sequence[Key]) -> Node | None:
    """Follow names and numbers down, None where there is no such entry."""
    for key in path:
        node = node.get(key) if node else None
    return node


def positions(value: Any, is_own: Callable[[Any], bool]) -> Iterator[int]:
    """Numbers of a list's items that are funes's, the last first, so that cutting one out moves none to come."""
    if isinstance(value, list):
        yield from (number for number in range(len(value) - 1, -1, -1) if is_own(value[number]))


def _laid_out(item: Any, indent: str) -> str:
    text = json.dumps(item, ensure_ascii=False, indent=2)
    return "".join(f"\n{indent}{line}" for line in text.split("\n"))


def _indent(text: str, position: int) -> str:
    begin = text.rfind("\n", 0, position) + 1
    return text[begin : _skip(text, begin)] if _skip(text, begin) <= position else ""


def _skip(text: str, position: int) -> int:
    return _end(_BLANK, text, position)


def _end(what: re.Pattern[str], text: str, position: int) -> int:
    found = what.match(text, position)
    assert found is not None  # the text is JSON
    return found.end()


def _value(text: str, position: int) -> Node:
    node = Node(_skip(text, position))
    opening = text[node.start]
    if opening in "{[":
        _entries(text, node)
    else:
        node.stop = _end(_STRING if opening == '"' else _PLAIN, text, node.start)
    return node


def _entries(text: str, node: Node) -> None:
    closing = "}" if text[node.start] == "{" else "]"
    position = _skip(text, node.start + 1)
    while text[position] != closing:
        begin = position
        key: Key = len(node.entries)
        if closing == "}":
            position = _end(_STRING, text, begin)
            key = str(json.loads(text[begin:position]))
            position = _skip(text, position) + 1  # the colon
        value = _value(text, position)
        node.entries.append((key, begin, value))
        position = _skip(text, value.stop)
        if text[position] == ",":
            position = _skip(text, position + 1)
    node.stop = position + 1
