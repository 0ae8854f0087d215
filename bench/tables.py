"""What the tables of the benchmark suite have in common: options, printing, the file of numbers."""

from __future__ import annotations

import argparse
import json
import os
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from measure import ROOT, Machine, busy, machine

WIDTH = 116
RESULTS = ROOT / "bench" / "results"
WORK = ROOT / ".cache" / "bench"


@dataclass(slots=True)
class Table:
    """One table.

    Attributes:
        name: of the script, which is the beginning of the file's name.
        title: one line.
        columns: headings.
        rows: cells as text.
        conditions: corpus, numbers of questions or repetitions, and what a reader has to know; a paragraph each.
        data: the numbers behind the cells.
    """

    name: str
    title: str
    columns: Sequence[str]
    rows: list[list[str]] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        """Title, table in Markdown, conditions."""
        paragraphs = [textwrap.fill(f"- {one}", WIDTH, subsequent_indent="  ") for one in self.conditions]
        return "\n".join([self.title, "", markdown(self.columns, self.rows), "", *paragraphs])


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with columns of even width.

    Args:
        columns: headings.
        rows: as many cells each.
    """
    lines = [list(columns), *map(list, rows)]
    widths = [max(3, *(len(line[column]) for line in lines)) for column in range(len(columns))]
    made = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
    made.insert(1, "| " + " | ".join("-" * width for width in widths) + " |")
    return "\n".join(made)


def parser(description: str | None) -> argparse.ArgumentParser:
    """The options that every table has: `--quick`, `--out`, `--work`."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--quick", action="store_true", help="small sizes, to see it run; no figures to quote")
    made.add_argument("--out", type=Path, default=RESULTS, metavar="DIR", help="where the JSON goes")
    made.add_argument("--work", type=Path, default=WORK, metavar="DIR", help="where what is made is kept between runs")
    return made


def sizes(text: str) -> list[int]:
    """Numbers with commas between them, as options take them; `1,000` has to be written `1000`."""
    return [int(part) for part in text.split(",") if part.strip()]


def start() -> Machine:
    """Forget the user's own memory, and describe the machine before the load that the benchmark makes itself."""
    os.environ.pop("FUNES_HOME", None)
    return machine()


def publish(table: Table, began: Machine, arguments: argparse.Namespace) -> Path:
    """Print a table with its conditions, and write its numbers.

    Args:
        table: what was measured.
        began: the machine as `start` saw it.
        arguments: of `parser`.

    Returns:
        The file with the numbers.
    """
    print(f"\n{table.text()}\n")
    print(began.describe())
    if busy():
        print("Other work kept this machine busy: wall times are longer than on a quiet one.")
    if arguments.quick:
        print("Quick: small sizes and few repetitions; these are not figures to quote.")
    now = datetime.now(UTC)
    content = {
        "table": table.name,
        "title": table.title,
        "time": now.isoformat(timespec="seconds"),
        "arguments": sys.argv[1:],
        "quick": arguments.quick,
        "machine": began.as_dict(),
        "load_after": os.getloadavg() if hasattr(os, "getloadavg") else None,
        "columns": list(table.columns),
        "rows": [list(row) for row in table.rows],
        "conditions": table.conditions,
        "data": table.data,
    }
    target: Path = arguments.out / f"{table.name}-{now:%Y%m%dT%H%M%SZ}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(content, indent=1), encoding="utf-8")
    print(f"Numbers: {target.relative_to(Path.cwd()) if target.is_relative_to(Path.cwd()) else target}", flush=True)
    return target
