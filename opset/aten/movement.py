"""Operators that give a tensor other axes without touching its values: views, transposes, expansions."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, dtype_of, rank_of, shape_of
from fx2onnx.dims import Dim
from fx2onnx.opset.aten.axes import Size, axes_of, axis_of, is_static, mul, same_shape, through
from fx2onnx.rules import Gap, lowers
from fx2onnx.types import DTYPES

aten = torch.ops.aten

GAPS = (
    Gap(
        (aten.as_strided.default, aten.as_strided_copy.default, aten.as_strided_scatter.default),
        "never",
        "it reads the memory under a tensor, and ONNX tensors have no memory layout; "
        "index, unfold or expand say the same on the tensor itself",
    ),
)


# -- reshaping ---------------------------------------------------------------------------------------


@lowers(
    aten.view.default,
    aten.view_copy.default,
    aten._unsafe_view.default,
    aten.reshape.default,
)
def reshape(op: OpBuilder, self: Value, shape: Sequence[Size]) -> ir.Value:
    """(*S) -> (*shape), elements in row-major order."""
    return to_result(op, self, shape)


@lowers(aten._reshape_alias.default)
def reshape_alias(op: OpBuilder, self: Value, size: Sequence[Size], stride: object) -> ir.Value:
    """(*S) -> (*size), elements in row-major order."""
    return to_result(op, self, size)


@lowers(aten.reshape_as.default)
def reshape_as(op: OpBuilder, self: Value, other: Value) -> ir.Value:
    """(*S), (*T) -> (*T), elements in row-major order."""
    return to_result(op, self, op.sizes(other))


def to_result(op: OpBuilder, x: ir.Value, sizes: Sequence[Size]) -> ir.Value:
    """The tensor in the shape of the call's result; x itself where it has it."""
    if same_shape(shape_of(x), op.result.shape):
        return x
    return op.reshape(x, sizes, op.result.shape)


def shape_vector(op: OpBuilder, x: ir.Value) -> ir.Value:
    """The shape of a tensor: a constant where it is static."""
    shape = shape_of(x)
    return op.ints([int(s) for s in shape if s is not None]) if is_static(shape) else op.Shape(x)


def reshaped_like(op: OpBuilder, x: ir.Value, like: ir.Value) -> ir.Value:
    """A tensor in the shape of another, which may be empty."""
    return op.Reshape(x, shape_vector(op, like), allowzero=1)


@lowers(aten.flatten.using_ints)
def flatten(op: OpBuilder, self: Value, start_dim: int = 0, end_dim: int = -1) -> ir.Value:
    """(…, a, b, c, …) -> (…, a*b*c, …); a tensor without axes gets one."""
    rank = rank_of(self)
    start, end = axis_of(start_dim, rank), axis_of(end_dim, rank)
    if rank == 0:
        return op.Unsqueeze(self, op.ints([0]))
    if start == end:
        return self
    if start == 1 and end == rank - 1:
        return op.Flatten(self, axis=1)
    if start == 0 and end == rank - 2:
        return op.Flatten(self, axis=rank - 1)
    return merge(op, self, start, end)


@lowers(aten.ravel.default)
def ravel(op: OpBuilder, self: Value) -> ir.Value:
    """(*) -> (n,)."""
    return self if rank_of(self) == 1 else op.Reshape(self, op.ints([-1]))


def merge(op: OpBuilder, x: ir.Value, start: int, end: int) -> ir.Value:
    """The tensor with the axes start … end as one; where `end` is `start - 1`, with a new axis of size 1."""
    known, sizes = shape_of(x), op.sizes(x)
    inner = [size for size in known[start : end + 1] if isinstance(size, int)]
    product = math.prod(inner) if len(inner) == end + 1 - start else None
    size: Size = -1 if product is None else product
    if size == -1 and 0 in known:  # ONNX Reshape takes no -1 beside an empty axis
        size = functools.reduce(functools.partial(mul, op), sizes[start : end + 1])
    return op.reshape(
        x, [*sizes[:start], size, *sizes[end + 1 :]], [*known[:start], product, *known[end + 1 :]]
    )


@lowers(aten.unflatten.int)
def unflatten(op: OpBuilder, self: Value, dim: int, sizes: Sequence[Size]) -> ir.Value:
    """(…, a*b, …) -> (…, a, b, …)."""
    axis, old = axis_of(dim, rank_of(self)), op.sizes(self)
    return to_result(op, self, [*old[:axis], *sizes, *old[axis + 1 :]])


@lowers(aten.squeeze.default, aten.squeeze_copy.default)
def squeeze(op: OpBuilder, self: Value) -> ir.Value:
    """(…, 1, …) -> (…, …); an axis whose size is free stays, as PyTorch has it in the traced graph."""
    return without_axes(op, self, range(rank_of(self)))


@lowers(aten.squeeze.dim, aten.squeeze.dims, aten.squeeze_copy.dim, aten.squeeze_copy.dims)
def squeeze_dims(op: OpBuilder, self: Value, dim: int | Sequence[int]) -> ir.Value:
    """(…, 1, …) -> (…, …); axes of another size stay."""
    return without_axes(op, self, axes_of([dim] if isinstance(dim, int) else dim, rank_of(self)))


def without_axes(op: OpBuilder, x: ir.Value, axes: Sequence[int]) -> ir.Value:
    """The tensor without those of the axes that have the size 1."""
    ones = [axis for axis in axes if axis < rank_of(x) and shape_of(x)[axis] == 1]
    return op.Squeeze(x, op.ints(ones)) if ones else x


@lowers(aten.unsqueeze.default, aten.unsqueeze_copy.default)
def unsqueeze(op: OpBuilder, self: Value, dim: int) -> ir.Value:
    """(…, …) -> (…, 1, …)."""
    return op.Unsqueeze(self, op.ints([dim % (rank_of(self) + 1)]))


# -- transposing -------------------------------------------------------------------------------------


@lowers(aten.permute.default, aten.permute_copy.default)
def permute(op: OpBuilder, self: Value, dims: Sequence[int]) -> ir.Value:
    """(a_0, …, a_n) -> (a_dims[0], …, a_dims[n])."""
    return transposed(op, self, axes_of(dims, rank_of(self)))


@lowers(
    aten.transpose.int,
    aten.transpose_copy.int,
    aten.swapaxes.default,
    aten.swapdims.default,
)
def transpose(op: OpBuilder, self: Value, dim0: int, dim1: int) -> ir.Value:
    """(…, a, …, b, …) -> (…, b, …, a, …)."""
    return swapped(op, self, dim0, dim1)


@lowers(aten.t.default, aten.t_copy.default)
def t(op: OpBuilder, self: Value) -> ir.Value:
    """(a, b) -> (b, a); fewer axes stay as they are."""
    return swapped(op, self, 0, -1)


@lowers(aten.mT.default, aten.mH.default, aten.adjoint.default, aten.matrix_H.default)
def matrix_transpose(op: OpBuilder, self: Value) -> ir.Value:
    """(…, a, b) -> (…, b, a); real tensors are their own conjugates."""
    return swapped(op, self, -2, -1) if rank_of(self) else self


@lowers(aten.numpy_T.default)
def reverse_axes(op: OpBuilder, self: Value) -> ir.Value:
    """(a, b, …, z) -> (z, …, b, a)."""
    return transposed(op, self, range(rank_of(self))[::-1])


@lowers(aten.movedim.int, aten.movedim.intlist, aten.moveaxis.int, aten.moveaxis.intlist)
def movedim(
    op: OpBuilder, self: Value, source: int | Sequence[int], destination: int | Sequence[int]
) -> ir.Value:
    """Axis source[i] goes to destination[i]; the others keep their order."""
    rank = rank_of(self)
    old = axes_of([source] if isinstance(source, int) else source, rank)
    new = axes_of([destination] if isinstance(destination, int) else destination, rank)
    return transposed(op, self, moved(rank, old, new))


def moved(rank: int, old: Sequence[int], new: Sequence[int]) -> list[int]:
    """The permutation that brings axis old[i] to new[i] and keeps the order of the others."""
    perm = [axis for axis in range(rank) if axis not in old]
    for to, origin in sorted(zip(new, old, strict=True)):
        perm.insert(to, origin)
    return perm[:rank]


def swapped(op: OpBuilder, x: ir.Value, dim0: int, dim1: int) -> ir.Value:
    """The tensor with two axes exchanged."""
    rank = rank_of(x)
    perm, (a, b) = list(range(rank)), axes_of([dim0, dim1], rank)
    if rank:
        perm[a], perm[b] = perm[b], perm[a]
    return transposed(op, x, perm)


def transposed(op: OpBuilder, x: ir.Value, perm: Sequence[int]) -> ir.Value:
    """The tensor with its axes in another order; x itself where the order is its own."""
    perm = list(perm)
    return x if perm == sorted(perm) else op.Transpose(x, perm=perm)


# -- expanding ---------------------------------------------------------------------------------------


@lowers(aten.expand.default, aten.expand_copy.default, aten.broadcast_to.default)
def expand(op: OpBuilder, self: Value, size: Sequence[Size], implicit: bool = False) -> ir.Value:
    """(…, 1, …) -> (…, size, …); -1 keeps a size, new axes come first."""
    return expanded(op, self, size)


@lowers(aten.expand_as.default)
def expand_as(op: OpBuilder, self: Value, other: Value) -> ir.Value:
    """(…, 1, …), (*T) -> (*T)."""
    new = op.result.shape
    if same_shape(shape_of(self), new):
        return self
    return broadcast(op, self, [int(n) for n in new] if is_static(new) else op.Shape(other))


def expanded(op: OpBuilder, x: Value, sizes: Sequence[Size]) -> ir.Value:
    """The tensor broadcast to the call's result, whose sizes are these (-1 where x has its own).

    A size that x has already is written as 1: ONNX Expand broadcasts in both directions.
    """
    old, new = shape_of(x), op.result.shape
    if same_shape(old, new):
        return x
    aligned = (*[None] * (len(new) - len(old)), *old)
    return broadcast(op, x, [_target(*each) for each in zip(aligned, new, sizes, strict=True)])


def _target(old: Dim | None, new: Dim, size: Size) -> Size:
    if old is not None and old == new:
        return 1
    return new if isinstance(new, int) else size


def broadcast(op: OpBuilder, x: ir.Value, shape: Sequence[Size] | ir.Value) -> ir.Value:
    """ONNX Expand: x in the shape that its own and this one broadcast to."""
    vector = shape if isinstance(shape, ir.Value) else op.vector(shape)
    # ONNX Runtime 1.32 has no kernel of Expand for bfloat16; float32 holds its values.
    return through(op, lambda v: op.Expand(v, vector), x, {torch.bfloat16: torch.float32})


@lowers(aten.view.dtype, since=26)
def bit_cast(op: OpBuilder, self: Value, dtype: torch.dtype) -> ir.Value:
    """(*) -> (*), the same bits read as another dtype of the same width.

    Raises:
        ValueError: the widths differ, so that the last size would change; ONNX BitCast keeps shapes.
    """
    old = dtype_of(self)
    if dtype == old:
        return self
    if dtype.itemsize != old.itemsize:
        raise ValueError(f"the bits of {old} cannot be read as {dtype}: ONNX BitCast keeps the shape")
    return op.BitCast(self, to=DTYPES[dtype])
