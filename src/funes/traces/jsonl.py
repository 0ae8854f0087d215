r"""Bytes to JSON records, for traces that agents append to, crash in the middle of, compress and copy around.

Lines end at `\n` only (U+2028, U+0085, form feeds stand raw inside JSON strings). Nothing here raises because of what
a file contains: a damaged line costs that line, and the report says which one and why. Memory is bounded by the longest
line, and a line beyond `MAX_LINE` is passed over without being held.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, cast

from funes.traces.json_repair import IsRecord, decode, may_hold_surrogates, recover, sanitize
from funes.traces.model import ReadReport
from funes.traces.streams import PREFIX, READ_SIZE, fingerprints, open_trace, transcoded, utf16_name

__all__ = [
    "MAX_LINE",
    "RecordReader",
    "Skip",
    "iter_records",
    "open_trace",
    "resume_point",
    "resume_state",
    "sanitize",
]

MAX_LINE = 64 * 2**20
"""Longest line that is decoded, in bytes. JSON text of that size needs up to ten times as much memory."""

_NULS = re.compile(rb"\x00+")
# How records begin that hold conversation (Claude Code, Codex, pi), and any record behind a complete one.
_STARTS = (b'{"parentUuid"', b'{"timestamp"', b'{"type":"message"', b'}{"')

Skip = Callable[[bytes], "str | None"]
"""Says from a line's bytes why the record need not be decoded, or None to decode it."""


class RecordReader:
    """Iterates over `(offset, record)`, the offset being that of the byte behind the record's line.

    Attributes:
        offset: where the next read may start: behind everything consumed so far.
        line: 1-based number of the line that the last record came from.
        resumable: whether `offset` means a position in the file's own bytes (not so for UTF-16).
    """

    def __init__(
        self,
        stream: IO[bytes],
        report: ReadReport,
        start: int = 0,
        *,
        line: int = 1,
        skip: Skip | None = None,
        is_record: IsRecord | None = None,
        max_lines: int | None = None,
    ) -> None:
        """Prepare to read.

        Args:
            stream: the trace, positioned at its beginning.
            report: `records`, `skipped`, `damaged`, `torn_tail` and `failed` are filled in.
            start: offset to continue from, as an earlier reader's `offset`.
            line: number of the line at `start`, as an earlier reader's `next_line`.
            skip: tells from the bytes of a line that its record is not needed, and why.
            is_record: whether an object found inside a damaged line is a whole record rather than a part of one;
                by default, whether it has a type (or role) and one of the keys that only records have (a source
                whose records nest such an object passes its own).
            max_lines: number of the last line to read, None for all.
        """
        self.offset = start
        self.line = line
        self.next_line = line
        self.resumable = True
        self._stream = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(cast("Any", stream))
        self._report = report
        self._skip = skip
        self._is_record = is_record
        self._max_lines = max_lines
        self._records = self._read(start)

    def __iter__(self) -> Iterator[tuple[int, dict[str, Any]]]:
        return self._records

    def __next__(self) -> tuple[int, dict[str, Any]]:
        return next(self._records)

    def _read(self, start: int) -> Iterator[tuple[int, dict[str, Any]]]:
        try:
            self._position(start)
            while (self._max_lines is None or self.next_line <= self._max_lines) and (
                line := self._stream.readline(MAX_LINE)
            ):
                self.line = self.next_line
                if line.endswith(b"\n"):
                    self.offset += len(line)
                    self.next_line += 1
                    for record in self._line(line):
                        yield self.offset, record
                elif len(line) == MAX_LINE:
                    if not self._pass_over(line):
                        return
                else:
                    last = self._last_line(line)
                    if last is not None:
                        yield self.offset, last
                    return
        except OSError as error:
            self._report.failed = f"reading stopped at line {self.next_line}: {error.strerror or error}"

    def _position(self, start: int) -> None:
        """Move to the start; a UTF-16 stream is read as UTF-8 from here on."""
        if not start:
            if encoding := utf16_name(self._stream.peek(4)[:4]):
                self.resumable = False
                self._stream = transcoded(self._stream, encoding)
        elif self._stream.seekable():
            self._stream.seek(start)
        else:
            while start > 0 and (data := self._stream.read(min(start, READ_SIZE))):
                start -= len(data)

    def _line(self, line: bytes) -> Iterator[dict[str, Any]]:
        """Read the records of one complete line: one, as a rule."""
        line = line.strip(b" \t\r\n")
        if line.startswith(codecs.BOM_UTF8):
            line = line[3:]
        if b"\x00" in line:
            line = self._without_nuls(line)
        if not line:
            return
        if self._skip is not None and (reason := self._skip(line)) and not _may_be_glued(line):
            self._report.records += 1
            self._report.skipped[reason] += 1
            return
        text = self._decode(line)
        try:
            found = [decode(text)]
        except RecursionError:
            self._damage("nested too deeply")
            return
        except ValueError as error:
            found, fault = recover(text, error, self._is_record)
            if fault:
                self._damage(fault)
        del text  # of a long line with an emoji it takes four bytes a character, while the record is worked on
        for value in found:
            if isinstance(value, dict):
                self._report.records += 1
                yield sanitize(value) if may_hold_surrogates(line) else value
            else:
                self._damage("not a JSON object")

    def _last_line(self, line: bytes) -> dict[str, Any] | None:
        """Read a last line without a line end: its record when that is complete, else it is left for the next read."""
        body = line.strip(b" \t\r\n").removeprefix(codecs.BOM_UTF8)
        if not body:
            return None
        try:
            value: Any = decode(body.decode("utf-8"))
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            self._report.torn_tail = True
            return None
        self.offset += len(line)
        self._report.records += 1
        if self._skip is not None and (reason := self._skip(body)):
            self._report.skipped[reason] += 1
            return None
        return cast("dict[str, Any]", sanitize(value)) if may_hold_surrogates(body) else value

    def _pass_over(self, line: bytes) -> bool:
        """Step over a line that is too long to hold; False when it is the last one and unfinished."""
        reason = self._skip(line[:PREFIX]) if self._skip is not None else None
        length = len(line)
        while line and not line.endswith(b"\n"):
            line = self._stream.readline(READ_SIZE)
            length += len(line)
        if not line:
            self._report.torn_tail = True
            return False
        self.offset += length
        self.next_line += 1
        if reason:
            self._report.records += 1
            self._report.skipped[reason] += 1
        else:
            self._damage(f"{length / 2**20:.0f} MB long, more than the {MAX_LINE // 2**20} MB that are read at once")
        return True

    def _without_nuls(self, line: bytes) -> bytes:
        stripped = _NULS.sub(b"", line).strip(b" \t\r")
        self._damage(f"{len(line) - len(stripped)} NUL bytes, left by a crash, in place of content")
        return stripped

    def _decode(self, line: bytes) -> str:
        try:
            return line.decode("utf-8")
        except UnicodeDecodeError:
            self._damage("bytes that are not UTF-8 were replaced")
            return line.decode("utf-8", "replace")

    def _damage(self, what: str) -> None:
        self._report.damage(f"line {self.line}: {what}")


def iter_records(
    stream: IO[bytes],
    report: ReadReport,
    start: int = 0,
    *,
    line: int = 1,
    skip: Skip | None = None,
    is_record: IsRecord | None = None,
    max_lines: int | None = None,
) -> RecordReader:
    """Iterate over the records of a trace; see `RecordReader`."""
    return RecordReader(stream, report, start, line=line, skip=skip, is_record=is_record, max_lines=max_lines)


def resume_state(path: Path, reader: RecordReader, **state: Any) -> dict[str, Any] | None:
    """Make the state from which a later read can continue behind what `reader` consumed.

    Args:
        path: the file that was read.
        reader: the reader, exhausted.
        state: whatever the parser needs to carry on, JSON-able.

    Returns:
        A JSON-able value for `ReadReport.resume`; None when the file cannot be continued (compressed, UTF-16, gone).
    """
    if not reader.resumable:
        return None
    prints = fingerprints(path, reader.offset)
    if prints is None:
        return None
    return {"offset": reader.offset, "line": reader.next_line, "prefix": prints[0], "tail": prints[1], **state}


def resume_point(path: Path, resume: dict[str, Any] | None) -> tuple[int, int] | None:
    """Find where to continue: `(offset, line)` for `iter_records`, or None to read from the start.

    The file has to be at least as long as it was, and to have the same bytes at its beginning and before the offset.
    """
    if not resume:
        return None
    try:
        offset, line = int(resume["offset"]), int(resume["line"])
        known = (resume["prefix"], resume["tail"])
    except (KeyError, TypeError, ValueError):
        return None
    return (offset, line) if offset > 0 and fingerprints(path, offset) == known else None


def _may_be_glued(line: bytes) -> bool:
    """Whether a second record may stand on the line, so that the line must be decoded whatever its first one is."""
    return any(line.find(start, 1) > 0 for start in _STARTS)
