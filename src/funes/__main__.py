"""Start: `funes …` and `python -m funes …`.

What has to be quick is decided here before anything is imported: an agent starts `funes mcp` at the beginning of every
session and does not wait for it, so that path goes around click.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence

from funes import __version__
from funes.errors import FunesError

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: without the program's name; those of the process when None.

    Returns:
        The exit code: 0 done, 1 an error (told in one sentence on stderr), 2 everything was held back, 3 nothing was
        found and `--fail-empty` was given, 130 interrupted.
    """
    if arguments is None and not sys.warnoptions and not os.environ.get("FUNES_DEBUG"):
        # Warnings of libraries are for developers; stderr is for what the user has to know.
        warnings.simplefilter("ignore")
    given = list(sys.argv[1:] if arguments is None else arguments)
    _write_utf8()
    try:
        code = _run(given)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return 1
    except FunesError as error:
        return _fault(error.message, error.exit_code)
    except Exception as error:
        # The last resort: whatever went wrong, a person or an agent reads one sentence and not a traceback.
        if os.environ.get("FUNES_DEBUG"):
            raise
        kind = type(error).__name__
        detail = " ".join(str(error).split())[:300]
        return _fault(f"Unexpected {kind}: {detail}; set FUNES_DEBUG=1 for the traceback.", 1)


def _run(arguments: list[str]) -> int:
    if arguments[:1] == ["--version"]:
        sys.stdout.write(f"funes {__version__}\n")
        return 0
    if arguments[:1] == ["mcp"] and (len(arguments) == 1 or (len(arguments) == 2 and not arguments[1].startswith("-"))):
        from funes.mcp.server import serve

        return serve(arguments[1] if len(arguments) == 2 else None)
    from funes.cli import run

    return run(arguments)


def _fault(sentence: str, code: int) -> int:
    try:
        sys.stderr.write(f"funes: {sentence}\n")
        sys.stderr.flush()
    except OSError:
        pass  # Nobody reads it; the exit code still tells.
    return code


def _write_utf8() -> None:
    """UTF-8 in pipes, since the agent format has characters outside ASCII; in a terminal the best that fits."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            if stream.isatty():
                stream.reconfigure(errors="replace")
            else:
                stream.reconfigure(encoding="utf-8", errors="replace")


def _drop_output() -> None:
    """The reader of stdout has left: what is still buffered must not raise at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


if __name__ == "__main__":
    sys.exit(main())
