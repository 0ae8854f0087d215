"""Render the example sessions: `python examples/build.py` rewrites them, `--check` only compares.

Everything in the rendered files follows from `examples/source`: ids are hashes, times are computed. So the same scripts
give the same bytes on every machine, and a test holds the committed files to that.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from rendering import claude, codex, hermes, pi, script  # noqa: E402

MODULES = {"claude": claude, "codex": codex, "pi": pi, "hermes": hermes}


def rendered() -> dict[str, str]:
    """Every file of the examples: path below `examples/` to content."""
    scripts = {s.slug: s for s in map(script.load, sorted((HERE / "source").glob("*.txt")))}
    files: dict[str, str] = {}
    for one in scripts.values():
        for path, text in MODULES[one.header["harness"]].Renderer(one, scripts).render().items():
            path = f"sessions/{path}"
            files[path] = files.get(path, "") + text
    files["questions.jsonl"] = questions(scripts)
    return files


def questions(scripts: dict[str, script.Script]) -> str:
    """Write the questions with the session's id in place of its name.

    Raises:
        ValueError: an answer that no text contains, or a first one that the named session does not.
    """
    lines = []
    for line in (HERE / "source" / "questions.jsonl").read_text(encoding="utf-8").splitlines():
        fields = json.loads(line)
        one = scripts[fields.pop("slug")]
        for position, answer in enumerate(fields["answers"]):
            places = [one] if position == 0 else scripts.values()
            if not any(answer in text for s in places for step in s.steps for text in (step.body, step.output)):
                raise ValueError(f"no step of {one.slug} contains {answer!r}")
        module = MODULES[one.header["harness"]]
        known_by = claude.agent_id(one) if "subagent-of" in one.header else module.session_id(one)
        lines.append(json.dumps({"session": known_by, **fields}, ensure_ascii=False) + "\n")
    return "".join(lines)


def committed() -> set[str]:
    """Paths of the rendered files that lie below `examples/` now."""
    found = {p.relative_to(HERE).as_posix() for p in (HERE / "sessions").rglob("*") if p.is_file()}
    return found | {"questions.jsonl"}


def main() -> int:
    """Write or compare; returns the exit code."""
    files = rendered()
    stale = committed() - files.keys()
    changed = {p for p, text in files.items() if not (HERE / p).is_file() or (HERE / p).read_bytes() != text.encode()}
    if "--check" in sys.argv[1:]:
        for path in sorted(stale | changed):
            sys.stderr.write(f"examples/{path} is not what its script gives; run python examples/build.py\n")
        return 1 if stale | changed else 0
    for path in stale:
        (HERE / path).unlink()
    for path in changed:
        (HERE / path).parent.mkdir(parents=True, exist_ok=True)
        (HERE / path).write_bytes(files[path].encode())
    sys.stdout.write(f"{len(files)} files, {len(changed)} written, {len(stale)} removed\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
