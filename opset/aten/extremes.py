"""The largest and the smallest element along an axis, their positions, and the median.

Of equal elements, the first one's position is returned, as by PyTorch. ONNX says nothing of NaN in
reductions.
"""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, dtype_of, rank_of
from fx2onnx.opset.aten.operands import FLOATS, emit, operand, u8, where
from fx2onnx.opset.aten.reduce import Dims, reduced
from fx2onnx.rules import Gap, lowers

aten = torch.ops.aten

GAPS = (Gap((aten.mode.default,), "ours", "ONNX has no operator that counts values along an axis"),)


@lowers(aten.amax.default, aten.max.default)
def amax(op: OpBuilder, self: Value, dim: Dims = None, keepdim: bool = False) -> ir.Value:
    """The largest element along some axes. ONNX says nothing of NaN."""
    return reduced(op, "ReduceMax", self, dim, keepdim)


@lowers(aten.amin.default, aten.min.default)
def amin(op: OpBuilder, self: Value, dim: Dims = None, keepdim: bool = False) -> ir.Value:
    """The smallest element along some axes. ONNX says nothing of NaN."""
    return reduced(op, "ReduceMin", self, dim, keepdim)


@lowers(aten.aminmax.default)
def aminmax(op: OpBuilder, self: Value, *, dim: int | None = None, keepdim: bool = False) -> tuple[Any, Any]:
    """The smallest and the largest element along an axis."""
    return reduced(op, "ReduceMin", self, dim, keepdim), reduced(op, "ReduceMax", self, dim, keepdim)


@lowers(aten.argmax.default)
def argmax(op: OpBuilder, self: Value, dim: int | None = None, keepdim: bool = False) -> ir.Value:
    """The position of the largest element, the first one of equals; counted through all axes without dim."""
    return position(op, "ArgMax", self, dim, keepdim=keepdim)


@lowers(aten.argmin.default)
def argmin(op: OpBuilder, self: Value, dim: int | None = None, keepdim: bool = False) -> ir.Value:
    """The position of the smallest element, the first one of equals; counted through all axes without dim."""
    return position(op, "ArgMin", self, dim, keepdim=keepdim)


@lowers(aten.max.dim)
def max_dim(op: OpBuilder, self: Value, dim: int, keepdim: bool = False) -> tuple[Any, Any]:
    """The largest element along an axis, and its position."""
    return reduced(op, "ReduceMax", self, dim, keepdim), position(op, "ArgMax", self, dim, keepdim=keepdim)


@lowers(aten.min.dim)
def min_dim(op: OpBuilder, self: Value, dim: int, keepdim: bool = False) -> tuple[Any, Any]:
    """The smallest element along an axis, and its position."""
    return reduced(op, "ReduceMin", self, dim, keepdim), position(op, "ArgMin", self, dim, keepdim=keepdim)


def position(op: OpBuilder, op_type: str, x: Value, dim: int | None, *, keepdim: bool) -> ir.Value:
    """ArgMax or ArgMin along an axis, or through all elements in order."""
    rank = rank_of(x)
    if dim is not None and rank > 0:
        return emit(op, op_type, x, axis=dim, keepdims=int(keepdim))
    flat = x if rank == 1 else op.Reshape(x, op.ints([-1]))
    if keepdim and rank == 1:
        return emit(op, op_type, flat, axis=0, keepdims=1)
    found = emit(op, op_type, flat, axis=0, keepdims=0)
    return op.Reshape(found, op.ints([1] * rank)) if keepdim and rank else found


@lowers(aten.median.default)
def median(op: OpBuilder, self: Value) -> ir.Value:
    """(*) -> (): the middle element in order, the lower one of two; NaN where there is one."""
    flat = op.Reshape(self, op.ints([-1]))
    middle, _ = _middle(op, flat, 0)
    return op.Squeeze(middle, op.ints([0]))


@lowers(aten.median.dim)
def median_dim(op: OpBuilder, self: Value, dim: int, keepdim: bool = False) -> tuple[Any, Any]:
    """The middle element along an axis, the lower one of two, and its position."""
    if rank_of(self) == 0:
        return self, op.constant(0)
    values, indices = _middle(op, self, dim % rank_of(self))
    if keepdim:
        return values, indices
    axes = op.ints([dim])
    return op.Squeeze(values, axes), op.Squeeze(indices, axes)


def _middle(op: OpBuilder, x: ir.Value, axis: int) -> tuple[ir.Value, ir.Value]:
    """The lower middle along an axis (kept with size 1), and its position; those of the first NaN if any."""
    size = op.size(x, axis)
    if isinstance(size, int):
        half: ir.Value = op.ints([(size + 1) // 2])
    else:
        half = op.Div(op.Add(size, op.ints([1])), op.ints([2]))
    lowest, positions = op.TopK(x, half, axis=axis, largest=0, _outputs=2)
    last = op.ints([-1])
    value, index = op.Gather(lowest, last, axis=axis), op.Gather(positions, last, axis=axis)
    if dtype_of(x) not in FLOATS:
        return value, index
    # TopK leaves the order of NaN open
    nan = op.cast(op.IsNaN(x), u8)
    any_nan = op.cast(op.ReduceMax(nan, op.ints([axis]), keepdims=1), torch.bool)
    value = where(op, any_nan, operand(op, math.nan, dtype_of(x)), value)
    return value, op.Where(any_nan, op.ArgMax(nan, axis=axis, keepdims=1), index)
