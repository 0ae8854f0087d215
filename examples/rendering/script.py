"""The script format of the example sessions: a header, a blank line, then steps.

A step starts with a line `>> kind argument`; the lines up to the next step are its body. A line `----` splits the
body of a tool step into the call and its output. `examples/README.md` lists the kinds.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

_STEP = re.compile(r"^>> ([a-z]+)(?: (.*))?$")
_SLOT = re.compile(r"\{\{([a-z-]+)\}\}")

BRIEFING = (
    "[harness briefing] Be helpful and careful. "
    "Nobody in the project said this; a harness puts it in front of every session."
)
"""Text that the renderers put wherever a real harness injects its own; a test checks that it is never stored."""


@dataclass(frozen=True)
class Step:
    """One step of a session.

    Attributes:
        kind: what happens (`user`, `agent`, `run`, …).
        arg: rest of the step's line.
        body: text of the step; for a tool step the call.
        output: what the tool answered, empty for other kinds.
    """

    kind: str
    arg: str
    body: str
    output: str

    def flag(self, name: str) -> bool:
        """Whether the step's argument contains the word `name`."""
        return name in self.arg.split()


@dataclass(frozen=True)
class Script:
    """One session: its header fields and steps. `slug` is the file's name without its number."""

    slug: str
    header: dict[str, str]
    steps: list[Step] = field(default_factory=list)

    @property
    def start(self) -> datetime:
        """Time of the first record."""
        return datetime.fromisoformat(self.header["start"]).astimezone(UTC)

    @property
    def cwd(self) -> str:
        """Working directory of the session."""
        return self.header["cwd"]


class Clock:
    """Times of a session's records: steps of a length that depends on the session and the position only."""

    def __init__(self, slug: str, start: datetime) -> None:
        self.slug = slug
        self.now = start
        self.count = 0

    def tick(self, low: float, high: float) -> datetime:
        """Advance by `low` to `high` seconds and return the new time."""
        self.count += 1
        share = int(digest(self.slug, "clock", self.count)[:8], 16) / 0xFFFFFFFF
        self.now += timedelta(milliseconds=round(1000 * (low + share * (high - low))))
        return self.now

    def wait(self, duration: str) -> None:
        """Let `40m`, `3h` or `2d` pass."""
        unit = {"m": "minutes", "h": "hours", "d": "days"}[duration[-1]]
        self.now += timedelta(**{unit: int(duration[:-1])})


def digest(*parts: object) -> str:
    """64 hexadecimal digits that depend on the parts only."""
    return hashlib.sha256("\x1f".join(map(str, parts)).encode()).hexdigest()


def uuid4(*parts: object) -> str:
    """Make a version 4 UUID from the parts."""
    h = digest(*parts)
    return f"{h[:8]}-{h[8:12]}-4{h[13:16]}-{'89ab'[int(h[16], 16) % 4]}{h[17:20]}-{h[20:32]}"


def uuid7(when: datetime, *parts: object) -> str:
    """Make a version 7 UUID: `when` in milliseconds, the rest from the parts."""
    t = f"{milliseconds(when):012x}"
    h = digest(*parts)
    return f"{t[:8]}-{t[8:]}-7{h[:3]}-{'89ab'[int(h[3], 16) % 4]}{h[4:7]}-{h[7:19]}"


def milliseconds(when: datetime) -> int:
    """Milliseconds since 1970."""
    return round(when.timestamp() * 1000)


def iso(when: datetime) -> str:
    """`2026-09-07T08:14:00.000Z`."""
    return when.strftime("%Y-%m-%dT%H:%M:%S.") + f"{when.microsecond // 1000:03d}Z"


def load(path: Path) -> Script:
    """Read one script.

    Raises:
        ValueError: a line before the first step that is no header field.
    """
    text = _SLOT.sub(lambda m: _SLOTS[m[1]](), path.read_text(encoding="utf-8"))
    head, _, rest = text.partition("\n\n")
    header = {}
    for line in head.splitlines():
        key, colon, value = line.partition(":")
        if not colon:
            raise ValueError(f"{path.name}: {line!r} is no header field")
        header[key.strip()] = value.strip()
    steps: list[Step] = []
    kind, arg, lines = "", "", []
    for line in [*rest.splitlines(), ">> end"]:
        if match := _STEP.match(line):
            if kind:
                steps.append(_step(kind, arg, "\n".join(lines).strip("\n")))
            kind, arg, lines = match[1], match[2] or "", []
        else:
            lines.append(line)
    return Script(path.stem.partition("-")[2], header, steps)


def _step(kind: str, arg: str, body: str) -> Step:
    if kind in {"run", "edit", "call", "bang"}:
        call, _, output = f"\n{body}\n".partition("\n----\n")
        return Step(kind, arg, call.strip("\n"), output.strip("\n"))
    return Step(kind, arg, body, "")


def _residual_table() -> str:
    """Hourly residuals of a tide fit, long enough that a harness spills it to a file of its own."""
    rows = ["time (UTC)         observed_mm predicted_mm residual_mm"]
    start = datetime(2026, 7, 16, tzinfo=UTC)
    residuals: list[int] = []
    for hour in range(24 * 64):
        when = start + timedelta(hours=hour)
        tide = 2100 + 1450 * math.cos(hour * 0.5058) + 460 * math.cos(hour * 0.5236 + 1.1)
        noise = int(digest("residual", hour)[:4], 16) % 220 - 110
        surge = 0
        if datetime(2026, 9, 16, 22, tzinfo=UTC) <= when <= datetime(2026, 9, 17, 9, tzinfo=UTC):
            surge = round(
                451 * math.sin(math.pi * ((when - datetime(2026, 9, 16, 22, tzinfo=UTC)).seconds / 3600) / 11)
            )
        mark = "  << surge" if surge > 300 else ""
        rows.append(
            f"{when:%Y-%m-%d %H:%M}   {round(tide) + noise + surge:8d}   {round(tide):8d}   {noise + surge:+8d}{mark}"
        )
        residuals.append(noise + surge)
    rms = math.sqrt(sum(r * r for r in residuals) / len(residuals))
    rows.append(f"rms {rms:.0f} mm over {len(residuals)} hours; largest residual {max(residuals):+d} mm")
    return "\n".join(rows)


def _icon() -> str:
    """Return the page's icon as a data URI, as an agent would paste it into a template."""
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><path d="M2 20q7-8 14 0t14 0v10H2z" fill="#246"/>'
        '<path d="M2 14q7-8 14 0t14 0" fill="none" stroke="#68a" stroke-width="2"/></svg>'
    )
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


_SLOTS = {"residual-table": _residual_table, "icon": _icon}
