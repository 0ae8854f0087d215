"""`mcp`: the server an agent starts."""

from __future__ import annotations

import click


@click.command()
@click.argument("memory", required=False)
def mcp(memory: str | None) -> int:
    """Serve a memory to an agent over stdin and stdout (MCP). Agents start this; `funes mcp` reads the local memory."""
    from funes.mcp.server import serve

    return serve(memory)
