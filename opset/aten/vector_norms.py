"""Norms of vectors and matrices: `(*) -> (*)` without the axes of `dim`, as in `reduce.py`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, dtype_of, rank_of
from fx2onnx.opset.aten.operands import HALVES, computed, f32, operand
from fx2onnx.opset.aten.reduce import Dims, axes_of, reduced
from fx2onnx.rules import Gap, lowers

aten = torch.ops.aten

GAPS = (Gap((aten.nuclear_norm.default, aten.nuclear_norm.dim), "never", "ONNX has no singular values"),)


# -- norms of vectors --------------------------------------------------------------------------------


@lowers(aten.linalg_vector_norm.default)
def vector_norm(
    op: OpBuilder,
    self: Value,
    ord: float = 2,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> ir.Value:
    """The sum of |x|**ord along some axes to the power of 1/ord; the extremes for infinite ord."""
    return _norm(op, self, ord, dim, keepdim=keepdim)


@lowers(aten.norm.Scalar, aten.norm.ScalarOpt_dtype)
def norm_all(
    op: OpBuilder, self: Value, p: float | None = 2, *, dtype: torch.dtype | None = None
) -> ir.Value:
    """(*) -> (): the p-norm of all elements."""
    return _norm(op, self, 2 if p is None else p, None, keepdim=False)


@lowers(aten.norm.ScalarOpt_dim, aten.norm.ScalarOpt_dim_dtype)
def norm_dim(
    op: OpBuilder,
    self: Value,
    p: float | None,
    dim: Dims,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> ir.Value:
    """The p-norm along some axes."""
    return _norm(op, self, 2 if p is None else p, dim, keepdim=keepdim)


def _norm(op: OpBuilder, x: ir.Value, p: float, dim: Dims, *, keepdim: bool) -> ir.Value:
    dtype = op.result.dtype
    wide = op.cast(x, f32 if dtype in HALVES else dtype)
    return op.cast(_norm_of(op, wide, p, dim, keepdim=keepdim), dtype)


def _norm_of(op: OpBuilder, x: ir.Value, p: float, dim: Dims, *, keepdim: bool) -> ir.Value:
    dtype = dtype_of(x)
    if not axes_of(x, dim) and p != 0:
        return op.Abs(x)
    if p in (1, 2):
        return reduced(op, f"ReduceL{int(p)}", x, dim, keepdim)
    if math.isinf(p):
        return reduced(op, "ReduceMax" if p > 0 else "ReduceMin", op.Abs(x), dim, keepdim)
    if p == 0:
        nonzero = op.cast(op.Not(op.Equal(x, operand(op, 0, dtype))), dtype)
        return reduced(op, "ReduceSum", nonzero, dim, keepdim)
    powers = op.Pow(op.Abs(x), operand(op, p, dtype))
    return op.Pow(reduced(op, "ReduceSum", powers, dim, keepdim), operand(op, 1 / p, dtype))


# -- norms of matrices -------------------------------------------------------------------------------


@lowers(aten.frobenius_norm.dim)
def frobenius_norm(op: OpBuilder, self: Value, dim: Dims, keepdim: bool = False) -> ir.Value:
    """The root of the sum of squares along some axes."""
    return _norm(op, self, 2, dim, keepdim=keepdim)


@lowers(aten.linalg_matrix_norm.default, aten.linalg_matrix_norm.str_ord)
def matrix_norm(
    op: OpBuilder,
    self: Value,
    ord: float | str = "fro",
    dim: Sequence[int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> ir.Value:
    """(…, n, m) -> (…): the Frobenius norm, or the largest (smallest for -ord) sum of columns or rows."""
    return _matrix_norm(op, self, ord, dim, keepdim=keepdim)


@lowers(aten.linalg_norm.default, aten.linalg_norm.ord_str)
def linalg_norm(
    op: OpBuilder,
    self: Value,
    ord: float | str | None = None,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> ir.Value:
    """A vector's norm along one axis, a matrix's along two; of all elements without ord and dim."""
    if ord is None:
        return _norm(op, self, 2, dim, keepdim=keepdim)
    axes = axes_of(self, None) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    if isinstance(ord, str) or len(axes) == 2:
        return _matrix_norm(op, self, ord, axes, keepdim=keepdim)
    return _norm(op, self, ord, axes, keepdim=keepdim)


def _matrix_norm(op: OpBuilder, x: Value, ord: float | str, dim: Sequence[int], *, keepdim: bool) -> ir.Value:
    """The Frobenius norm, or the extreme sum of absolute values of a column (1) or a row (inf).

    Raises:
        ValueError: the norm needs singular values.
    """
    if ord == "fro":
        return _norm(op, x, 2, list(dim), keepdim=keepdim)
    if ord not in (1, -1, math.inf, -math.inf):
        raise ValueError(f"the matrix norm {ord!r} needs singular values, of which ONNX has none")
    rows, columns = (d % rank_of(x) for d in dim)
    summed, compared = (rows, columns) if abs(ord) == 1 else (columns, rows)  # type: ignore[arg-type]
    dtype = op.result.dtype
    wide = op.cast(x, f32 if dtype in HALVES else dtype)
    sums = reduced(op, "ReduceL1", wide, summed, True)
    found = reduced(op, "ReduceMax" if ord > 0 else "ReduceMin", sums, compared, True)  # type: ignore[operator]
    return op.cast(found if keepdim else op.Squeeze(found, op.ints(sorted((rows, columns)))), dtype)


# -- angles ------------------------------------------------------------------------------------------


@lowers(aten.cosine_similarity.default)
def cosine_similarity(op: OpBuilder, x1: Value, x2: Value, dim: int = 1, eps: float = 1e-8) -> ir.Value:
    """The sum of products along an axis over the product of the norms, each of them at least eps."""

    def formula(a: ir.Value, b: ir.Value) -> ir.Value:
        floor = operand(op, eps, dtype_of(a))
        # axes are counted from the end, since the shapes may broadcast
        axis = dim if dim < 0 else dim - len(op.result.shape) - 1
        norms = [op.Max(op.ReduceL2(x, op.ints([axis]), keepdims=0), floor) for x in (a, b)]
        product = op.ReduceSum(op.Mul(a, b), op.ints([axis]), keepdims=0)
        return op.Div(product, op.Mul(*norms))

    return computed(op, formula, x1, x2)
