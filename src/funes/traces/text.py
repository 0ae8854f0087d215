"""What the parsers share: times, tool calls as text, and recognising the output of funes's own tools."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

ASK_PROMPT = "Answer the question at the end from the passages below and from nothing else."
"""How the prompt of `funes ask` begins. A session that begins so repeats what is remembered, and is not indexed."""

_OWN_VERBS = "(?:recall|get|sessions|scan|status|ask)"
_OWN_TOOL = re.compile(r"(?:mcp_{1,2})?(?:plugin_)?(?:[a-z0-9-]+_{1,2})?funes[_.:/-]{1,2}\w+", re.IGNORECASE)
_OWN_MARKER = re.compile(r"""<untrusted_tool_result\s+source=["']?(?:mcp_{1,2})?(?:\w+_)?funes[_"'.]""")
_OWN_HIT = re.compile(r"^\s*→ get \S+ \S+", re.MULTILINE)
_OWN_COMMAND = re.compile(
    r"(?:^|[;&|({`\n]|\$\()\s*"  # where a command starts
    r"(?:\w+=\S*\s+|(?:sudo|time|nohup|command|exec|env|uvx|pipx\s+run|uv\s+run|poetry\s+run|timeout\s+\S+)\s+)*"
    r"(?:(?:\S*/)?python[\d.]*\s+-m\s+funes|(?:\S*/)?funes(?:-memory)?)\s+"
    rf"(?:-\S+\s+(?:(?!{_OWN_VERBS}\b)[^\s-]\S*\s+)?)*"  # options, some with a value
    rf"{_OWN_VERBS}\b"
)
_ESCAPE = re.compile(r"\\[\\nt]")
_READABLE = {"\\\\": "\\\\", "\\n": "\n", "\\t": "\t"}
_WRAPPERS = re.compile(r"""^(?:(?:\S*/)?(?:bash|zsh|sh)\s+-l?i?c\s+)["']?""")


def parse_time(value: object) -> datetime | None:
    """Read a trace's time as an aware UTC datetime; None when it is none.

    Args:
        value: an ISO 8601 string (without an offset it is UTC), or an epoch in seconds, milliseconds (above 1e11),
            microseconds (above 1e14) or nanoseconds (above 1e17), as a number or in digits.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return _from_epoch(float(value) if abs(value) < 1e21 else 0.0)
    if not isinstance(value, str) or not 8 <= len(value) <= 64:
        return None
    value = value.strip()
    try:
        if value[:1].isdigit() and value.replace(".", "", 1).isdigit() and len(value) != 8:
            return _from_epoch(float(value))
        time = datetime.fromisoformat(value)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _from_epoch(seconds: float) -> datetime | None:
    for limit, scale in ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3)):
        if seconds > limit:
            seconds /= scale
            break
    # Not a number, before 1980 and after 2200: a counter or a duration rather than a time.
    if not 315532800.0 <= seconds <= 7258118400.0:
        return None
    return datetime.fromtimestamp(seconds, UTC)


def tool_input_text(value: object) -> str:
    """Write a tool call's input as text.

    A string stays as it is. Everything else becomes JSON in which line ends and tabs inside strings are raw rather than
    escaped, so that code and commands read, split and match like code; `json.loads(text, strict=False)` reads it back.

    Args:
        value: the decoded JSON value of the call's arguments.
    """
    if isinstance(value, str):
        return value
    if value is None or value == {}:
        return ""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return ""
    if "\\n" in text or "\\t" in text:
        text = _ESCAPE.sub(lambda match: _READABLE[match[0]], text)
    return text


def is_own_tool(name: str, namespace: str = "") -> bool:
    """Whether a tool is one of funes's, in any harness's spelling.

    Args:
        name: the tool's name (`mcp__funes__recall`, `mcp_funes_get`, `funes_recall`, or `recall` in a namespace).
        namespace: the tool's namespace, for harnesses that keep it apart.
    """
    full = f"{namespace.rstrip('_')}__{name}" if namespace else name
    return _OWN_TOOL.fullmatch(full) is not None


def is_own_command(command: object) -> bool:
    """Whether a shell command prints what funes remembers (`funes recall …`, `cd x && /opt/bin/funes get …`).

    Args:
        command: the command line, or its list of arguments.
    """
    if isinstance(command, list):
        command = " ".join(part for part in command if isinstance(part, str))
    if not isinstance(command, str) or "funes" not in command:
        return False
    return _OWN_COMMAND.search(_WRAPPERS.sub("", command.strip())) is not None


def is_own_output(name: str, output: str, call_input: object = None, namespace: str = "") -> bool:
    """Whether a tool's output is a recollection of funes's, which must not be remembered a second time.

    Args:
        name: the tool's name, empty when unknown.
        output: what the tool returned.
        call_input: the call's arguments; a shell command is looked for under `command`, `cmd` and `script`.
        namespace: the tool's namespace, for harnesses that keep it apart.
    """
    if is_own_tool(name, namespace) or _OWN_MARKER.match(output.lstrip()[:200]):
        return True
    if name in ("recall", "get") and _OWN_HIT.search(output):
        return True
    if isinstance(call_input, dict):
        return any(is_own_command(call_input.get(key)) for key in ("command", "cmd", "script"))
    return is_own_command(call_input)
