"""Comparisons and logic, element by element: `(*a), (*b) -> bool (*broadcast)`."""

from __future__ import annotations

import math

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, dtype_of
from fx2onnx.opset.aten.operands import FLOATS, Operand, common_dtype, emit, operand
from fx2onnx.rules import Gap, lowers

aten = torch.ops.aten

GAPS = (
    Gap(
        (aten.equal.default, aten.allclose.default, aten.is_nonzero.default),
        "never",
        "it makes a Python bool of a tensor's values",
    ),
)


def compared(op: OpBuilder, op_type: str, a: Operand, b: Operand) -> ir.Value:
    """`op.<op_type>(a, b)` in the dtype that both promote to."""
    dtype = common_dtype(a, b)
    return emit(op, op_type, operand(op, a, dtype), operand(op, b, dtype))


@lowers(aten.eq.Tensor, aten.eq.Scalar)
def eq(op: OpBuilder, self: Operand, other: Operand) -> ir.Value:
    """`self == other`."""
    return compared(op, "Equal", self, other)


@lowers(aten.ne.Tensor, aten.ne.Scalar, aten.not_equal.Tensor, aten.not_equal.Scalar)
def ne(op: OpBuilder, self: Operand, other: Operand) -> ir.Value:
    """`self != other`; true for NaN."""
    return op.Not(compared(op, "Equal", self, other))


@lowers(aten.lt.Tensor, aten.lt.Scalar, aten.less.Tensor, aten.less.Scalar)
def lt(op: OpBuilder, self: Operand, other: Operand) -> ir.Value:
    """`self < other`."""
    return compared(op, "Less", self, other)


@lowers(aten.le.Tensor, aten.le.Scalar, aten.less_equal.Tensor, aten.less_equal.Scalar)
def le(op: OpBuilder, self: Operand, other: Operand) -> ir.Value:
    """`self <= other`."""
    return compared(op, "LessOrEqual", self, other)


@lowers(aten.gt.Tensor, aten.gt.Scalar, aten.greater.Tensor, aten.greater.Scalar)
def gt(op: OpBuilder, self: Operand, other: Operand) -> ir.Value:
    """`self > other`."""
    return compared(op, "Greater", self, other)


@lowers(aten.ge.Tensor, aten.ge.Scalar, aten.greater_equal.Tensor, aten.greater_equal.Scalar)
def ge(op: OpBuilder, self: Operand, other: Operand) -> ir.Value:
    """`self >= other`."""
    return compared(op, "GreaterOrEqual", self, other)


@lowers(aten.logical_and.default)
def logical_and(op: OpBuilder, self: Value, other: Value) -> ir.Value:
    """Are both nonzero?"""
    return op.And(op.cast(self, torch.bool), op.cast(other, torch.bool))


@lowers(aten.logical_or.default)
def logical_or(op: OpBuilder, self: Value, other: Value) -> ir.Value:
    """Is one nonzero?"""
    return op.Or(op.cast(self, torch.bool), op.cast(other, torch.bool))


@lowers(aten.logical_xor.default)
def logical_xor(op: OpBuilder, self: Value, other: Value) -> ir.Value:
    """Is exactly one nonzero?"""
    return op.Xor(op.cast(self, torch.bool), op.cast(other, torch.bool))


@lowers(aten.logical_not.default)
def logical_not(op: OpBuilder, self: Value) -> ir.Value:
    """Is it zero?"""
    return op.Not(op.cast(self, torch.bool))


@lowers(aten.isclose.default)
def isclose(
    op: OpBuilder,
    self: Value,
    other: Value,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> ir.Value:
    """|self - other| <= atol + |rtol * other|, or equal; with `equal_nan` also where both are NaN."""
    dtype = common_dtype(self, other)
    a, b = operand(op, self, dtype), operand(op, other, dtype)
    close = emit(op, "Equal", a, b)
    if equal_nan and dtype in FLOATS:
        close = op.Or(close, op.And(op.IsNaN(a), op.IsNaN(b)))
    if rtol == 0 and atol == 0:
        return close
    wide = dtype if dtype in FLOATS else torch.float32
    a, b = operand(op, a, wide), operand(op, b, wide)
    distance = emit(op, "Abs", emit(op, "Sub", a, b))
    slack = emit(op, "Abs", emit(op, "Mul", b, operand(op, rtol, dtype_of(b))))
    allowed = emit(op, "Add", slack, operand(op, atol, wide))
    finite = emit(op, "Less", distance, operand(op, math.inf, wide))
    return op.Or(close, op.And(finite, emit(op, "LessOrEqual", distance, allowed)))
