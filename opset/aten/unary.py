"""Functions of one tensor, element by element: `(*) -> (*)`; integers become floats where PyTorch says so."""

from __future__ import annotations

import math

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, dtype_of
from fx2onnx.opset.aten.elementwise import truncated
from fx2onnx.opset.aten.operands import (
    FLOATS,
    UNSIGNED,
    computed,
    elementwise_rows,
    emit,
    f32,
    f64,
    operand,
    where,
)
from fx2onnx.rules import Gap, lowers

aten = torch.ops.aten

ROWS = elementwise_rows(
    {
        aten.abs.default: "Abs",
        aten.absolute.default: "Abs",
        aten.acos.default: "Acos",
        aten.acosh.default: "Acosh",
        aten.asin.default: "Asin",
        aten.asinh.default: "Asinh",
        aten.atan.default: "Atan",
        aten.atanh.default: "Atanh",
        aten.cos.default: "Cos",
        aten.erf.default: "Erf",
        aten.special_erf.default: "Erf",
        aten.exp.default: "Exp",
        aten.log.default: "Log",
        aten.reciprocal.default: "Reciprocal",
        aten.sigmoid.default: "Sigmoid",
        aten.sin.default: "Sin",
        aten.sqrt.default: "Sqrt",
        aten.tanh.default: "Tanh",
    }
)

GAPS = (
    Gap((aten.erfinv.default, aten.special_erfinv.default), "ours", "ONNX has no inverse error function"),
    Gap(
        (
            aten.lgamma.default,
            aten.digamma.default,
            aten.polygamma.default,
            aten.i0.default,
            aten.special_i0e.default,
            aten.special_i1.default,
            aten.special_i1e.default,
            aten.special_erfcx.default,
            aten.special_ndtri.default,
            aten.special_zeta.default,
            aten.gcd.default,
            aten.nextafter.default,
        ),
        "ours",
        "ONNX has no operator for it",
    ),
)


# -- signs and roundings -----------------------------------------------------------------------------


@lowers(aten.neg.default, aten.negative.default)
def neg(op: OpBuilder, self: Value) -> ir.Value:
    """-self; unsigned integers wrap around (ONNX Neg has no unsigned types)."""
    if dtype_of(self) in UNSIGNED:
        return op.Sub(operand(op, 0, dtype_of(self)), self)
    return emit(op, "Neg", self)


@lowers(aten.sign.default, aten.sgn.default)
def sign(op: OpBuilder, self: Value) -> ir.Value:
    """-1, 0 or 1; bools as they are; 0 for NaN, of which ONNX Runtime's Sign makes NaN."""
    if dtype_of(self) == torch.bool:
        return self
    if dtype_of(self) not in FLOATS:
        return op.Sign(self)
    return where(op, op.IsNaN(self), operand(op, 0, dtype_of(self)), op.Sign(self))


@lowers(aten.ceil.default)
def ceil(op: OpBuilder, self: Value) -> ir.Value:
    """Rounded up; integers as they are."""
    return _rounded(op, "Ceil", self)


@lowers(aten.floor.default)
def floor(op: OpBuilder, self: Value) -> ir.Value:
    """Rounded down; integers as they are."""
    return _rounded(op, "Floor", self)


@lowers(aten.round.default)
def round(op: OpBuilder, self: Value) -> ir.Value:
    """Rounded to the nearest whole number, halves to the even one, as ONNX Round; integers as they are."""
    return _rounded(op, "Round", self)


def _rounded(op: OpBuilder, op_type: str, x: Value) -> ir.Value:
    return emit(op, op_type, x) if dtype_of(x) in FLOATS else x


@lowers(aten.round.decimals)
def round_decimals(op: OpBuilder, self: Value, *, decimals: int = 0) -> ir.Value:
    """Rounded to `decimals` places: round(x * 10**d) / 10**d, or round(x / 10**-d) * 10**-d."""
    if dtype_of(self) not in FLOATS:
        return self
    if decimals == 0:
        return emit(op, "Round", self)

    def formula(x: ir.Value) -> ir.Value:
        unit = operand(op, 10.0 ** abs(decimals), dtype_of(x))
        if decimals > 0:
            return op.Div(op.Round(op.Mul(x, unit)), unit)
        return op.Mul(op.Round(op.Div(x, unit)), unit)

    return computed(op, formula, self)


@lowers(aten.trunc.default, aten.fix.default)
def trunc(op: OpBuilder, self: Value) -> ir.Value:
    """Rounded toward zero; integers as they are."""
    return computed(op, lambda x: truncated(op, x), self) if dtype_of(self) in FLOATS else self


@lowers(aten.frac.default)
def frac(op: OpBuilder, self: Value) -> ir.Value:
    """`self - trunc(self)`, the remainder of a division by 1."""
    return emit(op, "Mod", self, operand(op, 1, dtype_of(self)), fmod=1)


# -- powers, exponentials and logarithms -------------------------------------------------------------


@lowers(aten.square.default)
def square(op: OpBuilder, self: Value) -> ir.Value:
    """`self * self`."""
    if dtype_of(self) == torch.bool:
        self = op.cast(self, op.result.dtype)  # type: ignore[assignment]
    return emit(op, "Mul", self, self)


@lowers(aten.rsqrt.default)
def rsqrt(op: OpBuilder, self: Value) -> ir.Value:
    """1 / sqrt(self)."""
    return computed(op, lambda x: op.Reciprocal(op.Sqrt(x)), self)


@lowers(aten.exp2.default, aten.special_exp2.default)
def exp2(op: OpBuilder, self: Value) -> ir.Value:
    """2 ** self."""
    return computed(op, lambda x: op.Pow(operand(op, 2, dtype_of(x)), x), self)


@lowers(aten.expm1.default, aten.special_expm1.default)
def expm1(op: OpBuilder, self: Value) -> ir.Value:
    """exp(self) - 1 without cancellation near 0: float32 in float64, float64 as tanh(x/2) * (exp(x) + 1)."""
    if op.result.dtype != f64:
        return _in_double(op, lambda x: op.Sub(op.Exp(x), operand(op, 1, f64)), self)
    half = op.Tanh(op.Mul(self, operand(op, 0.5, f64)))
    return op.Mul(half, op.Add(op.Exp(self), operand(op, 1, f64)))


@lowers(aten.log1p.default, aten.special_log1p.default)
def log1p(op: OpBuilder, self: Value) -> ir.Value:
    """log(1 + self) without cancellation near 0: float32 in float64, float64 as log(u) * x / (u - 1).

    Source: the second form is W. Kahan's, with u = 1 + x rounded.
    """
    if op.result.dtype != f64:
        return _in_double(op, lambda x: op.Log(op.Add(x, operand(op, 1, f64))), self)
    one = operand(op, 1, f64)
    rounded = op.Add(self, one)
    logarithm = op.Log(rounded)
    corrected = op.Mul(logarithm, op.Div(self, op.Sub(rounded, one)))
    corrected = op.Where(op.Equal(rounded, one), self, corrected)
    return op.Where(op.Less(op.Abs(self), one), corrected, logarithm)


@lowers(aten.log2.default)
def log2(op: OpBuilder, self: Value) -> ir.Value:
    """The logarithm to base 2, in float64 so that it is whole for powers of 2."""
    return _in_double(op, lambda x: op.Div(op.Log(x), operand(op, math.log(2), f64)), self)


@lowers(aten.log10.default)
def log10(op: OpBuilder, self: Value) -> ir.Value:
    """The logarithm to base 10, in float64 so that it is whole for powers of 10."""
    return _in_double(op, lambda x: op.Div(op.Log(x), operand(op, math.log(10), f64)), self)


def _in_double(op: OpBuilder, formula: object, x: Value) -> ir.Value:
    made = formula(op.cast(x, f64))  # type: ignore[operator]
    return op.cast(made, op.result.dtype)


@lowers(aten.logit.default, aten.special_logit.default)
def logit(op: OpBuilder, self: Value, eps: float | None = None) -> ir.Value:
    """log(x / (1 - x)) with x in [eps, 1 - eps] where eps is given."""

    def formula(x: ir.Value) -> ir.Value:
        dtype = dtype_of(x)
        if eps is not None:
            x = op.Clip(x, operand(op, eps, dtype), operand(op, 1 - eps, dtype))
        return op.Log(op.Div(x, op.Sub(operand(op, 1, dtype), x)))

    return computed(op, formula, self)


# -- trigonometry and error functions ----------------------------------------------------------------


@lowers(aten.tan.default)
def tan(op: OpBuilder, self: Value) -> ir.Value:
    """The tangent; ONNX Runtime 1.32 has no float64 kernel, where it is sin / cos."""
    if op.result.dtype == f64:
        x = op.cast(self, f64)
        return op.Div(op.Sin(x), op.Cos(x))
    return emit(op, "Tan", operand(op, self, op.result.dtype))


@lowers(aten.sinh.default)
def sinh(op: OpBuilder, self: Value) -> ir.Value:
    """The hyperbolic sine; ONNX Runtime 1.32 has no float64 kernel, where it is tanh * cosh."""
    if op.result.dtype == f64:
        x = op.cast(self, f64)
        return op.Mul(op.Tanh(x), _cosh(op, x))
    return emit(op, "Sinh", operand(op, self, op.result.dtype))


@lowers(aten.cosh.default)
def cosh(op: OpBuilder, self: Value) -> ir.Value:
    """The hyperbolic cosine; ONNX Runtime 1.32 has no float64 kernel, where it is (e**x + e**-x) / 2."""
    if op.result.dtype == f64:
        return _cosh(op, op.cast(self, f64))
    return emit(op, "Cosh", operand(op, self, op.result.dtype))


def _cosh(op: OpBuilder, x: ir.Value) -> ir.Value:
    return op.Mul(op.Add(op.Exp(x), op.Exp(op.Neg(x))), operand(op, 0.5, f64))


@lowers(aten.erfc.default, aten.special_erfc.default)
def erfc(op: OpBuilder, self: Value) -> ir.Value:
    """1 - erf(self): right to the rounding of 1, without the far tail's relative accuracy."""
    return computed(op, lambda x: op.Sub(operand(op, 1, dtype_of(x)), op.Erf(x)), self)


@lowers(aten.sinc.default, aten.special_sinc.default)
def sinc(op: OpBuilder, self: Value) -> ir.Value:
    """sin(pi x) / (pi x), 1 at 0."""

    def formula(x: ir.Value) -> ir.Value:
        zero, one = operand(op, 0, dtype_of(x)), operand(op, 1, dtype_of(x))
        angle = op.Mul(x, operand(op, math.pi, dtype_of(x)))
        return op.Where(op.Equal(x, zero), one, op.Div(op.Sin(angle), angle))

    return computed(op, formula, self)


@lowers(aten.deg2rad.default)
def deg2rad(op: OpBuilder, self: Value) -> ir.Value:
    """Degrees in radians."""
    return computed(op, lambda x: op.Mul(x, operand(op, math.pi / 180, dtype_of(x))), self)


@lowers(aten.rad2deg.default)
def rad2deg(op: OpBuilder, self: Value) -> ir.Value:
    """Radians in degrees."""
    return computed(op, lambda x: op.Mul(x, operand(op, 180 / math.pi, dtype_of(x))), self)


# -- what is not a number ----------------------------------------------------------------------------


@lowers(aten.isnan.default)
def isnan(op: OpBuilder, self: Value) -> ir.Value:
    """Is it NaN? (*) -> bool (*)."""
    return op.IsNaN(self) if dtype_of(self) in FLOATS else _constantly(op, self, equal=False)


@lowers(aten.isinf.default)
def isinf(op: OpBuilder, self: Value) -> ir.Value:
    """Is it infinite? (*) -> bool (*)."""
    return _is_infinite(op, self)


@lowers(aten.isposinf.default)
def isposinf(op: OpBuilder, self: Value) -> ir.Value:
    """Is it positive infinity? (*) -> bool (*)."""
    return _is_infinite(op, self, detect_negative=0)


@lowers(aten.isneginf.default)
def isneginf(op: OpBuilder, self: Value) -> ir.Value:
    """Is it negative infinity? (*) -> bool (*)."""
    return _is_infinite(op, self, detect_positive=0)


def _is_infinite(op: OpBuilder, x: Value, **signs: int) -> ir.Value:
    dtype = dtype_of(x)
    if dtype not in FLOATS:
        return _constantly(op, x, equal=False)
    # ONNX IsInf takes half precision from opset 20 on; the cast keeps infinities
    wide = x if dtype in (f32, f64) or op.opset >= 20 else op.cast(x, f32)
    return op.IsInf(wide, **signs)


@lowers(aten.isfinite.default)
def isfinite(op: OpBuilder, self: Value) -> ir.Value:
    """Is it neither NaN nor infinite? |x| < inf. (*) -> bool (*)."""
    if dtype_of(self) not in FLOATS:
        return _constantly(op, self, equal=True)
    return emit(op, "Less", emit(op, "Abs", self), operand(op, math.inf, dtype_of(self)))


@lowers(aten.isreal.default)
def isreal(op: OpBuilder, self: Value) -> ir.Value:
    """True: complex tensors never come here. (*) -> bool (*)."""
    whole = self if dtype_of(self) not in FLOATS else op.cast(self, torch.bool)
    return _constantly(op, whole, equal=True)


def _constantly(op: OpBuilder, x: ir.Value, *, equal: bool) -> ir.Value:
    """True or False in the shape of x, which holds no NaN."""
    same = op.Equal(x, x)
    return same if equal else op.Not(same)


@lowers(aten.signbit.default)
def signbit(op: OpBuilder, self: Value) -> ir.Value:
    """Is the sign bit set? (*) -> bool (*). Read from the reciprocal for zeros; of NaN it is not seen."""
    dtype = dtype_of(self)
    if dtype == torch.bool or dtype in UNSIGNED:
        return _constantly(op, self, equal=False)
    if dtype not in FLOATS:
        return op.Less(self, operand(op, 0, dtype))

    def formula(x: ir.Value) -> ir.Value:
        zero = operand(op, 0, dtype_of(x))
        return op.Less(op.Where(op.Equal(x, zero), op.Reciprocal(x), x), zero)

    return computed(op, formula, self, dtype=dtype, result=torch.bool)


@lowers(aten.nan_to_num.default)
def nan_to_num(
    op: OpBuilder,
    self: Value,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> ir.Value:
    """NaN and infinities replaced by numbers: 0 and the largest finite ones where not given."""
    dtype = dtype_of(self)
    if dtype not in FLOATS:
        return self
    x = where(op, op.IsNaN(self), operand(op, nan or 0.0, dtype), self)
    limits = torch.finfo(dtype)
    for value, infinity in ((posinf, math.inf), (neginf, -math.inf)):
        if value is not None:
            x = where(op, emit(op, "Equal", x, operand(op, infinity, dtype)), operand(op, value, dtype), x)
    if posinf is None or neginf is None:
        # a bound that was given stands; the other one is the dtype's
        low = limits.min if neginf is None else -math.inf
        high = limits.max if posinf is None else math.inf
        x = emit(op, "Clip", x, operand(op, low, dtype), operand(op, high, dtype))
    return x
