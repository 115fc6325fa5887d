"""Axes and sizes as the rules of data movement need them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, dtype_of
from fx2onnx.dims import Dim

INT64_MAX = torch.iinfo(torch.int64).max
INT64_MIN = torch.iinfo(torch.int64).min

Size = int | ir.Value
"""A number, or a vector of one int64."""


def axis_of(dim: int, rank: int) -> int:
    """PyTorch's `dim` as 0 … rank - 1; a tensor without axes counts as having one."""
    return dim % max(rank, 1)


def axes_of(dims: Sequence[int], rank: int) -> list[int]:
    """PyTorch's dims as 0 … rank - 1, in their order."""
    return [axis_of(d, rank) for d in dims]


def same_shape(a: Sequence[Dim | None], b: Sequence[Dim | None]) -> bool:
    """Are two shapes known to be equal?"""
    return len(a) == len(b) and all(x is not None and x == y for x, y in zip(a, b, strict=True))


def is_static(shape: Sequence[Dim | None]) -> bool:
    """Is every size a number?"""
    return all(isinstance(size, int) for size in shape)


def add(op: OpBuilder, a: Size, b: Size) -> Size:
    """The sum of two sizes."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if isinstance(b, int) and b == 0:
        return a
    return op.Add(_vector(op, a), _vector(op, b))


def sub(op: OpBuilder, a: Size, b: Size) -> Size:
    """The difference of two sizes."""
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    if isinstance(b, int) and b == 0:
        return a
    return op.Sub(_vector(op, a), _vector(op, b))


def mul(op: OpBuilder, a: Size, b: Size) -> Size:
    """The product of two sizes."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    return op.Mul(_vector(op, a), _vector(op, b))


def _vector(op: OpBuilder, size: Size) -> ir.Value:
    return op.ints([size]) if isinstance(size, int) else size


def slice_axis(
    op: OpBuilder, x: ir.Value, axis: int, start: Size = 0, end: Size = INT64_MAX, step: Size = 1
) -> ir.Value:
    """x[start:end:step] along one axis, with the clamping that Python and ONNX share."""
    bounds = [op.vector([bound]) for bound in (start, end)]
    steps = [] if step == 1 else [op.vector([step])]
    return op.Slice(x, *bounds, op.ints([axis]), *steps)


def through(
    op: OpBuilder,
    build: Callable[[ir.Value], ir.Value],
    x: ir.Value,
    wider: Mapping[torch.dtype, torch.dtype],
) -> ir.Value:
    """`build(x)`, by way of a wider dtype where the runtime has no kernel for x's.

    Args:
        op: the builder.
        build: makes a value of x's dtype.
        x: the tensor.
        wider: for each dtype without a kernel, one that holds all its values.
    """
    dtype = dtype_of(x)
    if dtype not in wider:
        return build(x)
    return op.cast(build(op.cast(x, wider[dtype])), dtype)
