"""Python numbers made of sizes (SymInt, SymFloat, SymBool): vectors of one int64, double or bool.

Their arithmetic is Python's: `//` and `%` round down, `/` makes floats, whole numbers stay whole.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import onnx_ir as ir
import torch

from fx2onnx import dims
from fx2onnx.builder import OpBuilder, Value, dtype_of, shape_of, size_expr
from fx2onnx.opset.aten.elementwise import floor_div_float, floor_div_int, truncated
from fx2onnx.opset.aten.operands import f64, i64
from fx2onnx.rules import lowers
from fx2onnx.types import SizeType

aten = torch.ops.aten

Number = ir.Value | float


def vector(op: OpBuilder, x: Number, dtype: torch.dtype) -> ir.Value:
    """A number as a vector of one of this dtype."""
    if isinstance(x, ir.Value):
        return op.cast(x, dtype)
    return op.constant([x], dtype)


def dtype_of_number(x: Number) -> torch.dtype:
    """int64, float64 or bool."""
    if isinstance(x, ir.Value):
        return dtype_of(x)
    return torch.bool if isinstance(x, bool) else i64 if isinstance(x, int) else f64


def pair(op: OpBuilder, a: Number, b: Number) -> tuple[ir.Value, ir.Value]:
    """Two numbers as vectors of one dtype: double where one is a float, else int64."""
    wide = f64 if f64 in (dtype_of_number(a), dtype_of_number(b)) else i64
    return vector(op, a, wide), vector(op, b, wide)


# -- sizes of tensors --------------------------------------------------------------------------------


@lowers(aten.sym_size.int, aten.size.int, inline=True)
def sym_size(op: OpBuilder, self: Value, dim: int) -> ir.Value:
    """The size of one axis."""
    return vector(op, op.size(self, dim), i64)


@lowers(aten.sym_numel.default, aten.numel.default, inline=True)
def sym_numel(op: OpBuilder, self: Value) -> ir.Value:
    """The number of elements: the product of all sizes."""
    return op.ReduceProd(op.Shape(self), keepdims=1)


@lowers(aten.sym_stride.int, aten.stride.int, inline=True)
def sym_stride(op: OpBuilder, self: Value, dim: int) -> ir.Value:
    """The distance of neighbours along an axis, for tensors that are stored in order.

    Raises:
        ValueError: the tensor is not stored in order; ONNX has no words for strides.
    """
    shape = shape_of(self)
    inner = math.prod(shape[dim % len(shape) + 1 :])  # type: ignore[arg-type]  # known in a typed graph
    (result,) = op.results
    if not isinstance(result, SizeType) or result.expr is None or dims.same(result.expr, inner) is not True:
        raise ValueError(f"the stride {result} is not the product of the sizes after axis {dim}")
    return op.ReduceProd(op.Shape(self, start=dim % len(shape) + 1), keepdims=1)


@lowers(aten.item.default, aten._local_scalar_dense.default, inline=True)
def item(op: OpBuilder, self: Value) -> ir.Value:
    """The one element of a tensor as a number."""
    (result,) = op.results
    kind = result.kind if isinstance(result, SizeType) else int
    return op.cast(op.Reshape(self, op.ints([1])), {int: i64, float: f64, bool: torch.bool}[kind])


# -- arithmetic --------------------------------------------------------------------------------------


@lowers(operator.add, inline=True)
def add(op: OpBuilder, a: Number, b: Number) -> ir.Value:
    """`a + b`."""
    return op.Add(*pair(op, a, b))


@lowers(operator.sub, inline=True)
def sub(op: OpBuilder, a: Number, b: Number) -> ir.Value:
    """`a - b`."""
    return op.Sub(*pair(op, a, b))


@lowers(operator.mul, inline=True)
def mul(op: OpBuilder, a: Number, b: Number) -> ir.Value:
    """`a * b`."""
    return op.Mul(*pair(op, a, b))


@lowers(operator.neg, inline=True)
def neg(op: OpBuilder, a: Value) -> ir.Value:
    """-a."""
    return op.Neg(vector(op, a, _numeric(a)))


@lowers(operator.pos, inline=True)
def pos(op: OpBuilder, a: Value) -> ir.Value:
    """+a."""
    return vector(op, a, _numeric(a))


@lowers(operator.abs, abs, inline=True)
def absolute(op: OpBuilder, a: Value) -> ir.Value:
    """|a|."""
    return op.Abs(vector(op, a, _numeric(a)))


def _numeric(a: Number) -> torch.dtype:
    """The dtype in which Python computes with a number alone; bools are whole numbers."""
    return f64 if dtype_of_number(a) == f64 else i64


@lowers(operator.truediv, inline=True)
def truediv(op: OpBuilder, a: Number, b: Number) -> ir.Value:
    """`a / b` as a float."""
    return op.Div(vector(op, a, f64), vector(op, b, f64))


@lowers(operator.floordiv, inline=True)
def floordiv(op: OpBuilder, a: Number, b: Number) -> ir.Value:
    """`a // b`, one Div where both are known to be positive."""
    top, bottom = pair(op, a, b)
    static = b if not isinstance(b, ir.Value) else None
    if dtype_of(top) == f64:
        return floor_div_float(op, top, bottom, static)
    if _nonnegative(a) and _nonnegative(b):
        return op.Div(top, bottom)
    return floor_div_int(op, top, bottom, static)


def _nonnegative(x: Number) -> bool:
    """Is a size known not to be negative?"""
    expr = size_expr(x) if isinstance(x, ir.Value) else x
    if expr is None:
        return False
    return expr >= 0 if isinstance(expr, int | float) else bool(expr.is_nonnegative)


@lowers(operator.mod, inline=True)
def mod(op: OpBuilder, a: Number, b: Number) -> ir.Value:
    """`a % b`, with the divisor's sign."""
    top, bottom = pair(op, a, b)
    if dtype_of(top) == i64:
        return op.Mod(top, bottom)
    rest = op.Mod(top, bottom, fmod=1)
    opposed = op.Less(op.Mul(op.Sign(rest), bottom), vector(op, 0.0, f64))
    return op.Where(opposed, op.Add(rest, bottom), rest)


@lowers(operator.pow, math.pow, inline=True)
def power(op: OpBuilder, a: Number, b: Number) -> ir.Value:
    """`a ** b`: by multiplication for a whole number to a known power, else as floats."""
    (result,) = op.results
    whole = isinstance(result, SizeType) and result.kind is int
    if whole and isinstance(b, int) and b > 0:
        base = made = vector(op, a, i64)
        for _ in range(b - 1):
            made = op.Mul(made, base)
        return made
    made = op.Pow(vector(op, a, f64), vector(op, b, f64))
    return op.cast(made, i64) if whole else made


# -- roundings and conversions -----------------------------------------------------------------------


def _whole(rounded: Callable[[OpBuilder, ir.Value], ir.Value]) -> Callable[[OpBuilder, Number], ir.Value]:
    """A rule that rounds a float to a whole number; whole numbers stay as they are."""

    def rule(op: OpBuilder, a: Number) -> ir.Value:
        if dtype_of_number(a) != f64:
            return vector(op, a, i64)
        return op.cast(rounded(op, vector(op, a, f64)), i64)

    return rule


FLOOR = lowers(math.floor, inline=True)(_whole(lambda op, x: op.Floor(x)))
CEIL = lowers(math.ceil, inline=True)(_whole(lambda op, x: op.Ceil(x)))
TRUNC = lowers(math.trunc, torch.sym_int, inline=True)(_whole(truncated))


@lowers(round, inline=True)
def nearest(op: OpBuilder, a: Number, ndigits: int | None = None) -> ir.Value:
    """The nearest whole number, halves to the even one.

    Raises:
        ValueError: digits after the point are asked for.
    """
    if ndigits is not None:
        raise ValueError("round(size, ndigits) has no ONNX form")
    return op.cast(op.Round(vector(op, a, f64)), i64)


@lowers(torch.sym_float, inline=True)
def sym_float(op: OpBuilder, a: Number) -> ir.Value:
    """A number as a float."""
    return vector(op, a, f64)


def _function(op_type: str) -> Callable[[OpBuilder, Number], ir.Value]:
    def rule(op: OpBuilder, a: Number) -> ir.Value:
        build: Callable[..., ir.Value] = getattr(op, op_type)
        return build(vector(op, a, f64))

    return rule


FUNCTIONS = tuple(
    lowers(getattr(math, name), getattr(torch, f"_sym_{name}"), inline=True)(_function(op_type))
    for name, op_type in (("sqrt", "Sqrt"), ("sin", "Sin"), ("cos", "Cos"), ("tanh", "Tanh"))
)


# -- choices and comparisons -------------------------------------------------------------------------


@lowers(torch.sym_max, max, inline=True)
def sym_max(op: OpBuilder, a: Number, b: Number) -> ir.Value:
    """The larger of two."""
    return op.Max(*pair(op, a, b))


@lowers(torch.sym_min, min, inline=True)
def sym_min(op: OpBuilder, a: Number, b: Number) -> ir.Value:
    """The smaller of two."""
    return op.Min(*pair(op, a, b))


@lowers(torch.sym_sum, inline=True)
def sym_sum(op: OpBuilder, numbers: list[Number]) -> ir.Value:
    """The sum of several."""
    total, *rest = (vector(op, n, i64) for n in numbers)
    for number in rest:
        total = op.Add(total, number)
    return total


@lowers(torch.sym_ite, inline=True)
def sym_ite(op: OpBuilder, condition: Number, a: Number, b: Number) -> ir.Value:
    """`a` where the condition holds, else b."""
    return op.Where(vector(op, condition, torch.bool), *pair(op, a, b))


@lowers(torch.sym_not, operator.not_, inline=True)
def sym_not(op: OpBuilder, a: Number) -> ir.Value:
    """Not a."""
    return op.Not(vector(op, a, torch.bool))


@lowers(operator.and_, inline=True)
def both(op: OpBuilder, a: Number, b: Number) -> ir.Value:
    """`a & b` of bools or of whole numbers."""
    return _bits(op, "And", a, b)


@lowers(operator.or_, inline=True)
def either(op: OpBuilder, a: Number, b: Number) -> ir.Value:
    """`a | b` of bools or of whole numbers."""
    return _bits(op, "Or", a, b)


def _bits(op: OpBuilder, name: str, a: Number, b: Number) -> ir.Value:
    bools = dtype_of_number(a) == dtype_of_number(b) == torch.bool
    dtype, prefix = (torch.bool, "") if bools else (i64, "Bitwise")
    build: Callable[..., ir.Value] = getattr(op, f"{prefix}{name}")
    return build(vector(op, a, dtype), vector(op, b, dtype))


def _comparison(op_type: str) -> Callable[[OpBuilder, Number, Number], ir.Value]:
    def rule(op: OpBuilder, a: Number, b: Number) -> ir.Value:
        build: Callable[..., ir.Value] = getattr(op, op_type)
        return build(*pair(op, a, b))

    return rule


COMPARISONS = tuple(
    lowers(target, inline=True)(_comparison(op_type))
    for target, op_type in (
        (operator.eq, "Equal"),
        (operator.lt, "Less"),
        (operator.le, "LessOrEqual"),
        (operator.gt, "Greater"),
        (operator.ge, "GreaterOrEqual"),
    )
)


@lowers(operator.ne, inline=True)
def ne(op: OpBuilder, a: Number, b: Number) -> ir.Value:
    """`a != b`."""
    return op.Not(op.Equal(*pair(op, a, b)))


# -- assertions --------------------------------------------------------------------------------------


@lowers(
    aten.sym_constrain_range.default,
    aten.sym_constrain_range_for_size.default,
    aten._assert_scalar.default,
    aten._assert_async.msg,
    aten._assert_tensor_metadata.default,
    torch._check,
    inline=True,
)
def nothing(op: OpBuilder, *arguments: Any) -> None:
    """Assertions compute nothing: they have done their work in the trace."""
