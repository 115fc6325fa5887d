"""Bits of integers, element by element; on bools the same operators are the logical ones."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, dtype_of
from fx2onnx.opset.aten.elementwise import floor_div_int
from fx2onnx.opset.aten.operands import UNSIGNED, Operand, operand
from fx2onnx.rules import lowers

aten = torch.ops.aten


@lowers(
    aten.bitwise_and.Tensor,
    aten.bitwise_and.Scalar,
    aten.bitwise_and.Scalar_Tensor,
    aten.__and__.Tensor,
    aten.__and__.Scalar,
)
def bitwise_and(op: OpBuilder, self: Operand, other: Operand) -> ir.Value:
    """`self & other`."""
    return _bits(op, "And", self, other)


@lowers(
    aten.bitwise_or.Tensor,
    aten.bitwise_or.Scalar,
    aten.bitwise_or.Scalar_Tensor,
    aten.__or__.Tensor,
    aten.__or__.Scalar,
)
def bitwise_or(op: OpBuilder, self: Operand, other: Operand) -> ir.Value:
    """`self | other`."""
    return _bits(op, "Or", self, other)


@lowers(
    aten.bitwise_xor.Tensor,
    aten.bitwise_xor.Scalar,
    aten.bitwise_xor.Scalar_Tensor,
    aten.__xor__.Tensor,
    aten.__xor__.Scalar,
)
def bitwise_xor(op: OpBuilder, self: Operand, other: Operand) -> ir.Value:
    """`self ^ other`."""
    return _bits(op, "Xor", self, other)


def _bits(op: OpBuilder, name: str, a: Operand, b: Operand) -> ir.Value:
    dtype = op.result.dtype
    op_type = name if dtype == torch.bool else f"Bitwise{name}"
    build: Callable[..., ir.Value] = getattr(op, op_type)
    return build(operand(op, a, dtype), operand(op, b, dtype))


@lowers(aten.bitwise_not.default)
def bitwise_not(op: OpBuilder, self: Value) -> ir.Value:
    """~self."""
    return op.Not(self) if dtype_of(self) == torch.bool else op.BitwiseNot(self)


@lowers(
    aten.bitwise_left_shift.Tensor,
    aten.bitwise_left_shift.Tensor_Scalar,
    aten.bitwise_left_shift.Scalar_Tensor,
    aten.__lshift__.Tensor,
    aten.__lshift__.Scalar,
)
def left_shift(op: OpBuilder, self: Operand, other: Operand) -> ir.Value:
    """`self << other`: self * 2**other, 0 for counts below 0 or of the dtype's width and above."""
    dtype = op.result.dtype
    x, width = operand(op, self, dtype), torch.iinfo(dtype).bits
    if not isinstance(other, ir.Value):
        factor = 1 << int(other) if 0 <= other < width else 0
        return op.Mul(x, operand(op, _wrapped(factor, dtype), dtype))
    return op.Mul(x, op.Gather(_powers(op, dtype), _count(op, other, width)))


@lowers(
    aten.bitwise_right_shift.Tensor,
    aten.bitwise_right_shift.Tensor_Scalar,
    aten.bitwise_right_shift.Scalar_Tensor,
    aten.__rshift__.Tensor,
    aten.__rshift__.Scalar,
)
def right_shift(op: OpBuilder, self: Operand, other: Operand) -> ir.Value:
    """`self >> other`, keeping the sign: the floor of self / 2**other; -1 or 0 for counts out of range."""
    dtype = op.result.dtype
    x, width = operand(op, self, dtype), torch.iinfo(dtype).bits
    if not isinstance(other, ir.Value):
        return _shifted_right(op, x, int(other) if 0 <= other < width else width)
    if dtype in UNSIGNED:
        quotient = op.Div(x, op.Gather(_powers(op, dtype, over=1), count := _count(op, other, width)))
        return op.Where(op.Equal(count, operand(op, width, torch.int64)), operand(op, 0, dtype), quotient)
    # the powers' last entries would not fit: two divisions, of which the second is by 1 or 2
    count = _count(op, other, width)
    most = op.Min(count, operand(op, width - 2, torch.int64))
    x = floor_div_int(op, x, op.Gather(_powers(op, dtype), most))
    rest = op.Add(op.cast(op.Less(most, count), dtype), operand(op, 1, dtype))
    return floor_div_int(op, x, rest)


def _shifted_right(op: OpBuilder, x: ir.Value, count: int) -> ir.Value:
    dtype = dtype_of(x)
    width = torch.iinfo(dtype).bits
    if dtype in UNSIGNED:
        return op.BitShift(x, operand(op, count, dtype), direction="RIGHT") if count < width else _zero(op, x)
    if count >= width - 1:  # only the sign is left
        return op.Neg(op.cast(op.Less(x, operand(op, 0, dtype)), dtype))
    return floor_div_int(op, x, operand(op, 1 << count, dtype), 1 << count)


def _zero(op: OpBuilder, x: ir.Value) -> ir.Value:
    return op.Mul(x, operand(op, 0, dtype_of(x)))


def _count(op: OpBuilder, other: Operand, width: int) -> ir.Value:
    """Shift counts as indices: those out of range become `width`."""
    count = operand(op, other, torch.int64)
    top = operand(op, width, torch.int64)
    valid = op.Less(count, operand(op, 0, torch.int64))
    return op.Where(valid, top, op.Min(count, top))


def _powers(op: OpBuilder, dtype: torch.dtype, over: int = 0) -> ir.Value:
    """2**0 … 2**(width - 1), and `over` for the count `width`."""
    width = torch.iinfo(dtype).bits
    numbers = [_wrapped(1 << i, dtype) for i in range(width)] + [over]
    return op.constant(torch.tensor(numbers).to(dtype), dtype)


def _wrapped(number: int, dtype: torch.dtype) -> int:
    """A number of the dtype's width as the int64 that converts to it."""
    limits = torch.iinfo(dtype)
    return number - (1 << limits.bits) if number > limits.max else number
