"""Arithmetic of two and three operands, and choices between them, element by element.

All rules here are `(*a), (*b) -> (*broadcast)`; operands are brought to the result's dtype, as PyTorch's
promotion does it. Integers wrap around. Bools are added by Or and multiplied by And.
"""

from __future__ import annotations

import math

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, dtype_of
from fx2onnx.opset.aten.operands import (
    FLOATS,
    UNSIGNED,
    Operand,
    binary,
    computed,
    elementwise_rows,
    emit,
    operand,
    where,
)
from fx2onnx.rules import lowers

aten = torch.ops.aten

ROWS = elementwise_rows(
    {
        aten.maximum.default: "Max",
        aten.max.other: "Max",
        aten.minimum.default: "Min",
        aten.min.other: "Min",
        aten.clamp_min.default: "Max",
        aten.clamp_min.Tensor: "Max",
        aten.clamp_max.default: "Min",
        aten.clamp_max.Tensor: "Min",
    }
)


# -- sums and products -------------------------------------------------------------------------------


@lowers(aten.add.Tensor, aten.add.Scalar)
def add(op: OpBuilder, self: Operand, other: Operand, alpha: Operand = 1) -> ir.Value:
    """`self + alpha * other`; of bools, self or (alpha and other)."""
    if op.result.dtype == torch.bool:
        return op.Or(operand(op, self, torch.bool), _scaled(op, other, alpha))
    return binary(op, "Add", self, _scaled(op, other, alpha))


@lowers(aten.sub.Tensor, aten.sub.Scalar)
def sub(op: OpBuilder, self: Operand, other: Operand, alpha: Operand = 1) -> ir.Value:
    """`self - alpha * other`."""
    return binary(op, "Sub", self, _scaled(op, other, alpha))


@lowers(aten.rsub.Tensor, aten.rsub.Scalar)
def rsub(op: OpBuilder, self: Operand, other: Operand, alpha: Operand = 1) -> ir.Value:
    """`other - alpha * self`."""
    return binary(op, "Sub", other, _scaled(op, self, alpha))


def _scaled(op: OpBuilder, x: Operand, alpha: Operand) -> Operand:
    """`alpha * x`, still a number where both are numbers."""
    if not isinstance(alpha, ir.Value):
        if alpha == 1:
            return operand(op, x, torch.bool) if op.result.dtype == torch.bool else x
        if not isinstance(x, ir.Value):
            return alpha * x
    dtype = op.result.dtype
    if dtype == torch.bool:
        return op.And(operand(op, x, dtype), operand(op, alpha, dtype))
    return emit(op, "Mul", operand(op, x, dtype), operand(op, alpha, dtype))


@lowers(aten.mul.Tensor, aten.mul.Scalar, aten.multiply.Tensor, aten.multiply.Scalar)
def mul(op: OpBuilder, self: Operand, other: Operand) -> ir.Value:
    """`self * other`; of bools, self and other."""
    if op.result.dtype == torch.bool:
        return op.And(operand(op, self, torch.bool), operand(op, other, torch.bool))
    return binary(op, "Mul", self, other)


@lowers(aten.addcmul.default)
def addcmul(op: OpBuilder, self: Value, a: Value, b: Value, *, value: Operand = 1) -> ir.Value:
    """`self + value * a * b`."""

    def formula(self: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
        product = op.Mul(a, b)
        if isinstance(value, ir.Value) or value != 1:
            product = op.Mul(product, operand(op, value, dtype_of(product)))
        return op.Add(self, product)

    return computed(op, formula, self, a, b)


@lowers(aten.addcdiv.default)
def addcdiv(op: OpBuilder, self: Value, a: Value, b: Value, *, value: Operand = 1) -> ir.Value:
    """`self + value * a / b`."""

    def formula(self: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
        if isinstance(value, ir.Value) or value != 1:
            a = op.Mul(a, operand(op, value, dtype_of(a)))
        return op.Add(self, op.Div(a, b))

    return computed(op, formula, self, a, b)


@lowers(aten.lerp.Scalar)
def lerp(op: OpBuilder, self: Value, end: Value, weight: Operand) -> ir.Value:
    """`self + weight * (end - self)`, from the nearer end: PyTorch takes the other form from 1/2 on."""
    from_end = not isinstance(weight, ir.Value) and abs(weight) >= 0.5

    def formula(a: ir.Value, b: ir.Value) -> ir.Value:
        step = op.Sub(b, a)
        if from_end and not isinstance(weight, ir.Value):
            return op.Sub(b, op.Mul(step, operand(op, 1 - weight, dtype_of(a))))
        return op.Add(a, op.Mul(step, operand(op, weight, dtype_of(a))))

    return computed(op, formula, self, end)


# -- quotients ---------------------------------------------------------------------------------------


@lowers(
    aten.div.Tensor, aten.div.Scalar, aten.true_divide.Tensor, aten.true_divide.Scalar, aten.divide.Tensor
)
def div(op: OpBuilder, self: Operand, other: Operand) -> ir.Value:
    """`self / other`, integers as floats."""
    return binary(op, "Div", self, other)


@lowers(aten.div.Tensor_mode, aten.div.Scalar_mode, aten.divide.Tensor_mode, aten.divide.Scalar_mode)
def div_mode(op: OpBuilder, self: Operand, other: Operand, *, rounding_mode: str | None = None) -> ir.Value:
    """`self / other`, rounded toward zero ("trunc"), down ("floor") or not at all (None)."""
    if rounding_mode == "floor":
        return floor_divide(op, self, other)
    if rounding_mode is None:
        return binary(op, "Div", self, other)
    if op.result.dtype not in FLOATS:
        return binary(op, "Div", self, other)  # ONNX Div truncates integers
    return computed(op, lambda a, b: truncated(op, op.Div(a, b)), self, other)


def truncated(op: OpBuilder, x: ir.Value) -> ir.Value:
    """A float rounded toward zero; ONNX has no operator for it."""
    negative = op.Less(x, operand(op, 0, dtype_of(x)))
    return op.Where(negative, op.Ceil(x), op.Floor(x))


def floor_divide(op: OpBuilder, self: Operand, other: Operand) -> ir.Value:
    """The floor of self / other."""
    formula = floor_div_float if op.result.dtype in FLOATS else floor_div_int
    static = other if not isinstance(other, ir.Value) else None
    return computed(op, lambda a, b: formula(op, a, b, static), self, other)


FLOOR_DIVIDE = lowers(aten.floor_divide.default, aten.floor_divide.Scalar)(floor_divide)


def floor_div_int(op: OpBuilder, a: ir.Value, b: ir.Value, static: float | None = None) -> ir.Value:
    """The floor of a / b for integers, exact over their whole range.

    ONNX Div rounds toward zero: one less where the remainder's sign is not the divisor's.
    """
    dtype = dtype_of(a)
    if dtype in UNSIGNED:
        return op.Div(a, b)
    if static is not None and static > 0:
        behind = op.Less(op.Mod(a, b, fmod=1), operand(op, 0, dtype))
        return op.Sub(op.Div(a, b), op.cast(behind, dtype))
    # Mod has the divisor's sign, with fmod=1 the dividend's: they differ by the divisor or not at all
    gap = op.Sub(op.Mod(a, b), op.Mod(a, b, fmod=1))
    return op.Sub(op.Div(a, b), op.Div(gap, b))


def floor_div_float(op: OpBuilder, a: ir.Value, b: ir.Value, static: float | None = None) -> ir.Value:
    """The floor of the exact quotient: 1.0 // 0.1 is 9, though 1.0 / 0.1 rounds to 10.

    Source: `div_floor_floating` of ATen/native/BinaryOps.h.
    """
    if static is not None and math.frexp(static)[0] == 0.5:
        return op.Floor(op.Div(a, b))
    zero = operand(op, 0, dtype_of(a))
    rest = op.Mod(a, b, fmod=1)
    whole = op.Round(op.Div(op.Sub(a, rest), b))
    if static is not None and static > 0:
        return op.Sub(whole, op.cast(op.Less(rest, zero), dtype_of(a)))
    whole = op.Sub(whole, op.cast(_opposed(op, rest, b), dtype_of(a)))
    if static is not None and static != 0:
        return whole
    return op.Where(op.Equal(b, zero), op.Div(a, b), whole)


def _opposed(op: OpBuilder, rest: ir.Value, b: ir.Value) -> ir.Value:
    """Is a remainder nonzero and of the other sign than the divisor?"""
    return op.Less(op.Mul(op.Sign(rest), b), operand(op, 0, dtype_of(b)))


@lowers(aten.remainder.Tensor, aten.remainder.Scalar, aten.remainder.Scalar_Tensor)
def remainder(op: OpBuilder, self: Operand, other: Operand) -> ir.Value:
    """`self - other * floor(self / other)`: the remainder with the divisor's sign."""
    if op.result.dtype not in FLOATS:
        return binary(op, "Mod", self, other)

    def formula(a: ir.Value, b: ir.Value) -> ir.Value:
        rest = op.Mod(a, b, fmod=1)
        if not isinstance(other, ir.Value) and other > 0:
            opposed = op.Less(rest, operand(op, 0, dtype_of(a)))
        else:
            opposed = _opposed(op, rest, b)
        return op.Where(opposed, op.Add(rest, b), rest)

    return computed(op, formula, self, other)


@lowers(aten.fmod.Tensor, aten.fmod.Scalar)
def fmod(op: OpBuilder, self: Operand, other: Operand) -> ir.Value:
    """`self - other * trunc(self / other)`: the remainder with the dividend's sign."""
    dtype = op.result.dtype
    return emit(op, "Mod", operand(op, self, dtype), operand(op, other, dtype), fmod=1)


# -- powers ------------------------------------------------------------------------------------------


@lowers(aten.pow.Tensor_Tensor, aten.pow.Scalar)
def pow(op: OpBuilder, self: Operand, exponent: Operand) -> ir.Value:
    """`self ** exponent`. The runtime raises integers through float64: exact below 2**53."""
    return binary(op, "Pow", self, exponent)


@lowers(aten.pow.Tensor_Scalar)
def pow_scalar(op: OpBuilder, self: Value, exponent: Operand) -> ir.Value:
    """`self ** exponent`; the exponents that PyTorch special-cases are written as it computes them.

    Source: `pow_tensor_scalar_optimized_kernel` of ATen/native/cpu/PowKernel.cpp.
    """
    dtype = op.result.dtype
    if isinstance(exponent, ir.Value):
        return binary(op, "Pow", self, exponent)
    x = operand(op, self, dtype)
    if dtype not in FLOATS:
        return _whole_power(op, x, int(exponent))
    if exponent == 1:
        return x
    special = {
        0.5: op.Sqrt,
        2.0: lambda x: op.Mul(x, x),
        3.0: lambda x: op.Mul(op.Mul(x, x), x),
        -0.5: lambda x: op.Reciprocal(op.Sqrt(x)),
        -1.0: op.Reciprocal,
        -2.0: lambda x: op.Reciprocal(op.Mul(x, x)),
    }
    if exponent in special:
        return computed(op, special[exponent], self)
    return binary(op, "Pow", self, exponent)


def _whole_power(op: OpBuilder, x: ir.Value, exponent: int) -> ir.Value:
    """An integer to a known power, by squaring: exact, wrapping around."""
    if exponent <= 0:
        return op.Add(op.Mul(x, operand(op, 0, dtype_of(x))), operand(op, 1, dtype_of(x)))
    result: ir.Value | None = None
    while True:
        if exponent & 1:
            result = x if result is None else op.Mul(result, x)
        exponent >>= 1
        if not exponent:
            return result  # type: ignore[return-value]  # the top bit is 1
        x = op.Mul(x, x)


# -- bounds and choices ------------------------------------------------------------------------------


@lowers(aten.clamp.default, aten.clamp.Tensor, aten.clip.default, aten.clip.Tensor)
def clamp(op: OpBuilder, self: Value, min: Operand | None = None, max: Operand | None = None) -> ir.Value:
    """min(max(self, lower), upper): the upper bound wins where the bounds cross; NaN stays."""
    dtype = op.result.dtype
    x = operand(op, self, dtype)
    if isinstance(min, int | float) and isinstance(max, int | float):
        return clip(op, x, min, max)
    if min is not None:
        x = emit(op, "Max", x, operand(op, min, dtype))
    if max is not None:
        x = emit(op, "Min", x, operand(op, max, dtype))
    return x


def clip(op: OpBuilder, x: ir.Value, low: float, high: float) -> ir.Value:
    """The tensor between two numbers, NaN where x or a bound is."""
    dtype = dtype_of(x)
    if math.isnan(low) or math.isnan(high):
        return emit(op, "Add", x, operand(op, math.nan, dtype))
    return emit(op, "Clip", x, operand(op, low, dtype), operand(op, high, dtype))


@lowers(aten.where.self, aten.where.ScalarSelf, aten.where.ScalarOther, aten.where.Scalar)
def where_self(op: OpBuilder, condition: Value, self: Operand, other: Operand) -> ir.Value:
    """`self` where the condition holds, else other."""
    return choose(op, op.cast(condition, torch.bool), self, other)


@lowers(aten.masked_fill.Scalar, aten.masked_fill.Tensor)
def masked_fill(op: OpBuilder, self: Value, mask: Value, value: Operand) -> ir.Value:
    """`value` where the mask holds, else self."""
    return choose(op, op.cast(mask, torch.bool), value, self)


def choose(op: OpBuilder, condition: ir.Value, a: Operand, b: Operand) -> ir.Value:
    """`a` where the condition holds, else b, in the result's dtype; bools of known value by And and Or."""
    dtype = op.result.dtype
    if dtype == torch.bool and not isinstance(a, ir.Value) and isinstance(b, ir.Value):
        b = op.cast(b, dtype)
        return op.Or(condition, b) if a else op.And(op.Not(condition), b)
    if dtype == torch.bool and not isinstance(b, ir.Value) and isinstance(a, ir.Value):
        a = op.cast(a, dtype)
        return op.Or(op.Not(condition), a) if b else op.And(condition, a)
    return where(op, condition, operand(op, a, dtype), operand(op, b, dtype))


# -- the rest ----------------------------------------------------------------------------------------


@lowers(aten.fmax.default)
def fmax(op: OpBuilder, self: Value, other: Value) -> ir.Value:
    """The larger one; a NaN loses against a number."""
    return _ignoring_nan(op, "Max", self, other)


@lowers(aten.fmin.default)
def fmin(op: OpBuilder, self: Value, other: Value) -> ir.Value:
    """The smaller one; a NaN loses against a number."""
    return _ignoring_nan(op, "Min", self, other)


def _ignoring_nan(op: OpBuilder, op_type: str, a: Operand, b: Operand) -> ir.Value:
    if op.result.dtype not in FLOATS:
        return binary(op, op_type, a, b)

    def formula(a: ir.Value, b: ir.Value) -> ir.Value:
        extreme = getattr(op, op_type)(a, b)
        return op.Where(op.IsNaN(a), b, op.Where(op.IsNaN(b), a, extreme))

    return computed(op, formula, a, b)


@lowers(aten.atan2.default, aten.arctan2.default)
def atan2(op: OpBuilder, self: Value, other: Value) -> ir.Value:
    """The angle of the point (other, self), in (-pi, pi]; 0 for the origin, whatever the signs of zeros."""

    def formula(y: ir.Value, x: ir.Value) -> ir.Value:
        dtype = dtype_of(x)
        zero = operand(op, 0, dtype)
        turn = op.Where(op.Less(y, zero), operand(op, -math.pi, dtype), operand(op, math.pi, dtype))
        left = op.Where(op.Less(x, zero), turn, zero)
        # both infinite: the quotient is NaN, that of the signs is not; both zero: 0/1
        infinite = op.And(op.IsInf(x), op.IsInf(y))
        bottom = op.Where(op.Equal(x, zero), op.Where(op.Equal(y, zero), operand(op, 1, dtype), x), x)
        top = op.Where(infinite, op.Sign(y), y)
        bottom = op.Where(infinite, op.Sign(x), bottom)
        return op.Add(op.Atan(op.Div(top, bottom)), left)

    return computed(op, formula, self, other)


@lowers(aten.hypot.default)
def hypot(op: OpBuilder, self: Value, other: Value) -> ir.Value:
    """The root of self² + other², scaled by the larger one so that squares neither overflow nor vanish."""

    def formula(a: ir.Value, b: ir.Value) -> ir.Value:
        a, b = op.Abs(a), op.Abs(b)
        large, small = op.Max(a, b), op.Min(a, b)
        zero, one = operand(op, 0, dtype_of(a)), operand(op, 1, dtype_of(a))
        ratio = op.Div(small, op.Where(op.Equal(large, zero), one, large))
        ratio = op.Where(op.IsInf(large), zero, ratio)
        return op.Mul(large, op.Sqrt(op.Add(op.Mul(ratio, ratio), one)))

    return computed(op, formula, self, other)


@lowers(aten.copysign.Tensor, aten.copysign.Scalar)
def copysign(op: OpBuilder, self: Value, other: Operand) -> ir.Value:
    """|self| with the sign of other; the sign of a zero is read from its reciprocal."""

    def formula(a: ir.Value, b: ir.Value) -> ir.Value:
        zero = operand(op, 0, dtype_of(a))
        signed = op.Where(op.Equal(b, zero), op.Reciprocal(b), b)
        magnitude = op.Abs(a)
        return op.Where(op.Less(signed, zero), op.Neg(magnitude), magnitude)

    return computed(op, formula, self, other)


@lowers(aten.heaviside.default)
def heaviside(op: OpBuilder, self: Value, values: Value) -> ir.Value:
    """0 below zero, 1 above, `values` at zero; 0 for NaN."""
    x = operand(op, self, dtype := op.result.dtype)
    zero = operand(op, 0, dtype)
    step = op.cast(emit(op, "Greater", x, zero), dtype)
    return where(op, emit(op, "Equal", x, zero), operand(op, values, dtype), step)


@lowers(aten.xlogy.Tensor, aten.xlogy.Scalar_Self, aten.xlogy.Scalar_Other)
def xlogy(op: OpBuilder, self: Operand, other: Operand) -> ir.Value:
    """`self * log(other)`; 0 where self is 0, NaN where other is NaN."""

    def formula(a: ir.Value, b: ir.Value) -> ir.Value:
        zero = operand(op, 0, dtype_of(a))
        plain = op.Mul(a, op.Log(b))
        return op.Where(op.And(op.Equal(a, zero), op.Not(op.IsNaN(b))), zero, plain)

    return computed(op, formula, self, other)


@lowers(aten.logaddexp.default)
def logaddexp(op: OpBuilder, self: Value, other: Value) -> ir.Value:
    """log(exp(self) + exp(other)) = max + log(1 + exp(-|self - other|)), equal infinities as they are."""
    return computed(op, lambda a, b: _log_sum(op, a, b, 1.0), self, other)


@lowers(aten.logaddexp2.default)
def logaddexp2(op: OpBuilder, self: Value, other: Value) -> ir.Value:
    """log2(2**self + 2**other), as `logaddexp` with both operands times log(2)."""
    return computed(op, lambda a, b: _log_sum(op, a, b, math.log(2)), self, other)


def _log_sum(op: OpBuilder, a: ir.Value, b: ir.Value, unit: float) -> ir.Value:
    dtype = dtype_of(a)
    distance = op.Abs(op.Sub(a, b))
    if unit != 1:
        distance = op.Mul(distance, operand(op, unit, dtype))
    tail = op.Log(op.Add(op.Exp(op.Neg(distance)), operand(op, 1, dtype)))
    if unit != 1:
        tail = op.Div(tail, operand(op, unit, dtype))
    # equal infinities: their difference is NaN, their sum's logarithm the infinity itself
    equal = op.And(op.Equal(a, b), op.IsInf(a))
    return op.Where(equal, a, op.Add(op.Max(a, b), tail))
