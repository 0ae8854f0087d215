"""What `scrub` and `forget` did or would do, for a person to read, and as documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from funes.ui.agent import shown_id
from funes.ui.safe import one_line
from funes.ui.status_text import counts, megabytes

if TYPE_CHECKING:
    from funes.commands.forget import ForgetReport
    from funes.commands.scrub import ScrubReport
    from funes.memory.sessions import SessionSummary

TITLE_CHARACTERS = 80
PUBLISHED = (
    "Revoke these credentials: nothing else makes them harmless. Where this memory was published before, the former "
    "text is still there, in the history too: delete that dataset repository or folder, then `funes push` makes it new."
)


def scrub_text(report: ScrubReport) -> str:
    """The outcome of a scrub."""
    would = "" if report.done else "would be "
    lines = [f"{_number(report.scanned, 'block')} scanned"]
    if report.found:
        parts = []
        if report.redacted:
            parts.append(f"{_number(report.redacted, 'block')} {would}redacted")
        if report.dropped:
            parts.append(f"{_number(report.dropped, 'block')} {would}removed, since they cannot be made clean")
        if report.titles:
            parts.append(f"{_number(report.titles, 'title')} {would}redacted")
        if report.names:
            parts.append(f"{_number(report.names, 'name')} of a folder, branch or tool {would}redacted")
        lines.append(f"{'; '.join(parts)}; in {_number(len(report.sessions) or report.titles, 'session')}")
        lines.append(f"found: {counts(dict(report.counts.most_common()))}")
    else:
        lines[0] += ": nothing found"
    if report.renamed:
        lines.append(
            f"{_number(report.renamed, 'turn')} {would}given another id: the former one could be made of a credential"
        )
    if report.restamped:
        lines.append(f"{_number(report.restamped, 'row')} {would}marked as scanned with {report.ruleset}")
    if report.embedded or report.waiting:
        lines.append(f"vectors: {report.embedded:,} made, {report.waiting:,} waiting")
    if report.completed:
        lines.append("an earlier run that was killed is complete now")
    lines += [f"note: {note}" for note in report.notes]
    if report.found or report.renamed:
        lines.append(PUBLISHED)
        if not report.done:
            lines.append("nothing was changed; leave out --dry-run to do it")
    return _text(lines)


def scrub_json(report: ScrubReport) -> dict[str, Any]:
    """The outcome of a scrub, as a document."""
    return {
        "done": report.done,
        "scanned": report.scanned,
        "redacted": report.redacted,
        "dropped": report.dropped,
        "titles": report.titles,
        "names": report.names,
        "counts": dict(report.counts.most_common()),
        "sessions": sorted(report.sessions),
        "renamed": report.renamed,
        "restamped": report.restamped,
        "ruleset": report.ruleset,
        "embedded": report.embedded,
        "waiting": report.waiting,
        "completed": report.completed,
        "notes": report.notes,
    }


def forget_text(report: ForgetReport) -> str:
    """The sessions that go or went."""
    if not report.sessions:
        return _text([*(f"note: {note}" for note in report.notes), "no session is left to forget"])
    lines = [_session(session) for session in report.sessions]
    what = f"{_number(len(report.sessions), 'session')}, {_number(report.passages, 'passage')}"
    kept = f"; {_number(report.kept, 'passage')} of them in other sessions too, kept there" if report.kept else ""
    lines += [f"note: {note}" for note in report.notes]
    if not report.done:
        lines.append(f"{what}{kept}: nothing was removed; add --yes to remove them for good")
        return _text(lines)
    freed = f", {megabytes(report.bytes_freed)} freed" if report.bytes_freed > 0 else ""
    lines.append(f"{what} removed{kept}{freed}")
    lines.append("what was published before is still there: delete that dataset repository or folder, then push again")
    return _text(lines)


def forget_json(report: ForgetReport) -> dict[str, Any]:
    """The sessions that go or went, as a document."""
    return {
        "done": report.done,
        "sessions": [
            {"id": item.id, "title": item.title, "first_prompt": item.first_prompt, "last_ts": item.last_ts}
            for item in report.sessions
        ],
        "passages": report.passages,
        "kept": report.kept,
        "bytes_freed": report.bytes_freed,
        "notes": report.notes,
    }


def tombstones_text(tombstones: Mapping[str, str]) -> str:
    """The forgotten sessions."""
    if not tombstones:
        return _text(["no session is forgotten"])
    return _text([f"{day or '-'} {shown_id(session)}" for session, day in tombstones.items()])


def undone_text(sessions: Sequence[str]) -> str:
    """The sessions that are no longer on the list."""
    lines = [shown_id(session) for session in sessions]
    return _text([*lines, f"{_number(len(sessions), 'session')}: `funes index` reads their traces again"])


def _session(session: SessionSummary) -> str:
    day = session.last_ts.date().isoformat() if session.last_ts else "-"
    place = one_line(session.repo or session.workdir) or "-"
    kind = "" if session.kind == "main" else f" {session.kind}"
    title = one_line(session.title or session.first_prompt, TITLE_CHARACTERS) or "(no title)"
    return f"{day} {shown_id(session.id)} {session.harness}{kind} {place} {title}"


def _number(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _text(lines: Sequence[str]) -> str:
    return "".join(f"{one_line(line)}\n" for line in lines)
