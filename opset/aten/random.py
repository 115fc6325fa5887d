"""Random tensors. The dtype, the shape and the distribution are PyTorch's, the values the runtime's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, shape_of
from fx2onnx.opset.aten.creation import Size
from fx2onnx.opset.aten.operands import Operand, f32, f64, operand
from fx2onnx.rules import lowers
from fx2onnx.types import DTYPES

aten = torch.ops.aten


@lowers(aten.rand.default)
def rand(op: OpBuilder, size: Sequence[Size], *, dtype: torch.dtype | None = None) -> ir.Value:  # noqa: ARG001
    """(*size), evenly distributed over [0, 1)."""
    return _drawn(op, "RandomUniform", size)


@lowers(aten.randn.default)
def randn(op: OpBuilder, size: Sequence[Size], *, dtype: torch.dtype | None = None) -> ir.Value:  # noqa: ARG001
    """(*size), normally distributed."""
    return _drawn(op, "RandomNormal", size)


@lowers(aten.rand_like.default)
def rand_like(op: OpBuilder, self: Value, *, dtype: torch.dtype | None = None) -> ir.Value:  # noqa: ARG001
    """(*) -> (*), evenly distributed over [0, 1)."""
    return _drawn_like(op, "RandomUniform", self)


@lowers(aten.randn_like.default)
def randn_like(op: OpBuilder, self: Value, *, dtype: torch.dtype | None = None) -> ir.Value:  # noqa: ARG001
    """(*) -> (*), normally distributed."""
    return _drawn_like(op, "RandomNormal", self)


@lowers(aten.bernoulli.default)
def bernoulli(op: OpBuilder, self: Value) -> ir.Value:
    """(*) -> (*): 1 with the probability that the element says, else 0."""
    drawn = _uniform_like(op, self)
    return op.cast(op.Less(drawn, op.cast(self, f32)), op.result.dtype)


@lowers(aten.bernoulli.p)
def bernoulli_p(op: OpBuilder, self: Value, p: float = 0.5) -> ir.Value:
    """(*) -> (*): 1 with probability p, else 0."""
    return op.cast(op.Less(_uniform_like(op, self), op.constant(p, f32)), op.result.dtype)


@lowers(aten.randint.default, aten.randint.low)
def randint(op: OpBuilder, *arguments: Any, dtype: torch.dtype | None = None) -> ir.Value:  # noqa: ARG001
    """(high, size) or (low, high, size) -> (*size), whole numbers in [low, high)."""
    *bounds, size = arguments
    drawn = _drawn(op, "RandomUniform", size, dtype=f64)
    return _whole(op, drawn, bounds[0] if len(bounds) > 1 else 0, bounds[-1])


@lowers(aten.randint_like.default, aten.randint_like.low_dtype)
def randint_like(op: OpBuilder, self: Value, *bounds: Operand, dtype: torch.dtype | None = None) -> ir.Value:  # noqa: ARG001
    """(*) -> (*), whole numbers in [low, high)."""
    drawn = _drawn_like(op, "RandomUniform", self, dtype=f64)
    return _whole(op, drawn, bounds[0] if len(bounds) > 1 else 0, bounds[-1])


@lowers(aten.randperm.default)
def randperm(op: OpBuilder, n: Size, *, dtype: torch.dtype | None = None) -> ir.Value:  # noqa: ARG001
    """(n): 0 … n - 1 in random order, the order of n random numbers."""
    drawn = _drawn(op, "RandomUniform", [n], dtype=f32)
    _, order = op.TopK(drawn, op.vector([n]), axis=0, _outputs=2)
    return op.cast(order, op.result.dtype)


def _whole(op: OpBuilder, drawn: ir.Value, low: Operand, high: Operand) -> ir.Value:
    """Numbers of [0, 1) as whole numbers in [low, high)."""
    bottom, top = operand(op, low, f64), operand(op, high, f64)
    return op.cast(op.Floor(op.Add(op.Mul(drawn, op.Sub(top, bottom)), bottom)), op.result.dtype)


def _uniform_like(op: OpBuilder, x: ir.Value) -> ir.Value:
    return _drawn_like(op, "RandomUniform", x, dtype=f32)


def _drawn(op: OpBuilder, op_type: str, size: Sequence[Size], dtype: torch.dtype | None = None) -> ir.Value:
    """Random numbers of this size; drawn as floats where the runtime has no half precision."""
    dtype = dtype or op.result.dtype
    wide = dtype if dtype in (f32, f64) else f32
    static = [s for s in size if isinstance(s, int)]
    if len(static) == len(size):
        made = getattr(op, op_type)(shape=static, dtype=DTYPES[wide])
    else:
        zeros = op.ConstantOfShape(op.vector(size))
        made = getattr(op, f"{op_type}Like")(zeros, dtype=DTYPES[wide])
    return op.cast(made, dtype)


def _drawn_like(op: OpBuilder, op_type: str, x: ir.Value, dtype: torch.dtype | None = None) -> ir.Value:
    dtype = dtype or op.result.dtype
    static = [s for s in shape_of(x) if isinstance(s, int)]
    if len(static) == len(shape_of(x)):
        return _drawn(op, op_type, static, dtype)
    wide = dtype if dtype in (f32, f64) else f32
    return op.cast(getattr(op, f"{op_type}Like")(x, dtype=DTYPES[wide]), dtype)
