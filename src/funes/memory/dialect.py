"""How another program's table differs from ours, and what makes up for it.

The original program, in Rust, stores times as text and has no `branch`; what it stored first has neither `harness` nor
`repo`, and comes from Claude Code, the only agent that it knew then.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from funes.memory.schema import FILTER_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

FIRST_HARNESS = "claude_code"


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a table lacks.

    Attributes:
        lacking: columns that conditions may name and that the table does not have.
        text_times: whether its times are text.
    """

    lacking: frozenset[str] = frozenset()
    text_times: bool = False

    @classmethod
    def of(cls, schema: Any) -> Dialect:
        """The dialect of a table.

        Args:
            schema: its Arrow schema.
        """
        import pyarrow as pa

        names = frozenset(schema.names)
        text = "ts" in names and pa.types.is_string(schema.field("ts").type)
        return cls(frozenset(FILTER_COLUMNS) - names, text)

    def translated(self, rows: pa.Table, asked: Sequence[str]) -> pa.Table:
        """Make rows as ours would be.

        Args:
            rows: what was read.
            asked: the columns that were asked for.
        """
        import pyarrow as pa

        if self.text_times and "ts" in rows.column_names:
            times = pa.array(map(_moment, rows.column("ts").to_pylist()), pa.timestamp("us", "UTC"))
            rows = rows.set_column(rows.column_names.index("ts"), "ts", times)
        if "harness" in self.lacking and "harness" in asked:
            rows = rows.append_column("harness", pa.array([FIRST_HARNESS] * rows.num_rows, pa.string()))
        return rows


NATIVE = Dialect()


def _moment(text: str | None) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
