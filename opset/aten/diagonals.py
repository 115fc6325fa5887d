"""Operators on the diagonals of matrices."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, rank_of
from fx2onnx.opset.aten.axes import Size, add, axes_of, mul, sub
from fx2onnx.opset.aten.movement import merge, moved, transposed
from fx2onnx.opset.aten.operands import where
from fx2onnx.opset.aten.padding import padded
from fx2onnx.rules import lowers

aten = torch.ops.aten


@lowers(aten.diagonal.default, aten.diagonal_copy.default)
def diagonal(op: OpBuilder, self: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> ir.Value:
    """(…, n, …, m, …) -> (…, k): x[i, i + offset]; k is what fits."""
    return diagonal_of(op, self, offset, dim1, dim2)


@lowers(aten.linalg_diagonal.default)
def linalg_diagonal(op: OpBuilder, A: Value, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> ir.Value:
    """(…, n, …, m, …) -> (…, k): x[i, i + offset]."""
    return diagonal_of(op, A, offset, dim1, dim2)


@lowers(aten.trace.default)
def trace(op: OpBuilder, self: Value) -> ir.Value:
    """(n, m) -> (): the sum of x[i, i]."""
    return op.ReduceSum(op.cast(diagonal_of(op, self, 0, 0, 1), op.result.dtype), keepdims=0)


def diagonal_of(op: OpBuilder, x: ir.Value, offset: int, dim1: int, dim2: int) -> ir.Value:
    """The diagonal as the last axis: every (m + 1)-th element of the matrix read by rows."""
    rank = rank_of(x)
    matrix = transposed(op, x, moved(rank, axes_of([dim1, dim2], rank), [rank - 2, rank - 1]))
    rows, columns = op.size(matrix, -2), op.size(matrix, -1)
    flat = merge(op, matrix, rank - 2, rank - 1)
    first = offset if offset >= 0 else mul(op, columns, -offset)
    start, end = op.vector([first]), op.vector([_end(op, rows, columns, offset)])
    return op.Slice(flat, start, end, op.ints([-1]), op.vector([add(op, columns, 1)]))


def _end(op: OpBuilder, rows: Size, columns: Size, offset: int) -> Size:
    """Where the row after the diagonal's last one starts; the last column or row cuts the diagonal."""
    above, below = max(offset, 0), max(-offset, 0)
    if isinstance(rows, int) and isinstance(columns, int):
        return (below + max(min(rows - below, columns - above), 0)) * columns
    last = add(op, sub(op, columns, above), below)
    lengths = [op.vector([rows]), op.vector([last])]
    return mul(op, op.Max(op.Min(*lengths), op.ints([below])), columns)


@lowers(aten.diag_embed.default)
def diag_embed(op: OpBuilder, self: Value, offset: int = 0, dim1: int = -2, dim2: int = -1) -> ir.Value:
    """(…, k) -> (…, n, …, n, …) with x on the diagonal and 0 beside it; n = k + |offset|."""
    rank = rank_of(self) + 1
    size = add(op, op.size(self, -1), abs(offset))
    zero = op.constant(0, op.result.dtype)
    matrix = where(op, _mask(op, size, size, offset), _rows(op, self, offset), zero)
    return transposed(op, matrix, _back(rank, dim1, dim2))


@lowers(aten.diagonal_scatter.default)
def diagonal_scatter(
    op: OpBuilder, self: Value, src: Value, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> ir.Value:
    """A copy of x with x[i, i + offset] = src[i]."""
    rank = rank_of(self)
    matrix = transposed(op, self, moved(rank, axes_of([dim1, dim2], rank), [rank - 2, rank - 1]))
    rows, columns = op.size(matrix, -2), op.size(matrix, -1)
    values = _rows(op, op.cast(src, op.result.dtype), offset, rows)
    made = where(op, _mask(op, rows, columns, offset), values, matrix)
    return transposed(op, made, _back(rank, dim1, dim2))


def _back(rank: int, dim1: int, dim2: int) -> list[int]:
    """The permutation that brings the last two axes to dim1 and dim2."""
    return moved(rank, [rank - 2, rank - 1], axes_of([dim1, dim2], rank))


def _mask(op: OpBuilder, rows: Size, columns: Size, offset: int) -> ir.Value:
    """(rows, columns): is this place on the diagonal?"""
    if isinstance(rows, int) and isinstance(columns, int):
        return op.constant(torch.ones(rows, columns).triu(offset).tril(offset), torch.bool)
    row = op.Range(op.constant(offset), op.Add(op.scalar(rows), op.constant(offset)), op.constant(1))
    column = op.Range(op.constant(0), op.scalar(columns), op.constant(1))
    return op.Equal(op.Unsqueeze(row, op.ints([1])), column)


def _rows(op: OpBuilder, x: ir.Value, offset: int, rows: Size | None = None) -> ir.Value:
    """(…, k) -> (…, n, 1): the diagonal's value of each row, anything where a row has none.

    Args:
        op: the builder.
        x: the diagonal.
        offset: which diagonal.
        rows: how many rows the matrix has; `k + |offset|` where omitted.
    """
    above, below = max(offset, 0), max(-offset, 0)
    after = above if rows is None else sub(op, sub(op, rows, below), op.size(x, -1))
    if below or after != 0:
        pads: Sequence[Size] = [*[0] * (rank_of(x) - 1), below, *[0] * (rank_of(x) - 1), after]
        x = padded(op, x, pads)
    return op.Unsqueeze(x, op.ints([-1]))
