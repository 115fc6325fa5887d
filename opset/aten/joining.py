"""Operators that put tensors together, and those that repeat one."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, rank_of, shape_of
from fx2onnx.opset.aten.axes import Size, axis_of, mul, slice_axis, through
from fx2onnx.opset.aten.movement import broadcast
from fx2onnx.rules import lowers

aten = torch.ops.aten

MAX_INDICES = 1024
"""Up to this many constant indices are written into the model to save the nodes that compute them."""


# -- several tensors ---------------------------------------------------------------------------------


@lowers(aten.cat.default, aten.concat.default, aten.concatenate.default)
def cat(op: OpBuilder, tensors: Sequence[Value], dim: int = 0) -> ir.Value:
    """(…, a_i, …) -> (…, a_0 + a_1 + …, …); parts of the shape (0,) are skipped, whatever the others are."""
    rank = len(op.result.shape)
    parts = [t for t in tensors if rank_of(t) == rank]
    filled = [t for t in parts if shape_of(t)[axis_of(dim, rank)] != 0] or parts[:1]
    typed = [op.cast(t, op.result.dtype) for t in filled]
    return typed[0] if len(typed) == 1 else op.Concat(*typed, axis=axis_of(dim, rank))


@lowers(aten.stack.default)
def stack(op: OpBuilder, tensors: Sequence[Value], dim: int = 0) -> ir.Value:
    """N tensors (…, …) -> (…, n, …)."""
    axis = axis_of(dim, len(op.result.shape))
    typed = [op.cast(t, op.result.dtype) for t in tensors]
    if len(typed) > 1 and _is_shorter_by_reshape(op, tensors[0], axis):
        joined = op.Concat(*typed, axis=axis)
        sizes = op.sizes(tensors[0])
        sizes.insert(axis, len(typed))
        return op.reshape(joined, sizes, op.result.shape)
    rows = [op.Unsqueeze(t, op.ints([axis])) for t in typed]
    return rows[0] if len(rows) == 1 else op.Concat(*rows, axis=axis)


def _is_shorter_by_reshape(op: OpBuilder, part: Value, axis: int) -> bool:
    """Can a Concat along the axis be reshaped into the stack without reading sizes?"""
    shape = shape_of(part)
    return axis < len(shape) and sum(not isinstance(s, int) for s in shape[axis:]) <= 1


@lowers(aten.meshgrid.default)
def meshgrid(op: OpBuilder, tensors: Sequence[Value]) -> list[ir.Value]:
    """(a,), (b,), … -> as many tensors (a, b, …)."""
    return _grid(op, tensors, range(len(tensors)))


@lowers(aten.meshgrid.indexing)
def meshgrid_indexing(op: OpBuilder, tensors: Sequence[Value], *, indexing: str) -> list[ir.Value]:
    """(a,), (b,), … -> as many tensors (a, b, …), with "xy" (b, a, …)."""
    order = list(range(len(tensors)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = [1, 0]
    return _grid(op, tensors, order)


def _grid(op: OpBuilder, tensors: Sequence[Value], order: Sequence[int]) -> list[ir.Value]:
    """Each tensor along the axis that has its number in `order`, the same along the others."""
    sizes = [1 if rank_of(t) == 0 else op.size(t, 0) for t in tensors]
    shape = op.vector([sizes[i] for i in order])
    grids = []
    for i, tensor in enumerate(tensors):
        column = [-1 if j == i else 1 for j in order]
        grids.append(broadcast(op, op.Reshape(tensor, op.ints(column)), shape))
    return grids


# -- repeating ---------------------------------------------------------------------------------------


@lowers(aten.repeat.default, aten.tile.default)
def repeat(op: OpBuilder, self: Value, repeats: Sequence[Size]) -> ir.Value:
    """(…, n, …) -> (…, n*repeats, …); missing axes of x or of `repeats` count as 1."""
    rank = max(rank_of(self), len(repeats))
    repeats = [*[1] * (rank - len(repeats)), *repeats]
    old = (*[1] * (rank - rank_of(self)), *shape_of(self))
    changed = [i for i, times in enumerate(repeats) if times != 1]
    if changed and 0 not in repeats and all(old[i] == 1 for i in changed):
        return broadcast(op, self, repeats)
    x: ir.Value = self
    if rank > rank_of(self):
        x = op.Unsqueeze(self, op.ints(range(rank - rank_of(self))))
    if not changed:
        return x
    times = op.vector(repeats)
    # ONNX Runtime 1.32 has no kernel of Tile for bfloat16; float32 holds its values.
    return through(op, lambda v: op.Tile(v, times), x, {torch.bfloat16: torch.float32})


@lowers(aten.repeat_interleave.self_int)
def repeat_interleave(
    op: OpBuilder,
    self: Value,
    repeats: Size,
    dim: int | None = None,
    output_size: object = None,
) -> ir.Value:
    """(…, n, …) -> (…, n*repeats, …): each element `repeats` times; without `dim`, of the flat tensor."""
    x = self if dim is not None else _flat(op, self)
    axis = axis_of(dim or 0, rank_of(x))
    if rank_of(x) == 0:
        x = op.Unsqueeze(x, op.ints([0]))
    if repeats == 0:  # ONNX Runtime 1.32 takes an Expand to the size 0 for no change
        return slice_axis(op, x, axis, 0, 0)
    size = shape_of(x)[axis]
    if isinstance(size, int) and isinstance(repeats, int) and size * repeats <= MAX_INDICES:
        rows = [i for i in range(size) for _ in range(repeats)]
        return op.Gather(x, op.ints(rows), axis=axis)
    sizes = op.sizes(x)
    column = op.Unsqueeze(x, op.ints([axis + 1]))
    target: list[Size] = [1] * (rank_of(x) + 1)
    target[axis + 1] = repeats
    sizes[axis] = mul(op, sizes[axis], repeats)
    return op.reshape(broadcast(op, column, target), sizes, op.result.shape)


@lowers(aten.repeat_interleave.self_Tensor)
def repeat_interleave_each(
    op: OpBuilder,
    self: Value,
    repeats: Value,
    dim: int | None = None,
    output_size: object = None,
) -> ir.Value:
    """(…, n, …), (n,) or (1,) -> (…, sum(repeats), …): element i repeats[i] times in a row."""
    x = self if dim is not None else _flat(op, self)
    axis = axis_of(dim or 0, rank_of(x))
    if rank_of(x) == 0:
        x = op.Unsqueeze(x, op.ints([0]))
    times: ir.Value = repeats
    if rank_of(repeats) == 0 or (shape_of(repeats)[0] == 1 and shape_of(x)[axis] != 1):
        times = broadcast(op, repeats, [op.size(x, axis)])
    return op.Gather(x, repeated_positions(op, times), axis=axis)


@lowers(aten.repeat_interleave.Tensor)
def repeat_interleave_positions(
    op: OpBuilder,
    repeats: Value,
    *,
    output_size: object = None,
) -> ir.Value:
    """(n,) -> (sum(repeats),): i, repeats[i] times."""
    return op.cast(repeated_positions(op, repeats), op.result.dtype)


def repeated_positions(op: OpBuilder, repeats: ir.Value) -> ir.Value:
    """Position i repeats[i] times, in a vector of int64.

    Element i ends before ends[i], the running sum, so that a position holds the number of ends at or below
    it: each end adds one at its place, and the running sum of these counts them.
    """
    ends = op.CumSum(op.cast(repeats, torch.int64), op.constant(0))
    total = op.ReduceSum(op.cast(repeats, torch.int64), keepdims=1)
    zeros = op.ConstantOfShape(op.Add(total, op.ints([1])), value=ir.tensor([0], dtype=ir.DataType.INT64))
    ones = broadcast(op, op.ints([1]), op.Shape(ends))
    counts = op.ScatterElements(zeros, ends, ones, reduction="add")
    return op.Slice(op.CumSum(counts, op.constant(0)), op.ints([0]), op.ints([-1]))


def _flat(op: OpBuilder, x: ir.Value) -> ir.Value:
    return x if rank_of(x) == 1 else op.Reshape(x, op.ints([-1]))
