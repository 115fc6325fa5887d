"""Reductions: sums, means, counts, any and all.

`dim` is an axis, a list of axes, or None or (in most operators) an empty list for all axes. Axes that are
reduced disappear, or stay with size 1 when `keepdim` is true. Tensors without axes are their own reduction.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, dtype_of, rank_of, shape_of
from fx2onnx.opset.aten.operands import FLOATS, computed, emit, operand, u8, where
from fx2onnx.rules import lowers

aten = torch.ops.aten

Dims = int | Sequence[int] | None

# -- axes --------------------------------------------------------------------------------------------


def axes_of(x: ir.Value, dim: Dims) -> list[int]:
    """The axes that `dim` names, in order; all of them for None and an empty list."""
    rank = rank_of(x)
    if dim is None or dim == []:
        return list(range(rank))
    if rank == 0:
        return []
    return sorted(d % rank for d in ([dim] if isinstance(dim, int) else dim))


def reduced(op: OpBuilder, op_type: str, x: ir.Value, dim: Dims = None, keepdim: bool = False) -> ir.Value:
    """`x` reduced along `dim` by an ONNX operator that takes its axes as an input."""
    axes = axes_of(x, dim)
    if not axes:
        return x
    build = functools.partial(emit, op, op_type)
    if dtype_of(x) == torch.bool and op.opset >= 20:
        build = getattr(op, op_type)
    if len(axes) == rank_of(x):
        return build(x, keepdims=int(keepdim))
    return build(x, op.ints(axes), keepdims=int(keepdim))


def count(op: OpBuilder, x: ir.Value, dim: Dims) -> int | ir.Value:
    """The number of elements that are reduced to one: a number, or a vector of one int64."""
    sizes = [op.size(x, axis) for axis in axes_of(x, dim)]
    static = math.prod(s for s in sizes if isinstance(s, int))
    free = [s for s in sizes if not isinstance(s, int)]
    if not free or static == 0:
        return static
    if len(free) == 1:
        return free[0] if static == 1 else op.Mul(free[0], op.ints([static]))
    return op.ReduceProd(op.vector(sizes), keepdims=1)


# -- sums and means ----------------------------------------------------------------------------------


@lowers(aten.sum.default)
def sum(op: OpBuilder, self: Value, *, dtype: torch.dtype | None = None) -> ir.Value:
    """(*) -> (); integers and bools are summed in int64, others in the result's dtype."""
    return reduced(op, "ReduceSum", op.cast(self, op.result.dtype))


@lowers(aten.sum.dim_IntList)
def sum_dim(
    op: OpBuilder,
    self: Value,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> ir.Value:
    """The sum along some axes; integers and bools are summed in int64."""
    return reduced(op, "ReduceSum", op.cast(self, op.result.dtype), dim, keepdim)


@lowers(aten.nansum.default)
def nansum(
    op: OpBuilder,
    self: Value,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> ir.Value:
    """The sum with every NaN taken as 0."""
    x = op.cast(self, op.result.dtype)
    if dtype_of(self) in FLOATS:
        x = where(op, op.IsNaN(self), operand(op, 0, op.result.dtype), x)
    return reduced(op, "ReduceSum", x, dim, keepdim)


@lowers(aten.mean.default)
def mean(op: OpBuilder, self: Value, *, dtype: torch.dtype | None = None) -> ir.Value:
    """(*) -> (); the mean of all elements."""
    return _mean(op, self, None, keepdim=False)


@lowers(aten.mean.dim)
def mean_dim(
    op: OpBuilder,
    self: Value,
    dim: Dims,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> ir.Value:
    """The mean along some axes."""
    return _mean(op, self, dim, keepdim=keepdim)


def _mean(op: OpBuilder, x: ir.Value, dim: Dims, *, keepdim: bool) -> ir.Value:
    """The mean; NaN where nothing is averaged (ONNX Runtime 1.32's ReduceMean makes 0 of that)."""
    x = op.cast(x, dtype := op.result.dtype)
    if 0 in [shape_of(x)[axis] for axis in axes_of(x, dim)]:
        zero = reduced(op, "ReduceSum", x, dim, keepdim)
        return emit(op, "Div", zero, operand(op, 0, dtype))
    return reduced(op, "ReduceMean", x, dim, keepdim)


@lowers(aten.nanmean.default)
def nanmean(
    op: OpBuilder,
    self: Value,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> ir.Value:
    """The mean of what is not NaN."""
    x = op.cast(self, dtype := op.result.dtype)
    missing = op.IsNaN(x)
    present = op.cast(op.Not(missing), dtype)
    total = reduced(op, "ReduceSum", where(op, missing, operand(op, 0, dtype), x), dim, keepdim)
    return emit(op, "Div", total, reduced(op, "ReduceSum", present, dim, keepdim))


@lowers(aten.prod.default)
def prod(op: OpBuilder, self: Value, *, dtype: torch.dtype | None = None) -> ir.Value:
    """(*) -> (); integers and bools are multiplied in int64."""
    return reduced(op, "ReduceProd", op.cast(self, op.result.dtype))


@lowers(aten.prod.dim_int)
def prod_dim(
    op: OpBuilder,
    self: Value,
    dim: int,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> ir.Value:
    """The product along an axis; integers and bools are multiplied in int64."""
    return reduced(op, "ReduceProd", op.cast(self, op.result.dtype), dim, keepdim)


@lowers(aten.count_nonzero.default, aten.count_nonzero.dim_IntList)
def count_nonzero(op: OpBuilder, self: Value, dim: Dims = None) -> ir.Value:
    """How many elements are not 0, along some axes. -> int64."""
    return reduced(op, "ReduceSum", op.cast(op.cast(self, torch.bool), torch.int64), dim)


@lowers(aten.logsumexp.default, aten.special_logsumexp.default)
def logsumexp(op: OpBuilder, self: Value, dim: Dims, keepdim: bool = False) -> ir.Value:
    """log(sum(exp(x))) along some axes, with the largest element taken out."""
    return reduced(op, "ReduceLogSumExp", op.cast(self, op.result.dtype), dim, keepdim)


@lowers(aten.logsumexp.default, aten.special_logsumexp.default, since=28)
def logsumexp_28(op: OpBuilder, self: Value, dim: Dims, keepdim: bool = False) -> ir.Value:
    """The same, written out: ONNX Runtime 1.32 runs ReduceLogSumExp of opset 28 as log(sum(exp(x)))."""
    x = op.cast(self, dtype := op.result.dtype)
    axes = axes_of(x, dim)
    if not axes:
        return x

    def formula(x: ir.Value) -> ir.Value:
        largest = op.ReduceMax(x, op.ints(axes), keepdims=1)
        top = op.Where(op.IsInf(largest), operand(op, 0, dtype_of(x)), largest)
        total = op.ReduceSum(op.Exp(op.Sub(x, top)), op.ints(axes), keepdims=1)
        made = op.Add(op.Log(total), top)
        return made if keepdim else op.Squeeze(made, op.ints(axes))

    return computed(op, formula, x, dtype=dtype)


# -- any and all -------------------------------------------------------------------------------------


@lowers(aten.any.default, aten.any.dim)
def any(op: OpBuilder, self: Value, dim: int | None = None, keepdim: bool = False) -> ir.Value:
    """Is an element not 0? False of nothing. -> bool, uint8 for uint8."""
    return _whether(op, "ReduceMax", self, dim, keepdim=keepdim)


@lowers(aten.all.default, aten.all.dim)
def all(op: OpBuilder, self: Value, dim: int | None = None, keepdim: bool = False) -> ir.Value:
    """Is no element 0? True of nothing. -> bool, uint8 for uint8."""
    return _whether(op, "ReduceMin", self, dim, keepdim=keepdim)


@lowers(aten.any.dims)
def any_dims(op: OpBuilder, self: Value, dim: Dims = None, keepdim: bool = False) -> ir.Value:
    """Is an element not 0? An empty list reduces nothing."""
    return _whether(op, "ReduceMax", self, dim, keepdim=keepdim, empty_is_none=True)


@lowers(aten.all.dims)
def all_dims(op: OpBuilder, self: Value, dim: Dims = None, keepdim: bool = False) -> ir.Value:
    """Is no element 0? An empty list reduces nothing."""
    return _whether(op, "ReduceMin", self, dim, keepdim=keepdim, empty_is_none=True)


def _whether(
    op: OpBuilder, op_type: str, x: Value, dim: Dims, *, keepdim: bool, empty_is_none: bool = False
) -> ir.Value:
    truth = op.cast(x, torch.bool)
    if empty_is_none and dim == []:
        return op.cast(truth, op.result.dtype)
    # ONNX Runtime 1.32 refuses to reduce no bools at all; no uint8 make 0 or 255
    if not _never_empty(x, axes_of(x, dim)):
        truth = op.cast(truth, u8)
    return op.cast(op.cast(reduced(op, op_type, truth, dim, keepdim), torch.bool), op.result.dtype)


def _never_empty(x: ir.Value, axes: Sequence[int]) -> bool:
    """Have these axes known sizes above 0?"""
    shape = shape_of(x)
    return not [a for a in axes if not (isinstance(size := shape[a], int) and size > 0)]
