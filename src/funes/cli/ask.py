"""`ask`: an agent's answer, drawn from the memory."""

from __future__ import annotations

import sys

import click

from funes.cli import options
from funes.commands.ask import DEFAULT_TIMEOUT, answer, parse_words, prepare
from funes.search.model import DEFAULT_K, RecallResult


@click.command()
@click.argument("words", nargs=-1, required=True, metavar='[AGENT] "QUESTION"')
@options.memory
@click.option("-k", "k", type=int, default=DEFAULT_K, show_default=True, help="Passages to hand to the agent.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=DEFAULT_TIMEOUT,
    show_default=True,
    metavar="SECONDS",
    help="Time for the agent.",
)
def ask(words: tuple[str, ...], memory: str | None, k: int, timeout: float) -> int:
    """Have an agent answer a question from recalled passages: `funes ask claude "why did we drop the cache"`.

    AGENT is claude, codex or pi; without it the first that is installed is asked. It runs without tools, MCP servers,
    hooks and a saved session. The sources follow its answer.
    """
    from funes.ui.answer import AnswerText, sources_text

    name, text = parse_words(words)
    question = prepare(name, text, memory, k=k, told=options.Fetching())
    options.tell(question.result.notes)
    hits, label = question.result.hits, question.label
    if question.agent is None:
        options.tell(["none of claude, codex and pi is on this machine, so these are the passages themselves"])
        _print_passages(question.result, label)
        return 0
    if sys.stderr.isatty():
        options.tell([f"asking {question.agent.name} about {len(hits)} passages"])
    shown = AnswerText()
    try:
        answer(question, lambda piece: click.echo(shown.piece(piece), nl=False), timeout=timeout)
    finally:
        click.echo(shown.end(), nl=False)
    click.echo(sources_text(hits, label), nl=False)
    return 0


def _print_passages(result: RecallResult, label: str) -> None:
    if options.for_person(None):
        from funes.ui.human import console, print_recall

        print_recall(console(), result, label)
    else:
        from funes.ui.agent import recall_text

        click.echo(recall_text(result, label), nl=False)
