"""`funes index` in a process of its own, slowed down and cut into small steps so that it can be killed in the middle.

Run as `python -m tests.support.index_process PATH [steps]`; prints a line when each phase begins, and the outcome.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from funes.commands import index as command
from funes.commands.indexing import pool, reading, vectors, words
from funes.memory.identity import newest_version
from funes.memory.schema import VECTORS
from funes.models import encoder
from funes.models.codes import BYTES
from funes.secrets import Redaction

HOLD = "hold"
"""Name of a file in the home during whose existence the run stays at the point that the file names."""

STORED = "stored"
"""The point after a part of the words was stored."""

ENCODING = "encoding"
"""The point before a text is encoded."""

EMBEDDED = "embedded"
"""The point before a text is encoded, once there are vectors in the memory."""

REPOSITORY = Path(__file__).parents[2]


class FakeEncoder:
    """Vectors that depend on the text alone, and a record of every text that was encoded."""

    model_id = "fake"

    def __init__(self, log: Path | None = None, pause: float = 0.0) -> None:
        self.log = log
        self.pause = pause

    def encode_passages(self, texts: Sequence[str], with_codes: bool = True) -> encoder.PassageEncodings:
        digests = [hashlib.sha256(text.encode()).digest() for text in texts]
        if self.log is not None:
            with self.log.open("a") as stream:
                stream.writelines(digest.hex() + "\n" for digest in digests)
        time.sleep(self.pause)
        if self.log is not None:
            stay(self.log.parent, ENCODING)
            if newest_version(self.log.parent / "memory", VECTORS):
                stay(self.log.parent, EMBEDDED)
        dense = np.array([np.frombuffer(digest * 12, np.uint8) for digest in digests], np.float32) - 127.5
        dense /= np.linalg.norm(dense, axis=1, keepdims=True)
        codes = [np.frombuffer(digest * 2, np.uint8)[:BYTES].reshape(1, BYTES) for digest in digests]
        pieces = [np.array([digest[0]], np.uint16) for digest in digests]
        return encoder.PassageEncodings(dense, codes if with_codes else None, pieces)


class NoRedactor:
    """Finds nothing."""

    missing_engine = ""

    def redact(self, text: str) -> Redaction:
        return Redaction(text)


class PhaseMarks(command.NoProgress):
    """Prints the name of each phase as it begins."""

    def start(self, phase: str, total: int) -> None:
        print(phase, flush=True)


def hold(home: Path, point: str) -> None:
    """Have the run of a home stay at a point until `release`."""
    (home / HOLD).write_text(point)


def release(home: Path) -> None:
    """Let the run of a home go on."""
    (home / HOLD).unlink()


def stay(home: Path, point: str) -> None:
    """Wait, when the run is to stay at this point."""
    while True:
        try:
            if (home / HOLD).read_text() != point:
                return
        except FileNotFoundError:
            return
        time.sleep(0.02)


def start(path: Path, home: Path, *, processes: bool = False, pause: float = 0.0) -> subprocess.Popen[str]:
    """Start an index run in a process of its own.

    Args:
        path: what to index.
        home: `FUNES_HOME`.
        processes: whether traces are read by worker processes.
        pause: seconds to wait after each step of either phase.
    """
    environment = {
        **os.environ,
        "FUNES_HOME": str(home),
        "TEST_PAUSE": str(pause),
        "TEST_PROCESSES": str(int(processes)),
    }
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.index_process", str(path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
        env=environment,
    )


def outcome(process: subprocess.Popen[str]) -> dict[str, object]:
    """Wait for a run to end by itself and return what it reported."""
    output = process.communicate(timeout=300)[0]
    assert process.returncode in (0, 130), output
    return dict(json.loads(output.splitlines()[-1]))


def wait_for(process: subprocess.Popen[str], phase: str) -> bool:
    """Wait until a run begins a phase; False when it ends before."""
    assert process.stdout is not None
    return any(line.strip() == phase for line in iter(process.stdout.readline, ""))


def kill(process: subprocess.Popen[str]) -> None:
    """Kill a run as hard as possible."""
    process.send_signal(signal.SIGKILL)
    process.communicate()


def main() -> None:
    """Run."""
    pause = float(os.environ["TEST_PAUSE"])
    words.FIRST_ROWS = words.FLUSH_ROWS = 40
    vectors.WINDOW, vectors.STEP_CHARACTERS, vectors.COMMIT_SECONDS = 20, 1000, 0.0
    command.WAIT_SECONDS = 0.5
    # The engines take half a second to load, which is most of a run here; worker processes do load them.
    reading.Redactor, reading.ruleset_id = NoRedactor, lambda: "none"  # type: ignore[assignment,misc]
    pool.SMALL_RUN_BYTES = 0 if os.environ["TEST_PROCESSES"] == "1" else 1 << 40
    fake = FakeEncoder(Path(os.environ["FUNES_HOME"]) / "encoded.log", pause)
    encoder.load_encoder = lambda **_: fake  # type: ignore[assignment]
    flush = words.WordsPhase.flush

    def slow_flush(self: words.WordsPhase) -> None:
        flush(self)
        time.sleep(pause)
        stay(Path(os.environ["FUNES_HOME"]), STORED)

    words.WordsPhase.flush = slow_flush  # type: ignore[method-assign]
    report = command.run_index(command.IndexOptions(path=Path(sys.argv[1])), PhaseMarks())
    names = ("stored", "embedded", "waiting", "interrupted", "read", "notes")
    print(json.dumps({name: getattr(report, name) for name in names}))
    sys.exit(130 if report.interrupted else 0)


if __name__ == "__main__":
    main()
