"""A model as one protobuf message, its weights written straight from their memory.

Protobuf makes a message out of parts that stand one after the other, each with its field number and length in front
(the wire format, https://protobuf.dev/programming-guides/encoding). So the structure is made by protobuf, and the
weights follow as further `initializer` fields of the graph: no weight is copied, or turned into a message first.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import onnx
import onnx_ir as ir

from fx2onnx.errors import SaveError

PROTOBUF_LIMIT = 2**31 - 1
"""The bytes that one protobuf message can have."""

_GRAPH = onnx.ModelProto.DESCRIPTOR.fields_by_name["graph"].number
_INITIALIZER = onnx.GraphProto.DESCRIPTOR.fields_by_name["initializer"].number
_RAW_DATA = onnx.TensorProto.DESCRIPTOR.fields_by_name["raw_data"].number


def write_model(model: ir.Model, file: BinaryIO) -> None:
    """Write a model with its weights as `onnx.ModelProto`.

    Raises:
        SaveError: it is larger than protobuf allows.
    """
    streamed = [v for v in model.graph.initializers.values() if _is_streamed(v.const_value)]
    with _hollow(streamed) as weights:
        proto = ir.to_proto(model)
    hollow = {value.name: weight for value, weight in zip(streamed, weights, strict=True)}
    initializers = [_initializer(tensor, hollow.get(tensor.name)) for tensor in proto.graph.initializer]
    proto.graph.ClearField("initializer")
    graph = proto.graph.SerializeToString()
    proto.ClearField("graph")
    start = proto.SerializeToString()
    length = len(graph) + sum(len(head) + _size(weight) for head, weight in initializers)
    start += _field(_GRAPH, length)
    if len(start) + length > PROTOBUF_LIMIT:
        raise SaveError(
            f"the model takes {len(start) + length} bytes, one file holds {PROTOBUF_LIMIT}",
            fix="save with external_data=True",
        )
    file.write(start)
    file.write(graph)
    for head, weight in initializers:
        file.write(head)
        if weight is not None:
            _write_weight(weight, file)


def _is_streamed(tensor: ir.TensorProtocol | None) -> bool:
    """Is a tensor written as raw data, from memory?"""
    return tensor is not None and not isinstance(
        tensor, ir.ExternalTensor | ir.StringTensor | ir.serde.TensorProtoTensor
    )


@contextlib.contextmanager
def _hollow(values: Sequence[ir.Value]) -> Iterator[list[Any]]:
    """While a message is made of the model, let these initializers have no data; yields their tensors."""
    tensors: list[Any] = [value.const_value for value in values]
    try:
        for value, tensor in zip(values, tensors, strict=True):
            value.const_value = ir.LazyTensor(
                _nothing, dtype=tensor.dtype, shape=tensor.shape, name=tensor.name
            )
        yield tensors
    finally:
        for value, tensor in zip(values, tensors, strict=True):
            value.const_value = tensor


def _nothing() -> ir.TensorProtocol:
    return ir.tensor([], dtype=ir.DataType.UINT8)


def _initializer(
    tensor: onnx.TensorProto, weight: ir.TensorProtocol | None
) -> tuple[bytes, ir.TensorProtocol | None]:
    """An initializer field of the graph up to its weight's bytes, and the weight; all of it where there is none."""
    if weight is None:
        message = tensor.SerializeToString()
        return _field(_INITIALIZER, len(message)) + message, None
    tensor.ClearField("raw_data")
    message = tensor.SerializeToString() + _field(_RAW_DATA, weight.nbytes)
    return _field(_INITIALIZER, len(message) + weight.nbytes) + message, weight


def _size(weight: ir.TensorProtocol | None) -> int:
    return 0 if weight is None else weight.nbytes


def _write_weight(weight: Any, file: BinaryIO) -> None:
    before = file.tell()
    weight.tofile(file)
    written = file.tell() - before
    if written != weight.nbytes:
        raise SaveError(f"{weight.name} was written as {written} bytes instead of {weight.nbytes}")


def _field(number: int, length: int) -> bytes:
    """What stands before a field of this many bytes."""
    return _varint(number << 3 | 2) + _varint(length)


def _varint(number: int) -> bytes:
    """A number in groups of seven bits, the lowest first; the top bit of a byte says that another follows."""
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)
