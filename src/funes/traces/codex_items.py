"""Items of a Codex conversation as text: message parts, tool calls, and the many shapes of a tool's output."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from funes.traces.text import tool_input_text

_TEXT_PARTS = frozenset(("input_text", "output_text", "text", "Text", "summary_text", "reasoning_text", "refusal"))
_IMAGE_PARTS = frozenset(
    ("input_image", "output_image", "image", "local_image", "localImage", "Image", "input_audio", "audio", "input_file")
)
_STATUS = re.compile(r"(?:(?:Chunk ID|Wall time|Process|Original token count|Exit code)[^\n]*\n)+Output:\n")
_RUNNING = re.compile(r"^Process running with session ID (\S+)", re.MULTILINE)


@dataclass(slots=True)
class Part:
    """One part of a message.

    Attributes:
        text: its text, empty for an image.
        kind: what the trace says about where the part came from (`user.text`), empty when it says nothing.
        image: whether it is an image or another attachment.
    """

    text: str
    kind: str = ""
    image: bool = False

    @property
    def from_program(self) -> bool:
        """Whether the trace itself says that the part of a user's message came from the program."""
        return self.kind not in ("", "unknown") and (not self.kind.startswith("user.") or self.kind == "user.heartbeat")


@dataclass(slots=True)
class Call:
    """A tool call: the tool's full name, its input as recorded, and the same as text."""

    name: str
    input: Any
    text: str


@dataclass(slots=True)
class Output:
    """A tool's output: its text, the number of images left out, and the id of the process that is still running."""

    text: str
    images: int = 0
    process: str = ""


def string(value: object) -> str:
    """Return the value when it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def mapping(value: object) -> dict[str, Any]:
    """Return the value when it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def message_parts(payload: dict[str, Any]) -> list[Part]:
    """Split a message's content, which is a string or a list of parts."""
    content = payload.get("content")
    if isinstance(content, str):
        return [Part(content, _kinds(payload, 1)[0])]
    if not isinstance(content, list):
        return []
    kinds = _kinds(payload, len(content))
    return [_part(part, kind) for part, kind in zip(content, kinds, strict=True)]


def _part(part: object, kind: str) -> Part:
    if isinstance(part, str):
        return Part(part, kind)
    fields = mapping(part)
    if string(fields.get("type")) in _IMAGE_PARTS:
        return Part("", kind, image=True)
    return Part(string(fields.get("text")) or string(fields.get("refusal")), kind)


def _kinds(payload: dict[str, Any], count: int) -> list[str]:
    kinds = mapping(payload.get("internal_chat_message_metadata_passthrough")).get("content_item_kinds")
    if not isinstance(kinds, list) or len(kinds) != count:
        return [""] * count
    return [string(kind) for kind in kinds]


def item_turn(payload: dict[str, Any]) -> str:
    """Return the id of the turn that an item says it belongs to, empty when it says nothing."""
    return string(mapping(payload.get("internal_chat_message_metadata_passthrough")).get("turn_id"))


def thinking_texts(payload: dict[str, Any]) -> list[str]:
    """Return the readable reasoning of an item: its summary, and its raw text when the provider gave it."""
    texts = ["\n\n".join(_strings(payload.get(key))) for key in ("summary", "content", "summary_text", "raw_content")]
    return list(dict.fromkeys(text for text in texts if text.strip()))


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        return []
    texts = [item if isinstance(item, str) else string(mapping(item).get("text")) for item in value]
    return [text for text in texts if text.strip()]


def call_of(payload: dict[str, Any]) -> Call | None:
    """Read any of the items that are tool calls; None for another item."""
    kind = payload.get("type")
    name = string(payload.get("name"))
    if kind == "function_call":
        if namespace := string(payload.get("namespace")):
            name = f"{namespace.rstrip('_')}__{name.lstrip('_')}"
        return _call(name, _decoded(payload.get("arguments")))
    if kind == "custom_tool_call":
        return _call(name, payload.get("input"))
    if kind == "local_shell_call":
        return _call("local_shell", payload.get("action"))
    if kind == "web_search_call":
        return _call("web_search", payload.get("action") or payload.get("query"))
    if kind == "tool_search_call":
        return _call("tool_search", _decoded(payload.get("arguments")))
    if kind == "image_generation_call":
        return _call("image_generation", payload.get("revised_prompt"))
    if kind == "mcp_tool_call":
        return _call(name or string(payload.get("tool")), _decoded(payload.get("arguments")))
    return None


def _call(name: str, value: object) -> Call:
    return Call(name, value, tool_input_text(value))


def _decoded(arguments: object) -> object:
    """Arguments are an object written as a string; a damaged one stays a string."""
    if not isinstance(arguments, str):
        return arguments
    try:
        value = json.loads(arguments, strict=False)
    except (ValueError, RecursionError):
        return arguments
    return value if isinstance(value, (dict, list)) else arguments


def output_of(value: object, depth: int = 8) -> Output:
    """Read a tool's output.

    Args:
        value: a string, a string holding JSON (`{"output": …, "metadata": …}` or a list of content items), a list of
            content items, or an object (`{"content": …}`, `{"output": …}`, `{"Ok": …}`).
        depth: how many more wrappers are looked into.
    """
    if depth == 0:
        return Output(tool_input_text(value))
    if isinstance(value, str):
        inner = _wrapped(value)
        if inner is None:
            running = _RUNNING.search(value, 0, 400)
            return Output(value, process=running[1] if running else "")
        value = inner
    if isinstance(value, list):
        if not all(isinstance(item, (str, dict)) for item in value):
            return Output(tool_input_text(value))
        return _joined([output_of(item, depth - 1) for item in value])
    if not isinstance(value, dict):
        return Output("" if value is None else tool_input_text(value))
    kind = string(value.get("type"))
    if kind in _IMAGE_PARTS:
        return Output("", images=1)
    if kind in _TEXT_PARTS and isinstance(value.get("text"), str):
        return Output(value["text"])
    for key in ("output", "content", "content_items", "Ok", "Err", "body", "result"):
        if value.get(key) not in (None, "", []):
            return output_of(value[key], depth - 1)
    if any(isinstance(value.get(key), str) for key in ("stdout", "stderr")):
        return Output("\n".join(text for key in ("stdout", "stderr") if (text := string(value.get(key)))))
    known = {"output", "content", "content_items", "metadata", "success", "is_error", "isError", "Ok", "Err", "body"}
    return Output("" if known.issuperset(value) else tool_input_text(value))


def _wrapped(text: str) -> object:
    """Value inside an output that is a JSON document made by Codex; None for a tool's own text, JSON or not."""
    start = text[:1]
    if start == "{" and not text.startswith(('{"output"', '{"content"', '{"metadata"')):
        return None
    if start == "[" and not text.startswith(('[{"type"', '[{"text"', '[{"annotations"')):
        return None
    if start not in ("{", "["):
        return None
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict):
        inside = "metadata" in value or "success" in value or (set(value) == {"content"})
        return value if inside and ("output" in value or "content" in value) else None
    types = [string(mapping(item).get("type")) for item in value]
    return value if types and all(kind in _TEXT_PARTS or kind in _IMAGE_PARTS for kind in types) else None


def _joined(outputs: list[Output]) -> Output:
    return Output("\n".join(o.text for o in outputs if o.text), sum(o.images for o in outputs))


def completed_output(recorded: str, complete: str) -> str:
    """Choose between the output the model got, which may be cut, and the complete one from the command's event.

    The lines Codex puts in front (exit code, time) are kept.
    """
    status = _STATUS.match(recorded)
    head = status[0] if status else ""
    return head + complete if len(complete) > len(recorded) - len(head) else recorded


def output_length(recorded: str) -> int:
    """Length of an output in characters, without the lines that Codex puts in front."""
    status = _STATUS.match(recorded)
    return len(recorded) - (status.end() if status else 0)


def command_output(event: dict[str, Any]) -> str:
    """Return the complete output that a command's closing event or item holds."""
    for key in ("aggregated_output", "aggregatedOutput", "formatted_output"):
        if text := string(event.get(key)):
            return text
    return "\n".join(text for key in ("stdout", "stderr") if (text := string(event.get(key))))
