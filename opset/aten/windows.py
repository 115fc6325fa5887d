"""Operators that cut a tensor into overlapping windows, and the sum of such windows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, rank_of
from fx2onnx.opset.aten.axes import Size, add, axis_of, mul, through
from fx2onnx.opset.aten.movement import transposed
from fx2onnx.opset.aten.padding import padded
from fx2onnx.rules import lowers

aten = torch.ops.aten

_BATCH, _COLUMNS = 4, 3
"""The axes of a batch of images (batch, channels, rows, columns), and of their columns."""


@lowers(aten.unfold.default, aten.unfold_copy.default)
def unfold(op: OpBuilder, self: Value, dimension: int, size: int, step: int) -> ir.Value:
    """(…, n, …) -> (…, w, …, size): w = (n - size)//step + 1 windows, their elements on a new last axis."""
    x = self if rank_of(self) else op.Unsqueeze(self, op.ints([0]))
    axis, rank = axis_of(dimension, rank_of(self)), rank_of(x)
    first = _firsts(op, op.size(x, axis), size, step)
    windows = op.Gather(x, _places(op, first, torch.arange(size), outer=0), axis=axis)
    made = transposed(op, windows, [*(a for a in range(rank + 1) if a != axis + 1), axis + 1])
    return made if rank_of(self) else op.Squeeze(made, op.ints([0]))


def _firsts(op: OpBuilder, length: Size, size: int, step: int) -> torch.Tensor | ir.Value:
    """Where each window of `size` elements begins: 0, step, … as long as it fits."""
    if isinstance(length, int):
        return torch.arange(0, length - size + 1, step)
    return op.Range(op.constant(0), op.scalar(add(op, length, 1 - size)), op.constant(step))


def _places(op: OpBuilder, first: torch.Tensor | ir.Value, offsets: torch.Tensor, *, outer: int) -> ir.Value:
    """first[i] + offsets[j] as a matrix; `first` runs along its axis `outer`."""
    along = offsets.unsqueeze(outer)
    if isinstance(first, torch.Tensor):
        return op.constant(first.unsqueeze(1 - outer) + along)
    return op.Add(op.Unsqueeze(first, op.ints([1 - outer])), op.constant(along))


@lowers(aten.im2col.default)
def im2col(
    op: OpBuilder,
    self: Value,
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> ir.Value:
    """(N, C, H, W) -> (N, C*kh*kw, L), the columns that a convolution multiplies; L = oh*ow.

    Rows and columns are gathered apart, (N, C, kh, oh, kw, ow), and brought into order.
    """
    x = batched(op, self)
    up, left = padding
    sizes = [add(op, size, 2 * pad) for size, pad in zip(op.sizes(x)[2:], padding, strict=True)]
    x = padded(op, x, [0, 0, up, left, 0, 0, up, left])
    for axis in (1, 0):  # columns first, so that the axis of rows keeps its place
        k, d, s = kernel_size[axis], dilation[axis], stride[axis]
        first = _firsts(op, sizes[axis], d * (k - 1) + 1, s)
        x = op.Gather(x, _places(op, first, d * torch.arange(k), outer=1), axis=axis + 2)
    turned = op.Transpose(x, perm=[0, 1, 2, 4, 3, 5])
    batch, channels = op.sizes(x)[:2]
    known = op.result.shape if len(op.result.shape) == _COLUMNS else (1, *op.result.shape)
    made = op.reshape(turned, [batch, mul(op, channels, math.prod(kernel_size)), -1], known)
    return made if rank_of(self) == _BATCH else op.Squeeze(made, op.ints([0]))


@lowers(aten.col2im.default)
def col2im(
    op: OpBuilder,
    self: Value,
    output_size: Sequence[Size],
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> ir.Value:
    """(N, C*kh*kw, L) -> (N, C, H, W): what the columns of im2col add up to in each place."""
    up, left = padding
    shapes = op.vector(output_size), op.vector(kernel_size)
    attributes = {"dilations": dilation, "pads": [up, left, up, left], "strides": stride}
    x = self if rank_of(self) == _COLUMNS else op.Unsqueeze(self, op.ints([0]))
    # ONNX Runtime 1.32 has Col2Im for float32 only, in which PyTorch adds halves too.
    wider = {torch.bfloat16: torch.float32, torch.float16: torch.float32}
    made = through(op, lambda v: op.Col2Im(v, *shapes, **attributes), x, wider)
    return made if rank_of(self) == _COLUMNS else op.Squeeze(made, op.ints([0]))


def batched(op: OpBuilder, x: ir.Value) -> ir.Value:
    """Images as (N, C, H, W); one image, (C, H, W), as a batch of one."""
    return x if rank_of(x) == _BATCH else op.Unsqueeze(x, op.ints([0]))
