"""Reading a safetensors file without copying it.

The format (https://huggingface.co/docs/safetensors): 8 bytes little-endian length, that many bytes of JSON
(`{name: {dtype, shape, data_offsets}}`), then the raw tensors. The arrays returned here are views of a memory map,
so that opening costs nothing and several processes share one copy in the page cache.
"""

from __future__ import annotations

import json
import mmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from funes.errors import FunesError

_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1", "U8": "|u1",
    "BOOL": "|b1",
}  # fmt: skip
_LONGEST_HEADER = 100_000_000  # the format's own bound


def read_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """The tensors of a file by name, as read-only views of a memory map.

    Args:
        path: a `.safetensors` file. bfloat16 tensors, which numpy does not have, are copied to float32.

    Raises:
        FunesError: the file is not a complete safetensors file.
    """
    with path.open("rb") as file:
        try:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError as error:  # an empty file cannot be mapped
            raise _damaged(path) from error
    if len(data) < 8:
        raise _damaged(path)
    length = int.from_bytes(data[:8], "little")
    start = 8 + length
    if length > _LONGEST_HEADER or start > len(data):
        raise _damaged(path)
    try:
        header = json.loads(data[8:start])
        return {name: _tensor(data, start, entry) for name, entry in header.items() if name != "__metadata__"}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(path) from error


def _tensor(data: mmap.mmap, start: int, entry: dict[str, Any]) -> NDArray[Any]:
    begin, end = entry["data_offsets"]
    if not 0 <= begin <= end <= len(data) - start:
        raise ValueError("tensor outside the file")
    if entry["dtype"] == "BF16":
        halves = np.frombuffer(data, "<u2", (end - begin) // 2, start + begin)
        return (halves.astype(np.uint32) << 16).view(np.float32).reshape(entry["shape"])
    dtype = np.dtype(_DTYPES[entry["dtype"]])
    return np.frombuffer(data, dtype, (end - begin) // dtype.itemsize, start + begin).reshape(entry["shape"])


def _damaged(path: Path) -> FunesError:
    return FunesError(f"{path} is not a complete safetensors file: delete it and run the command again.")
