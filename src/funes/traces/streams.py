"""Trace files as byte streams: decompressed, transcoded to UTF-8, and recognised when they are read again."""

from __future__ import annotations

import codecs
import hashlib
import io
from pathlib import Path
from typing import IO, Any

READ_SIZE = 2**20
"""Bytes that are asked of the file at once."""

PREFIX = 64 * 2**10
"""Number of bytes at the start of a file whose hash says whether it is still the same file."""

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
SQLITE_MAGIC = b"SQLite format 3\x00"
PARQUET_MAGIC = b"PAR1"

_TAIL = 1024
_ZSTD_PIECE = 1024


def open_trace(path: Path) -> io.BufferedReader:
    """Open a trace for reading; a zstd-compressed one is decompressed on the fly.

    Raises:
        OSError: the file cannot be opened.
    """
    raw: io.BufferedReader = io.BufferedReader(io.FileIO(path), READ_SIZE)
    if not raw.peek(4).startswith(ZSTD_MAGIC):
        return raw
    return io.BufferedReader(_ZstdFile(raw), READ_SIZE)


class _ZstdFile(io.RawIOBase):
    """Decompressed bytes of a zstd file; faults in the compressed data are `OSError`."""

    def __init__(self, raw: IO[bytes]) -> None:
        import zstandard

        self._raw = raw
        self._error: type[Exception] = zstandard.ZstdError
        self._make = zstandard.ZstdDecompressor().decompressobj
        self._frame = self._make()
        self._rest = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            # Small pieces, so that a fault costs little of the sound data before it.
            data = self._rest or self._raw.read(_ZSTD_PIECE)
            self._rest = b""
            if self._frame.eof:
                self._frame = self._make()
            elif not data:
                raise OSError("the compressed data ends early")
            if not data:
                return 0
            try:
                self._ready = memoryview(self._frame.decompress(data))
            except self._error as error:
                raise OSError(f"the compressed data is damaged ({error})") from error
            if self._frame.eof:
                self._rest = self._frame.unused_data
        taken = self._ready[: len(buffer)]
        self._ready = self._ready[len(taken) :]
        buffer[: len(taken)] = taken
        return len(taken)

    def close(self) -> None:
        self._raw.close()
        super().close()


def utf16_name(start: bytes) -> str:
    """Return the codec of a stream that begins with these four bytes when it is UTF-16, else an empty string."""
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    return {b'{\x00"\x00': "utf-16-le", b'\x00{\x00"': "utf-16-be"}.get(start, "")


def transcoded(stream: io.BufferedReader, encoding: str) -> io.BufferedReader:
    """Return the text of a stream as UTF-8 bytes."""
    return io.BufferedReader(_Utf8File(stream, encoding), READ_SIZE)


class _Utf8File(io.RawIOBase):
    """Bytes of a UTF-16 stream, in UTF-8."""

    def __init__(self, stream: io.BufferedReader, encoding: str) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            data = self._stream.read(PREFIX)
            self._ready = self._decoder.decode(data, final=not data).encode("utf-8", "replace")
            if not data:
                break
        taken = self._ready[: len(buffer)]
        self._ready = self._ready[len(taken) :]
        buffer[: len(taken)] = taken
        return len(taken)


def fingerprints(path: Path, offset: int) -> tuple[str, str] | None:
    """Hash the first min(offset, PREFIX) bytes and the last ones before the offset; None without them."""
    try:
        with path.open("rb") as stream:
            prefix = stream.read(min(offset, PREFIX))
            stream.seek(max(offset - _TAIL, 0))
            tail = stream.read(min(offset, _TAIL))
    except OSError:
        return None
    if prefix.startswith(ZSTD_MAGIC) or len(tail) < min(offset, _TAIL):
        return None
    return _hash(prefix), _hash(tail)


def _hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
