"""How a command line starts, fails and ends."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from funes import __version__
from funes.__main__ import main
from funes.cli import COMMANDS
from funes.errors import FunesError

SOURCE = Path(__file__).parents[2] / "src"
HEAVY = "{'numpy', 'pyarrow', 'lance', 'tokenizers', 'rich', 'huggingface_hub', 'kingfisher_sdk', 'sqlite3', 'asyncio'}"


def start(code: str, **options) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return subprocess.run(
        [sys.executable, "-c", code], env=env, text=True, capture_output=True, timeout=600, check=False, **options
    )


@pytest.fixture
def broken(monkeypatch):
    """Make `funes status` raise what the test wants."""

    def broken(error):
        def status(memory):
            raise error

        monkeypatch.setattr("funes.commands.status.status", status)

    return broken


def test_version_and_help(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"funes {__version__}\n"
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(re.search(rf"^  {name} +\S", shown, re.MULTILINE) for name in COMMANDS)
    assert main([]) == 0
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(capsys, name):
    assert main([name, "--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"Usage: funes {name}")
    assert COMMANDS[name][1]


@pytest.mark.parametrize(
    "arguments", ["['--help']", "['--version']", "['recall', '--help']", "['index', '--help']", "['mcp', '--help']"]
)
def test_help_loads_nothing_heavy(arguments):
    code = f"import sys; from funes.__main__ import main; main({arguments}); print({HEAVY} & set(sys.modules))"
    assert start(code).stdout.endswith("\nset()\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["recal"], "No such command 'recal' (did you mean 'recall'?); see `funes --help`."),
        (["xyz"], "No such command 'xyz'; see `funes --help`."),
        (["recall"], "Missing argument 'QUERY...'; see `funes recall --help`."),
        (["recall", "--no-such-option", "x"], "see `funes recall --help`."),
        (["recall", "-k", "few", "x"], "'few' is not a valid integer"),
        (["recall", "--rerank", "magic", "x"], "'magic' is not one of 'cross-encoder', 'late', 'off'"),
        (["models", "push"], "No such command 'push'; see `funes models --help`."),
        (["index", "/no/such/folder"], "There is nothing at"),
    ],
)
def test_a_wrong_command_line_is_one_sentence_and_exit_code_1(capsys, arguments, said):
    assert main(arguments) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert re.fullmatch(r"funes: [^\n]+\n", captured.err)


def test_a_funes_error_is_its_sentence_and_its_code(capsys, broken):
    broken(FunesError("All of it was held back.", exit_code=2))
    assert main(["status"]) == 2
    assert capsys.readouterr().err == "funes: All of it was held back.\n"


def test_anything_unexpected_is_one_sentence_unless_asked_for(capsys, broken, monkeypatch):
    broken(KeyError("a\nb"))
    monkeypatch.delenv("FUNES_DEBUG", raising=False)
    assert main(["status"]) == 1
    assert capsys.readouterr().err == "funes: Unexpected KeyError: 'a\\nb'; set FUNES_DEBUG=1 for the traceback.\n"
    monkeypatch.setenv("FUNES_DEBUG", "1")
    with pytest.raises(KeyError):
        main(["status"])


def test_an_interruption_is_quiet(capsys, broken):
    broken(KeyboardInterrupt())
    assert main(["status"]) == 130
    captured = capsys.readouterr()
    assert (captured.out, captured.err.strip()) == ("", "")


def test_a_reader_that_leaves_early_is_no_error():
    code = (
        "import click, sys, funes.commands.status as status\n"
        "def endless(memory):\n"
        "    while True: click.echo('x' * 1000)\n"
        "status.status = endless\n"
        "from funes.__main__ import main\n"
        "sys.exit(main(['status']))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.read(100)
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait(600) == 1
    assert errors == b""


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_pipes_get_utf8_whatever_the_locale(encoding):
    code = (
        "import click, sys, funes.commands.status as status\n"
        "from funes.errors import FunesError\n"
        "def odd(memory):\n"
        "    click.echo('  → get')\n"
        "    raise FunesError('→ \\ud800')\n"
        "status.status = odd\n"
        "from funes.__main__ import main\n"
        "sys.exit(main(['status']))\n"
    )
    env = {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONIOENCODING": encoding}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, timeout=600, check=False)
    assert done.stdout.decode("utf-8") == "  → get\n"
    assert done.stderr.decode("utf-8") == "funes: → ?\n"
    assert done.returncode == 1


def test_models_are_listed_and_pulled(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("FUNES_MODELS", str(tmp_path))
    assert main(["models"]) == 0
    assert "not on this machine; `funes models pull embedding` fetches it" in capsys.readouterr().out
    assert main(["models", "list", "--json"]) == 0
    models = json.loads(capsys.readouterr().out)["models"]
    assert [(model["name"], model["folder"], model["state"]) for model in models] == [
        ("embedding", None, "absent"),
        ("cross-encoder", None, "absent"),
    ]
    assert main(["models", "pull", "gpt-17"]) == 1
    assert "no pinned model 'gpt-17'" in capsys.readouterr().err


def test_pulling_a_model_says_where_it_is(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("funes.models.fetch.ensure", lambda model, progress: tmp_path)
    monkeypatch.setattr("funes.models.fetch.find", lambda model: tmp_path)
    assert main(["models", "pull"]) == 0
    assert capsys.readouterr().out == f"sentence-transformers/all-MiniLM-L6-v2 is in {tmp_path}\n"
