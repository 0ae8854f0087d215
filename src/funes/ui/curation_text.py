"""A project memory and its sessions as lines, as a document, and as a list to be reviewed."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from funes.paths import shown
from funes.ui.agent import shown_id
from funes.ui.safe import one_line
from funes.ui.views import ReviewItem

if TYPE_CHECKING:
    from funes.commands.curate import CurateReport
    from funes.commands.curation import Candidate

TITLE_CHARACTERS = 80


def curate_text(report: CurateReport) -> str:
    """The sessions and what was decided about them, a line each, after a summary."""
    numbers = Counter("pending" if item.status == "grown" else item.status for item in report.sessions)
    parts = ", ".join(f"{numbers[name]:,} {name}" for name in ("included", "excluded", "pending"))
    lines = [f"{report.memory}: sessions of {report.repo}: {parts}"]
    for item in report.sessions:
        session = item.session
        title = one_line(session.title or session.first_prompt, TITLE_CHARACTERS) or "(no title)"
        kind = "" if session.kind == "main" else f" {session.kind}"
        status = item.status if item.status != "grown" else f"grown (was {_verdict(item)})"
        lines.append(f"{status} {_day(item)} {shown_id(session.id)} {session.harness}{kind} {title}")
    if report.curated:
        lines.append(f"decisions: {shown(report.path)}")
    else:
        lines.append("this memory is not curated yet; run the command without --list to begin")
    lines += [f"note: {note}" for note in report.notes]
    return "".join(f"{one_line(line)}\n" for line in lines)


def curate_json(report: CurateReport) -> dict[str, Any]:
    """The same as a document."""
    return {
        "memory": report.memory,
        "repo": report.repo,
        "curated": report.curated,
        "file": str(report.path),
        "sessions": [
            {
                "id": item.session.id,
                "status": item.status,
                "reviewed": item.reviewed.verdict if item.reviewed else None,
                "harness": item.session.harness,
                "kind": item.session.kind,
                "parent_id": item.session.parent_id,
                "title": item.session.title,
                "first_prompt": item.session.first_prompt,
                "first_ts": item.session.first_ts,
                "last_ts": item.session.last_ts,
                "turns": item.session.turns,
                "blocks": item.extent.blocks,
                "repos": sorted(item.extent.repos),
            }
            for item in report.sessions
        ],
        "notes": report.notes,
    }


def review_items(report: CurateReport) -> list[ReviewItem]:
    """The sessions as a list to be reviewed; sub-agents' sessions come behind the one that spawned them."""
    helpers: defaultdict[str, list[Candidate]] = defaultdict(list)
    known = {item.session.id for item in report.sessions}
    top = []
    for item in report.sessions:
        parent = item.session.parent_id
        if item.session.kind == "subagent" and parent in known and parent != item.session.id:
            helpers[parent].append(item)
        else:
            top.append(item)
    found: list[ReviewItem] = []

    def add(item: Candidate, depth: int) -> None:
        below = helpers.pop(item.session.id, [])
        found.append(_review_item(item, depth, [helper.session.id for helper in below], report.repo))
        for helper in below:
            add(helper, depth + 1)

    for item in top:
        add(item, 0)
    for rest in list(helpers.values()):  # sessions that name each other as parents
        found += [_review_item(item, 0, [], report.repo) for item in rest if item.session.id not in _ids(found)]
    return found


def _ids(items: list[ReviewItem]) -> set[str]:
    return {item.id for item in items}


def _review_item(item: Candidate, depth: int, helpers: list[str], repo: str) -> ReviewItem:
    session = item.session
    facts = [f"{session.turns:,} turns, {item.extent.blocks:,} blocks"]
    facts.append(f"{session.harness} in {session.workdir or '-'}, branch {session.branch or '-'}")
    if item.status == "grown" and item.reviewed is not None:
        facts.append(f"it was {_verdict(item)} with {item.reviewed.blocks:,} blocks and has changed since")
    others = sorted(name for name in item.extent.repos if name.lower() != repo.lower())
    if others:
        facts.append(f"it worked in other repositories too: {', '.join(others)}")
    if helpers:
        facts.append(f"sub-agents' sessions: {len(helpers):,}")
    title = session.title or session.first_prompt
    return ReviewItem(
        id=session.id,
        status=item.status,
        day=_day(item),
        harness=session.harness,
        turns=session.turns,
        title=f"{'↳ ' * min(depth, 4)}{title}",
        about=facts,
        helpers=helpers,
    )


def _day(item: Candidate) -> str:
    return item.session.last_ts.date().isoformat() if item.session.last_ts else "-"


def _verdict(item: Candidate) -> str:
    return f"{item.reviewed.verdict}d" if item.reviewed else "pending"
