"""`models list` and `models pull`."""

from __future__ import annotations

import click

from funes.cli import options


@click.group(invoke_without_command=True)
@click.pass_context
def models(context: click.Context) -> None:
    """List or fetch the pinned models."""
    if context.invoked_subcommand is None:
        context.invoke(list_command)


@models.command("list")
@options.as_json
def list_command(as_json: bool = False) -> int:
    """Show the pinned models and where they are."""
    from funes.commands.models import list_models

    states = list_models()
    if as_json:
        from funes.ui.json_output import dumps

        click.echo(dumps({"models": states}), nl=False)
        return 0
    for state in states:
        where = (
            str(state.folder) if state.folder else f"not on this machine; `funes models pull {state.name}` fetches it"
        )
        click.echo(f"{state.name}  {state.model_id}  {state.size / 1e6:.0f} MB  {state.purpose}\n  {where}")
    return 0


@models.command("pull")
@click.argument("name", default="embedding")
def pull(name: str) -> int:
    """Fetch a model, once; its sha256 is checked whatever it comes from."""
    from funes.commands.models import pull_model
    from funes.ui.progress import terminal_progress

    shown = terminal_progress()
    try:
        state = pull_model(name, (lambda _, done, total: shown.model(done, total)) if shown else None)
    finally:
        if shown:
            shown.finish()
    click.echo(f"{state.model_id} is in {state.folder}")
    return 0
