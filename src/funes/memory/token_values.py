"""What is stored of passages' tokens: of many passages in one array, as it lies in the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TokenValues:
    """Values of the kept tokens of passages, one passage after the other.

    Attributes:
        values: `(t,)` or `(t, width)`, one row for each token.
        lengths: `(n,)` int64, how many tokens each passage has; they sum to t.
        places: `(n,)` int64, where each passage stands in the list of ids that was asked for.
    """

    values: npt.NDArray[Any]
    lengths: Places
    places: Places

    @classmethod
    def of(cls, column: pa.ChunkedArray, places: Places, nothing: npt.NDArray[Any]) -> TokenValues:
        """Take a binary column over from Arrow, without copying its content; rows with null are left out.

        Args:
            column: `n` rows, in each the bytes of a passage's values.
            places: `(n,)` int64, aligned with it.
            nothing: the values of no token: it gives the type of a value, and the width.
        """
        import pyarrow as pa

        parts = [cls._of_chunk(chunk, nothing) for chunk in column.cast(pa.large_binary()).chunks]
        values = [part for part, _ in parts]
        lengths = np.concatenate([np.zeros(0, np.int64), *(sizes for _, sizes in parts)])
        known = lengths >= 0
        flat = values[0] if len(values) == 1 else np.concatenate([nothing, *values])
        return cls(flat, lengths[known], places[known])

    @staticmethod
    def _of_chunk(chunk: pa.Array, nothing: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Places]:
        """The values, and each row's number of tokens, -1 for null."""
        offsets = np.frombuffer(chunk.buffers()[1], np.int64)[chunk.offset : chunk.offset + len(chunk) + 1]
        size = nothing.dtype.itemsize * int(np.prod(nothing.shape[1:]))
        lengths = np.diff(offsets) // size
        if chunk.null_count:
            lengths = np.where(chunk.is_valid().to_numpy(zero_copy_only=False), lengths, -1)
        content = np.frombuffer(chunk.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
        return content.view(nothing.dtype).reshape(-1, *nothing.shape[1:]), lengths

    def joined(self, others: TokenValues) -> TokenValues:
        """These passages and others."""
        return TokenValues(
            np.concatenate([self.values, others.values]),
            np.concatenate([self.lengths, others.lengths]),
            np.concatenate([self.places, others.places]),
        )
