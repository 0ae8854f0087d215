"""The same forward pass in onnxruntime, for those who prefer it and for measuring against it.

No `.onnx` file is fetched: the graph is written here, from the pinned tensors, with the operators that onnxruntime
would fuse an exported graph into. A model is a protocol buffer (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto);
the few messages that are needed are encoded by hand, which spares a dependency.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from funes.errors import FunesError
from funes.models.bert import BertConfig

Floats = NDArray[np.float32]

_FLOAT, _INT32 = 1, 6  # TensorProto.DataType
_CONTRIB = "com.microsoft"


class OnnxBert:
    """A BERT encoder that onnxruntime runs; gives what `funes.models.bert.Bert.hidden_states` gives.

    Args:
        tensors: the checkpoint's tensors, named as the transformers library names them.
        config: what the tensors do not say.
        threads: cores it may use; 0 for all.

    Raises:
        FunesError: onnxruntime is not installed.
    """

    def __init__(self, tensors: Mapping[str, NDArray[np.generic]], config: BertConfig, threads: int = 0) -> None:
        try:
            import onnxruntime
        except ImportError as error:
            raise FunesError(
                "onnxruntime is not installed: run `pip install funes-memory[onnx]`, or unset FUNES_BACKEND."
            ) from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self._session = onnxruntime.InferenceSession(
            graph(tensors, config), options, providers=["CPUExecutionProvider"]
        )

    def hidden_states(self, sequences: Sequence[NDArray[np.integer]]) -> list[Floats]:
        """Every token's last hidden state, (tokens, width) per sequence; sequences of like length waste the least."""
        if not sequences:
            return []
        lengths = [len(sequence) for sequence in sequences]
        ids = np.zeros((len(sequences), max(lengths)), np.int32)
        mask = np.zeros_like(ids)
        for row, sequence in enumerate(sequences):
            ids[row, : lengths[row]] = sequence
            mask[row, : lengths[row]] = 1
        states = self._session.run(None, {"ids": ids, "types": np.zeros_like(ids), "mask": mask})[0]
        return [cast("Floats", states[row, :length]) for row, length in enumerate(lengths)]


def graph(tensors: Mapping[str, NDArray[np.generic]], config: BertConfig) -> bytes:
    """The model as ONNX, weights included. Inputs `ids`, `types` and `mask`: (sequences, tokens) int32."""
    nodes: list[bytes] = []
    weights: list[bytes] = []

    def weight(name: str, value: NDArray[np.generic] | None = None) -> str:
        weights.append(_tensor(name, tensors[name] if value is None else value))
        return name

    def names(part: str) -> tuple[str, str]:
        return weight(f"{part}.weight"), weight(f"{part}.bias")

    def transposed(part: str) -> str:
        return weight(f"{part}.weight", tensors[f"{part}.weight"].T)

    embeddings = [weight(f"embeddings.{kind}_embeddings.weight") for kind in ("word", "position", "token_type")]
    nodes.append(
        _node(
            "EmbedLayerNormalization",
            ["ids", "types", *embeddings, *names("embeddings.LayerNorm")],
            ["states", "ignored"],
            epsilon=config.epsilon,
        )
    )
    states = "states"
    layer = 0
    while f"encoder.layer.{layer}.output.dense.weight" in tensors:
        name = f"encoder.layer.{layer}."
        parts = [f"{name}attention.self.{part}" for part in ("query", "key", "value")]
        mix, up, down = f"{name}attention.output", f"{name}intermediate", f"{name}output"
        qkv = weight(f"{name}qkv.weight", np.concatenate([tensors[f"{part}.weight"] for part in parts]).T)
        qkv_bias = weight(f"{name}qkv.bias", np.concatenate([tensors[f"{part}.bias"] for part in parts]))
        nodes += [
            _node("Attention", [states, qkv, qkv_bias, "mask"], [f"{name}context"], num_heads=config.heads),
            _node("MatMul", [f"{name}context", transposed(f"{mix}.dense")], [f"{name}mixed"], domain=""),
            _node("SkipLayerNormalization",
                  [f"{name}mixed", states, *names(f"{mix}.LayerNorm"), weight(f"{mix}.dense.bias")],
                  [f"{name}middle"], epsilon=config.epsilon),
            _node("MatMul", [f"{name}middle", transposed(f"{up}.dense")], [f"{name}inner"], domain=""),
            _node("BiasGelu", [f"{name}inner", weight(f"{up}.dense.bias")], [f"{name}active"]),
            _node("MatMul", [f"{name}active", transposed(f"{down}.dense")], [f"{name}down"], domain=""),
            _node("SkipLayerNormalization",
                  [f"{name}down", f"{name}middle", *names(f"{down}.LayerNorm"), weight(f"{down}.dense.bias")],
                  [f"{name}states"], epsilon=config.epsilon),
        ]  # fmt: skip
        states = f"{name}states"
        layer += 1
    inputs = [_value(name, _INT32, 2) for name in ("ids", "types", "mask")]
    body = b"".join(
        [_field(1, node) for node in nodes]
        + [_field(2, b"bert")]
        + [_field(5, tensor) for tensor in weights]
        + [_field(11, value) for value in inputs]
        + [_field(12, _value(states, _FLOAT, 3))]
    )
    opsets = [_field(1, b"") + _field(2, 17), _field(1, _CONTRIB.encode()) + _field(2, 1)]
    return _field(1, 8) + _field(2, b"funes") + _field(7, body) + b"".join(_field(8, opset) for opset in opsets)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number: int, value: int | float | bytes) -> bytes:
    """One field of a protocol buffer message: an integer, a float or bytes (also strings and messages)."""
    if isinstance(value, bytes):
        return _varint(number << 3 | 2) + _varint(len(value)) + value
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    return _varint(number << 3) + _varint(value)


def _node(kind: str, inputs: list[str], outputs: list[str], domain: str = _CONTRIB, **attributes: float) -> bytes:
    message = b"".join([_field(1, name.encode()) for name in inputs] + [_field(2, name.encode()) for name in outputs])
    message += _field(4, kind.encode()) + _field(7, domain.encode())
    for name, value in attributes.items():
        number, code = (2, 1) if isinstance(value, float) else (3, 2)
        message += _field(5, _field(1, name.encode()) + _field(number, value) + _field(20, code))
    return message


def _tensor(name: str, value: NDArray[Any]) -> bytes:
    data = np.ascontiguousarray(value, np.float32)
    shape = b"".join(_field(1, size) for size in data.shape)
    return shape + _field(2, _FLOAT) + _field(8, name.encode()) + _field(9, data.tobytes())


def _value(name: str, kind: int, axes: int) -> bytes:
    shape = b"".join(_field(1, _field(2, f"{name}_{axis}".encode())) for axis in range(axes))
    return _field(1, name.encode()) + _field(2, _field(1, _field(1, kind) + _field(2, shape)))
