"""`status` as `name: value` lines, for agents and terminals alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from funes.ui.agent import shown_time
from funes.ui.reasons import decided_first
from funes.ui.safe import one_line

if TYPE_CHECKING:
    from rich.console import Console

    from funes.ui.views import HookRun, StatusReport, TraceProblem, TraceTotals

PROBLEMS_SHOWN = 20
COUNTS_SHOWN = 12
_ALARMING = ("problem", "push failed", "held back", "would be held back")
_TYPES = ("text", "thinking", "summary", "tool_use", "tool_result")


def status_lines(report: StatusReport) -> list[tuple[str, str]]:
    """Names and values, in the order in which a reader wants them. A name can come several times."""
    from funes.ui.sharing_text import standing_lines

    held = report.statistics
    copies = f" and {held.copies:,} copies of passages in further sessions" if held.copies else ""
    lines = [
        ("memory", f"{held.label} ({held.where})"),
        ("sessions", f"{held.sessions:,}"),
        ("passages", f"{held.passages:,}{copies}"),
    ]
    for harness in {**held.sessions_by_harness, **held.passages_by_harness}:
        sessions, passages = held.sessions_by_harness.get(harness, 0), held.passages_by_harness.get(harness, 0)
        lines.append(("harness", f"{harness or '-'}: {sessions:,} sessions, {passages:,} passages"))
    lines.append(("tiers", _tiers(held.passages_by_type)))
    lines.append(("vectors", f"{held.embedded:,} made, {held.waiting:,} waiting{_waiting(held.waiting_by_type)}"))
    lines.append(("turns from", f"{shown_time(held.first_ts)} to {shown_time(held.last_ts)}"))
    lines.append(("last indexed", shown_time(held.last_indexed)))
    lines.append(("model", _model(report)))
    lines.append(("ruleset", counts(held.rulesets) or "none"))
    sizes = {"text": held.bytes_text, "vectors": held.bytes_vectors, "indexes": held.bytes_indexes}
    lines.append(("disk", ", ".join(f"{part} {megabytes(size)}" for part, size in sizes.items())))
    lines += [("writing now", writer) for writer in report.writers]
    lines += [("note", note) for note in report.notes]
    lines += _hooks(report.last_hook, report.failed_hook)
    for standing in report.sharing:
        lines += standing_lines(standing)
    if report.sharing and not held.passages and report.sharing[0].unreadable:
        lines = lines[:1] + [line for standing in report.sharing for line in standing_lines(standing)]
    elif report.traces is None:
        lines.append(("traces", "not known on this machine"))
    else:
        lines += _traces(report.traces)
    return [(name, one_line(value)) for name, value in lines]


def status_text(report: StatusReport) -> str:
    """The lines as text."""
    return "".join(f"{name}: {value}\n" for name, value in status_lines(report))


def print_status(out: Console, report: StatusReport) -> None:
    """Print the lines in two columns."""
    from rich.text import Text

    lines = status_lines(report)
    width = max(len(name) for name, _ in lines)
    previous = ""
    for name, value in lines:
        text = Text(f"{'' if name == previous else name:<{width}}  ", style="bold")
        text.append(value, style="yellow" if name in _ALARMING else "not bold")
        out.print(text)
        previous = name


def status_json(report: StatusReport) -> dict[str, Any]:
    """Everything, as a document."""
    from dataclasses import asdict

    held = asdict(report.statistics)
    label, folder = held.pop("label"), held.pop("where")
    return {
        "memory": label,
        "folder": folder,
        **held,
        "model": report.model,
        "model_folder": report.model_folder,
        "writers": report.writers,
        "notes": report.notes,
        "sharing": [asdict(standing) for standing in report.sharing],
        "hooks": {
            "last_success": asdict(report.last_hook) if report.last_hook else None,
            "last_error": asdict(report.failed_hook) if report.failed_hook else None,
        },
        "traces": asdict(report.traces) if report.traces else None,
    }


def counts(numbers: Mapping[str, int], limit: int = COUNTS_SHOWN) -> str:
    """`name 1,234, other 5`, the first `limit` of them and the sum of the rest; a single one more is shown, too."""
    limit += len(numbers) == limit + 1
    parts = [f"{name or '-'} {number:,}" for name, number in list(numbers.items())[:limit]]
    if rest := list(numbers.values())[limit:]:
        parts.append(f"{len(rest)} other kinds {sum(rest):,}")
    return ", ".join(parts)


def megabytes(size: int) -> str:
    """Bytes as megabytes, or kilobytes when that is little."""
    return f"{size / 1e6:,.1f} MB" if size >= 100_000 else f"{size / 1e3:,.1f} KB"


def problem_lines(problems: Iterable[TraceProblem], limit: int = PROBLEMS_SHOWN) -> list[str]:
    """One line for each trace that was skipped or partly read, and one for those past the limit."""
    listed = list(problems)
    lines = []
    for problem in listed[:limit]:
        more = f" (and {len(problem.reasons) - 3} more)" if len(problem.reasons) > 3 else ""
        what = "skipped" if problem.failed else "partly read"
        lines.append(f"{what}: {problem.path}: {'; '.join(problem.reasons[:3])}{more}")
    if len(listed) > limit:
        lines.append(f"and {len(listed) - limit:,} more traces; `funes status --json` names them all")
    return lines


def _hooks(last: HookRun | None, failed: HookRun | None) -> list[tuple[str, str]]:
    lines = []
    if last:
        lines.append(("last hook", f"{last.time} {last.harness} {last.event}: {last.stored:,} passages stored"))
    if failed:
        mended = " (it has worked since)" if last and last.time > failed.time else ""
        lines.append(("hook failed", f"{failed.time} {failed.harness} {failed.event}{mended}: {failed.error}"))
    return lines


def _traces(totals: TraceTotals) -> list[tuple[str, str]]:
    fates = [
        f"{totals.stored:,} stored",
        f"{totals.copies:,} stored by another session",
        f"{totals.known:,} already there",
    ]
    lines = [
        ("traces", f"{totals.traces:,} read: {totals.records:,} records, {totals.turns:,} turns"),
        ("parsed", f"{totals.parsed:,} passages: {', '.join(fates)}"),
    ]
    if totals.skipped:
        lines.append(("left out", counts(decided_first(totals.skipped))))
    if totals.redactions:
        lines.append(("redacted", counts(totals.redactions)))
    return lines + [("problem", line) for line in problem_lines(totals.problems)]


def _tiers(by_type: Mapping[str, int]) -> str:
    ordered = {name: by_type[name] for name in _TYPES if name in by_type}
    return counts(ordered | {name: number for name, number in by_type.items() if name not in ordered}) or "none"


def _waiting(by_type: Mapping[str, int]) -> str:
    return f" ({_tiers(by_type)})" if any(by_type.values()) else ""


def _model(report: StatusReport) -> str:
    where = "on this machine" if report.model_folder else "not on this machine; `funes models pull` fetches it"
    others = [name for name in report.statistics.models if name != report.model]
    if others:
        return f"vectors made with {', '.join(others)}; this version uses {report.model} ({where})"
    return f"{report.model} ({where})"
