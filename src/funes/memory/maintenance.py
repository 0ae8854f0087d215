"""Indexes, compaction and clean-up: what keeps a table fast while it grows by small appends.

New rows are searched without an index until there are enough of them; then a delta index is added, and the latest
deltas are merged when they are many. Fragments are merged among those of their size, never into a bigger one, which
would be rewritten. What there is to merge at the end of a run depends on what the run has added. Row ids are stable, so
indexes stay valid across compaction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

FTS = "text_fts"
ID = "id_btree"
SESSION = "session_btree"
TYPE = "type_bitmap"
VECTOR = "vector_rq"

DELTA_ROWS = 100
"""Rows that may be searched without an index. A few cost a recall 60 ms, more not much more; a delta takes 80 ms."""

MERGE_DELTAS = 6
"""Deltas of similar size are merged when there are this many of them."""

MERGE_ROWS = 150_000
"""No merge makes a bigger delta: merging takes 1.5 KB of memory a row."""

WORTH = 3
"""The end of a run may merge so many times the rows that it has added: that takes a tenth of the time they took, and a
question is answered a tenth faster from one delta than from six."""

SMALL_FRAGMENT = 5000
MANY_SMALL = 20
BIG_FRAGMENT = 60_000
MANY_MEDIUM = 6
"""Reading the token codes of a question's candidates from one fragment takes two thirds of the time from seventeen."""

MANY_VERSIONS = 20
VECTOR_INDEX_ROWS = 30_000
VECTOR_PARTITION = 4096
MOST_PARTITIONS = 64
"""At a million rows 244 take three times as long to make and a third longer to search, and find the same."""

_TEXT_OPTIONS = {
    "index_type": "INVERTED",
    "analyzer": "code",
    "base_tokenizer": "code",
    "split_identifiers": True,
    "preserve_original": True,
    "stem": True,
    "with_position": True,
}


def index_chunks(dataset: Any, delta_rows: int = DELTA_ROWS, *, anew: bool = False, added: int = 0) -> bool:
    """Bring the indexes of the chunks table up to date.

    Args:
        dataset: the newest version of the table; it moves on to the version with the indexes.
        delta_rows: leave up to this many rows without an index, but never more than have one.
        anew: make each index again from the rows there are, since an index keeps the words of rows that are gone.
        added: at the end of a run, how many rows it has added.

    Returns:
        Whether anything was done.
    """
    names = set() if anew else _index_names(dataset)
    done = False
    for name, column, kind in ((ID, "id", "BTREE"), (SESSION, "session_id", "BTREE"), (TYPE, "block_type", "BITMAP")):
        if name not in names:
            dataset.create_scalar_index(column, kind, name=name, replace=True)
            done = True
    if FTS not in names:
        dataset.create_scalar_index("text", name=FTS, replace=True, **_TEXT_OPTIONS)
        done = True
    return _update(dataset, FTS, [FTS, ID, SESSION, TYPE], delta_rows, added) or done


def index_vectors(dataset: Any, delta_rows: int = DELTA_ROWS, *, anew: bool = False, added: int = 0) -> bool:
    """Bring the indexes of the vectors table up to date; see `index_chunks`."""
    present = _index_names(dataset)
    names = set() if anew else present
    done = False
    for name, column, kind in ((ID, "id", "BTREE"), (TYPE, "block_type", "BITMAP")):
        if name not in names:
            dataset.create_scalar_index(column, kind, name=name, replace=True)
            done = True
    known = [ID, TYPE]
    if VECTOR not in names and dataset.count_rows() >= VECTOR_INDEX_ROWS:
        partitions = min(max(1, dataset.count_rows() // VECTOR_PARTITION), MOST_PARTITIONS)
        dataset.create_index(
            "vector", index_type="IVF_RQ", name=VECTOR, metric="cosine", num_partitions=partitions, replace=True
        )
        done = True
    elif anew and VECTOR in present:
        dataset.drop_index(VECTOR)  # too few rows are left to need one
        done = True
    if VECTOR in _index_names(dataset):
        known.append(VECTOR)
    return _update(dataset, ID, known, delta_rows, added) or done


def tidy(dataset: Any, *, thoroughly: bool = False, big: int = BIG_FRAGMENT, added: int = 0) -> bool:
    """Merge fragments and remove old versions when there are many. Call under the table's lock.

    Args:
        dataset: the newest version of the table.
        thoroughly: do it even when there are only a few.
        big: rows from which on a fragment is never rewritten.
        added: at the end of a run, how many rows it has added. A long one has merged indexes, of which the parts are
            400 bytes a row that nobody needs.

    Returns:
        Whether anything was done.
    """
    done = False
    for low, high, many in ((0, SMALL_FRAGMENT, MANY_SMALL), (SMALL_FRAGMENT, big, MANY_MEDIUM)):
        alike = [fragment for fragment in dataset.get_fragments() if low <= fragment.count_rows() < high]
        if len(alike) >= (2 if thoroughly and low == 0 else many):
            dataset.optimize.compact_files(target_rows_per_fragment=high)
            done = True
    if thoroughly or done or added >= SMALL_FRAGMENT or len(dataset.versions()) > MANY_VERSIONS:
        remove_old_versions(dataset)
        done = True
    return done


def remove_old_versions(dataset: Any) -> None:
    """Remove every file that the newest version does not need. Call under the table's lock."""
    # Nobody else writes while the lock is held, so files that no version names are left-overs of a killed writer.
    dataset.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True, error_if_tagged_old_versions=False)


def _index_names(dataset: Any) -> set[str]:
    return {index.name for index in dataset.describe_indices()}


def _update(dataset: Any, measure: str, names: list[str], delta_rows: int, added: int) -> bool:
    """Index the rows that `measure` does not cover, as a delta; merge the latest deltas when it is time."""
    statistics = dataset.stats.index_stats(measure)
    waiting = int(statistics.get("num_unindexed_rows", 0))
    few = waiting <= delta_rows and waiting <= int(statistics.get("num_indexed_rows", 0))
    deltas = list(statistics.get("num_indexed_rows_per_delta", []))
    merge = deltas_to_merge(deltas if few else [*deltas, waiting], added)
    if few and not merge:
        return False
    dataset.optimize.optimize_indices(num_indices_to_merge=merge if few else max(0, merge - 1), index_names=names)
    return True


def deltas_to_merge(rows: Sequence[int], added: int = 0) -> int:
    """Decide how many of the latest deltas to merge into one, 0 for none.

    Args:
        rows: number of rows of each delta, the latest one last; those that wait for one are the latest.
        added: at the end of a run, how many rows it has added.
    """
    alike = _latest(rows, lambda size, total: size <= MERGE_DELTAS * total)
    worth = _latest(rows, lambda size, total: size + total <= WORTH * added)
    return max(alike if alike >= MERGE_DELTAS else 0, worth if worth > 1 else 0)


def _latest(rows: Sequence[int], joins: Callable[[int, int], bool]) -> int:
    """How many of the latest deltas go into one: as long as the next joins those before, within `MERGE_ROWS`."""
    total = count = 0
    for size in reversed(rows):
        if size + total > MERGE_ROWS or (total and not joins(size, total)):
            break
        total += size
        count += 1
    return count
