"""The register: a few bytes about every row of a table, kept in memory.

Lance needs twice as long to find rows by a column as by their places, and up to three times as long for a search that
returns a column as for one that returns row ids alone. Reading the narrow columns of a hundred thousand rows takes
60 ms, once: a table that has grown is read only as far as it is new.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from funes.memory.lance import give_memory_back
from funes.memory.schema import REFERENCE

if TYPE_CHECKING:
    import pyarrow as pa

    from funes.memory.dialect import Dialect

NARROW_COLUMNS = ("id", "session_id", "role", "block_type", "ts", "seq", "block_idx", "split_idx", "offset")
"""What is read of a row, as far as the table has it."""

ONLY_IDS = ("id",)

MANY_ROWS = 50_000
"""Rows after whose reading Arrow's memory is worth giving back."""

NO_TIME = np.iinfo(np.int64).min
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MIX = np.uint64(0x9E3779B97F4A7C15)

Positions = npt.NDArray[Any]
"""`(n,)` integers: places of rows in the table."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A stored passage without its text: what ranking has to know of it.

    Attributes:
        id: its id.
        session_id: the session that stores it.
        block_type: what it is.
        ts: when it was said, aware; None when that is not known.
    """

    id: str
    session_id: str
    block_type: str
    ts: datetime | None


@dataclass(slots=True)
class Rows:
    """Columns of some rows, in the order of the table.

    Attributes:
        ids: `(n,)` bytes of fixed width, the passages' ids.
        row_ids: `(n,)` uint64, what Lance calls the rows.
        session, role, block_type: `(n,)` int32, places in `Names`.
        ts: `(n,)` int64, microseconds since 1970, `NO_TIME` for none.
        seq, block_idx, split_idx: `(n,)` int32, where the passage stands in its session.
        stored: `(n,)` bool, whether the row has the passage's text; the others are references to it.
    """

    ids: npt.NDArray[np.bytes_]
    row_ids: npt.NDArray[np.uint64]
    session: npt.NDArray[np.int32]
    role: npt.NDArray[np.int32]
    block_type: npt.NDArray[np.int32]
    ts: npt.NDArray[np.int64]
    seq: npt.NDArray[np.int32]
    block_idx: npt.NDArray[np.int32]
    split_idx: npt.NDArray[np.int32]
    stored: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, table: pa.Table, names: Names) -> Rows:
        """Take columns over from Arrow; those that a table lacks are empty or 0.

        Args:
            table: rows with `_rowid` and any of `NARROW_COLUMNS`.
            names: learns names that it does not know.
        """
        import pyarrow as pa

        size = table.num_rows

        def column(name: str) -> Any:
            return table.column(name).combine_chunks() if name in table.column_names else None

        def coded(name: str) -> npt.NDArray[np.int32]:
            values = column(name)
            return _constant(np.int32(0), size) if values is None else names.codes(values)

        def number(name: str) -> Any:
            values = column(name)
            return _constant(np.int32(0), size) if values is None else values.fill_null(0).to_numpy().astype(np.int32)

        times, offsets = column("ts"), column("offset")
        return cls(
            _fixed_width(column("id")),
            column("_rowid").to_numpy().astype(np.uint64),
            coded("session_id"),
            coded("role"),
            coded("block_type"),
            _constant(np.int64(NO_TIME), size)
            if times is None
            else times.cast(pa.int64()).fill_null(NO_TIME).to_numpy(),
            number("seq"),
            number("block_idx"),
            number("split_idx"),
            _constant(np.bool_(True), size) if offsets is None else offsets.fill_null(0).to_numpy() != REFERENCE,
        )

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """Rows of several parts, in order."""
        if not parts:
            import pyarrow as pa

            return cls.of(pa.table({"id": pa.array([], pa.string()), "_rowid": pa.array([], pa.uint64())}), Names())
        return cls(*(_concatenated([getattr(part, field.name) for part in parts]) for field in fields(cls)))


class Names:
    """Numbers for the few different values of a text column; number 0 is the empty text."""

    def __init__(self) -> None:
        self._texts: list[str] = [""]
        self._codes: dict[str | None, int] = {None: 0, "": 0}

    def codes(self, values: pa.Array) -> npt.NDArray[np.int32]:
        """Numbers of texts, `(n,)` int32; new ones get the next."""
        encoded = values.dictionary_encode(null_encoding="encode")
        own = np.array([self._learn(value) for value in encoded.dictionary.to_pylist()], np.int32)
        return own[encoded.indices.to_numpy()] if len(own) else np.zeros(len(values), np.int32)

    def code(self, value: str) -> int:
        """Number of a text, -1 for one that no row has."""
        return self._codes.get(value, -1)

    def text(self, code: int) -> str:
        """The text that a number stands for."""
        return self._texts[code]

    def _learn(self, value: str | None) -> int:
        code = self._codes.setdefault(value, len(self._texts))
        if code == len(self._texts):
            self._texts.append(str(value))
        return code


class Register:
    """The rows of one version of a table.

    Args:
        dataset: the version.
        rows: all of them, in the table's order: the position of a row here is its place there.
        names: what the numbers in them mean.
    """

    def __init__(self, dataset: Any, rows: Rows, names: Names) -> None:
        self.dataset = dataset
        self.rows = rows
        self.names = names

    def __len__(self) -> int:
        return len(self.rows.ids)

    def ids_at(self, positions: npt.ArrayLike) -> list[str]:
        """Ids of the passages in rows."""
        found = self.rows.ids[np.asarray(positions, np.int64)].tolist()
        return [identifier.decode("utf-8", "surrogatepass") for identifier in found]

    def passages(self, ids: Sequence[str]) -> dict[str, Passage]:
        """Stored passages by their ids, in that order; those that are not there are left out."""
        rows, names = self.rows, self.names
        found = {}
        for identifier, position in zip(ids, self.by_id(ids).tolist(), strict=True):
            if position >= 0:
                time = int(rows.ts[position])
                found[identifier] = Passage(
                    identifier,
                    names.text(int(rows.session[position])),
                    names.text(int(rows.block_type[position])),
                    None if time == NO_TIME else _EPOCH + timedelta(microseconds=time),
                )
        return found

    def block_types(self, ids: Sequence[str]) -> list[str]:
        """What stored passages are; empty for one that is not there."""
        positions = self.by_id(ids)
        codes = np.where(positions >= 0, self.rows.block_type[positions], 0) if len(self) else np.zeros(len(ids), int)
        return [self.names.text(code) for code in codes.tolist()]

    def by_row_id(self, row_ids: npt.NDArray[np.uint64]) -> Positions:
        """Positions of rows by what Lance calls them, `(n,)` int64; -1 for one that is not there."""
        return _found(self._by_row_id, row_ids)

    def by_id(self, ids: Sequence[str]) -> Positions:
        """Positions of the rows that have the texts of passages, `(n,)` int64; -1 for one that is not there."""
        width = self.rows.ids.dtype.itemsize
        encoded = [identifier.encode("utf-8", "surrogatepass") for identifier in ids]
        wanted = np.array(encoded, f"S{width}")
        positions = _found(self._by_digest, _digests(wanted))
        if len(self):
            # Two ids with one digest are next to impossible, but taking one for the other would be a wrong answer.
            wrong = (self.rows.ids[positions] != wanted) | (np.array([len(one) for one in encoded], int) > width)
            positions[wrong] = -1
        return positions

    @cached_property
    def _by_row_id(self) -> tuple[npt.NDArray[np.uint64], Positions]:
        return _sorted(self.rows.row_ids, np.arange(len(self), dtype=np.int32))

    @cached_property
    def _by_digest(self) -> tuple[npt.NDArray[np.uint64], Positions]:
        stored = np.flatnonzero(self.rows.stored).astype(np.int32)
        return _sorted(_digests(self.rows.ids[stored]), stored)


class RegisterReader:
    """Reads registers of a table's versions one after the other, each row once.

    Args:
        columns: those of `NARROW_COLUMNS` that are wanted.
    """

    def __init__(self, columns: Sequence[str] = NARROW_COLUMNS) -> None:
        self._columns = columns
        self._names = Names()
        self._parts: dict[tuple[Any, ...], Rows] = {}

    def read(self, dataset: Any, dialect: Dialect) -> Register:
        """Read the register of a version.

        Args:
            dataset: the version.
            dialect: what the table lacks.
        """
        parts: dict[tuple[Any, ...], Rows | None] = {}
        new = []
        for fragment in dataset.get_fragments():
            key = _what_it_holds(fragment.metadata)
            parts[key] = self._parts.get(key)
            if parts[key] is None:
                new.append((key, fragment))
        if new:
            columns = [name for name in self._columns if name in dataset.schema.names]
            fragments = [fragment for _, fragment in new]
            scanner = dataset.scanner(columns=columns, fragments=fragments, with_row_id=True, scan_in_order=True)
            table = dialect.translated(scanner.to_table(), columns)
            first = 0
            for key, fragment in new:
                size = fragment.count_rows()
                parts[key] = Rows.of(table.slice(first, size), self._names)
                first += size
            if first >= MANY_ROWS:
                del table
                give_memory_back()
        self._parts = {key: rows for key, rows in parts.items() if rows is not None}
        return Register(dataset, Rows.joined(list(self._parts.values())), self._names)


def _constant(value: Any, size: int) -> Any:
    """An array of equal values that takes no memory."""
    return np.broadcast_to(value, size)


def _concatenated(parts: Sequence[npt.NDArray[Any]]) -> Any:
    """Arrays one after the other; constants stay what they are."""
    if all(part.strides == (0,) for part in parts):
        return _constant(parts[0].reshape(-1)[0] if len(parts[0]) else parts[0].dtype.type(), sum(map(len, parts)))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _what_it_holds(fragment: Any) -> tuple[Any, ...]:
    """Equal for descriptions of a fragment that have the same rows: the same files, and the same rows deleted."""
    deleted = fragment.deletion_file
    files = tuple(file.path for file in fragment.files)
    return (fragment.id, fragment.physical_rows, files, None if deleted is None else str(deleted.asdict()))


def _sorted(keys: npt.NDArray[np.uint64], positions: Positions) -> tuple[npt.NDArray[np.uint64], Positions]:
    """Make an index for `_found` of different keys."""
    if (keys[1:] > keys[:-1]).all():  # as row ids are, until a table is compacted
        return keys, positions
    order = np.argsort(keys)
    return keys[order], positions[order]


def _found(index: tuple[npt.NDArray[np.uint64], Positions], wanted: npt.NDArray[np.uint64]) -> Positions:
    """Positions of keys in a sorted index, -1 for those that it lacks."""
    keys, positions = index
    if not len(keys):
        return np.full(len(wanted), -1, np.int64)
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[places] == wanted, positions[places], -1)


def _fixed_width(ids: pa.Array) -> npt.NDArray[np.bytes_]:
    """Ids as bytes of a width that is a multiple of 8."""
    import pyarrow as pa

    data = ids.cast(pa.large_binary())
    offsets = np.frombuffer(data.buffers()[1], np.int64)[data.offset : data.offset + len(data) + 1]
    lengths = np.diff(offsets)
    width = max(8, -(-int(lengths.max(initial=0)) // 8) * 8)
    content = np.frombuffer(data.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    if len(data) and int(lengths.min()) == width:
        return content.copy().view(f"S{width}")
    rows = np.zeros((len(data), width), np.uint8)
    rows[np.arange(width) < lengths[:, None]] = content
    return rows.reshape(-1).view(f"S{width}")


def _digests(ids: npt.NDArray[np.bytes_]) -> npt.NDArray[np.uint64]:
    """64 bits of each id, `(n,)` uint64: its words multiplied and mixed."""
    words = np.ascontiguousarray(ids).view(np.uint64).reshape(len(ids), ids.dtype.itemsize // 8)
    digest = np.zeros(len(ids), np.uint64)
    with np.errstate(over="ignore"):
        for column in words.T:
            digest = (digest ^ column) * _MIX
            digest ^= digest >> np.uint64(29)
    return digest
