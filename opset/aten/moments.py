"""Variance and standard deviation: `(*) -> (*)` without the axes of `dim`, as in `reduce.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, dtype_of
from fx2onnx.opset.aten.operands import HALVES, f32
from fx2onnx.opset.aten.reduce import Dims, axes_of, count, reduced
from fx2onnx.rules import lowers

aten = torch.ops.aten


@lowers(aten.var.correction)
def var(
    op: OpBuilder, self: Value, dim: Dims = None, *, correction: float | None = None, keepdim: bool = False
) -> ir.Value:
    """The mean square of the distance from the mean, with n - correction (1 where omitted) for n."""
    return _moments(op, self, dim, correction, keepdim=keepdim)[0]


@lowers(aten.std.correction)
def std(
    op: OpBuilder, self: Value, dim: Dims = None, *, correction: float | None = None, keepdim: bool = False
) -> ir.Value:
    """The root of the variance."""
    return _moments(op, self, dim, correction, keepdim=keepdim, root=True)[0]


@lowers(aten.var_mean.correction)
def var_mean(
    op: OpBuilder, self: Value, dim: Dims = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Any, Any]:
    """The variance, and the mean."""
    return _moments(op, self, dim, correction, keepdim=keepdim)


@lowers(aten.std_mean.correction)
def std_mean(
    op: OpBuilder, self: Value, dim: Dims = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Any, Any]:
    """The root of the variance, and the mean."""
    return _moments(op, self, dim, correction, keepdim=keepdim, root=True)


@lowers(aten.var.default, aten.var.dim)
def var_unbiased(op: OpBuilder, self: Value, *options: Any) -> ir.Value:
    """`var` with a bool for the correction."""
    return _moments(op, self, *_unbiased(options))[0]


@lowers(aten.std.default, aten.std.dim)
def std_unbiased(op: OpBuilder, self: Value, *options: Any) -> ir.Value:
    """`std` with a bool for the correction."""
    return _moments(op, self, *_unbiased(options), root=True)[0]


@lowers(aten.var_mean.default, aten.var_mean.dim)
def var_mean_unbiased(op: OpBuilder, self: Value, *options: Any) -> tuple[Any, Any]:
    """`var_mean` with a bool for the correction."""
    return _moments(op, self, *_unbiased(options))


@lowers(aten.std_mean.default, aten.std_mean.dim)
def std_mean_unbiased(op: OpBuilder, self: Value, *options: Any) -> tuple[Any, Any]:
    """`std_mean` with a bool for the correction."""
    return _moments(op, self, *_unbiased(options), root=True)


def _unbiased(options: Sequence[Any]) -> tuple[Dims, float, bool]:
    """(unbiased) or (dim, unbiased, keepdim) as dim, correction, keepdim."""
    dim, unbiased, keepdim = options if len(options) == 3 else (None, options[0], False)
    return dim, float(unbiased), keepdim


def _moments(
    op: OpBuilder,
    x: ir.Value,
    dim: Dims,
    correction: float | None,
    keepdim: bool = False,
    *,
    root: bool = False,
) -> tuple[ir.Value, ir.Value]:
    """Variance (or its root) and mean along some axes, in float32 for half precision."""
    dtype = dtype_of(x)
    wide = op.cast(x, f32 if dtype in HALVES else dtype)
    center = wide if not axes_of(x, dim) else reduced(op, "ReduceMean", wide, dim, True)
    distance = op.Sub(wide, center)
    correction = 1 if correction is None else correction
    if correction == 0:
        spread = reduced(op, "ReduceMean", op.Mul(distance, distance), dim, keepdim)
    else:
        squares = reduced(op, "ReduceSumSquare", distance, dim, keepdim)
        if not axes_of(x, dim):
            squares = op.Mul(distance, distance)
        spread = op.Div(squares, _freedom(op, x, dim, correction, dtype_of(wide)))
    if root:
        spread = op.Sqrt(spread)
    average = center
    if not keepdim and axes_of(x, dim):
        average = op.Squeeze(center, op.ints(axes_of(x, dim)))
    return op.cast(spread, dtype), op.cast(average, dtype)


def _freedom(op: OpBuilder, x: ir.Value, dim: Dims, correction: float, dtype: torch.dtype) -> ir.Value:
    """max(n - correction, 0) as a tensor without axes."""
    n = count(op, x, dim)
    if isinstance(n, int):
        return op.constant(max(n - correction, 0), dtype)
    number = op.Sub(op.cast(op.scalar(n), dtype), op.constant(correction, dtype))
    return op.Max(number, op.constant(0, dtype))
