"""The adapter: loading, the cache of compiled rules, names, and what of the SDK is used at all."""

from __future__ import annotations

import ast
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

import funes
from funes import paths
from funes.secrets import gap_rules, kingfisher, ruleset, ruleset_id

pytest.importorskip("kingfisher_sdk")

SOURCE = Path(funes.__file__).parent
LOAD = """
from funes.secrets import kingfisher
kingfisher._BUILD_WAIT = 300.0
print(len(kingfisher.engine().names), kingfisher.engine()._rules.cache_status)
"""


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """An empty cache folder, and no engine loaded yet; the engine that this process has is put back afterwards."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(kingfisher, "_engine", None)
    monkeypatch.setattr(kingfisher, "_failure", "")
    _forget()
    yield tmp_path
    _forget()


def _forget() -> None:
    ruleset._catalogue_digest.cache_clear()
    kingfisher.version.cache_clear()


def test_nothing_that_validates_or_revokes_is_imported() -> None:
    names = set()
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kingfisher_sdk"):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.Import):
                assert not any(alias.name.startswith("kingfisher_sdk") for alias in node.names)
            elif isinstance(node, (ast.Name, ast.Attribute)):
                assert (node.id if isinstance(node, ast.Name) else node.attr) not in {"Validator", "Revoker"}
    assert names == {"Rules", "Scanner"}


def test_the_package_loads_without_the_engine() -> None:
    code = "import sys, funes.secrets; print('kingfisher_sdk' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=_environment())
    assert done.stdout == "False\n"


def test_two_processes_that_build_the_cache_at_once_both_get_it(tmp_path: Path) -> None:
    environment = _environment(XDG_CACHE_HOME=str(tmp_path))
    builders = [
        subprocess.Popen([sys.executable, "-c", LOAD], stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(2)
    ]
    outputs = sorted(builder.communicate(timeout=600)[0].split()[1] for builder in builders)
    assert outputs == ["loaded", "stored"]  # the second one waited for the first
    again = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True, check=True, env=environment)
    assert again.stdout.split()[1] == "loaded"
    (tmp_path / "funes" / "kingfisher" / "catalogue.json").write_text("damaged")
    code = "from funes.secrets import ruleset_id; print(ruleset_id())"
    first = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    second = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert first.stdout == second.stdout
    assert first.stdout.startswith("kf-")


def test_a_folder_that_cannot_be_written_is_no_obstacle(
    fresh: Path, monkeypatch: pytest.MonkeyPatch, loaded: kingfisher.Kingfisher
) -> None:
    (fresh / "funes").write_text("a file where the folder should be")
    asked: list[Path] = []

    def rules(confidence: str, cache_dir: Path) -> object:
        asked.append(cache_dir)
        return loaded._rules

    monkeypatch.setattr("kingfisher_sdk.Rules", rules)
    assert kingfisher.Kingfisher().names == loaded.names
    assert asked == [paths.cache_folder() / "kingfisher"]
    assert ruleset_id().startswith("kf-")
    assert (fresh / "funes").is_file()


@pytest.fixture(scope="module")
def loaded() -> kingfisher.Kingfisher:
    return kingfisher.engine()


def test_the_engine_is_loaded_once(loaded: kingfisher.Kingfisher) -> None:
    assert kingfisher.engine() is loaded
    assert len(loaded.catalogue()) >= kingfisher.FEWEST_RULES


def test_an_engine_that_does_not_load_is_reported_once(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []

    def broken(**options: object) -> object:
        tries.append(1)
        raise OSError("no such symbol")

    monkeypatch.setattr("kingfisher_sdk.Rules", broken)
    for _ in range(2):
        with pytest.raises(kingfisher.EngineUnavailableError, match="no such symbol"):
            kingfisher.engine()
    assert tries == [1]
    assert "no such symbol" in kingfisher.failure()
    assert not ruleset_id().startswith("kf-")


def test_a_catalogue_with_too_few_rules_is_refused(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kingfisher_sdk.Rules", lambda **options: [])
    monkeypatch.setattr("kingfisher_sdk.Scanner", lambda rules, **options: None)
    with pytest.raises(kingfisher.EngineUnavailableError, match="only 0 rules"):
        kingfisher.Kingfisher()


def test_a_missing_wheel_is_no_error_but_a_reason(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kingfisher.util, "find_spec", lambda name: None)
    with pytest.raises(kingfisher.EngineUnavailableError, match="not installed"):
        kingfisher.engine()
    assert kingfisher.version() == ""
    assert ruleset_id().startswith("gap-")


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        ("betterleaks.stripe-access-token", "stripe-access-token"),
        ("betterleaks.langfuse-secret-key.1", "langfuse-secret-key"),
        ("veles.secrets/sendgrid", "sendgrid"),
        ("custom.Some_Rule", "custom-some-rule"),
    ],
)
def test_rule_ids_become_names_for_markers(rule: str, name: str) -> None:
    assert kingfisher.marker_name(rule) == name


def test_of_the_helper_findings_only_the_secret_ones_count(loaded: kingfisher.Kingfisher) -> None:
    names = {kingfisher.marker_name(rule["id"]): rule["visible"] for rule in loaded._rules.metadata()}
    assert {name for name in kingfisher._SECRET_HELPERS if names.get(name)} == set()
    assert names.keys() >= kingfisher._SECRET_HELPERS


def test_the_id_names_engine_rules_and_mask() -> None:
    kingfisher_part, own, mask = ruleset_id().split("+")
    assert kingfisher_part.startswith(f"kf-{kingfisher.version()}-")
    assert own.startswith(f"gap-{gap_rules.GAP_VERSION}-")
    assert mask == "mask-1"


def test_the_id_is_read_from_the_cache_without_the_engine() -> None:
    expected = ruleset_id()
    code = (
        "import sys; from funes.secrets import ruleset_id; print(ruleset_id()); "
        "assert 'kingfisher_sdk' not in sys.modules, 'the engine was loaded'"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=_environment())
    assert done.stdout.strip() == expected


def test_the_id_changes_with_the_native_library(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = types.SimpleNamespace(catalogue=lambda: [{"id": "a"}])
    monkeypatch.setattr(kingfisher, "engine", lambda: engine)
    before = ruleset_id()
    ruleset._catalogue_digest.cache_clear()
    engine.catalogue = lambda: [{"id": "b"}]
    assert ruleset_id() == before  # kept on disk
    ruleset._catalogue_digest.cache_clear()
    monkeypatch.setattr(ruleset, "_native_stamp", lambda: "another build")
    assert ruleset_id() != before


def _environment(**changes: str) -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": str(SOURCE.parent), **changes}
