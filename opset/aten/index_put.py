"""Operators that write to a tensor at places that other tensors say.

`index_put` is the assignment `x[indices] = values` of NumPy's advanced indexing; see `indexing` for what an
index is. It is written in ONNX as the first of these that fits:

    one mask, a value for all of its places    Where
    one vector of integers, not in front       ScatterElements
    others                                     ScatterND on their axes, brought to the front
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, dtype_of, rank_of, shape_of
from fx2onnx.dims import Dim
from fx2onnx.opset.aten.axes import Size, axis_of, is_static
from fx2onnx.opset.aten.indexing import (
    Place,
    broadcast_like,
    places_of,
    stacked,
    to_front,
    with_axis,
    without_masks,
)
from fx2onnx.opset.aten.movement import broadcast, reshaped_like, transposed
from fx2onnx.opset.aten.operands import where
from fx2onnx.opset.aten.scatter import along, filled, scatter_elements, scatter_nd
from fx2onnx.rules import lowers

aten = torch.ops.aten


@lowers(aten.index_put.default, aten._unsafe_index_put.default)
def index_put(
    op: OpBuilder, self: Value, indices: Sequence[Value | None], values: Value, accumulate: bool = False
) -> ir.Value:
    """A copy of x with x[indices] = values, or += values; values are broadcast to what x[indices] is."""
    places = places_of(indices)
    new = op.cast(values, op.result.dtype)
    if len(places) == 1 and places[0].is_mask and _is_one_for_all(self, places[0], new):
        return _put_where(op, self, places[0], new, accumulate=accumulate)
    reduction = "add" if accumulate else "none"
    if len(places) == 1 and places[0].axis > 0 and not places[0].is_mask and rank_of(places[0].index) == 1:
        return _put_along(op, self, places[0], new, reduction)
    return _put_nd(op, self, places, new, reduction)


def _is_one_for_all(x: ir.Value, place: Place, values: ir.Value) -> bool:
    """Are the values the same for all places where a mask holds?"""
    after = rank_of(x) - place.axis - place.axes
    return rank_of(values) <= after or shape_of(values)[-after - 1] == 1


def _put_where(op: OpBuilder, x: ir.Value, place: Place, values: ir.Value, *, accumulate: bool) -> ir.Value:
    """The values where the mask holds, or the sums there; the axis of the places becomes the mask's axes."""
    after = rank_of(x) - place.axis - place.axes
    mask = op.cast(place.index, torch.bool)
    if after:
        mask = op.Unsqueeze(mask, op.ints(range(place.axes, place.axes + after)))
    at = rank_of(values) - after - 1
    if at > 0 and place.axes > 1:
        values = op.Unsqueeze(values, op.ints(range(at, at + place.axes - 1)))
    if accumulate:
        values = op.Or(x, values) if op.result.dtype == torch.bool else op.Add(x, values)
    return where(op, mask, values, x)


def _put_along(op: OpBuilder, x: ir.Value, place: Place, values: ir.Value, reduction: str) -> ir.Value:
    """A vector of places along one axis."""
    axis, shape = place.axis, shape_of(x)
    known = [*shape[:axis], *shape_of(place.index), *shape[axis + 1 :]]
    sizes = [*span(op, x, 0, axis), *span(op, place.index), *span(op, x, axis + 1)]
    rows = in_shape(op, values, known, sizes)
    return scatter_elements(op, x, along(op, place.index, rows, axis), rows, axis, reduction)


def _put_nd(
    op: OpBuilder, x: ir.Value, places: Sequence[Place], values: ir.Value, reduction: str
) -> ir.Value:
    """ScatterND with the axes in front; the values' axes are brought from the order of x[indices] to it."""
    axes, indices = _targets(op, places)
    first, lead = axes[0] if axes == [*range(axes[0], axes[-1] + 1)] else 0, rank_of(indices) - 1
    rest = [axis for axis in range(rank_of(x)) if axis not in axes]
    known = [shape_of(x)[axis] for axis in rest]
    known[first:first] = shape_of(indices)[:-1]
    sizes = [size for axis in rest for size in span(op, x, axis, axis + 1)]
    sizes[first:first] = span(op, indices, 0, lead)
    rows = in_shape(op, values, known, sizes)
    rows = transposed(op, rows, to_front(range(first, first + lead), len(known)))
    front = to_front(axes, rank_of(x))
    made = scatter_nd(op, transposed(op, x, front), indices, rows, reduction)
    return transposed(op, made, [front.index(axis) for axis in range(rank_of(x))])


def _targets(op: OpBuilder, places: Sequence[Place]) -> tuple[list[int], ir.Value]:
    """The axes that are indexed, and the indices as ScatterND takes them: (*S, number of axes)."""
    if len(places) == 1 and places[0].is_mask:
        mask = op.cast(places[0].index, torch.bool)
        axes = [*range(places[0].axis, places[0].axis + places[0].axes)]
        return axes, op.Transpose(op.NonZero(mask), perm=[1, 0])
    places = without_masks(op, places)
    return [p.axis for p in places], stacked(op, [p.index for p in places])


def span(op: OpBuilder, x: ir.Value, start: int = 0, end: int | None = None) -> list[Size]:
    """The sizes of the axes start … end - 1: numbers, or one vector of all."""
    shape = shape_of(x)[start:end]
    if is_static(shape):
        return [*shape]  # type: ignore[list-item]  # all are numbers
    return [op.Shape(x, start=start) if end is None else op.Shape(x, start=start, end=end)]


def in_shape(op: OpBuilder, values: ir.Value, known: Sequence[Dim | None], sizes: Sequence[Size]) -> ir.Value:
    """Values expanded to a shape: what is known of it, and its sizes; themselves where they have it."""
    old = shape_of(values)
    if len(old) == len(known) and all(o != 1 or k == 1 for o, k in zip(old, known, strict=True)):
        return values
    return broadcast(op, values, sizes)


# -- along one axis ----------------------------------------------------------------------------------


@lowers(aten.index_copy.default)
def index_copy(op: OpBuilder, self: Value, dim: int, index: Value, source: Value) -> ir.Value:
    """x[index[k]] = source[k] along one axis."""
    return put_rows(op, self, dim, index, source)


@lowers(aten.index_add.default)
def index_add(
    op: OpBuilder, self: Value, dim: int, index: Value, source: Value, *, alpha: float | Value = 1
) -> ir.Value:
    """x[index[k]] += alpha * source[k] along one axis."""
    added: ir.Value = source
    if isinstance(alpha, ir.Value) or alpha != 1:
        added = op.Mul(source, op.number(alpha, dtype_of(source)))
    return put_rows(op, self, dim, index, added, "add")


def put_rows(
    op: OpBuilder, x: ir.Value, dim: int, index: ir.Value, source: ir.Value, reduction: str = "none"
) -> ir.Value:
    """A copy of x with source[k] put at index[k] along one axis; any of the three may have no axes."""
    rank, axis = rank_of(x), axis_of(dim, rank_of(x))
    x, index, source = with_axis(op, x), with_axis(op, index), with_axis(op, op.cast(source, dtype_of(x)))
    if axis == 0:
        made = scatter_nd(op, x, op.Unsqueeze(index, op.ints([1])), source, reduction)
    else:
        made = scatter_elements(op, x, along(op, index, source, axis), source, axis, reduction)
    return made if rank else op.Squeeze(made, op.ints([0]))


@lowers(aten.index_fill.int_Scalar, aten.index_fill.int_Tensor)
def index_fill(op: OpBuilder, self: Value, dim: int, index: Value, value: float | Value) -> ir.Value:
    """x[index[k]] = value along one axis, by a mask over the axis."""
    rank, x = rank_of(self), with_axis(op, self)
    axis, positions = axis_of(dim, rank), with_axis(op, index)
    empty = broadcast(op, op.constant(0, torch.bool), span(op, x, axis, axis + 1))
    mask = op.ScatterElements(empty, positions, filled(op, 1, positions, torch.bool))
    if after := range(1, rank_of(x) - axis):
        mask = op.Unsqueeze(mask, op.ints(after))
    made = where(op, mask, op.number(value, op.result.dtype), x)
    return made if rank else op.Squeeze(made, op.ints([0]))


# -- in the order of elements ------------------------------------------------------------------------


@lowers(aten.put.default)
def put(op: OpBuilder, self: Value, index: Value, source: Value, accumulate: bool = False) -> ir.Value:
    """A copy of x with the elements index[k] of flat x set to source[k], or raised by it."""
    flat, places, new = (
        op.Reshape(v, op.ints([-1])) for v in (self, index, op.cast(source, op.result.dtype))
    )
    made = scatter_elements(op, flat, places, new, 0, "add" if accumulate else "none")
    return reshaped_like(op, made, self)


@lowers(aten.masked_scatter.default)
def masked_scatter(op: OpBuilder, self: Value, mask: Value, source: Value) -> ir.Value:
    """A copy of x with the first elements of source, in order, at the places where the mask holds."""
    x, condition = (
        broadcast_like(op, with_axis(op, self), [mask]),
        broadcast_like(op, mask, [with_axis(op, self)]),
    )
    places = op.Transpose(op.NonZero(op.cast(condition, torch.bool)), perm=[1, 0])
    flat = op.Reshape(op.cast(source, op.result.dtype), op.ints([-1]))
    first = op.Slice(flat, op.ints([0]), op.Shape(places, start=0, end=1))
    made = op.ScatterND(x, places, first)
    return made if op.result.shape else op.Squeeze(made, op.ints([0]))
