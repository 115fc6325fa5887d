"""Bodies hold only what is read."""

from __future__ import annotations

import onnx_ir as ir
import pytest
import torch
from torch import nn

import fx2onnx
from fx2onnx.bodies import drop_unused


def pooled(read: int, op: str = "MaxPool", outputs: int = 2) -> ir.Node:
    """A node of two results in a graph that returns its first `read` ones; what is left of it."""
    x = ir.Value(name="x")
    node = ir.Node("", op, [x], outputs=[ir.Value(name=f"y{i}") for i in range(outputs)])
    graph = ir.Graph([x], node.outputs[:read], nodes=[node], opset_imports={"": 23})
    drop_unused(graph)
    return node


@pytest.mark.parametrize(("read", "kept"), [(1, 1), (2, 2)])
def test_an_optional_result_that_nothing_reads_is_not_made(read, kept):
    assert len(pooled(read).outputs) == kept


def test_results_that_an_operator_must_make_are_kept():
    assert len(pooled(1, "TopK").outputs) == 2
    assert len(pooled(1, "Split").outputs) == 2


def test_max_pooling_makes_no_positions():
    program = fx2onnx.export(nn.MaxPool2d(2), (torch.randn(1, 2, 4, 4),), functions="none")
    (node,) = program.model.graph
    assert node.op_type == "MaxPool"
    assert len(node.outputs) == 1
