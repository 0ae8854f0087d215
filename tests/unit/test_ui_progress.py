from __future__ import annotations

import io

from rich.console import Console

from funes.commands.indexing.report import NoProgress, Progress
from funes.ui.progress import LineProgress, TerminalProgress, terminal_or_lines, terminal_progress


def watched() -> tuple[TerminalProgress, Console]:
    out = Console(file=io.StringIO(), width=120, force_terminal=True, markup=False, highlight=False)
    return TerminalProgress(out), out


def test_it_shows_files_passages_and_rate():
    progress, out = watched()
    as_protocol: Progress = progress
    as_protocol.start("read", 1000)
    progress.advance(0, passages=1500)
    progress.advance(500, files=3)
    progress._bar.refresh()
    progress.say("one [bold]sentence[/bold]\x1b[2J")
    progress.start("vectors", 10)
    progress.advance(5, passages=5)
    progress._bar.refresh()
    progress.finish()
    text = out.file.getvalue()
    assert "Reading sessions" in text
    assert "3 files · 1,500 passages · " in text
    assert "50 %" in text
    assert "one [bold]sentence[/bold]" in text
    assert "\x1b[2J" not in text
    assert "Making vectors (recall works already)" in text


def test_a_download_has_a_bar_of_its_own():
    progress, out = watched()
    progress.model(45_000_000, 91_000_000)
    progress._bar.refresh()
    progress.model(91_000_000, 91_000_000)
    progress.start("vectors", 3)
    progress.finish()
    progress.finish()
    assert "Fetching the model" in out.file.getvalue()
    assert "45 of 91 MB" in out.file.getvalue()


def test_sizes_that_are_not_known_do_no_harm():
    progress, _ = watched()
    progress.advance(3)
    progress.start("read", 0)
    progress.advance(3, files=1)
    progress.model(5, 0)
    progress.finish()


def test_without_a_terminal_there_is_nothing():
    assert terminal_progress() is None
    silent: Progress = NoProgress()
    silent.say("nothing")


def test_compiling_the_rules_is_named_and_has_no_percentage():
    progress, out = watched()
    progress.start("rules", 0)
    progress._bar.refresh()
    progress.finish()
    text = out.file.getvalue()
    assert "Compiling the rules that find credentials, once" in text
    assert "%" not in text


def test_without_a_terminal_a_line_says_what_takes_long(capsys):
    progress: Progress = LineProgress()
    for phase in ("rules", "read"):
        progress.start(phase, 0)
        progress.advance(1, files=1)
        progress.say("nothing")
        progress.model(1, 2)
        progress.finish()
    captured = capsys.readouterr()
    assert captured.err == "note: Compiling the rules that find credentials, once; this takes seconds\n"
    assert captured.out == ""
    assert isinstance(terminal_or_lines(), LineProgress)
