"""The command line: commands and their options, nothing else.

One module for each group of commands, loaded when one of them runs; `funes --help` reads only the table below.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence

import click

from funes.errors import FunesError

COMMANDS = {
    "add": ("funes.cli.agents:add", "Give an agent the memory: tools and hooks."),
    "remove": ("funes.cli.agents:remove", "Take funes out of an agent."),
    "index": ("funes.cli.index:index", "Read agent sessions into the memory."),
    "recall": ("funes.cli.read:recall", "Find the passages that answer a question."),
    "ask": ("funes.cli.ask:ask", "Have an agent answer from recalled passages."),
    "get": ("funes.cli.read:get", "Show turns of a session, whole."),
    "sessions": ("funes.cli.read:sessions", "List the sessions in the memory."),
    "scan": ("funes.cli.read:scan", "Find an exact text in one session."),
    "status": ("funes.cli.read:status", "Say what the memory holds."),
    "push": ("funes.cli.sharing:push", "Publish the memory to the Hub, a store or a folder."),
    "bind": ("funes.cli.sharing:bind", "Let agents recall from a shared memory and publish to it."),
    "curate": ("funes.cli.curate:curate", "Choose which sessions of a repository are published."),
    "scrub": ("funes.cli.removing:scrub", "Remove credentials that today's rules find."),
    "forget": ("funes.cli.removing:forget", "Remove sessions for good."),
    "models": ("funes.cli.models:models", "List or fetch the pinned models."),
    "mcp": ("funes.cli.mcp:mcp", "Serve the memory to an agent over stdio."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the table, which is the order in which a user meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command; None when there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is asked for; a misspelt one is named together with the one it resembles."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib

            if close := difflib.get_close_matches(args[0], COMMANDS, 1):
                raise click.UsageError(f"{error.message.rstrip('.')} (did you mean '{close[0]}'?)", ctx) from error
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


@click.command(
    cls=LazyGroup,
    epilog="`funes COMMAND --help` lists a command's options. Results go to stdout, everything else to stderr.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--version", is_flag=True, help="Show the version and exit.")
def cli(version: bool) -> None:
    """A durable, local memory for coding agents: recall the passage itself from past sessions."""


def run(arguments: Sequence[str]) -> int:
    """Run a command line.

    Returns:
        The exit code that the command asks for.

    Raises:
        FunesError: for a fault that the user can mend, misspelt options included.
    """
    try:
        code = cli.main(args=list(arguments) or ["--help"], prog_name="funes", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 0
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "funes"
        sentence = error.format_message().strip().rstrip(".")
        raise FunesError(f"{sentence}; see `{path} --help`.") from error
    except click.ClickException as error:
        raise FunesError(error.format_message()) from error
    except click.Abort as error:
        raise KeyboardInterrupt from error
    return code if isinstance(code, int) else 0
