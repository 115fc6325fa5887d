"""Tensors made of sizes and numbers: fills, ranges, triangles."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, dtype_of, shape_of, tensor
from fx2onnx.opset.aten.operands import HALVES, Operand, emit, f32, f64, i64, operand
from fx2onnx.rules import Gap, lowers
from fx2onnx.types import DTYPES

aten = torch.ops.aten
prims = torch.ops.prims

Size = int | ir.Value

# Constants up to this many elements are written into the model, larger ones are made when it runs.
LARGEST_CONSTANT = 1024

GAPS = (
    Gap(
        (aten.kaiser_window.default, aten.kaiser_window.periodic, aten.kaiser_window.beta),
        "ours",
        "ONNX has no Bessel functions",
    ),
)


# -- fills -------------------------------------------------------------------------------------------


def filled(op: OpBuilder, sizes: Sequence[Size], value: Operand, dtype: torch.dtype) -> ir.Value:
    """A tensor of these sizes in which every element is `value`."""
    if isinstance(value, ir.Value):
        return op.Expand(op.number(value, dtype), op.vector(sizes)) if sizes else op.number(value, dtype)
    fill = torch.tensor(value).to(dtype)
    static = [s for s in sizes if isinstance(s, int)]
    if len(static) == len(sizes) and math.prod(static) <= LARGEST_CONSTANT:
        return op.constant(fill.expand(static).contiguous(), dtype)
    return op.ConstantOfShape(op.vector(sizes), value=tensor(fill.reshape(1)))


@lowers(aten.full.default)
def full(
    op: OpBuilder, size: Sequence[Size], fill_value: Operand, *, dtype: torch.dtype | None = None
) -> ir.Value:
    """(*size), every element the same."""
    return filled(op, size, fill_value, op.result.dtype)


@lowers(aten.new_full.default)
def new_full(
    op: OpBuilder,
    self: Value,
    size: Sequence[Size],
    fill_value: Operand,
    *,
    dtype: torch.dtype | None = None,
) -> ir.Value:
    """(*size), every element the same."""
    return filled(op, size, fill_value, op.result.dtype)


@lowers(aten.zeros.default, aten.empty.memory_format)
def zeros(op: OpBuilder, size: Sequence[Size], *, dtype: torch.dtype | None = None) -> ir.Value:
    """(*size), every element 0, also for tensors whose elements are left open."""
    return filled(op, size, 0, op.result.dtype)


@lowers(aten.new_zeros.default, aten.new_empty.default)
def new_zeros(
    op: OpBuilder, self: Value, size: Sequence[Size], *, dtype: torch.dtype | None = None
) -> ir.Value:
    """(*size), every element 0, also for tensors whose elements are left open."""
    return filled(op, size, 0, op.result.dtype)


@lowers(
    aten.empty_strided.default,
    aten.empty_permuted.default,
    prims.empty_strided.default,
    prims.empty_permuted.default,
)
def empty_strided(
    op: OpBuilder,
    size: Sequence[Size],
    stride: Sequence[Size],
    *,
    dtype: torch.dtype | None = None,
) -> ir.Value:
    """(*size), every element 0: they are left open."""
    return filled(op, size, 0, op.result.dtype)


@lowers(aten.new_empty_strided.default)
def new_empty_strided(
    op: OpBuilder,
    self: Value,
    size: Sequence[Size],
    stride: Sequence[Size],
    *,
    dtype: torch.dtype | None = None,
) -> ir.Value:
    """(*size), every element 0: they are left open."""
    return filled(op, size, 0, op.result.dtype)


@lowers(aten.ones.default)
def ones(op: OpBuilder, size: Sequence[Size], *, dtype: torch.dtype | None = None) -> ir.Value:
    """(*size), every element 1."""
    return filled(op, size, 1, op.result.dtype)


@lowers(aten.new_ones.default)
def new_ones(
    op: OpBuilder, self: Value, size: Sequence[Size], *, dtype: torch.dtype | None = None
) -> ir.Value:
    """(*size), every element 1."""
    return filled(op, size, 1, op.result.dtype)


@lowers(aten.full_like.default)
def full_like(
    op: OpBuilder, self: Value, fill_value: Operand, *, dtype: torch.dtype | None = None
) -> ir.Value:
    """(*) -> (*), every element the same."""
    return like(op, self, fill_value)


@lowers(aten.zeros_like.default, aten.empty_like.default)
def zeros_like(op: OpBuilder, self: Value, *, dtype: torch.dtype | None = None) -> ir.Value:
    """(*) -> (*), every element 0."""
    return like(op, self, 0)


@lowers(aten.ones_like.default)
def ones_like(op: OpBuilder, self: Value, *, dtype: torch.dtype | None = None) -> ir.Value:
    """(*) -> (*), every element 1."""
    return like(op, self, 1)


def like(op: OpBuilder, x: Value, value: Operand) -> ir.Value:
    """A tensor of x's shape and the result's dtype, filled with a number."""
    dtype, shape = op.result.dtype, shape_of(x)
    static = [s for s in shape if isinstance(s, int)]
    if len(static) == len(shape):
        return filled(op, static, value, dtype)
    sizes = op.Shape(x)
    if isinstance(value, ir.Value):
        return op.Expand(op.number(value, dtype), sizes)
    return op.ConstantOfShape(sizes, value=tensor(torch.tensor([value]).to(dtype)))


@lowers(aten.fill.Scalar, aten.fill.Tensor)
def fill(op: OpBuilder, self: Value, value: Operand) -> ir.Value:
    """(*) -> (*), every element `value`, in the tensor's own dtype."""
    return like(op, self, value)


@lowers(aten.scalar_tensor.default, prims.scalar_tensor.default)
def scalar_tensor(op: OpBuilder, s: Operand, *, dtype: torch.dtype | None = None) -> ir.Value:
    """A number or a size as a tensor without axes."""
    return op.number(s, op.result.dtype)


# -- ranges ------------------------------------------------------------------------------------------


@lowers(aten.arange.default)
def arange(op: OpBuilder, end: Operand, *, dtype: torch.dtype | None = None) -> ir.Value:
    """0, 1, … below end."""
    return _range(op, 0, end, 1)


@lowers(aten.arange.start)
def arange_start(
    op: OpBuilder, start: Operand, end: Operand, *, dtype: torch.dtype | None = None
) -> ir.Value:
    """start, start + 1, … below end."""
    return _range(op, start, end, 1)


@lowers(aten.arange.start_step)
def arange_step(
    op: OpBuilder,
    start: Operand,
    end: Operand,
    step: Operand = 1,
    *,
    dtype: torch.dtype | None = None,
) -> ir.Value:
    """start, start + step, … below end (above it for a negative step)."""
    return _range(op, start, end, step)


def _range(op: OpBuilder, start: Operand, end: Operand, step: Operand) -> ir.Value:
    """Whole numbers are counted in int64; others in float64, as PyTorch does, then rounded once."""
    dtype = op.result.dtype
    bounds = (start, end, step)
    (size,) = op.result.shape
    numbers = [b for b in bounds if not isinstance(b, ir.Value)]
    if len(numbers) == len(bounds) and isinstance(size, int) and size <= LARGEST_CONSTANT:
        return op.constant(torch.arange(*numbers, dtype=dtype), dtype)
    whole = all(_is_whole(b) for b in bounds)
    if whole and not dtype.is_floating_point:
        return op.cast(op.Range(*(op.number(b, i64) for b in bounds)), dtype)
    exact = i64 if whole else f64
    return op.cast(op.Range(*(op.number(b, exact) for b in bounds)), dtype)


def _is_whole(x: Operand) -> bool:
    if isinstance(x, ir.Value):
        return not dtype_of(x).is_floating_point
    return isinstance(x, int)


@lowers(
    aten.linspace.default,
    aten.linspace.Tensor_Tensor,
    aten.linspace.Tensor_Scalar,
    aten.linspace.Scalar_Tensor,
)
def linspace(
    op: OpBuilder, start: Operand, end: Operand, steps: Size, *, dtype: torch.dtype | None = None
) -> ir.Value:
    """`steps` numbers from start to end: the first half counted from start, the rest back from end.

    Source: `linspace_kernel` of ATen/native/cpu/RangeFactoriesKernel.cpp.
    """
    dtype = op.result.dtype
    if not isinstance(start, ir.Value) and not isinstance(end, ir.Value) and isinstance(steps, int):
        return op.constant(torch.linspace(start, end, steps, dtype=dtype), dtype)
    wide = f32 if dtype in HALVES else dtype if dtype.is_floating_point else f64
    count = op.number(steps, i64)
    one = op.constant(1)
    index = op.Range(op.constant(0), count, one)
    first, last = operand(op, start, wide), operand(op, end, wide)
    gaps = op.Max(op.Sub(count, one), one)
    step = op.Div(op.Sub(last, first), op.cast(gaps, wide))
    ahead = op.Add(first, op.Mul(op.cast(index, wide), step))
    back = op.Sub(last, op.Mul(op.cast(op.Sub(op.Sub(count, one), index), wide), step))
    early = op.Less(index, op.Div(count, op.constant(2)))
    alone = op.Equal(count, one)
    return op.cast(op.Where(op.Or(early, alone), ahead, back), dtype)


# -- triangles ---------------------------------------------------------------------------------------


@lowers(aten.eye.default, aten.eye.m)
def eye(op: OpBuilder, n: Size, m: Size | None = None, *, dtype: torch.dtype | None = None) -> ir.Value:
    """(n, m), 1 on the diagonal, else 0."""
    dtype = op.result.dtype
    columns = n if m is None else m
    if isinstance(n, int) and isinstance(columns, int) and n * columns <= LARGEST_CONSTANT:
        return op.constant(torch.eye(n, columns, dtype=dtype), dtype)
    made = op.EyeLike(op.ConstantOfShape(op.vector([n, columns])), dtype=DTYPES[f32])
    return op.cast(made, dtype)


@lowers(aten.tril.default)
def tril(op: OpBuilder, self: Value, diagonal: Operand = 0) -> ir.Value:
    """(…, n, m) -> (…, n, m), 0 above the diagonal."""
    return _triangle(op, self, diagonal, upper=0)


@lowers(aten.triu.default)
def triu(op: OpBuilder, self: Value, diagonal: Operand = 0) -> ir.Value:
    """(…, n, m) -> (…, n, m), 0 below the diagonal."""
    return _triangle(op, self, diagonal, upper=1)


def _triangle(op: OpBuilder, x: Value, diagonal: Operand, *, upper: int) -> ir.Value:
    return emit(op, "Trilu", x, op.number(diagonal, i64), upper=upper)


@lowers(aten.tril_indices.default)
def tril_indices(
    op: OpBuilder, row: Size, col: Size, offset: int = 0, *, dtype: torch.dtype | None = None
) -> ir.Value:
    """(2, k): rows and columns of the elements that `tril` keeps, row by row."""
    return _kept(op, row, col, offset, upper=0)


@lowers(aten.triu_indices.default)
def triu_indices(
    op: OpBuilder, row: Size, col: Size, offset: int = 0, *, dtype: torch.dtype | None = None
) -> ir.Value:
    """(2, k): rows and columns of the elements that `triu` keeps, row by row."""
    return _kept(op, row, col, offset, upper=1)


def _kept(op: OpBuilder, row: Size, col: Size, offset: int, *, upper: int) -> ir.Value:
    dtype = op.result.dtype
    size = op.result.shape[1]
    if isinstance(row, int) and isinstance(col, int) and isinstance(size, int) and size <= LARGEST_CONSTANT:
        indices = torch.triu_indices if upper else torch.tril_indices
        return op.constant(indices(row, col, offset, dtype=dtype), dtype)
    mask = op.ConstantOfShape(op.vector([row, col]), value=tensor(torch.tensor([True])))
    return op.cast(op.NonZero(op.Trilu(mask, op.constant(offset), upper=upper)), dtype)
