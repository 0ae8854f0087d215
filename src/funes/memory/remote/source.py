"""The local memory as the source of a publication: frozen, and read in the form in which its rows travel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from funes.errors import NoMemoryError
from funes.memory.identity import newest_version
from funes.memory.lance import give_memory_back, guarded, lance_module
from funes.memory.remote.merge import KEY_COLUMNS, Catalogue, Missing
from funes.memory.remote.staging import freeze
from funes.memory.schema import (
    CHUNK_COLUMNS,
    CHUNKS,
    FILTER_COLUMNS,
    REFERENCE,
    VECTORS,
    chunks_schema,
    vectors_schema,
)
from funes.memory.store import CACHE_BYTES
from funes.memory.vector_store import MODEL_KEY

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_AT_ONCE = 5_000
VECTORS_AT_ONCE = 2_000


class Source:
    """A memory, frozen at its newest version.

    Args:
        folder: the memory's folder.
        work: a folder in which the frozen copy is made; the caller removes it.
        model: id of the model whose vectors count.

    Attributes:
        catalogue: its rows.
        versions: of its two tables, 0 for a missing one.
        model: as given.

    Raises:
        NoMemoryError: when there is no memory in the folder.
        CorruptMemoryError: when it cannot be read.
    """

    def __init__(self, folder: Path, work: Path, model: str) -> None:
        if not newest_version(folder):
            raise NoMemoryError(f"There is no memory in {folder} yet; run `funes index` to make one.")
        self.folder = work / "local"
        self.model = model
        freeze(folder, self.folder)
        self.versions = [newest_version(self.folder), newest_version(self.folder, VECTORS)]
        self._chunks = self._open(CHUNKS)
        self._vectors = self._open(VECTORS) if newest_version(self.folder, VECTORS) else None
        if self._vectors is not None and model_of(self._vectors) != model:
            self._vectors = None
        keys = self._read(lambda: self._chunks.to_table(columns=list(KEY_COLUMNS)))
        self.catalogue = Catalogue(keys, list(self._vector_places))

    def texts(self, places: Sequence[int]) -> list[tuple[str, int]]:
        """Text and position in the block of rows, those of the stored passage for a reference, in the order given.

        A reference whose passage is nowhere in the memory has no text, and position 0.
        """
        wanted = [self.catalogue.original(place) if self.catalogue.is_reference(place) else place for place in places]
        order = sorted(set(wanted))
        rows = self._take(self._chunks, order, ["text", "offset"])
        texts, offsets = rows.column("text").to_pylist(), rows.column("offset").to_pylist()
        read = {place: (text or "", max(offset, 0)) for place, text, offset in zip(order, texts, offsets, strict=True)}
        return [read[place] for place in wanted]

    def columns(self, places: Sequence[int], names: Sequence[str]) -> pa.Table:
        """Read columns of rows, in the order of `places`."""
        return self._take(self._chunks, places, list(names))

    def rows(self, missing: Missing, texts_there: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """Rows to append to a memory: each with its text, or as a reference where the memory has the text already.

        Args:
            missing: which.
            texts_there: digests of the passages whose text the memory has.
        """
        catalogue, stored = self.catalogue, set(texts_there)
        for part in missing.parts(ROWS_AT_ONCE):
            places = np.sort(part).tolist()
            first = []
            for place in places:
                passage = int(catalogue.passages[place])
                first.append(passage not in stored)
                stored.add(passage)
            yield from self._as_published(places, first, missing.moved).to_batches()
            give_memory_back()

    def vectors(self, missing: Missing, vectors_there: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """Vectors to append to a memory, with the filter columns of the row that is published.

        Args:
            missing: which passages are published.
            vectors_there: digests of the passages whose vector the memory has.
        """
        import pyarrow as pa

        catalogue, known, schema = self.catalogue, set(vectors_there), self.vectors_schema()
        wanted = []
        for place in np.sort(np.concatenate([missing.rows, missing.vectors])).tolist():
            passage = int(catalogue.passages[place])
            if catalogue.embedded[place] and passage not in known:
                known.add(passage)
                wanted.append(place)
        for start in range(0, len(wanted), VECTORS_AT_ONCE):
            places = wanted[start : start + VECTORS_AT_ONCE]
            filters = self.columns(places, FILTER_COLUMNS)
            rows = self._take(self._vectors, [self._vector_places[catalogue.ids[place]] for place in places], None)
            columns = [
                (filters if name in FILTER_COLUMNS else rows).column(name).cast(schema.field(name).type)
                for name in schema.names
            ]
            yield from pa.Table.from_arrays(columns, schema=schema).to_batches()
            give_memory_back()

    def vectors_schema(self) -> pa.Schema:
        """Schema of a vectors table of this model."""
        return vectors_schema().with_metadata({MODEL_KEY: self.model.encode()})

    def _as_published(self, places: list[int], with_text: list[bool], moved: Mapping[int, int]) -> pa.Table:
        """Rows with or without their text; a reference to a passage that is nowhere is left out."""
        import pyarrow as pa

        catalogue = self.catalogue
        rows = self._take(self._chunks, places, list(CHUNK_COLUMNS))
        texts, offsets = rows.column("text").to_pylist(), rows.column("offset").to_pylist()
        made_whole = [
            number
            for number, (place, whole) in enumerate(zip(places, with_text, strict=True))
            if whole and catalogue.is_reference(place)
        ]
        found = self.texts([places[number] for number in made_whole]) if made_whole else []
        for number, (text, offset) in zip(made_whole, found, strict=True):
            texts[number], offsets[number] = text or None, offset
        for number, whole in enumerate(with_text):
            if not whole:
                texts[number], offsets[number] = None, REFERENCE
        schema = chunks_schema()
        blocks = rows.column("block_idx").to_pylist()
        blocks = [moved.get(place, block) for place, block in zip(places, blocks, strict=True)]
        replaced = {"text": texts, "offset": offsets, "block_idx": blocks}
        columns = [
            pa.array(replaced[name], schema.field(name).type)
            if name in replaced
            else rows.column(name).cast(schema.field(name).type)
            for name in CHUNK_COLUMNS
        ]
        keep = [not whole or text is not None for text, whole in zip(texts, with_text, strict=True)]
        return pa.table(dict(zip(CHUNK_COLUMNS, columns, strict=True)), schema=schema).filter(pa.array(keep))

    @cached_property
    def _vector_places(self) -> dict[str, int]:
        """Position of each passage's vector in the vectors table."""
        if self._vectors is None:
            return {}
        ids = self._read(lambda: self._vectors.to_table(columns=["id"])).column("id").to_pylist()
        return {identifier: place for place, identifier in enumerate(ids)}

    def _take(self, table: Any, places: Sequence[int], columns: list[str] | None) -> pa.Table:
        """Rows by their position, in the order of `places`."""
        order = np.argsort(np.array(places, np.int64), kind="stable")
        rows = self._read(lambda: table.take(np.array(places, np.int64)[order].tolist(), columns=columns))
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return rows.take(back)

    def _read(self, action: Any) -> pa.Table:
        table: pa.Table = guarded(self.folder, action)
        return table

    def _open(self, name: str) -> Any:
        sizes = {"index_cache_size_bytes": CACHE_BYTES, "metadata_cache_size_bytes": CACHE_BYTES}
        return guarded(self.folder, lambda: lance_module().dataset(str(self.folder / name), **sizes))


def model_of(vectors: Any) -> str:
    """Id of the model that made a vectors table; empty when it does not say."""
    return str((vectors.schema.metadata or {}).get(MODEL_KEY, b"").decode())
