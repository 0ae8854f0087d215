"""Checking a tool's arguments against its schema, with sentences a model can act on.

Models write numbers as strings, lists where one value is meant and null for what they leave out; what can only mean one
thing is taken as that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funes.errors import FunesError

_ALIASES = {"session_id": "session", "turn_uuid": "turn", "turn_id": "turn", "text": "literal", "types": "type"}
_ALWAYS_ALLOWED = {"memory": {"type": "string"}}
_WORDS = {"string": "a string", "integer": "an integer", "boolean": "true or false"}


def check_arguments(tool: str, schema: dict[str, Any], arguments: Any) -> dict[str, Any]:
    """The arguments in the types of the schema, without those that are null.

    Args:
        tool: its name, for the sentences.
        schema: a JSON schema of an object whose properties are strings, integers or booleans.
        arguments: what the client sent; None means none.

    Raises:
        FunesError: for an argument that is missing, unknown, or not what the schema says.
    """
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        raise FunesError(f"The arguments of {tool} have to be an object.")
    known: dict[str, Any] = schema["properties"]
    checked: dict[str, Any] = {}
    for given, value in arguments.items():
        name = given if given in known else _ALIASES.get(given, given)
        if name not in known and name not in _ALWAYS_ALLOWED:
            raise FunesError(f"{tool} has no argument {given[:80]!r}; it takes {', '.join(known) or 'none'}.")
        if value is not None:
            checked[name] = _value(tool, name, known.get(name) or _ALWAYS_ALLOWED[name], value)
    for name in schema.get("required", ()):
        if name not in checked:
            raise FunesError(f"{tool} needs the argument {name!r}, {_WORDS[known[name]['type']]}.")
    return checked


def _value(tool: str, name: str, schema: dict[str, Any], value: Any) -> Any:
    """One value in the type of its schema. What a facet may be is checked where the filter is made."""
    kind: str = schema["type"]
    try:
        found = _CONVERT[kind](value)
    except (TypeError, ValueError, OverflowError) as error:
        raise FunesError(f"{tool}: {name} has to be {_WORDS[kind]}, not {str(value)[:60]!r}.") from error
    return found


def _string(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(_string(item) for item in value)
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise TypeError
    # A lone surrogate can be written in JSON but not searched for or sent on.
    return str(value).encode("utf-8", "replace").decode()


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise TypeError
    number = float(value) if isinstance(value, str) else value
    if int(number) != number:
        raise ValueError
    return int(number)


def _boolean(value: Any) -> bool:
    if isinstance(value, str):
        value = {"true": True, "false": False}.get(value.lower())
    if not isinstance(value, bool):
        raise TypeError
    return value


_CONVERT: dict[str, Callable[[Any], Any]] = {
    "string": _string,
    "integer": _integer,
    "boolean": _boolean,
}
