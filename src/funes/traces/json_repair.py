"""Decoding JSON text that a crash, a redaction tool or a careless writer has left in a bad state."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")
_BACKSLASH = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})?')
_OBJECT = re.compile(r'\{\s*"')
_RECORD_KEYS = frozenset(("timestamp", "uuid", "sessionId", "leafUuid", "payload", "parentId", "record_type"))
_UNKNOWN_COST = 64 * 2**10
_LEAST_COST = 256
_DECODER = json.JSONDecoder(strict=False)
_LENIENT = json.JSONDecoder(strict=False, parse_int=lambda digits: int(digits) if len(digits) < 400 else float(digits))

IsRecord = Callable[[dict[str, Any]], bool]


def decode(text: str) -> Any:
    """Decode a JSON value, raw control characters in its strings included.

    Raises:
        ValueError: it is not JSON, or has an integer of thousands of digits.
        RecursionError: it is nested too deeply.
    """
    return _DECODER.decode(text)


def recover(text: str, error: ValueError, is_record: IsRecord | None = None) -> tuple[list[Any], str]:
    """Read what can be read of a line that does not decode: glued records, records behind a torn one.

    Args:
        text: the line.
        error: what `decode` raised.
        is_record: whether an object inside the line is a whole record rather than a part of a torn one; by default,
            whether it has a type (or role) and one of the keys that only records have.

    Returns:
        The values found, and what was lost or changed, empty when nothing was.
    """
    is_torn = isinstance(error, json.JSONDecodeError) and error.msg != "Extra data"
    if not isinstance(error, json.JSONDecodeError):
        # An integer of thousands of digits.
        with contextlib.suppress(ValueError, RecursionError):
            return [_LENIENT.decode(text)], ""
    elif "escape" in error.msg and (repaired := _with_escapes_repaired(text)) is not None:
        return [repaired], "an invalid escape sequence was taken literally"
    is_record = is_record or _looks_like_record
    text = _Line(text)
    found: list[Any] = []
    # The object at the beginning of a torn line has been tried.
    position, clean = (1, False) if is_torn else (0, True)
    # An unterminated string is scanned to the end of the line for each candidate: bound the sum.
    budget = 32 * len(text) + 2**20
    while budget > 0 and (match := _OBJECT.search(text, position)):
        clean = clean and not text[position : match.start()].strip()
        value, end = _try_decode(text, match.start())
        budget -= max(end - match.start(), _LEAST_COST)
        if value is not None and (clean or (_stands_alone(text, end) and is_record(value))):
            found.append(value)
            position = end
        else:
            clean = False
            position = match.end() if value is None else end
    if found and clean and not text[position:].strip():
        return found, ""
    kept = f"; {len(found)} record{'s' * (len(found) > 1)} on it could be read" if found else ""
    return found, f"not JSON{kept}"


def sanitize(value: Any) -> Any:
    """Replace lone surrogates, which cannot be encoded as UTF-8, by U+FFFD in every string of a JSON value, in place.

    Returns:
        The value; a new one only where it is itself a string.
    """
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    # A stack of our own: the decoder accepts deeper nesting than a recursive walk would survive.
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            for key in [key for key in node if _SURROGATE.search(key)]:
                node[_SURROGATE.sub("\ufffd", key)] = node.pop(key)
            items: Any = node.items()
        elif isinstance(node, list):
            items = enumerate(node)
        else:
            continue
        for key, item in list(items):
            if isinstance(item, str):
                if _SURROGATE.search(item):
                    node[key] = _SURROGATE.sub("\ufffd", item)
            elif isinstance(item, (dict, list)):
                stack.append(item)
    return value


def may_hold_surrogates(line: bytes) -> bool:
    """Whether decoding a line may give strings that `sanitize` changes."""
    return b"\\ud" in line or b"\\uD" in line


def _with_escapes_repaired(text: str) -> Any:
    """Decode with a backslash that begins no valid escape read as itself (a tool that redacts leaves such); or None."""
    try:
        return _LENIENT.decode(_BACKSLASH.sub(lambda match: match[0] if match[1] else "\\\\", text))
    except (ValueError, RecursionError):
        return None


def _looks_like_record(value: dict[str, Any]) -> bool:
    return ("type" in value or "role" in value or "record_type" in value) and not _RECORD_KEYS.isdisjoint(value)


def _stands_alone(text: str, end: int) -> bool:
    """Whether what follows an object cannot be the rest of an object around it."""
    return text[end : end + 64].lstrip()[:1] not in (",", "]", "}", ":") or not text[end : end + 64].strip()


def _try_decode(text: str, start: int) -> tuple[dict[str, Any] | None, int]:
    """Return the object at `start` and where it ends; else None and how far the decoder looked."""
    try:
        try:
            value, end = _DECODER.raw_decode(text, start)
        except json.JSONDecodeError:
            raise
        except ValueError:
            value, end = _LENIENT.raw_decode(text, start)
    except json.JSONDecodeError as error:
        return None, len(text) if error.msg.startswith("Unterminated") else error.pos
    except (ValueError, RecursionError):
        return None, start + _UNKNOWN_COST
    return (value, end) if isinstance(value, dict) else (None, end)


class _Line(str):
    """A single line, which answers at once what a decoding error asks: how many lines there are before the fault.

    With many candidates on a long line, counting again for each of them takes hours.
    """

    __slots__ = ()

    def count(self, *_: Any) -> int:
        return 0

    def rfind(self, *_: Any) -> int:
        return -1
