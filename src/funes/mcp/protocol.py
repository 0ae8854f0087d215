"""The part of MCP that a tools-only stdio server needs: JSON-RPC messages, versions, the handshake.

Two eras are spoken. Up to 2025-11-25 a client opens with `initialize` and the version holds for the connection; from
2026-07-28 every request carries its version in `_meta`, `server/discover` may come first, and results say that they are
complete. Nothing heavy is imported here: an agent does not wait for a slow handshake, it goes on without the tools.
"""

from __future__ import annotations

import json
from typing import Any

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
ENVELOPE_VERSIONS = ("2026-07-28",)
BATCH_VERSIONS = ("2024-11-05", "2025-03-26")
"""Versions in which a line may hold several messages in an array."""

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
UNSUPPORTED_VERSION = -32022
_META_VERSION = "io.modelcontextprotocol/protocolVersion"
_META_SERVER = "io.modelcontextprotocol/serverInfo"

Message = dict[str, Any]


class RpcError(Exception):
    """An error that is answered as a JSON-RPC error object.

    Args:
        code: JSON-RPC error code.
        message: one sentence.
        data: details for the client's program, None for none.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


def parse(line: bytes) -> Any:
    """One line as JSON.

    Raises:
        RpcError: when it is not.
    """
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RpcError(PARSE_ERROR, "The line is not JSON.") from error


def encode(message: Any) -> bytes:
    """One message as one line; ASCII, so that no client takes a character of a text for a line end."""
    return json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"


def reply(identifier: Any, result: Message) -> Message:
    """A response."""
    return {"jsonrpc": "2.0", "id": identifier, "result": result}


def failure(identifier: Any, error: RpcError) -> Message:
    """An error response."""
    body: Message = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    return {"jsonrpc": "2.0", "id": identifier, "error": body}


def identifier_of(message: Any) -> Any:
    """The id to answer to; None when the message has none that can be answered."""
    identifier = message.get("id") if isinstance(message, dict) else None
    return identifier if isinstance(identifier, (str, int)) and not isinstance(identifier, bool) else None


def wants_answer(message: Any) -> bool:
    """Whether a message is to be answered, if only with an error: notifications and answers are not."""
    if not isinstance(message, dict) or "id" in message:
        return not (
            isinstance(message, dict) and "method" not in message and ("result" in message or "error" in message)
        )
    return not isinstance(message.get("method"), str)


def check_request(message: Any) -> tuple[str, Message]:
    """Method and parameters of a request or notification.

    Raises:
        RpcError: when it is neither.
    """
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or not isinstance(message.get("method"), str):
        raise RpcError(INVALID_REQUEST, "The message is no JSON-RPC 2.0 request.")
    if "id" in message and identifier_of(message) is None:
        raise RpcError(INVALID_REQUEST, "The id of a request has to be a string or an integer.")
    params = message.get("params")
    if params is not None and not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, "The parameters have to be an object.")
    return message["method"], params or {}


def envelope_version(params: Message) -> str | None:
    """The version that the request itself names; None for the handshake era.

    Raises:
        RpcError: when it names one that is not spoken here.
    """
    meta = params.get("_meta")
    version = meta.get(_META_VERSION) if isinstance(meta, dict) else None
    if version is None or version in HANDSHAKE_VERSIONS:
        return None
    if version not in ENVELOPE_VERSIONS:
        supported = [*HANDSHAKE_VERSIONS, *ENVELOPE_VERSIONS]
        details = {"supported": supported, "requested": version}
        raise RpcError(UNSUPPORTED_VERSION, f"Protocol version {version!r} is not supported.", details)
    return str(version)


def negotiate(requested: Any) -> str:
    """The version of a connection: the one asked for if it is spoken here, else the newest with a handshake."""
    return requested if requested in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]


def initialize_result(version: str, server: Message, instructions: str) -> Message:
    """The answer to `initialize`."""
    return {
        "protocolVersion": version,
        "capabilities": {"tools": {"listChanged": False}},
        "serverInfo": server,
        "instructions": instructions,
    }


def discover_result(server: Message, instructions: str) -> Message:
    """The answer to `server/discover`, without the fields of `completed`."""
    return {
        "_meta": {_META_SERVER: server},
        "supportedVersions": [*HANDSHAKE_VERSIONS, *ENVELOPE_VERSIONS],
        "capabilities": {"tools": {"listChanged": False}},
        "instructions": instructions,
    }


def completed(result: Message, *, cacheable: bool = False) -> Message:
    """A result with the fields that the envelope era adds.

    Args:
        result: the fields of either era.
        cacheable: whether the result is one that clients may keep: the tools do not change while the server runs.
    """
    extra: Message = {"resultType": "complete"}
    if cacheable:
        extra |= {"ttlMs": 3_600_000, "cacheScope": "private"}
    return extra | result
