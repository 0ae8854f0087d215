"""Compiling the rules of the secret scanner, in view: it takes seconds, once for each installation."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from funes.commands.indexing.report import Progress
from funes.secrets import kingfisher, ruleset

_LOOK_SECONDS = 0.2


def prepare_rules(progress: Progress | None, stop: Callable[[], bool] = lambda: False) -> None:
    """Compile the rules if this installation has not done so yet, and tell what takes so long.

    Args:
        progress: told about it; None to do nothing, since whoever scans compiles them, too.
        stop: says whether the user wants to end; what is compiled then is not waited for.
    """
    if progress is None or ruleset.is_compiled():
        return
    progress.start("rules", 0)
    thread = threading.Thread(target=_compile, daemon=True)
    thread.start()
    while thread.is_alive() and not stop():
        thread.join(_LOOK_SECONDS)
    progress.finish()


def _compile() -> None:
    with suppress(kingfisher.EngineUnavailableError):  # whoever scans says so
        kingfisher.engine()
        ruleset.ruleset_id()
