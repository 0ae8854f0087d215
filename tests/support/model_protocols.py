"""The three protocols in which agents talk to models: requests read, replies written, as events or whole.

Anthropic Messages (Claude Code), OpenAI Responses (Codex) and OpenAI chat completions (pi, Hermes), as far as the
programs use them.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterator
from typing import Any

from tests.support.model_script import Request, Say, ToolCall

Event = tuple[str, Any]
"""Name of a server-sent event (empty: none) and its data."""

_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
_MCP_NAME = re.compile(r"mcp__[A-Za-z0-9_-]+__[A-Za-z0-9_-]+")
_CODEX_CONTEXT = ("<environment_context", "<user_instructions", "# AGENTS.md", "<hook")
PIECE = 24
"""Characters of a text in one event, so that a reader has to put it together."""


def text_of(content: Any) -> str:
    """The text of a message's content in any of its forms."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return content.get("text") or text_of(content.get("content") or content.get("output"))
    return "\n".join(filter(None, (text_of(part) for part in content or ())))


def read_messages(body: dict[str, Any]) -> Request:
    """A request of Anthropic Messages."""
    request = Request("messages", body, tools=[("", tool.get("name", "")) for tool in body.get("tools") or ()])
    everything = json.dumps([body.get("system"), body.get("messages")])
    request.deferred = sorted(set(_MCP_NAME.findall(everything)))
    for message in body.get("messages", ()):
        content = message.get("content")
        if message.get("role") != "user":
            continue
        results = [part for part in content if part.get("type") == "tool_result"] if isinstance(content, list) else []
        for part in results:
            _read_result(request, part.get("content"))
        if not results and (said := _REMINDER.sub("", text_of(content)).strip()):
            request.start_prompt(said)
    return request


def _read_result(request: Request, content: Any) -> None:
    """One tool result; that of a tool search makes tools callable and counts as no step of the script."""
    parts = content if isinstance(content, list) else []
    loaded = [part["tool_name"] for part in parts if isinstance(part, dict) and part.get("type") == "tool_reference"]
    if loaded:
        request.tools += [("", name) for name in loaded]
        request.searches += 1
    else:
        request.results.append(text_of(content))


def read_responses(body: dict[str, Any]) -> Request:
    """A request of OpenAI Responses."""
    request = Request("responses", body)
    for tool in body.get("tools") or ():
        if tool.get("type") == "namespace":
            request.tools += [(tool.get("name", ""), inner.get("name", "")) for inner in tool.get("tools", ())]
        else:
            request.tools.append(("", tool.get("name") or tool.get("type", "")))
    for item in body.get("input", ()):
        kind = item.get("type", "message")
        if kind == "message" and item.get("role") == "user":
            said = text_of(item.get("content")).strip()
            if said and not said.startswith(_CODEX_CONTEXT):
                request.start_prompt(said)
        elif kind in ("function_call_output", "custom_tool_call_output", "mcp_tool_call_output"):
            request.results.append(text_of(item.get("output")))
    return request


def read_chat(body: dict[str, Any]) -> Request:
    """A request of OpenAI chat completions."""
    tools = [("", (tool.get("function") or {}).get("name", "")) for tool in body.get("tools") or ()]
    request = Request("chat", body, tools=tools)
    for message in body.get("messages", ()):
        if message.get("role") == "user":
            request.start_prompt(text_of(message.get("content")))
        elif message.get("role") == "tool":
            request.results.append(text_of(message.get("content")))
    return request


def messages_whole(reply: ToolCall | Say, model: str) -> dict[str, Any]:
    """A reply of Anthropic Messages."""
    if isinstance(reply, ToolCall):
        block = {"type": "tool_use", "id": _id("toolu_"), "name": reply.name, "input": reply.arguments}
    else:
        block = {"type": "text", "text": reply.text}
    usage = {"input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    return {
        "id": _id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [block],
        "stop_reason": "tool_use" if isinstance(reply, ToolCall) else "end_turn",
        "stop_sequence": None,
        "usage": usage,
    }


def messages_events(reply: ToolCall | Say, model: str) -> Iterator[Event]:
    """The same as events."""
    whole = messages_whole(reply, model)
    (block,) = whole["content"]
    if block["type"] == "text":
        empty, deltas = (
            {**block, "text": ""},
            [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])],
        )
    else:
        empty = {**block, "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None},
            "usage": {"output_tokens": 5},
        },
        {"type": "message_stop"},
    ]
    for event in events:
        yield event["type"], event


def responses_whole(reply: ToolCall | Say, model: str) -> dict[str, Any]:
    """A reply of OpenAI Responses."""
    item: dict[str, Any]
    if isinstance(reply, ToolCall):
        item = {
            "type": "function_call",
            "id": _id("fc_"),
            "call_id": _id("call_"),
            "name": reply.name,
            "arguments": json.dumps(reply.arguments),
            "status": "completed",
        }
        if reply.namespace:
            item["namespace"] = reply.namespace
    else:
        item = {
            "type": "message",
            "id": _id("msg_"),
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": reply.text, "annotations": []}],
        }
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 15,
    }
    return {
        "id": _id("resp_"),
        "object": "response",
        "created_at": int(time.time()),
        "model": model,
        "status": "completed",
        "output": [item],
        "usage": usage,
    }


def responses_events(reply: ToolCall | Say, model: str) -> Iterator[Event]:
    """The same as events."""
    whole = responses_whole(reply, model)
    (item,) = whole["output"]
    begun = {**item, "status": "in_progress", **({"content": []} if "content" in item else {"arguments": ""})}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": [], "usage": None}},
        {"type": "response.output_item.added", "output_index": 0, "item": begun},
        *(
            {
                "type": "response.output_text.delta",
                "item_id": item["id"],
                "output_index": 0,
                "content_index": 0,
                "delta": piece,
            }
            for piece in (_pieces(reply.text) if isinstance(reply, Say) else ())
        ),
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]
    for number, event in enumerate(events):
        yield event["type"], {**event, "sequence_number": number}


def chat_whole(reply: ToolCall | Say, model: str) -> dict[str, Any]:
    """A reply of OpenAI chat completions."""
    message: dict[str, Any]
    if isinstance(reply, ToolCall):
        function = {"name": reply.name, "arguments": json.dumps(reply.arguments)}
        calls = [{"id": _id("call_"), "type": "function", "function": function}]
        message = {"role": "assistant", "content": None, "tool_calls": calls}
    else:
        message = {"role": "assistant", "content": reply.text}
    finish = "tool_calls" if isinstance(reply, ToolCall) else "stop"
    return {
        "id": _id("chatcmpl-"),
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }


def chat_events(reply: ToolCall | Say, model: str) -> Iterator[Event]:
    """The same as events."""
    whole = chat_whole(reply, model)
    (choice,) = whole["choices"]
    message = choice["message"]
    if isinstance(reply, ToolCall):
        deltas = [{**message, "tool_calls": [{**call, "index": 0} for call in message["tool_calls"]]}]
    else:
        deltas = [{"role": "assistant", "content": piece} for piece in _pieces(reply.text)]
    base = {key: whole[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    for delta in deltas:
        yield "", {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield "", {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
    yield "", {**base, "choices": [], "usage": whole["usage"]}
    yield "", "[DONE]"


def _pieces(text: str) -> list[str]:
    return [text[start : start + PIECE] for start in range(0, len(text), PIECE)] or [""]


def _id(prefix: str) -> str:
    return prefix + uuid.uuid4().hex[:20]
