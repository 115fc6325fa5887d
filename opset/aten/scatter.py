"""Operators that write elements along one axis: the scatter family, in ONNX ScatterElements.

PyTorch takes a source larger than the index and reads its first elements; ONNX wants both of one shape.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, dtype_of, rank_of, shape_of
from fx2onnx.opset.aten.axes import axis_of, same_shape
from fx2onnx.opset.aten.elementwise import floor_div_int
from fx2onnx.opset.aten.indexing import with_axis
from fx2onnx.opset.aten.movement import broadcast, shape_vector
from fx2onnx.opset.aten.operands import where
from fx2onnx.rules import lowers

aten = torch.ops.aten

REDUCTIONS = {
    "add": "add",
    "sum": "add",
    "multiply": "mul",
    "prod": "mul",
    "amax": "max",
    "amin": "min",
}
"""PyTorch's names of the reductions, and ScatterElements'."""


# -- scatter -----------------------------------------------------------------------------------------


@lowers(aten.scatter.src)
def scatter(op: OpBuilder, self: Value, dim: int, index: Value, src: Value) -> ir.Value:
    """x[…, index[k], …] = src[k] for each place k of the index."""
    return scattered(op, self, dim, index, src)


@lowers(aten.scatter.value)
def scatter_value(op: OpBuilder, self: Value, dim: int, index: Value, value: float | Value) -> ir.Value:
    """x[…, index[k], …] = value for each place k of the index."""
    return scattered(op, self, dim, index, filled(op, value, index))


@lowers(aten.scatter.reduce)
def scatter_with(op: OpBuilder, self: Value, dim: int, index: Value, src: Value, *, reduce: str) -> ir.Value:
    """x[…, index[k], …] += or *= src[k]."""
    return scattered(op, self, dim, index, src, REDUCTIONS[reduce])


@lowers(aten.scatter.value_reduce)
def scatter_value_with(
    op: OpBuilder, self: Value, dim: int, index: Value, value: float | Value, *, reduce: str
) -> ir.Value:
    """x[…, index[k], …] += or *= value."""
    return scattered(op, self, dim, index, filled(op, value, index), REDUCTIONS[reduce])


@lowers(aten.scatter_add.default)
def scatter_add(op: OpBuilder, self: Value, dim: int, index: Value, src: Value) -> ir.Value:
    """x[…, index[k], …] += src[k]."""
    return scattered(op, self, dim, index, src, "add")


def scattered(
    op: OpBuilder, x: ir.Value, dim: int, index: ir.Value, src: ir.Value, reduction: str = "none"
) -> ir.Value:
    """ScatterElements of the first elements of src; x, index and src may have no axes."""
    axis, rank = axis_of(dim, rank_of(x)), rank_of(x)
    x, index = with_axis(op, x), with_axis(op, index)
    src = _first(op, with_axis(op, op.cast(src, dtype_of(x))), index)
    made = scatter_elements(op, x, index, src, axis, reduction)
    return made if rank else op.Squeeze(made, op.ints([0]))


def scatter_elements(
    op: OpBuilder, x: ir.Value, index: ir.Value, src: ir.Value, axis: int = 0, reduction: str = "none"
) -> ir.Value:
    """ONNX ScatterElements, by way of a wider dtype where the runtime lacks the reduction."""
    build = functools.partial(op.ScatterElements, axis=axis, reduction=reduction)
    return _reducing(op, build, x, index, src, reduction)


def scatter_nd(
    op: OpBuilder, x: ir.Value, indices: ir.Value, src: ir.Value, reduction: str = "none"
) -> ir.Value:
    """ONNX ScatterND, by way of a wider dtype where the runtime lacks the reduction."""
    return _reducing(op, functools.partial(op.ScatterND, reduction=reduction), x, indices, src, reduction)


def _reducing(
    op: OpBuilder,
    build: Callable[[ir.Value, ir.Value, ir.Value], ir.Value],
    x: ir.Value,
    index: ir.Value,
    src: ir.Value,
    reduction: str,
) -> ir.Value:
    # ONNX Runtime 1.32 refuses, when it runs, to reduce halves, and to find the larger of bools.
    wider = {torch.float16: torch.float32, torch.bfloat16: torch.float32}
    if reduction in ("max", "min"):
        wider[torch.bool] = torch.int32
    dtype = dtype_of(x)
    wide = wider.get(dtype, dtype) if reduction != "none" else dtype
    return op.cast(build(op.cast(x, wide), index, op.cast(src, wide)), dtype)


def _first(op: OpBuilder, src: ir.Value, index: ir.Value) -> ir.Value:
    """The elements of src at the places that the index has."""
    if same_shape(shape_of(src), shape_of(index)):
        return src
    ends = shape_vector(op, index)
    return op.Slice(src, op.ints([0] * rank_of(src)), ends, op.ints(range(rank_of(src))))


def filled(
    op: OpBuilder, value: float | ir.Value, like: ir.Value, dtype: torch.dtype | None = None
) -> ir.Value:
    """A value in the shape of another tensor, in the result's dtype where none is given."""
    return broadcast(op, op.number(value, dtype or op.result.dtype), shape_vector(op, like))


# -- reductions --------------------------------------------------------------------------------------


@lowers(aten.scatter_reduce.two)
def scatter_reduce(
    op: OpBuilder, self: Value, dim: int, index: Value, src: Value, reduce: str, *, include_self: bool = True
) -> ir.Value:
    """x[…, i, …] = the reduction of all src[k] with index[k] = i, and of x[…, i, …] if it is to count."""
    return reduced(op, self, dim, index, src, reduce, include_self=include_self)


@lowers(aten.index_reduce.default)
def index_reduce(
    op: OpBuilder,
    self: Value,
    dim: int,
    index: Value,
    source: Value,
    reduce: str,
    *,
    include_self: bool = True,
) -> ir.Value:
    """x[i] on one axis = the reduction of all source[k] with index[k] = i, and of x[i] if it is to count."""
    places = along(op, index, source, axis_of(dim, rank_of(self)))
    return reduced(op, self, dim, places, source, reduce, include_self=include_self)


def along(op: OpBuilder, index: ir.Value, source: ir.Value, axis: int) -> ir.Value:
    """A vector of places along one axis of a source, in the shape of the source."""
    after = range(1, rank_of(source) - axis)
    column = op.Unsqueeze(with_axis(op, index), op.ints(after)) if after else with_axis(op, index)
    return broadcast(op, column, shape_vector(op, source)) if rank_of(source) > 1 else column


def reduced(
    op: OpBuilder, x: ir.Value, dim: int, index: ir.Value, src: ir.Value, reduce: str, *, include_self: bool
) -> ir.Value:
    """What scatter_reduce makes."""
    if reduce == "mean":
        return _mean(op, x, dim, index, src, include_self=include_self)
    dtype = dtype_of(x)
    start = (
        x if include_self else scattered(op, x, dim, index, filled(op, _neutral(reduce, dtype), index, dtype))
    )
    made = scattered(op, start, dim, index, src, REDUCTIONS[reduce])
    if reduce not in ("amax", "amin") or not dtype.is_floating_point:
        return made
    # ScatterElements says nothing about NaN, and ONNX Runtime 1.32 lets a later number win over it.
    marks = [op.cast(op.IsNaN(v), torch.int32) for v in (x, src)]
    is_nan = reduced(op, marks[0], dim, index, marks[1], "amax", include_self=include_self)
    return where(op, op.cast(is_nan, torch.bool), op.constant(math.nan, dtype), made)


def _neutral(reduce: str, dtype: torch.dtype) -> float:
    """What a reduction starts from."""
    if reduce in ("sum", "prod"):
        return 0 if reduce == "sum" else 1
    sign = -1 if reduce == "amax" else 1
    if dtype.is_floating_point:
        return sign * math.inf
    if dtype == torch.bool:
        return reduce == "amin"
    return torch.iinfo(dtype).min if reduce == "amax" else torch.iinfo(dtype).max


def _mean(
    op: OpBuilder, x: ir.Value, dim: int, index: ir.Value, src: ir.Value, *, include_self: bool
) -> ir.Value:
    """The sum by how many were added; whole numbers are rounded down."""
    dtype = dtype_of(x)
    total = reduced(op, x, dim, index, src, "sum", include_self=include_self)
    start = filled(op, int(include_self), x, dtype)
    count = scattered(op, start, dim, index, filled(op, 1, index, dtype), "add")
    if not include_self:
        count = op.Max(count, op.constant(1, dtype))
    return op.Div(total, count) if dtype.is_floating_point else floor_div_int(op, total, count)
