"""A streamed model is the message that protobuf makes."""

from __future__ import annotations

import io

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch
from onnx_ir.tensor_adapters import TorchTensor

from fx2onnx import protobuf_stream
from fx2onnx.errors import SaveError
from fx2onnx.protobuf_stream import write_model

DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.bool, torch.float8_e4m3fn]


def weights() -> list[ir.TensorProtocol]:
    """Tensors of each kind that an initializer can be."""
    torch.manual_seed(0)
    made = [TorchTensor(torch.randn(3, 70).to(dtype), name=f"w{i}") for i, dtype in enumerate(DTYPES)]
    return [
        *made,
        TorchTensor(torch.randn(4, 5).t(), name="transposed"),
        TorchTensor(torch.randn(6)[::2], name="strided"),
        TorchTensor(torch.zeros(0, 3), name="empty"),
        TorchTensor(torch.tensor(2.0), name="scalar"),
        ir.tensor(np.arange(5), name="array"),
        ir.tensor(["a", "bc"], name="text"),
        ir.serde.TensorProtoTensor(onnx.numpy_helper.from_array(np.ones(3, np.float32), "proto")),
        ir.tensor(np.arange(7, dtype=np.int8), dtype=ir.DataType.INT4, name="packed"),
    ]


def model_with(tensors: list[ir.TensorProtocol]) -> ir.Model:
    values = [
        ir.Value(name=f"v.{t.name}", shape=t.shape, type=ir.TensorType(t.dtype), const_value=t)
        for t in tensors
    ]
    out = ir.Node("", "Identity", [values[0]], outputs=[ir.Value(name="y")])
    graph = ir.Graph([], out.outputs, nodes=[out], initializers=values, opset_imports={"": 23}, name="main")
    return ir.Model(graph, ir_version=11, producer_name="test")


def by_fields(message: onnx.ModelProto) -> onnx.ModelProto:
    """The message as protobuf writes and reads it."""
    return onnx.ModelProto.FromString(message.SerializeToString(deterministic=True))


def test_the_file_holds_what_protobuf_would_write():
    model = model_with(weights())
    before = [v.const_value for v in model.graph.initializers.values()]
    file = io.BytesIO()
    write_model(model, file)
    read = onnx.ModelProto.FromString(file.getvalue())
    assert read == by_fields(ir.to_proto(model))
    assert [v.const_value for v in model.graph.initializers.values()] == before


def test_a_file_on_disk_holds_the_same(tmp_path):
    model = model_with(weights())
    with (tmp_path / "m.onnx").open("wb") as file:
        write_model(model, file)
    assert onnx.load(tmp_path / "m.onnx") == ir.to_proto(model)


def test_a_model_that_is_too_large_is_refused_before_anything_is_written(monkeypatch):
    monkeypatch.setattr(protobuf_stream, "PROTOBUF_LIMIT", 100)
    file = io.BytesIO()
    with pytest.raises(SaveError, match=r"the model takes \d+ bytes, one file holds 100"):
        write_model(model_with(weights()), file)
    assert not file.getvalue()


def test_the_model_is_whole_again_after_a_failure():
    model = model_with(weights())
    before = [v.const_value for v in model.graph.initializers.values()]

    class Full(io.BytesIO):
        def write(self, data):
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_model(model, Full())
    assert [v.const_value for v in model.graph.initializers.values()] == before
