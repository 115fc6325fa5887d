"""Running sums, products and extremes along an axis: `(*) -> (*)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, dtype_of, rank_of, shape_of, tensor
from fx2onnx.opset.aten.operands import FLOATS, HALVES, emit, f32, operand, where
from fx2onnx.rules import lowers
from fx2onnx.types import DTYPES

aten = torch.ops.aten

State = Sequence[ir.Value]


@lowers(aten.cumsum.default)
def cumsum(op: OpBuilder, self: Value, dim: int, *, dtype: torch.dtype | None = None) -> ir.Value:
    """The sum up to each element; integers and bools are summed in int64."""
    x = op.cast(self, op.result.dtype)
    return x if rank_of(self) == 0 else emit(op, "CumSum", x, op.constant(dim))


@lowers(aten.cumprod.default)
def cumprod(op: OpBuilder, self: Value, dim: int, *, dtype: torch.dtype | None = None) -> ir.Value:
    """The product up to each element; integers and bools are multiplied in int64."""
    dtype = op.result.dtype
    x = op.cast(self, dtype)
    if rank_of(self) == 0 or 0 in shape_of(self):  # ONNX Runtime 1.32 refuses a Scan over nothing
        return x
    wide = op.cast(x, f32 if dtype in HALVES else dtype)
    start = _edge(op, wide, dim, 1)

    def step(op: OpBuilder, product: ir.Value, element: ir.Value) -> list[ir.Value]:
        return [op.Mul(product, element)]

    (products,) = scan(op, step, [start], [wide], dim)
    return op.cast(products, dtype)


@lowers(aten.cumprod.default, since=26)
def cumprod_26(op: OpBuilder, self: Value, dim: int, *, dtype: torch.dtype | None = None) -> ir.Value:
    """The product up to each element; integers and bools are multiplied in int64."""
    x = op.cast(self, op.result.dtype)
    return x if rank_of(self) == 0 else emit(op, "CumProd", x, op.constant(dim))


@lowers(aten.logcumsumexp.default)
def logcumsumexp(op: OpBuilder, self: Value, dim: int) -> ir.Value:
    """The logarithm of the sum of exponentials up to each element."""
    if rank_of(self) == 0 or 0 in shape_of(self):
        return self
    wide = op.cast(self, f32 if dtype_of(self) in HALVES else dtype_of(self))

    def step(op: OpBuilder, total: ir.Value, element: ir.Value) -> list[ir.Value]:
        top = op.Max(total, element)
        one = operand(op, 1, dtype_of(wide))
        tail = op.Log(op.Add(op.Exp(op.Neg(op.Abs(op.Sub(total, element)))), one))
        # equal infinities: their difference is NaN, their sum's logarithm the infinity itself
        return [op.Where(op.And(op.Equal(total, element), op.IsInf(total)), total, op.Add(top, tail))]

    (sums,) = scan(op, step, [_edge(op, wide, dim, -float("inf"))], [wide], dim)
    return op.cast(sums, dtype_of(self))


@lowers(aten.cummax.default)
def cummax(op: OpBuilder, self: Value, dim: int) -> tuple[Any, Any]:
    """The largest element up to each one, and its position, the last one of equals; NaN is the largest."""
    return _extremes(op, "GreaterOrEqual", self, dim)


@lowers(aten.cummin.default)
def cummin(op: OpBuilder, self: Value, dim: int) -> tuple[Any, Any]:
    """The smallest element up to each one, and its position, the last one of equals; NaN is the smallest."""
    return _extremes(op, "LessOrEqual", self, dim)


def _extremes(op: OpBuilder, op_type: str, x: Value, dim: int) -> tuple[ir.Value, ir.Value]:
    if rank_of(x) == 0:
        return x, op.constant(0)
    dtype = dtype_of(x)
    start = _edge(op, x, dim, 0)
    nowhere = op.cast(_edge(op, x, dim, 0), torch.int64)

    def step(op: OpBuilder, best: ir.Value, at: ir.Value, now: ir.Value, element: ir.Value) -> list[ir.Value]:
        better = op.Or(op.Equal(now, operand(op, 0, torch.int64)), emit(op, op_type, element, best))
        if dtype in FLOATS:
            # a NaN is kept until another one comes
            better = op.Or(op.And(better, op.Not(op.IsNaN(best))), op.IsNaN(element))
        return [
            where(op, better, element, best),
            op.Where(better, now, at),
            op.Add(now, operand(op, 1, torch.int64)),
        ]

    values, positions, _ = scan(op, step, [start, nowhere, op.constant(0)], [x], dim)
    return values, positions


def _edge(op: OpBuilder, x: ir.Value, dim: int, number: float) -> ir.Value:
    """A tensor of x's shape without axis `dim`, filled with a number."""
    axis = dim % rank_of(x)
    sizes = [op.size(x, a) for a in range(rank_of(x)) if a != axis]
    return op.ConstantOfShape(op.vector(sizes), value=tensor(torch.tensor([number], dtype=dtype_of(x))))


def scan(
    op: OpBuilder,
    step: Callable[..., Sequence[ir.Value]],
    start: State,
    scanned: Sequence[ir.Value],
    dim: int,
) -> Sequence[ir.Value]:
    """What `step(op, *state, *elements)` makes of the state, after each element along `dim`.

    Args:
        op: the builder.
        step: returns the next state.
        start: the state before the first element.
        scanned: tensors of one rank, whose slices along `dim` are the elements.
        dim: the axis along which the results are stacked, too.
    """
    rank = rank_of(scanned[0])
    axis = dim % rank
    inputs = [ir.Value(name=f"state_{i}", type=s.type, shape=s.shape) for i, s in enumerate(start)]
    for i, x in enumerate(scanned):
        shape = [s for a, s in enumerate(x.shape or ()) if a != axis]
        inputs.append(ir.Value(name=f"element_{i}", type=x.type, shape=ir.Shape(shape)))

    def body(op: OpBuilder, *values: ir.Value) -> list[ir.Value]:
        state = list(step(op, *values))
        return [*state, *(op.Identity(s) for s in state)]

    count = len(start)
    graph = op.sub(body, inputs, 2 * count)
    axes = [axis if rank_of(s) == rank - 1 else 0 for s in start]
    made = op.Scan(
        *start,
        *scanned,
        body=graph,
        num_scan_inputs=len(scanned),
        scan_input_axes=[axis] * len(scanned),
        scan_output_axes=axes,
        _outputs=2 * count,
    )
    for value, of in zip(made[count:], start, strict=True):
        value.type = ir.TensorType(of.dtype or DTYPES[f32])
        value.shape = scanned[0].shape if rank_of(of) == rank - 1 else ir.Shape([None])
    return made[count:]
