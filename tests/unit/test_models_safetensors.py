from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funes.errors import FunesError
from funes.models.safetensors import read_tensors


def file_bytes(tensors, metadata=True):
    header, body = {}, b""
    for name, (dtype, array) in tensors.items():
        data = array.tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    if metadata:
        header["__metadata__"] = {"format": "pt"}
    encoded = json.dumps(header).encode()
    return len(encoded).to_bytes(8, "little") + encoded + body


WEIGHTS = {
    "a": ("F32", np.arange(6, dtype=np.float32).reshape(2, 3)),
    "b": ("F16", np.array([0.5, -2], np.float16)),
    "c": ("I64", np.array([[7]], np.int64)),
    "scalar": ("F32", np.array(3, np.float32)),
    "empty": ("F32", np.zeros((0, 4), np.float32)),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def test_reads_names_types_and_shapes(path):
    path.write_bytes(file_bytes(WEIGHTS))
    tensors = read_tensors(path)
    assert tensors.keys() == WEIGHTS.keys()
    for name, (_, expected) in WEIGHTS.items():
        np.testing.assert_array_equal(tensors[name], expected)
        assert tensors[name].dtype == expected.dtype
        assert not tensors[name].flags.writeable


def test_bfloat16_becomes_float32(path):
    wanted = np.array([1.0, -2.5, 0.0], np.float32)
    path.write_bytes(file_bytes({"w": ("BF16", (wanted.view(np.uint32) >> 16).astype(np.uint16))}))
    tensor = read_tensors(path)["w"]
    assert tensor.dtype == np.float32
    np.testing.assert_array_equal(tensor, wanted)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x01",
        b"\xff" * 8,
        (5).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"[]",
        (2).to_bytes(8, "little") + b"{x",
        file_bytes({"a": ("F99", np.zeros(2, np.float32))}),
        file_bytes(WEIGHTS)[:-1],
        b"<html>proxy error</html>",
    ],
)
def test_a_damaged_file_is_one_sentence(path, data):
    path.write_bytes(data)
    with pytest.raises(FunesError, match=r"model\.safetensors is not a complete safetensors file: delete it"):
        read_tensors(path)


@given(st.integers(0, 400), st.integers(0, 255))
@settings(max_examples=100, deadline=None)
def test_one_wrong_byte_never_raises_anything_else(tmp_path_factory, place, value):
    data = bytearray(file_bytes(WEIGHTS))
    data[place % len(data)] = value
    path = tmp_path_factory.mktemp("flipped") / "model.safetensors"
    path.write_bytes(data)
    try:
        tensors = read_tensors(path)
    except FunesError:
        return
    assert isinstance(tensors, dict)
