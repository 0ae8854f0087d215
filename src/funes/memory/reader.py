"""Reading a memory: candidates by words and by vector, token codes, rows, sessions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from funes.chunking import Chunk
from funes.errors import CorruptMemoryError
from funes.memory.backing import Backing, FolderBacking
from funes.memory.copies import Copies
from funes.memory.counts import PieceCounts, count_pieces
from funes.memory.filters import Filter
from funes.memory.handle import TableHandle
from funes.memory.opening import nothing_there, reach
from funes.memory.outline import Outline
from funes.memory.register import ONLY_IDS, Passage, Register
from funes.memory.schema import CHUNK_COLUMNS, CHUNKS, PROSE, REQUIRED_COLUMNS, VECTORS, quoted, quoted_list
from funes.memory.sessions import SessionSummary, summarize
from funes.memory.statistics import MemoryStatistics, collect
from funes.memory.token_values import TokenValues
from funes.memory.uri import resolve
from funes.memory.words import WordQuery, lance_query
from funes.models.codes import BYTES

if TYPE_CHECKING:
    import pyarrow as pa

    from funes.memory.remote.hub import Told

LONG_LIST = 200
"""Results from which on the scores of a vector search need not be exact."""

IDS_AT_ONCE = 1000

NO_CODES = np.zeros((0, BYTES), np.uint8)
NO_PIECES = np.zeros(0, "<u2")


class MemoryReader:
    """An open memory. Queries reuse its handles; `refresh` moves on to what was written since.

    Attributes:
        label: what the user calls the memory.
        folder: where its tables are; a folder that cannot exist when they are in an object store.
        note: a sentence for the user about what was opened, empty when there is nothing to say.
    """

    def __init__(self, label: str, place: Path | Backing, note: str = "") -> None:
        self.label = label
        self.note = note
        self._backing = FolderBacking(place) if isinstance(place, Path) else place
        self.folder = self._backing.folder
        self._chunks = TableHandle(self._backing, CHUNKS)
        self._vectors: TableHandle | None = None
        self._open_vectors()
        self._counts: PieceCounts | None = None
        self._outlined: Register | None = None
        self._outlines: tuple[Outline, ...] = ()
        self._copies = Copies(self._chunks)
        self._with_vectors = True
        if not self._chunks.columns >= REQUIRED_COLUMNS:
            raise CorruptMemoryError(
                f"{self._backing.where} holds a table {CHUNKS}, but not one of a funes memory (it lacks columns)."
            )

    @classmethod
    def open(
        cls, location: str | None = None, *, told: Told | None = None, opened: MemoryReader | None = None
    ) -> MemoryReader:
        """Open a memory for reading.

        Args:
            location: what `memory.uri.resolve` takes.
            told: told how far a download is.
            opened: a reader of the same memory, which is given back when it is at the newest version already.

        Raises:
            NoMemoryError: when there is nothing there yet.
            CorruptMemoryError: when what is there cannot be read.
            RemoteError: when the place cannot be reached, or not without more rights.
        """
        place = resolve(location)
        backing, note = reach(place, told)
        if opened is not None and opened._backing.where == backing.where:
            if place.kind != "hub":  # a snapshot never changes
                opened.refresh()
            opened.note = note
            return opened
        if not backing.has(CHUNKS):
            raise nothing_there(place, backing)
        return cls(place.label, backing, note)

    @property
    def version(self) -> tuple[int, int]:
        """Versions of the two tables, 0 for a missing vectors table."""
        return self._chunks.version, self._vectors.version if self._vectors else 0

    @property
    def model(self) -> str | None:
        """Id of the model that made the vectors, None without vectors."""
        if self._vectors is None:
            return self._chunks.inline_model
        metadata = self._vectors.dataset.schema.metadata or {}
        if stamp := metadata.get(b"funes:model"):
            return str(stamp.decode())
        row = self._vectors.scan(["model"], limit=1)
        return str(row.column("model")[0].as_py()) if row.num_rows else None

    def leave_vectors_out(self) -> None:
        """Answer from now on as if no passage had a vector: they were made with a model that is not at hand."""
        self._with_vectors = False

    def refresh(self) -> bool:
        """Move on to the newest version of each table; says whether anything is new."""
        changed = self._vectors.refresh() if self._vectors else self._open_vectors()
        changed = self._chunks.refresh() or changed
        if changed:
            self._counts = None
            self._copies.forget()
        return changed

    def words(self, query: WordQuery | str, where: Filter, limit: int) -> list[tuple[str, float]]:
        """Passages that contain any of the words, best first.

        Args:
            query: words in any form (prose, code, punctuation), or a weighted combination.
            where: conditions, applied before ranking.
            limit: most results.

        Returns:
            `(id, BM25 score)` pairs; empty when the query contains no word.
        """
        compiled = lance_query(query)
        if compiled is None or limit <= 0:
            return []
        found: dict[str, float] = {}
        for among in self._copies.ways(where):
            condition = where.passages(self._chunks.dialect, among)
            _keep_best(found, self._chunks.ranked("_score", condition, full_text_query=compiled, limit=limit))
        return _ranked(found)[:limit]

    def phrases(self, phrases: Sequence[str], where: Filter, limit: int) -> list[tuple[str, float]]:
        """Passages that contain any of the phrases word for word (case and inflection apart), best first."""
        return self.words(WordQuery(phrases=tuple((phrase, 1.0) for phrase in phrases)), where, limit)

    def nearest(self, vector: npt.NDArray[np.float32], where: Filter, limit: int) -> list[tuple[str, float]]:
        """Passages whose dense vectors are nearest.

        Args:
            vector: `(384,)` float32, unit length.
            where: conditions, applied before ranking.
            limit: most results.

        Returns:
            `(id, cosine similarity)` pairs, best first.
        """
        if self._vectors is None or not self._with_vectors or limit <= 0:
            return []
        search = {
            "column": "vector",
            "q": np.asarray(vector, dtype=np.float32),
            "k": limit,
            "metric": "cosine",
            **self._probes(limit),
        }
        found: dict[str, float] = {}
        for among in self._copies.ways(where):
            near = self._vectors.ranked("_distance", where.sql(self._vectors.dialect, among), nearest=search)
            _keep_best(found, [(identifier, 1.0 - distance) for identifier, distance in near])
        return _ranked(found)[:limit]

    def codes(self, ids: Sequence[str]) -> TokenValues:
        """Quantised token vectors of passages, for late interaction.

        Args:
            ids: the passages, each once; those without (tool output, and what waits for its vectors) are left out.

        Returns:
            `(t, 48)` uint8, in the order of the table.
        """
        return self._token_values(ids, "codes", NO_CODES)

    def pieces(self, ids: Sequence[str]) -> TokenValues:
        """The word piece of each kept token of embedded passages, `(t,)` uint16; others are left out."""
        return self._token_values(ids, "pieces", NO_PIECES)

    def passages(self, ids: Sequence[str], where: Filter | None = None) -> dict[str, Passage]:
        """What is known of stored passages without reading their text, as far as they meet the conditions.

        Args:
            ids: the passages; the result is in their order.
            where: conditions; None for none.
        """
        found = self._chunks.register().passages(ids)
        if where is None or where == Filter():
            return found
        met: set[str] = set()
        for among in self._copies.ways(where):
            asked = list(found) if among is None else sorted(set(among).intersection(found))
            for start in range(0, len(asked), IDS_AT_ONCE):
                here = quoted_list(asked[start : start + IDS_AT_ONCE])
                condition = where.passages(self._chunks.dialect, among and asked)
                rows = self._chunks.scan(["id"], f"id IN ({here}) AND {condition}")
                met.update(rows.column("id").to_pylist())
        return {identifier: passage for identifier, passage in found.items() if identifier in met}

    def block_types(self, ids: Sequence[str]) -> list[str]:
        """What stored passages are, in the order of their ids; empty for one that is not there."""
        return self._chunks.register().block_types(ids)

    def rows(self, ids: Iterable[str]) -> dict[str, Chunk]:
        """Read stored passages, text included, in the order of their ids; ids that are not there are left out."""
        wanted = list(dict.fromkeys(ids))
        rows = table_rows(self._chunks.by_id(wanted, CHUNK_COLUMNS)) if wanted else []
        found = {chunk.id: chunk for chunk in rows if chunk.text is not None}
        return {identifier: found[identifier] for identifier in wanted if identifier in found}

    def texts(self, ids: Iterable[str]) -> dict[str, str]:
        """Read the texts of stored passages, in a quarter of the time of whole rows."""
        rows = self._chunks.by_id(list(ids), ["text"])
        pairs = zip(rows.column("id").to_pylist(), rows.column("text").to_pylist(), strict=True)
        return {identifier: text for identifier, text in pairs if text is not None}

    def outline(self, *, prose: bool = False) -> Outline:
        """The order in which sessions say what they say: all of it, or the prose alone."""
        register = self._chunks.register()
        if self._outlined is not register:
            everything = Outline.of(register)
            self._outlined, self._outlines = register, (everything, everything.only(PROSE))
        return self._outlines[prose]

    def copies(self, session_id: str) -> list[str]:
        """Ids of passages that a session contains but another session stores."""
        return self._copies.of(Filter(session=session_id))

    def session_chunks(self, session_id: str, first: int | None = None, last: int | None = None) -> list[Chunk]:
        """Read a session's passages in order, with their text wherever it is stored.

        Args:
            session_id: the full id.
            first: lowest `seq` to read.
            last: highest `seq` to read, inclusive; None for no bound.
        """
        return self.stretches([(session_id, first, last)])

    def stretches(self, places: Sequence[tuple[str, int | None, int | None]]) -> list[Chunk]:
        """Read parts of sessions with one scan.

        Args:
            places: `(session id, lowest seq, highest seq)`, both inclusive; None for no bound.

        Returns:
            Passages of all parts, each once, in order of session, turn, block and split.
        """
        if not places:
            return []
        condition = " OR ".join(f"({_stretch(*place)})" for place in dict.fromkeys(places))
        rows = table_rows(self._chunks.scan(CHUNK_COLUMNS, condition))
        # Two writers of a store may leave a row there twice for a moment; the first one is the one that stays.
        chunks = list({(chunk.session_id, chunk.id): chunk for chunk in reversed(rows)}.values())
        absent = [chunk.id for chunk in chunks if chunk.text is None]
        originals = self.rows(absent) if absent else {}
        for chunk in chunks:
            if chunk.text is None and chunk.id in originals:
                chunk.text, chunk.offset = originals[chunk.id].text, originals[chunk.id].offset
        chunks = [chunk for chunk in chunks if chunk.text is not None]
        chunks.sort(key=lambda chunk: (chunk.session_id, chunk.seq, chunk.block_idx, chunk.split_idx))
        return chunks

    def find_sessions(self, prefix: str) -> list[str]:
        """Full ids of the sessions that start with a prefix, sorted; an exact match alone when there is one."""
        import pyarrow.compute as pc

        # Two questions that the index on sessions answers, where reading all ids would take as long as there are rows.
        if self._chunks.scan(["session_id"], f"session_id = {quoted(prefix)}", limit=1).num_rows:
            return [prefix]
        found = self._chunks.scan(["session_id"], f"starts_with(session_id, {quoted(prefix)})")
        return sorted(pc.unique(found.column("session_id")).to_pylist())

    def sessions(self, where: Filter | None = None, limit: int | None = None) -> list[SessionSummary]:
        """Summaries of the sessions that have a passage meeting the conditions, latest activity first."""
        return summarize(self._chunks, where or Filter(), limit)

    def piece_counts(self) -> tuple[npt.NDArray[np.int64], int]:
        """How rare each word piece is.

        Returns:
            `(30522,)` int64: number of passages of prose that contain the piece; and the number of those counted.
        """
        if self._counts is None:
            self._counts = count_pieces(self._backing, self._vectors if self._with_vectors else None)
        return self._counts.frequencies, self._counts.rows

    def statistics(self) -> MemoryStatistics:
        """Count what the memory holds."""
        return collect(self.label, self._backing, self._chunks, self._vectors)

    def _token_values(self, ids: Sequence[str], name: str, nothing: npt.NDArray[Any]) -> TokenValues:
        if self._vectors is None or not self._with_vectors:
            return TokenValues(nothing, np.zeros(0, np.int64), np.zeros(0, np.int64))
        return self._vectors.token_values(ids, name, nothing)

    def _open_vectors(self) -> bool:
        if not self._backing.has(VECTORS):
            return False
        self._vectors = TableHandle(self._backing, VECTORS, ONLY_IDS)
        return True

    def _probes(self, limit: int) -> dict[str, Any]:
        """All partitions are probed: what a quantised search loses is lost at their borders.

        The best of a short list are scored again exactly. In a list of hundreds, of which the ranks count, that takes
        most of the time and changes no answer of the evaluation sets.
        """
        return {"nprobes": 4096} if limit >= LONG_LIST else {"nprobes": 4096, "refine_factor": 5}


def table_rows(table: pa.Table) -> list[Chunk]:
    """Chunks of a table's rows."""
    from funes.memory.schema import table_to_chunks

    return table_to_chunks(table)


def _stretch(session_id: str, first: int | None, last: int | None) -> str:
    condition = f"session_id = {quoted(session_id)} AND seq >= {max(0, first or 0)}"
    return condition if last is None else f"{condition} AND seq <= {last}"


def _keep_best(best: dict[str, float], scored: Iterable[tuple[str, float]]) -> None:
    """Add scores to the best one of each passage; a passage that matches twice counts once."""
    for identifier, score in scored:
        if score > best.get(identifier, float("-inf")):
            best[identifier] = score


def _ranked(best: dict[str, float]) -> list[tuple[str, float]]:
    """Best first, equal scores in alphabetical order."""
    ordered = sorted(best)
    ordered.sort(key=best.__getitem__, reverse=True)
    return [(identifier, best[identifier]) for identifier in ordered]
