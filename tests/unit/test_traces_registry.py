from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from funes.traces import registry
from funes.traces.detect import detect, find_traces
from funes.traces.model import ReadReport

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "adding-a-harness.md"


def example(language: str) -> str:
    match = re.search(rf"```{language}\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert match
    return match[1]


def sample_trace() -> bytes:
    return GUIDE.read_text(encoding="utf-8").split("sessions/<id>.jsonl`:\n\n```\n")[1].split("```")[0].encode()


class Site:
    """A folder of installed packages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(self, name: str, module: str, code: str, points: str) -> None:
        (self.folder / f"{module}.py").write_text(code, encoding="utf-8")
        info = self.folder / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[funes.sources]\n{points}\n")
        registry.forget_sources()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)
    yield Site(folder)
    for name in set(sys.modules) - before:
        if name.startswith(("quill", "odd_")):
            del sys.modules[name]
    registry.forget_sources()


def test_the_example_of_the_guide_works_as_an_installed_package(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    point = re.search(r'sources"\]\n(.*)', example("toml"))
    assert point
    site.install("quill-traces", "quill_traces", example("python"), point[1].replace('"', ""))
    source = registry.source_named("quill")
    assert registry.source_problems() == []
    home = tmp_path / "quill"
    trace = home / "sessions" / "s-1.jsonl"
    trace.parent.mkdir(parents=True)
    trace.write_bytes(sample_trace())
    monkeypatch.setenv("QUILL_HOME", str(home))
    assert [path for root in source.roots() for path in source.files(root)] == [trace]
    assert detect(trace, registry.sources()) is source
    assert list(find_traces(tmp_path / "quill", registry.sources())) == [(trace, source)]
    report = ReadReport()
    pairs = list(source.read(trace, report))
    assert [(turn.uuid, turn.role, turn.origin, turn.blocks[0].type, turn.blocks[0].text) for _, turn in pairs] == [
        ("e1", "user", "human", "text", "why is the import slow?"),
        ("e2", "assistant", "agent", "text", "The table has no index."),
        ("e3", "assistant", "agent", "tool_use", '{"command": "ls"}'),
        ("e3:result", "tool", "tool", "tool_result", "app.py"),
    ]
    assert {(session.id, session.harness, session.workdir) for session, _ in pairs} == {("s-1", "quill", "/work/app")}
    with trace.open("ab") as stream:
        stream.write(b'{"id": "e4", "who": "person", "text": "thanks", "at": 1767323060}\n')
    later = list(source.read(trace, ReadReport(), report.resume))
    assert [(session.id, turn.blocks[0].text) for session, turn in later] == [("s-1", "thanks")]


def test_sources_that_cannot_be_used_are_reported_and_cost_nothing_else(site: Site):
    code = "class Incomplete:\n    name = harness = 'odd'\n\n"
    code += "class Raises:\n    def __init__(self):\n        raise OSError('no disk')\n"
    points = (
        "a = odd_traces:Incomplete\nb = odd_traces:Raises\nc = odd_traces:Missing\nd = odd_nowhere:X\ne = odd_traces"
    )
    site.install("odd", "odd_traces", code, points)
    assert next(iter(registry.sources())).name == "claude"
    problems = registry.source_problems()
    assert len(problems) == 5
    assert "has no roots, files, matches, stamp, read" in problems[0]
    assert "no disk" in problems[1]


def test_a_name_that_is_taken_stays_with_its_owner(site: Site):
    code = example("python").replace('"quill"\n', '"claude"\n', 1)
    site.install("quill-traces", "quill_traces", code, "claude = quill_traces:QuillSource")
    assert type(registry.source_named("claude")).__name__ == "ClaudeSource"
    assert ["its name is taken" in problem for problem in registry.source_problems()] == [True]
