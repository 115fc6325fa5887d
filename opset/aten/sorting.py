"""Operators that order elements: in ONNX all of them are TopK.

TopK breaks ties by the lower index, so that it sorts stably both ways, as PyTorch does. It says nothing about
NaN; ONNX Runtime takes NaN for the largest number, as PyTorch does.
"""

from __future__ import annotations

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, dtype_of, rank_of
from fx2onnx.opset.aten.axes import Size, axis_of
from fx2onnx.opset.aten.indexing import with_axis
from fx2onnx.rules import lowers

aten = torch.ops.aten

# ONNX Runtime 1.32, CPU: dtypes without a kernel of TopK, and others that hold their values.
_WIDER = {
    torch.bfloat16: torch.float32,
    torch.uint16: torch.int32,
    torch.uint32: torch.int64,
    torch.bool: torch.uint8,
}


def top(op: OpBuilder, x: ir.Value, count: Size, axis: int, *, largest: bool) -> tuple[ir.Value, ir.Value]:
    """The `count` largest or smallest elements along an axis, in order, and their positions."""
    dtype = dtype_of(x)
    wide = op.cast(x, _WIDER.get(dtype, dtype))
    values, positions = op.TopK(
        wide, op.vector([count]), axis=axis, largest=int(largest), sorted=1, _outputs=2
    )
    return op.cast(values, dtype), positions


@lowers(aten.topk.default)
def topk(
    op: OpBuilder,
    self: Value,
    k: Size,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
) -> tuple[ir.Value, ir.Value]:
    """(…, n, …) -> (…, k, …) and its positions, in order even where any order will do."""
    x = with_axis(op, self)
    made = top(op, x, k, axis_of(dim, rank_of(x)), largest=largest)
    return _without_axis(op, made, self)


@lowers(aten.sort.default, aten.sort.stable)
def sort(
    op: OpBuilder,
    self: Value,
    dim: int = -1,
    descending: bool = False,
    *,
    stable: bool | None = None,
) -> tuple[ir.Value, ir.Value]:
    """(…, n, …) -> (…, n, …) in order, and where each element was."""
    return _without_axis(op, sorted_along(op, self, dim, descending=descending), self)


@lowers(aten.argsort.default, aten.argsort.stable)
def argsort(
    op: OpBuilder,
    self: Value,
    dim: int = -1,
    descending: bool = False,
    *,
    stable: bool = False,
) -> ir.Value:
    """(…, n, …) -> (…, n, …): the positions of the elements in order."""
    return _without_axis(op, sorted_along(op, self, dim, descending=descending), self)[1]


@lowers(aten.msort.default)
def msort(op: OpBuilder, self: Value) -> ir.Value:
    """(n, …) -> (n, …) in order along the first axis."""
    return _without_axis(op, sorted_along(op, self, 0, descending=False), self)[0]


def sorted_along(op: OpBuilder, x: ir.Value, dim: int, *, descending: bool) -> tuple[ir.Value, ir.Value]:
    """All elements in order along an axis, and where each was."""
    x = with_axis(op, x)
    axis = axis_of(dim, rank_of(x))
    return top(op, x, op.size(x, axis), axis, largest=descending)


def _without_axis(
    op: OpBuilder, made: tuple[ir.Value, ir.Value], like: ir.Value
) -> tuple[ir.Value, ir.Value]:
    """Two vectors of one as they are, or, where the tensor had no axes, without theirs."""
    if rank_of(like):
        return made
    return op.Squeeze(made[0], op.ints([0])), op.Squeeze(made[1], op.ints([0]))


@lowers(aten.kthvalue.default)
def kthvalue(
    op: OpBuilder, self: Value, k: Size, dim: int = -1, keepdim: bool = False
) -> tuple[ir.Value, ir.Value]:
    """(…, n, …) -> (…, …): the k-th smallest element, counted from 1, and where it is."""
    x = with_axis(op, self)
    axis = axis_of(dim, rank_of(x))
    smallest = top(op, x, k, axis, largest=False)
    last = op.ints([-1]) if keepdim and rank_of(self) else op.constant(-1)
    value, position = (op.Gather(v, last, axis=axis) for v in smallest)
    return value, position


@lowers(aten.nanmedian.dim)
def nanmedian(op: OpBuilder, self: Value, dim: int, keepdim: bool = False) -> tuple[ir.Value, ir.Value]:
    """(…, n, …) -> (…, …): the middle one of the elements that are not NaN (the lower of two), its place."""
    x = with_axis(op, self)
    axis = axis_of(dim, rank_of(x))
    values, positions = sorted_along(op, x, axis, descending=False)
    places = _middle(op, x, axis)
    made = [op.GatherElements(v, places, axis=axis) for v in (values, positions)]
    if not (keepdim and rank_of(self)):
        made = [op.Squeeze(v, op.ints([axis])) for v in made]
    return made[0], made[1]


@lowers(aten.nanmedian.default)
def nanmedian_of_all(op: OpBuilder, self: Value) -> ir.Value:
    """(*) -> (): of the elements that are not NaN the middle one, the lower of two."""
    flat = op.Reshape(self, op.ints([-1]))
    values, _ = sorted_along(op, flat, 0, descending=False)
    return op.Squeeze(op.GatherElements(values, _middle(op, flat, 0), axis=0), op.ints([0]))


def _middle(op: OpBuilder, x: ir.Value, axis: int) -> ir.Value:
    """Where the median is among the sorted elements, NaN last: (numbers - 1)//2; 0 where all are NaN."""
    if dtype_of(x).is_floating_point:
        numbers = op.ReduceSum(op.cast(op.Not(op.IsNaN(x)), torch.int64), op.ints([axis]), keepdims=1)
    else:
        ones = op.Expand(op.constant(1), op.Shape(x))
        numbers = op.ReduceSum(ones, op.ints([axis]), keepdims=1)
    return op.Div(op.Sub(numbers, op.constant(1)), op.constant(2))  # rounds toward zero: (0 - 1)/2 is 0
