"""What a push did, and how things stand with the memories that this machine publishes to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from funes.ui.safe import one_line
from funes.ui.status_text import counts, megabytes

if TYPE_CHECKING:
    from funes.commands.bind import BindReport
    from funes.commands.publishing.gate import HeldBack
    from funes.commands.push import PushReport
    from funes.ui.views import Standing

HELD_SHOWN = 10
LEFT_BY_SCRUB = frozenset(("source_path", "session_id", "turn_uuid", "parent_uuid", "origin", "harness", "role"))
"""Columns in which a credential stays, since sessions are found by them."""


def push_text(report: PushReport) -> str:
    """What a push did, for a person to read."""
    done = report.done
    lines = [_first(report)]
    if done.created:
        lines.append("created: a private dataset repository; who may read it is set on its page")
    if done.attempts > 1:
        lines.append(f"tried {done.attempts} times, because others published meanwhile or the connection failed")
    if report.repo:
        lines.append(f"curated: {report.repo}, {report.reviewed:,} reviewed sessions may be published")
    lines += [f"held back: {line}" for line in held_lines(report.held)]
    if report.waiting:
        lines.append(
            f"not published: {_without_vector(report.waiting)}; `funes index` makes vectors, --words publishes without"
        )
    if report.ignored:
        lines.append(
            f"not published: {report.ignored:,} {_plural(report.ignored, 'session')} that the ignore file names; "
            "`funes forget --ignored` removes them from the local memory"
        )
    return "".join(f"{one_line(line)}\n" for line in lines)


def bound_text(report: BindReport) -> str:
    """What came of a binding, for a person to read."""
    lines = [] if report.pushed is None else push_text(report.pushed).splitlines()
    if report.label == "local":
        lines.append("The agents recall from the local memory, and nothing is published for them.")
    elif report.publishes:
        lines.append(
            f"The agents recall from {report.label}, and what is new is published to it whenever a session begins or "
            "ends; undo: funes bind local"
        )
    else:
        lines.append(f"The agents recall from {report.label}; undo: funes bind local")
    lines += report.notes
    return "".join(f"{one_line(line)}\n" for line in lines)


def push_json(report: PushReport) -> dict[str, Any]:
    """Everything, as a document."""
    from dataclasses import asdict

    done = asdict(report.done)
    return {
        "memory": report.label,
        **done,
        "sessions": report.sessions,
        "held_back": [asdict(block) for block in report.held],
        "all_held_back": report.all_held,
        "waiting": report.waiting,
        "ignored": report.ignored,
        "curated_for": report.repo or None,
    }


def held_lines(held: Sequence[HeldBack] | Sequence[Mapping[str, Any]], total: int | None = None) -> list[str]:
    """How much was held back, why, and where it is.

    Args:
        held: the blocks and titles.
        total: their number when `held` has only the first of them.
    """
    blocks = [block if isinstance(block, Mapping) else _fields(block) for block in held]
    if not blocks:
        return []
    rules: Counter[str] = Counter()
    for block in blocks:
        rules.update(block["rules"])
    count = total or len(blocks)
    lines = [f"{count:,} {_plural(count, 'block')} with credentials: {counts(dict(rules.most_common()))}"]
    for block in blocks[:HELD_SHOWN]:
        where = f"`funes get {block['session']} {block['turn']}`" if block["turn"] else f"title of {block['session']}"
        lines.append(f"{where}, {block['type']}: {counts(block['rules'])}")
    if count > HELD_SHOWN:
        lines.append(f"and {count - HELD_SHOWN:,} more")
    left = {rule for rule in rules if rule.partition(": ")[0] in LEFT_BY_SCRUB}
    if rules.keys() - left:
        lines.append("`funes scrub` takes them out of the local memory; then the rest of the block can be published")
    if left:
        lines.append(
            "ids and paths of traces are not changed by scrub: rename that trace, forget its session, index it again"
        )
    return lines


def standing_lines(standing: Standing) -> list[tuple[str, str]]:
    """Names and values for `funes status`: what is published where, what is not, and why."""
    lines = []
    if standing.unreadable:
        lines.append(("not read", standing.unreadable))
    name = standing.memory
    when = f"last push {standing.last_push}" if standing.last_push else "nothing is pushed from here yet"
    how = ", then whenever a session begins or ends" if standing.publishes else ""
    lines.append(("publishes to", f"{name}: {standing.published:,} passages of this machine; {when}{how}"))
    if standing.error:
        lines.append(("push failed", f"{standing.failed} {name}: {standing.error}"))
    if standing.busy:
        lines.append(("pushing now", name))
    if standing.repo:
        lines.append(("curated for", standing.repo))
    if standing.pending is None:
        if standing.held:
            lines += [("held back", line) for line in held_lines(standing.held_back, standing.held)]
        return lines
    more = f"; `funes push {name}` publishes {'it' if standing.pending == 1 else 'them'}" if standing.pending else ""
    lines.append(("not published", f"{standing.pending:,} {_plural(standing.pending, 'passage')}{more}"))
    if standing.waiting:
        lines.append(("not published", _without_vector(standing.waiting)))
    lines += [("would be held back", line) for line in held_lines(standing.would_hold_back)]
    return lines


def _without_vector(count: int) -> str:
    return f"{count:,} {_plural(count, 'passage')} that {'has' if count == 1 else 'have'} no vector yet"


def _first(report: PushReport) -> str:
    done = report.done
    if not done.rows and not done.vectors:
        if report.all_held:
            return f"{report.label}: nothing was published, all of it was held back"
        if done.sent:
            return f"{report.label}: merged and indexed, {megabytes(done.sent)} sent"
        return f"{report.label}: nothing new to publish; it holds {done.after:,} passages"
    passages, copies = done.passages, done.copies
    what = f"{passages:,} {_plural(passages, 'passage')} of {report.sessions:,} {_plural(report.sessions, 'session')}"
    what += f" published, {done.vectors:,} with vectors"
    if copies:
        what += f", and {_copies(copies)}"
    if not passages:
        parts = [(done.vectors, "vector"), (done.titles, "title")]
        said = [f"{count:,} {_plural(count, name)}" for count, name in parts if count]
        what = " and ".join([_copies(copies), *said] if copies else said) + " published"
    return f"{report.label}: {what}, {megabytes(done.sent)} sent; it holds {done.after:,} passages"


def _fields(block: HeldBack) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(block)


def _plural(count: int, word: str) -> str:
    return word if count == 1 else f"{word}s"


def _copies(count: int) -> str:
    return "1 copy of a passage" if count == 1 else f"{count:,} copies of passages"
