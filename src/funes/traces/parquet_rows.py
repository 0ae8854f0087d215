"""Rows of a Parquet file of agent traces, one at a time.

Memory is bounded by the pages of one row group, of which the Arrow library decodes one a column at a time.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from funes.traces.identity import REDACTED
from funes.traces.model import ReadReport, unchanged
from funes.traces.text import parse_time

_COLUMNS = (
    "harness",
    "session_id",
    "id",
    "title",
    "name",
    "metadata",
    "sent_at",
    "file_path",
    "file_name",
    "messages",
    "traces",
    "trace",
)
_BATCH_BYTES = 16 * 2**20
_BATCH_ROWS = 64
_BUFFER = 2**20

_HARNESSES = {
    "claude": "claude_code",
    "claude_code": "claude_code",
    "codex": "codex",
    "codex_cli": "codex",
    "pi": "pi",
    "pi_mono": "pi",
    "hermes": "hermes",
    "hermes_agent": "hermes",
}


class UnreadableError(Exception):
    """The file cannot be read at all; the message is a clause that says why."""


@dataclass(slots=True)
class Row:
    """One row: a session.

    Attributes:
        number: 1-based position in the file.
        values: the row's columns, those that are there.
        metadata: the session's metadata.
        redact: takes the credentials out of a text.
    """

    number: int
    values: dict[str, Any]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    redact: Callable[[str], str] = unchanged
    _made: str = ""

    def __post_init__(self) -> None:
        value = self.values.get("metadata")
        if isinstance(value, (str, bytes)):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                value = None
        if isinstance(value, Mapping):
            self.metadata = value

    @property
    def harness(self) -> str:
        """The stored facet; a harness that is not known here keeps its name, and is empty when the row has none."""
        name = self._text("harness") or self._meta("harness") or self._meta("trace_type")
        return _HARNESSES.get(name.lower().replace("-", "_").replace(" ", "_"), name)

    @property
    def session_id(self) -> str:
        """The session's id; without one, the name of its file, or a hash of what it says."""
        found = self._text("session_id") or self._meta("session_id") or self._text("id")
        if found:
            return found
        if name := self.file_name:
            return re.split(r"[/\\]", name)[-1].removesuffix(".jsonl")
        self._made = self._made or self._content_id()
        return self._made

    def _content_id(self) -> str:
        """Make an id of the messages: of each text as it may be stored, and of what the whole looks like then."""
        messages = self.values.get("messages")
        recorded = repr(messages)
        shown = self.redact(repr(_mapped(messages, self.redact)))
        digest = hashlib.blake2b(shown.encode("utf-8", "replace"), digest_size=8).hexdigest()
        return f"parquet-{digest}" if shown == recorded else f"parquet-{REDACTED}{digest}"

    @property
    def agent_id(self) -> str:
        """Id of the Claude Code sub-agent that the row belongs to, whose `session_id` is its parent's; else empty."""
        stem = re.split(r"[/\\]", self.file_name)[-1].removesuffix(".jsonl")
        return stem if self.harness == "claude_code" and stem.startswith("agent-") else ""

    @property
    def file_name(self) -> str:
        """Path of the file that the row was made of, as recorded; without one, a name made of the session's id."""
        found = self._text("file_path") or self._text("file_name") or self._meta("source_file")
        if found:
            return found.removesuffix(".zst")
        session_id = self._text("session_id") or self._meta("session_id") or self._text("id")
        return f"{session_id}.jsonl" if session_id else ""

    @property
    def workdir(self) -> str:
        """Working directory of the session, empty when unknown."""
        return self._meta("cwd")

    @property
    def branch(self) -> str:
        """Git branch of the session, empty when unknown."""
        return self._meta("git_branch") or self._meta("gitBranch")

    @property
    def title(self) -> str:
        """Title of the session, empty when it has none."""
        return self._text("title") or self._text("name") or self._meta("title")

    @property
    def sent_at(self) -> datetime | None:
        """When the session was sent: the time of a message that has none."""
        value = self.values.get("sent_at")
        if isinstance(value, datetime):
            value = value.isoformat()
        return parse_time(value if value is not None else self.metadata.get("sent_at"))

    @property
    def messages(self) -> list[Any] | None:
        """The session's messages, undecoded; None when there are none."""
        value = self.values.get("messages")
        if isinstance(value, (str, bytes)):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                return None
        return value if isinstance(value, list) and value else None

    def trace(self) -> bytes:
        """Return the raw trace as JSONL; empty when the row has none.

        The column holds the text as it is, or as a JSON string, or a list of records, each as JSON text or as a struct.

        Raises:
            ValueError: it is none of these.
        """
        value = self.values.get("trace")
        if not value:
            value = self.values.get("traces")
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        if isinstance(value, str) and value.lstrip()[:1] in ('"', "["):
            try:
                value = json.loads(value)
            except RecursionError as error:
                raise ValueError("nested too deeply") from error
        if not value:
            return b""
        if isinstance(value, str):
            text = value
        elif isinstance(value, list):
            text = "\n".join(_line(record) for record in value if record)
        elif isinstance(value, Mapping):
            text = _line(value)
        else:
            raise ValueError(f"a {type(value).__name__} is no trace")
        data = text.encode("utf-8", "replace")
        return data if data.endswith(b"\n") else data + b"\n"

    def _text(self, column: str) -> str:
        value = self.values.get(column)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        return value.strip() if isinstance(value, str) else ""

    def _meta(self, key: str) -> str:
        value = self.metadata.get(key)
        return value.strip() if isinstance(value, str) else ""


def column_names(path: Path) -> frozenset[str]:
    """Return the names of a Parquet file's columns.

    Raises:
        UnreadableError: it has no footer that can be read.
    """
    with _opened(path) as file:
        return frozenset(file.schema_arrow.names)


def open_rows(path: Path, report: ReadReport) -> Iterator[Row]:
    """Read a file row by row.

    Args:
        path: the file.
        report: rows that cannot be read are noted here.

    Raises:
        UnreadableError: it is damaged as a whole, or has no traces.
    """
    with _opened(path) as file:
        present = set(file.schema_arrow.names)
        columns = [name for name in _COLUMNS if name in present]
        if not present & {"trace", "traces", "messages"}:
            raise UnreadableError("it is a Parquet file without agent traces: no column trace, traces or messages")
        number = 0
        for group in range(file.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            yield from _group_rows(file, group, columns, number, report)
            number += rows


def _opened(path: Path) -> Any:
    import pyarrow as pa
    from pyarrow import parquet as pq

    try:
        # A buffer makes the reader stream a column instead of loading a whole row group of it.
        return pq.ParquetFile(path, buffer_size=_BUFFER, pre_buffer=False)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UnreadableError(f"it is not a Parquet file that can be read: {_first_line(error)}") from error


def _group_rows(file: Any, group: int, columns: list[str], number: int, report: ReadReport) -> Iterator[Row]:
    """Read the rows of one row group; a column that turns out to be damaged is left out from there on."""
    total = file.metadata.row_group(group).num_rows
    done = 0
    while done < total and {"trace", "traces", "messages"} & set(columns):
        fault = ""
        try:
            for values in _batches(file, group, columns, done):
                done += 1
                yield Row(number + done, values, redact=report.redact)
        except _faults() as error:
            fault = _first_line(error)
        if not fault:
            return
        report.damage(f"row {number + done + 1}: {fault}")
        readable = [name for name in columns if _is_readable(file, group, name)]
        columns = readable if readable != columns else []
    if done < total:
        report.damage(f"rows {number + done + 1} to {number + total} cannot be read")


def _batches(file: Any, group: int, columns: list[str], skip: int) -> Iterator[dict[str, Any]]:
    about = file.metadata.row_group(group)
    size = max(1, min(_BATCH_ROWS, _BATCH_BYTES * about.num_rows // max(1, about.total_byte_size)))
    for batch in file.iter_batches(batch_size=size, row_groups=[group], columns=columns, use_threads=False):
        for position in range(batch.num_rows):
            if skip > 0:
                skip -= 1
            else:
                yield {name: _cell(batch.column(name)[position]) for name in batch.schema.names}


def _cell(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        return scalar.as_buffer().to_pybytes().decode("utf-8", "replace")


def _is_readable(file: Any, group: int, column: str) -> bool:
    try:
        for _ in file.iter_batches(batch_size=1, row_groups=[group], columns=[column], use_threads=False):
            pass
    except _faults():
        return False
    return True


def _faults() -> tuple[type[Exception], ...]:
    import pyarrow as pa

    return (pa.ArrowException, OSError, ValueError, NotImplementedError)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _line(record: Any) -> str:
    """Write one record of a trace as a line."""
    if isinstance(record, bytes):
        record = record.decode("utf-8", "replace")
    if isinstance(record, str):
        if not record.startswith('"') and "\n" not in record:
            return record
        try:
            decoded = json.loads(record)
        except (ValueError, RecursionError):
            return record.replace("\n", " ")
        return decoded.replace("\n", " ") if isinstance(decoded, str) else json.dumps(decoded, ensure_ascii=False)
    # A struct has every key of the column, most of them null.
    return json.dumps(_without_nulls(record), ensure_ascii=False, default=str)


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    """A decoded value with every string in it changed, the keys of mappings aside."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _mapped(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_mapped(item, change) for item in value]
    return value


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
