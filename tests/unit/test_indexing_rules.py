"""Compiling the scanner's rules in view."""

from __future__ import annotations

import pytest

from funes.commands.indexing import rules
from funes.commands.indexing.report import NoProgress
from funes.secrets import kingfisher, ruleset


class Watched(NoProgress):
    """Remembers the phases."""

    def __init__(self):
        self.phases = []

    def start(self, phase, total):
        self.phases.append(phase)

    def finish(self):
        self.phases.append("finished")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache folder without compiled rules."""
    if not kingfisher.version():
        pytest.skip("Kingfisher is not installed")
    monkeypatch.setattr(kingfisher, "cache_folder", lambda: tmp_path)
    ruleset._catalogue_digest.cache_clear()
    yield tmp_path
    ruleset._catalogue_digest.cache_clear()


def test_the_phase_is_told_where_nothing_is_compiled_yet(cache, monkeypatch):
    compiled = []
    monkeypatch.setattr(kingfisher, "engine", lambda: compiled.append(True) or Catalogue())
    progress = Watched()
    rules.prepare_rules(progress)
    assert progress.phases == ["rules", "finished"]
    assert compiled
    (cache / "0123.vscdb").touch()
    assert ruleset.is_compiled()
    rules.prepare_rules(progress)
    assert progress.phases == ["rules", "finished"]


class Catalogue:
    """An engine of which nothing but its rules is wanted."""

    def catalogue(self):
        return [{"id": "one"}]


def test_compiled_rules_of_another_version_are_none(cache):
    assert not ruleset.is_compiled()
    (cache / "0123.vscdb").touch()
    for content in ("{", "[]", "{}", '{"key": "1.0 _native.so:1:2", "digest": "0"}'):
        (cache / "catalogue.json").write_text(content)
        assert not ruleset.is_compiled()


def test_without_progress_it_is_left_to_whoever_scans(cache, monkeypatch):
    monkeypatch.setattr(kingfisher, "engine", lambda: pytest.fail("compiled"))
    rules.prepare_rules(None)


def test_whoever_wants_to_end_does_not_wait(cache, monkeypatch):
    def unavailable():
        raise kingfisher.EngineUnavailableError("it does not load here")

    monkeypatch.setattr(kingfisher, "engine", unavailable)
    progress = Watched()
    rules.prepare_rules(progress, lambda: True)
    assert progress.phases == ["rules", "finished"]


def test_without_the_engine_there_is_nothing_to_compile(monkeypatch):
    monkeypatch.setattr(kingfisher, "version", lambda: "")
    assert ruleset.is_compiled()
