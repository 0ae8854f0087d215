"""Putting an entry into a YAML file, or taking one out, and changing no other byte of it.

Even a loader that keeps comments lays a file out anew when it writes it. So the file is read for where its parts stand,
the entry goes in or out as text, and the result counts only if it then says what it is meant to say.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from funes.agents import files

Key = str | int
_MARK = "\ufeff"


def load(path: Path) -> tuple[str, Any]:
    """Text and value of a YAML file; a missing one is an empty text and None.

    Raises:
        FunesError: when it cannot be read or is not YAML.
    """
    data = files.read(path)
    if data is None:
        return "", None
    from ruamel.yaml.error import YAMLError

    try:
        text = data.decode("utf-8")
        return text, parse(text)
    except (YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark is not None else ""
        raise files.unfit(path, f"is not valid YAML{where}") from error


def parse(text: str) -> Any:
    """The value of a text, in plain Python types."""
    from ruamel.yaml import YAML

    yaml = YAML(typ="safe", pure=True)
    yaml.allow_duplicate_keys = True  # the agent's loader allows them
    return yaml.load(text)


def add(text: str, path: Sequence[str], value: Any) -> tuple[str, str]:
    """Put an entry into a mapping, or an item into a list.

    Args:
        text: the file.
        path: names that lead to the entry. What is missing on the way is made; when the last name leads to a list, the
            value has to be a list, and goes to its beginning.
        value: of the entry.

    Returns:
        The new text, and the piece of it that is new; empty when the whole file had to be laid out anew, which keeps
        its comments.

    Raises:
        ValueError: when the file is laid out so that it cannot be done.
    """
    before = parse(text)
    wanted = _added(before, path, value)
    for piece, position in _places(text, path, value):
        new = text[:position] + piece + text[position:]
        if _means(new, wanted):
            return new, piece
    new = _laid_out_anew(text, path, wanted)
    if _means(new, wanted):
        return new, ""
    raise ValueError("no place for the entry")


def remove(text: str, path: Sequence[Key]) -> str:
    """Take an entry of a mapping or an item of a list out; a text without it is returned as it is.

    Args:
        text: the file.
        path: names and numbers that lead to it.

    Raises:
        ValueError: when the file is laid out so that it cannot be done.
    """
    wanted = _removed(parse(text), path)
    if wanted is _NOTHING:
        return text
    *above, key = path
    holder = _find(_compose(text), above)
    for start, stop in _spans(text, holder, key):
        new = text[:start] + text[stop:]
        if _means(new, wanted):
            return new
    raise ValueError("the entry cannot be cut out")


def cut(text: str, pieces: Sequence[str], wanted: Any) -> str | None:
    """Cut pieces out that were put in, if they are all there and the rest means what it should; else None.

    Args:
        text: the file.
        pieces: what `add` returned, in that order.
        wanted: what the rest has to say.
    """
    if not pieces:
        return text if _means(text, wanted) else None
    *earlier, piece = pieces  # a later one may stand inside an earlier one
    position = text.find(piece) if piece else -1
    while position >= 0:
        rest = cut(text[:position] + text[position + len(piece) :], earlier, wanted)
        if rest is not None:
            return rest
        position = text.find(piece, position + 1)
    return None


_NOTHING = object()


def _added(value: Any, path: Sequence[str], new: Any) -> Any:
    if not path:
        if value is None:
            return new
        if isinstance(value, list) and isinstance(new, list):
            return [*new, *value]
        raise ValueError("something else is there")
    mapping = {} if value is None else value
    if not isinstance(mapping, dict):
        raise ValueError(f"{path[0]} has no mapping around it")
    return {**mapping, path[0]: _added(mapping.get(path[0]), path[1:], new)}


def _removed(value: Any, path: Sequence[Key]) -> Any:
    """The value without the entry; a mapping or list that loses its last one is an empty one, or nothing at all."""
    key, *rest = path
    if isinstance(value, dict) and key in value:
        inner = _removed(value[key], rest) if rest else None
        if inner is _NOTHING:
            return _NOTHING
        return {name: inner if name == key else part for name, part in value.items() if rest or name != key}
    if isinstance(value, list) and isinstance(key, int) and key < len(value):
        inner = _removed(value[key], rest) if rest else None
        if inner is _NOTHING:
            return _NOTHING
        return [inner if number == key else part for number, part in enumerate(value) if rest or number != key]
    return _NOTHING


def _means(text: str, wanted: Any) -> bool:
    from ruamel.yaml.error import YAMLError

    try:
        return bool(_plain(parse(text)) == _plain(wanted))
    except (YAMLError, ValueError, RecursionError):
        return False


def _plain(value: Any) -> Any:
    """The value as it is compared: an entry that is empty says the same as one that is nothing."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()} or None
    if isinstance(value, list):
        return [_plain(part) for part in value] or None
    return value


def _compose(text: str) -> Any:
    from ruamel.yaml import YAML

    return YAML(typ="safe", pure=True).compose(text)


def _entries(node: Any) -> list[tuple[Any, Any, Any]]:
    """Key, key node and value node of each entry of a mapping; number, and the item twice, of a list."""
    kind = getattr(node, "id", "")
    if kind == "mapping":
        return [(key.value, key, value) for key, value in node.value]
    if kind == "sequence":
        return [(number, item, item) for number, item in enumerate(node.value)]
    return []


def _find(node: Any, path: Sequence[Key]) -> Any:
    for key in path:
        node = next((value for name, _, value in reversed(_entries(node)) if name == key), None)
    return node


def _places(text: str, path: Sequence[str], value: Any) -> list[tuple[str, int]]:
    """Where the entry might go: pieces and positions, the best first."""
    root = _compose(text)
    depth = 0
    node: Any = root
    above: Any = None
    while depth < len(path):
        found = next(((key, inner) for name, key, inner in reversed(_entries(node)) if name == path[depth]), None)
        if found is None:
            break
        above, node = found
        depth += 1
    missing = path[depth:]
    for name in reversed(missing[1:] if missing else ()):
        value = {name: value}
    line_end = "\r\n" if "\r\n" in text else "\n"
    if node is None or (node is root and getattr(node, "id", "") == "scalar"):
        return [(_break(text, line_end) + _block({missing[0]: value}, "", line_end), len(text))]
    entry = {missing[0]: value} if missing else value
    if getattr(node, "flow_style", False):
        # Flow style is JSON's, as far as it matters here.
        inner = json.dumps(entry, ensure_ascii=False)[1:-1]
        return [(inner + (", " if node.value else ""), node.start_mark.index + 1)]
    if node is root:
        first = text.rfind("\n", 0, node.start_mark.index) + 1
        block = _block(entry, "", line_end)
        return [(_break(text, line_end) + block, len(text)), (block, first)]
    below = _line_after(text, above.end_mark.index)
    column = above.start_mark.column + 2 if node.id == "scalar" else _column(text, node)  # a scalar: nothing, so far
    indent = " " * column
    return [((_break(text, line_end) if below == len(text) else "") + _block(entry, indent, line_end), below)]


def _column(text: str, node: Any) -> int:
    """Where the entries of a block stand in their lines; before the first of them may stand an anchor or a tag."""
    if node.id == "mapping":
        column: int = node.value[0][0].start_mark.column
        return column
    item = node.value[0].start_mark.index
    dash = len(text[:item].rstrip(" ")) - 1
    return dash - text.rfind("\n", 0, dash) - 1 if text[dash : dash + 1] == "-" else int(node.start_mark.column)


def _laid_out_anew(text: str, path: Sequence[str], wanted: Any) -> str:
    """The file as ruamel.yaml writes it, with the topmost entry on the path replaced by what it should be."""
    from io import StringIO

    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.allow_duplicate_keys = True
    yaml.width = 1 << 30
    document = yaml.load(text)
    holder, value = document, wanted
    for key in path[:-1]:
        value = value[key]
        if not isinstance(holder.get(key), dict):
            holder[key] = value
            break
        holder = holder[key]
    else:
        holder[path[-1]] = value[path[-1]]
    stream = StringIO()
    yaml.dump(document, stream)
    return stream.getvalue()


def _block(value: Any, indent: str, line_end: str) -> str:
    """A mapping or list in block style, with strings as JSON writes them."""
    lines: list[str] = []
    _lay_out(value, indent, lines)
    return "".join(line + line_end for line in lines)


def _lay_out(value: Any, indent: str, lines: list[str]) -> None:
    if isinstance(value, list):
        for item in value:
            begin = len(lines)
            _lay_out(item, indent + "  ", lines)
            lines[begin] = f"{indent}- {lines[begin].lstrip(' ')}"
        return
    if not isinstance(value, Mapping):
        lines.append(indent + json.dumps(value, ensure_ascii=False))
        return
    for key, inner in value.items():
        if isinstance(inner, (Mapping, list)) and inner and not _flat(inner):
            lines.append(f"{indent}{key}:")
            _lay_out(inner, indent + "  ", lines)
        else:
            lines.append(f"{indent}{key}: {json.dumps(inner, ensure_ascii=False)}")


def _flat(value: Any) -> bool:
    return isinstance(value, list) and not any(isinstance(item, (Mapping, list)) for item in value)


def _break(text: str, line_end: str) -> str:
    return "" if not text.removeprefix(_MARK) or text.endswith("\n") else line_end


def _line_after(text: str, position: int) -> int:
    found = text.find("\n", position)
    return len(text) if found < 0 else found + 1


def _spans(text: str, holder: Any, key: Key) -> list[tuple[int, int]]:
    """What might have to be cut out for an entry: starts and stops, the best first."""
    entries = _entries(holder)
    number = next((number for number, (name, _, _) in enumerate(entries) if name == key), None)
    if number is None:
        return []
    _, begin, value = entries[number]
    if getattr(holder, "flow_style", False):
        if number + 1 < len(entries):
            return [(begin.start_mark.index, entries[number + 1][1].start_mark.index)]
        before = entries[number - 1][2].end_mark.index if number else holder.start_mark.index + 1
        return [(before, value.end_mark.index)]
    start = text.rfind("\n", 0, begin.start_mark.index) + 1
    # A value that is nothing is said to stand wherever the next thing begins.
    end = _end(value) if value.start_mark.index < value.end_mark.index else begin.end_mark.index
    return [(start, _line_after(text, end))]


def _end(node: Any) -> int:
    """Where a value ends: before the line end that follows its last character."""
    if node.id != "scalar" and not getattr(node, "flow_style", False) and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    index: int = node.end_mark.index
    # A block of text (| or >) ends at the beginning of the next line.
    return index - 1 if node.id == "scalar" and node.style in ("|", ">") and node.end_mark.column == 0 else index
