"""Operators that change the order of elements: rolls, flips, rotations, shuffles of channels and pixels."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, dtype_of, rank_of, shape_of
from fx2onnx.opset.aten.axes import INT64_MIN, Size, axes_of, mul, slice_axis
from fx2onnx.opset.aten.movement import reshaped_like, swapped
from fx2onnx.rules import lowers

aten = torch.ops.aten

_BATCH = 4
"""The axes of a batch of images: batch, channels, rows, columns."""

# ONNX Runtime 1.32, CPU: the dtypes for which it has DepthToSpace and SpaceToDepth.
_BLOCK_DTYPES = frozenset({torch.float32, torch.float64, torch.float16, torch.int8, torch.uint8})


@lowers(aten.roll.default)
def roll(op: OpBuilder, self: Value, shifts: Sequence[Size], dims: Sequence[int] = ()) -> ir.Value:
    """(*) -> (*), element i of an axis goes to i + shift; without `dims`, of the flat tensor."""
    if rank_of(self) == 0:
        return self
    if not dims:
        flat = rolled(op, op.Reshape(self, op.ints([-1])), shifts[0], 0)
        return reshaped_like(op, flat, self)
    x: ir.Value = self
    for shift, axis in zip(shifts, axes_of(dims, rank_of(self)), strict=True):
        x = rolled(op, x, shift, axis)
    return x


def rolled(op: OpBuilder, x: ir.Value, shift: Size, axis: int) -> ir.Value:
    """The tensor rolled along one axis; with a static size by one Gather."""
    size = shape_of(x)[axis]
    if shift == 0 or size in (0, 1):
        return x
    if isinstance(size, int) and isinstance(shift, int):
        order = torch.arange(size).roll(shift)
        return op.Gather(x, op.constant(order), axis=axis)
    whole = op.Max(op.vector([op.size(x, axis)]), op.ints([1]))  # an empty axis: no division by zero
    backwards = op.ints([-shift]) if isinstance(shift, int) else op.Neg(shift)
    first = op.Mod(backwards, whole)
    return op.Concat(slice_axis(op, x, axis, first), slice_axis(op, x, axis, 0, first), axis=axis)


@lowers(aten.flip.default)
def flip(op: OpBuilder, self: Value, dims: Sequence[int]) -> ir.Value:
    """(*) -> (*) with the order along these axes reversed."""
    return flipped(op, self, dims)


def flipped(op: OpBuilder, x: ir.Value, dims: Sequence[int]) -> ir.Value:
    """The tensor reversed along these axes."""
    axes, n = axes_of(dims, rank_of(x)), len(dims)
    if n == 0 or rank_of(x) == 0:
        return x
    return op.Slice(x, op.ints([-1] * n), op.ints([INT64_MIN] * n), op.ints(axes), op.ints([-1] * n))


@lowers(aten.rot90.default)
def rot90(op: OpBuilder, self: Value, k: int = 1, dims: Sequence[int] = (0, 1)) -> ir.Value:
    """(…, n, …, m, …) turned by k quarters from the first of the two axes towards the second."""
    a, b = dims
    match k % 4:
        case 0:
            return self
        case 1:
            return swapped(op, flipped(op, self, [b]), a, b)
        case 2:
            return flipped(op, self, [a, b])
        case _:
            return swapped(op, flipped(op, self, [a]), a, b)


@lowers(aten.pixel_shuffle.default)
def pixel_shuffle(op: OpBuilder, self: Value, upscale_factor: int) -> ir.Value:
    """(*, C*r*r, H, W) -> (*, C, H*r, W*r); on four axes ONNX DepthToSpace in the mode CRD."""
    r, rank, known = upscale_factor, rank_of(self), op.result.shape
    if rank == _BATCH and dtype_of(self) in _BLOCK_DTYPES:
        return op.DepthToSpace(self, blocksize=r, mode="CRD")
    *batch, _, height, width = op.sizes(self)
    channels: Size = known[-3] if isinstance(known[-3], int) else -1
    shape = [*known[:-3], known[-3], r, r, *shape_of(self)[-2:]]
    blocks = op.reshape(self, [*batch, channels, r, r, height, width], shape)
    turned = op.Transpose(blocks, perm=[*range(rank - 2), rank, rank - 2, rank + 1, rank - 1])
    return op.reshape(turned, [*batch, channels, mul(op, height, r), mul(op, width, r)], known)


@lowers(aten.pixel_unshuffle.default)
def pixel_unshuffle(op: OpBuilder, self: Value, downscale_factor: int) -> ir.Value:
    """(*, C, H*r, W*r) -> (*, C*r*r, H, W).

    ONNX SpaceToDepth makes the same channels in the order (row, column, C); PyTorch's is (C, row, column).
    """
    r, rank, known = downscale_factor, rank_of(self), op.result.shape
    count = shape_of(self)[-3]
    if rank == _BATCH and dtype_of(self) in _BLOCK_DTYPES and isinstance(count, int):
        deep = op.SpaceToDepth(self, blocksize=r)
        order = torch.arange(count * r * r).reshape(r * r, count).t().reshape(-1)
        return deep if count == 1 else op.Gather(deep, op.constant(order), axis=1)
    *batch, channels, height, width = op.sizes(self)
    rows, columns = _divided(op, height, r), _divided(op, width, r)
    shape = [*shape_of(self)[:-2], known[-2], r, known[-1], r]
    blocks = op.reshape(self, [*batch, channels, rows, r, columns, r], shape)
    turned = op.Transpose(blocks, perm=[*range(rank - 2), rank - 1, rank + 1, rank - 2, rank])
    return op.reshape(turned, [*batch, mul(op, channels, r * r), rows, columns], known)


def _divided(op: OpBuilder, size: Size, by: int) -> Size:
    return size // by if isinstance(size, int) else op.Div(size, op.ints([by]))


@lowers(aten.channel_shuffle.default, aten.native_channel_shuffle.default)
def channel_shuffle(op: OpBuilder, self: Value, groups: int) -> ir.Value:
    """(N, g*c, *) -> (N, c*g, *): channel i*c + j goes to j*g + i."""
    count = shape_of(self)[1]
    if isinstance(count, int):
        order = torch.arange(count).reshape(groups, -1).t().reshape(-1)
        return op.Gather(self, op.constant(order), axis=1)
    batch, _, *rest = op.sizes(self)
    grouped = op.reshape(
        self, [batch, groups, -1, *rest], [shape_of(self)[0], groups, None, *shape_of(self)[2:]]
    )
    return op.reshape(swapped(op, grouped, 1, 2), op.sizes(self), op.result.shape)
