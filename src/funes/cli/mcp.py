"""`mcp`: the server an agent starts."""

from __future__ import annotations

import click


@click.command()
@click.argument("memory", required=False)
def mcp(memory: str | None) -> int:
    """Serve a memory to an agent over stdin and stdout (MCP). Agents start this.

    MEMORY is a place as for `recall --memory`; without it the local memory is served.
    """
    from funes.mcp.server import serve

    return serve(memory)
