"""Messages in the shape of the OpenAI chat API, as Hermes and Hugging Face trace datasets keep them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from funes.traces.text import tool_input_text

_TEXT_KEYS = ("text", "input_text", "output_text", "refusal", "content")


@dataclass(slots=True)
class Content:
    """What a message's `content` holds.

    Attributes:
        text: its text parts, one after the other.
        thinking: its reasoning parts.
        media: number of images, sounds and files that were left out.
    """

    text: str = ""
    thinking: str = ""
    media: int = 0


@dataclass(slots=True)
class Call:
    """One tool call.

    Attributes:
        id: the call's id, which its result repeats; empty when it has none.
        name: the tool.
        input: the decoded arguments; a string when they are not JSON.
    """

    id: str
    name: str
    input: Any

    @property
    def text(self) -> str:
        """The arguments as text."""
        return tool_input_text(self.input)


def read_content(value: object) -> Content:
    """Read a message's content: a string, a list of parts, one part, or nothing.

    Args:
        value: the decoded JSON value; bytes are read as UTF-8.
    """
    content = Content()
    texts: list[str] = []
    thoughts: list[str] = []
    parts = list(value) if isinstance(value, (list, tuple)) else [value]
    # Parts nest at most a level or two in practice; a list is worked off instead of recursing into a hostile one.
    while parts:
        part = parts.pop(0)
        if isinstance(part, bytes):
            part = part.decode("utf-8", "replace")
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, Mapping):
            kind = str(part.get("type") or "")
            if kind in ("thinking", "reasoning"):
                thoughts.append(next((str(part[key]) for key in ("thinking", "text") if part.get(key)), ""))
                continue
            inner = next((part[key] for key in _TEXT_KEYS if part.get(key)), None)
            if inner is not None and not _is_media(kind):
                parts[:0] = list(inner) if isinstance(inner, (list, tuple)) else [inner]
            elif kind not in ("text", "input_text", "output_text", ""):
                content.media += 1
        elif isinstance(part, (list, tuple)):
            parts[:0] = list(part)
        elif part is not None:
            texts.append(str(part))
    content.text = "\n".join(text for text in texts if text)
    content.thinking = "\n".join(thought for thought in thoughts if thought)
    return content


def read_calls(value: object) -> list[Call]:
    """Read a message's `tool_calls`: a list of calls, one call, or either as JSON text.

    Raises:
        ValueError: it is text but not JSON.
    """
    for _ in range(2):  # written by some versions as JSON inside JSON
        if isinstance(value, (str, bytes)):
            value = _loads(value) if value.strip() else None
    items = list(value) if isinstance(value, (list, tuple)) else [value]
    return [_read_call(item) for item in items if isinstance(item, Mapping)]


def read_reasoning(message: Mapping[str, Any], content: Content) -> str:
    """Return a message's reasoning: the first of the fields that versions keep it in that is not blank."""
    for key in ("reasoning_content", "reasoning", "reasoningContent", "thinking"):
        text = message.get(key)
        if isinstance(text, (str, bytes)) and text.strip():
            return text if isinstance(text, str) else text.decode("utf-8", "replace")
    return _detailed_reasoning(message.get("reasoning_details")) or content.thinking


def _detailed_reasoning(value: object) -> str:
    if isinstance(value, (str, bytes)) and value.strip():
        try:
            value = _loads(value)
        except ValueError:
            return ""
    if not isinstance(value, (list, tuple)):
        return ""
    found = [item.get("text") or item.get("summary") for item in value if isinstance(item, Mapping)]
    return "\n".join(text for text in found if isinstance(text, str) and text.strip())


def _read_call(item: Mapping[str, Any]) -> Call:
    function = item.get("function")
    body: Mapping[str, Any] = function if isinstance(function, Mapping) else item
    value = next((body[key] for key in ("arguments", "input", "args") if body.get(key) is not None), None)
    if isinstance(value, (str, bytes)):
        text = value if isinstance(value, str) else value.decode("utf-8", "replace")
        try:
            value = _loads(text) if text.strip() else None
        except ValueError:
            value = text
    call_id = next((item[key] for key in ("id", "call_id", "tool_call_id") if item.get(key)), "")
    return Call(str(call_id), str(body.get("name") or ""), value)


def _loads(text: str | bytes) -> Any:
    try:
        return json.loads(text, strict=False)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _is_media(kind: str) -> bool:
    return any(word in kind for word in ("image", "audio", "video", "file", "document"))
