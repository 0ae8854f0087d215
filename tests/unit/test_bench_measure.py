"""What the benchmarks say a command cost is that command's, not that of the program which measures it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from measure import run

MEGABYTES = 200


def test_what_the_caller_holds_is_not_the_commands_peak(tmp_path: Path) -> None:
    ballast = bytearray(b"x") * (MEGABYTES << 20)
    cost = run([sys.executable, "-I", "-S", "-c", "pass"], tmp_path)
    assert len(ballast) > cost.peak > 0


def test_what_the_command_holds_is_its_peak(tmp_path: Path) -> None:
    cost = run([sys.executable, "-I", "-S", "-c", f"len(bytearray(b'x') * ({MEGABYTES} << 20))"], tmp_path)
    assert cost.peak > MEGABYTES << 20
    assert cost.cpu > 0


def test_output_stdin_and_variables_pass_through(tmp_path: Path) -> None:
    code = "import os, sys; print(os.environ['FUNES_HOME'] == sys.argv[1], os.environ['MORE'], sys.stdin.read())"
    cost = run([sys.executable, "-c", code, str(tmp_path)], tmp_path, stdin=b"given", MORE="more")
    assert cost.output.split() == ["True", "more", "given"]


def test_much_on_stderr_holds_nobody_up(tmp_path: Path) -> None:
    cost = run([sys.executable, "-c", "import sys; sys.stderr.write('x' * 1_000_000); print('done')"], tmp_path)
    assert cost.output.strip() == "done"


@pytest.mark.parametrize("watch", [False, True])
def test_a_command_that_fails_has_no_figure(tmp_path: Path, watch: bool) -> None:
    with pytest.raises(SystemExit, match=r"ended with 3: .*wrong"):
        run([sys.executable, "-c", "import sys; sys.stderr.write('wrong'); sys.exit(3)"], tmp_path, watch=watch)
    with pytest.raises(SystemExit, match="no-such-program"):
        run(["/no-such-program"], tmp_path, watch=watch)
