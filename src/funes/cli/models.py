"""`models list`, `pull`, `remove` and `use`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from funes.cli import options

if TYPE_CHECKING:
    from funes.commands.models import ModelState


@click.group(invoke_without_command=True)
@click.pass_context
def models(context: click.Context) -> None:
    """List, fetch, remove or choose the models."""
    if context.invoked_subcommand is None:
        context.invoke(list_command)


@models.command("list")
@options.as_json
def list_command(as_json: bool = False) -> int:
    """Show the models, where they are, and whether their bytes are the pinned ones."""
    from funes.commands.models import list_models

    states = list_models()
    if as_json:
        from funes.ui.json_output import dumps

        click.echo(dumps({"models": states}), nl=False)
        return 0
    for state in states:
        model = state.model_id or "a model of your own"
        size = f"  {state.size / 1e6:.0f} MB" if state.size else ""
        click.echo(f"{state.name}  {model}{size}  {state.purpose}\n  {_place(state)}")
    return 0


def _place(state: ModelState) -> str:
    """Where a model is, and what of it."""
    if state.folder is None:
        return f"not on this machine; `funes models pull {state.name}` fetches it"
    verdict = {
        "verified": "sha256 verified",
        "unchanged": "sha256 as when it was chosen",
        "changed": "not the bytes it should have, so it is not used",
        "absent": "gone",
    }[state.state]
    if state.state == "changed" and not state.model_id:
        verdict = "changed since it was chosen"
    return f"{state.folder}  ({state.source}, {verdict})"


@models.command("pull")
@click.argument("name", default="embedding")
def pull(name: str) -> int:
    """Fetch a model, once: `embedding` (the default) or `cross-encoder`.

    Its sha256 is checked whatever it comes from.
    """
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


@models.command("remove")
@click.argument("name")
def remove(name: str) -> int:
    """Delete a model's files; after `funes models use`, go back from your own folder instead, which stays as it is."""
    from funes.commands.models import remove_model

    removal = remove_model(name)
    for folder in removal.folders:
        click.echo(f"{removal.name}: {removal.size / 1e6:.0f} MB deleted from {folder}")
    if removal.forgotten:
        click.echo(f"{removal.name}: {removal.forgotten} is not used any more; its files are as they were")
    return 0


@models.command("use")
@click.argument("name")
@click.argument("folder", type=click.Path(path_type=Path))
def use(name: str, folder: Path) -> int:
    """Use a model of your own: `funes models use cross-encoder FOLDER`.

    FOLDER holds config.json, model.safetensors and tokenizer.json of a BertForSequenceClassification with one label.
    """
    from funes.commands.models import use_model

    state = use_model(name, folder)
    click.echo(f"{state.name}: {state.folder} is used from now on; `funes models remove {state.name}` takes it out")
    return 0
