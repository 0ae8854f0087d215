"""Sessions of the TypeScript Codex (0.1.25xx): one JSON document, `{"session": {…}, "items": […]}`."""

from __future__ import annotations

import json
import re
from io import BufferedReader
from pathlib import Path
from typing import Any

from funes.traces.codex_items import mapping
from funes.traces.jsonl import sanitize
from funes.traces.model import ReadReport

_START = re.compile(rb'\s*(?:\xef\xbb\xbf)?\s*\{\s*"session"\s*:\s*\{')
_MEMBER = re.compile(r'"(session|items)"\s*:\s*')
_MAX_SIZE = 256 * 2**20
_DECODER = json.JSONDecoder(strict=False)


def starts_document(start: bytes) -> bool:
    """Whether a file that begins with these bytes is such a document."""
    return _START.match(start) is not None


def is_document(stream: BufferedReader, path: Path) -> bool:
    """Whether an opened file is such a document rather than lines of records."""
    start = stream.peek(256)
    if starts_document(start):
        return True
    if path.suffix != ".json":
        return False
    line = start.lstrip().partition(b"\n")[0].strip()
    return not (line.startswith(b"{") and line.endswith(b"}") and b'"items"' not in line)


def read_document(stream: BufferedReader, report: ReadReport) -> dict[str, Any]:
    """Read the document; of a damaged one, its session and the items in front of the damage.

    Args:
        stream: the document.
        report: `records` counts the items; `damaged` or `failed` say what is lost.

    Returns:
        An object with `session` and `items`; empty when there is nothing to read.
    """
    data = stream.read(_MAX_SIZE + 1)
    if len(data) > _MAX_SIZE:
        report.failed = f"it is one JSON document of more than {_MAX_SIZE // 2**20} MB"
        return {}
    text = data.decode("utf-8-sig", "replace").replace("\x00", "")
    try:
        value = mapping(json.loads(text, strict=False))
    except (ValueError, RecursionError):
        value = _salvage(text)
        if value:
            report.damage(f"the document is damaged behind its item {len(value['items'])}")
    if not isinstance(value.get("items"), list):
        report.failed = "it is not a session in one JSON document"
        return {}
    report.records += len(value["items"])
    return mapping(sanitize(value))


def _salvage(text: str) -> dict[str, Any]:
    session: dict[str, Any] = {}
    items: list[dict[str, Any]] = []
    for member in _MEMBER.finditer(text):
        if member[1] == "session":
            session = session or mapping(_value(text, member.end())[0])
        elif text.startswith("[", member.end()):
            item, position = _value(text, member.end() + 1)
            while isinstance(item, dict):
                items.append(item)
                item, position = _value(text, position)
            break
    return {"session": session, "items": items} if session or items else {}


def _value(text: str, position: int) -> tuple[Any, int]:
    """Return the value at a position, and where it ends; None when there is none."""
    while position < len(text) and text[position] in " \t\r\n,":
        position += 1
    try:
        return _DECODER.raw_decode(text, position)
    except (ValueError, RecursionError):
        return None, position
