"""Progress of long work in a terminal: files, passages, rate, time left. Nothing at all without one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

_TITLES = {
    "rules": "Compiling the rules that find credentials, once",
    "read": "Reading sessions",
    "vectors": "Making vectors (recall works already)",
    "scan": "Looking for credentials",
    "fetch": "Fetching the memory",
    "write": "Adding passages",
    "send": "Sending",
}
_UNITS = {"read": "files", "vectors": ""}


class TerminalProgress:
    """Shows one bar on stderr for the phase that runs; see `Progress` in `commands.indexing.report`.

    Args:
        console: where to draw.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._download: TaskID | None = None
        self._files = 0
        self._passages = 0
        self._unit = ""

    def start(self, phase: str, total: int) -> None:
        """Begin a phase: `read` counts bytes of traces, `vectors` counts passages."""
        self.finish()
        self._files, self._passages, self._unit = 0, 0, _UNITS.get(phase, "")
        known = None if phase == "rules" else max(total, 1)
        self._task = self._progress().add_task(_TITLES.get(phase, phase), total=known, done="")

    def advance(self, amount: int, *, files: int = 0, passages: int = 0) -> None:
        """Count work done: `amount` in the phase's unit, and the files and passages that it was."""
        if self._bar is None or self._task is None:
            return
        self._files += files
        self._passages += passages
        self._bar.update(self._task, advance=amount, done=self._done())

    def finish(self) -> None:
        """Take the bar away; what was done is in the summary."""
        if self._bar is not None:
            self._bar.stop()
        self._bar = self._task = self._download = None

    def say(self, sentence: str) -> None:
        """Show a sentence above the bar."""
        from funes.ui.safe import one_line

        (self._bar.console if self._bar else self._console).print(one_line(sentence))

    def model(self, done: int, total: int) -> None:
        """Show how many bytes of the model have been downloaded, and take the bar away with the last one."""
        if self._download is None:
            self._download = self._progress().add_task("Fetching the model", total=max(total, 1), done="")
        if self._bar is not None:
            self._bar.update(self._download, completed=done, done=f"{done / 1e6:.0f} of {total / 1e6:.0f} MB")
            if done >= total:
                self._bar.remove_task(self._download)
                self._download = None

    def _progress(self) -> Progress:
        if self._bar is None:
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=30),
                TaskProgressColumn("{task.percentage:>3.0f} %"),
                TextColumn("{task.fields[done]}", markup=False),
                TimeRemainingColumn(compact=True, elapsed_when_finished=True),
                console=self._console,
                transient=True,
                refresh_per_second=8,
            )
            self._bar.start()
        return self._bar

    def _done(self) -> str:
        """Files, passages and passages per second so far."""
        parts = [f"{self._files:,} {self._unit}"] if self._unit else []
        if self._passages:
            parts.append(f"{self._passages:,} passages")
            task = next((task for task in self._bar.tasks if task.id == self._task), None) if self._bar else None
            if task is not None and task.elapsed:
                parts.append(f"{self._passages / task.elapsed:,.0f}/s")
        return " · ".join(parts)


class LineProgress:
    """Where there is no terminal: a line on stderr for what could be taken for a standstill, and nothing else."""

    def start(self, phase: str, total: int) -> None:
        """Name the phase if it is such a one."""
        import sys

        if phase == "rules" and sys.stderr is not None:
            print(f"note: {_TITLES[phase]}; this takes seconds", file=sys.stderr, flush=True)

    def advance(self, amount: int, *, files: int = 0, passages: int = 0) -> None:
        """Ignore it."""

    def finish(self) -> None:
        """Ignore it."""

    def say(self, sentence: str) -> None:
        """Ignore it."""

    def model(self, done: int, total: int) -> None:
        """Ignore it."""


def terminal_or_lines() -> TerminalProgress | LineProgress:
    """Progress on stderr: a bar in a terminal, else lines."""
    return terminal_progress() or LineProgress()


def terminal_progress() -> TerminalProgress | None:
    """Progress on stderr when that is a terminal, None when it is not."""
    import sys

    if sys.stderr is None or not sys.stderr.isatty():
        return None
    from rich.console import Console

    return TerminalProgress(Console(stderr=True, markup=False, emoji=False, highlight=False))
