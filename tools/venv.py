"""Make the virtual environment `.venv`: `python3 tools/venv.py .venv`.

Runs on any Python from 3.6 on, so that one that is too old is told so in a sentence. Debian and Ubuntu ship `python3`
without `ensurepip` (their `python3-venv` package has it); the environment is then made without pip, and the machine's
own pip installs one into it.
"""

import os
import subprocess
import sys

OLDEST = (3, 11)


def main() -> int:
    """Create the environment and return the exit code."""
    target = sys.argv[1]
    if sys.version_info < OLDEST:
        version = ".".join(map(str, sys.version_info[:2]))
        sys.stderr.write(
            f"funes needs Python 3.11 or newer, and {sys.executable} is {version}; "
            "name a newer one, as in: make PYTHON=python3.12 demo\n"
        )
        return 1
    python = os.path.join(target, "bin", "python")
    if subprocess.call([sys.executable, "-m", "venv", target], stdout=subprocess.DEVNULL) == 0:
        return 0
    sys.stderr.write("The standard way failed (no ensurepip?); trying with the machine's own pip.\n")
    made = subprocess.call([sys.executable, "-m", "venv", "--without-pip", target]) == 0
    if made and subprocess.call([sys.executable, "-m", "pip", "-q", "--python", python, "install", "pip"]) == 0:
        return 0
    sys.stderr.write(
        f"Cannot make a virtual environment with {sys.executable}; "
        "install its venv package (python3-venv on Debian and Ubuntu).\n"
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
