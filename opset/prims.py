"""torch's primitive operators, in which many of its decompositions are written.

They take operands of one dtype and one shape; scalars may stand for tensors. The ones that move elements
stand with their ATen counterparts in `opset/aten/`.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, dtype_of
from fx2onnx.opset.aten import compare, elementwise, extremes, reduce, unary
from fx2onnx.opset.aten.creation import Size
from fx2onnx.opset.aten.operands import Operand, binary, elementwise_rows
from fx2onnx.rules import Rule, Target, lowers

prims = torch.ops.prims

ROWS = elementwise_rows(
    {
        prims.abs.default: "Abs",
        prims.acos.default: "Acos",
        prims.acosh.default: "Acosh",
        prims.asin.default: "Asin",
        prims.asinh.default: "Asinh",
        prims.atan.default: "Atan",
        prims.atanh.default: "Atanh",
        prims.cos.default: "Cos",
        prims.erf.default: "Erf",
        prims.exp.default: "Exp",
        prims.log.default: "Log",
        prims.maximum.default: "Max",
        prims.minimum.default: "Min",
        prims.reciprocal.default: "Reciprocal",
        prims.sin.default: "Sin",
        prims.sqrt.default: "Sqrt",
        prims.tanh.default: "Tanh",
    }
)

# Operators that are the ATen operator of the same name.
ALIASES: tuple[tuple[Target, Rule], ...] = (
    (prims.add.default, elementwise.add),
    (prims.atan2.default, elementwise.atan2),
    (prims.fmax.default, elementwise.fmax),
    (prims.fmin.default, elementwise.fmin),
    (prims.fmod.default, elementwise.fmod),
    (prims.hypot.default, elementwise.hypot),
    (prims.mul.default, elementwise.mul),
    (prims.pow.default, elementwise.pow),
    (prims.remainder.default, elementwise.remainder),
    (prims.sub.default, elementwise.sub),
    (prims.where.default, elementwise.where_self),
    (prims.eq.default, compare.eq),
    (prims.ge.default, compare.ge),
    (prims.gt.default, compare.gt),
    (prims.le.default, compare.le),
    (prims.lt.default, compare.lt),
    (prims.ne.default, compare.ne),
    (prims.ceil.default, unary.ceil),
    (prims.cosh.default, unary.cosh),
    (prims.erfc.default, unary.erfc),
    (prims.exp2.default, unary.exp2),
    (prims.expm1.default, unary.expm1),
    (prims.floor.default, unary.floor),
    (prims.isfinite.default, unary.isfinite),
    (prims.log10.default, unary.log10),
    (prims.log1p.default, unary.log1p),
    (prims.log2.default, unary.log2),
    (prims.neg.default, unary.neg),
    (prims.round.default, unary.round),
    (prims.rsqrt.default, unary.rsqrt),
    (prims.sign.default, unary.sign),
    (prims.signbit.default, unary.signbit),
    (prims.sinh.default, unary.sinh),
    (prims.tan.default, unary.tan),
    (prims.trunc.default, unary.trunc),
    (prims.amax.default, extremes.amax),
    (prims.amin.default, extremes.amin),
)

RULES = tuple(Rule((target,), rule.function) for target, rule in ALIASES)


@lowers(prims.div.default)
def div(op: OpBuilder, self: Operand, other: Operand) -> ir.Value:
    """`self / other`; integers are truncated, as in ONNX."""
    return binary(op, "Div", self, other)


@lowers(prims.sum.default)
def sum(
    op: OpBuilder, inp: Value, dims: Sequence[int] | None, *, output_dtype: torch.dtype | None = None
) -> ir.Value:
    """The sum along some axes, all of them for None."""
    return reduce.reduced(op, "ReduceSum", op.cast(inp, op.result.dtype), dims)


@lowers(prims.prod.default)
def prod(
    op: OpBuilder, inp: Value, dims: Sequence[int] | None, *, output_dtype: torch.dtype | None = None
) -> ir.Value:
    """The product along some axes, all of them for None."""
    return reduce.reduced(op, "ReduceProd", op.cast(inp, op.result.dtype), dims)


@lowers(prims.iota.default)
def iota(op: OpBuilder, length: Size, *, start: Size, step: Size, dtype: torch.dtype) -> ir.Value:
    """(length): start, start + step, … as integers."""
    index = op.Range(op.constant(0), op.number(length, torch.int64), op.constant(1))
    scaled = op.Mul(index, op.number(step, torch.int64))
    return op.cast(op.Add(scaled, op.number(start, torch.int64)), dtype)


@lowers(prims.bitwise_not.default)
def bitwise_not(op: OpBuilder, self: Value) -> ir.Value:
    """~self."""
    return op.Not(self) if dtype_of(self) == torch.bool else op.BitwiseNot(self)


def _bits(op_type: str) -> Rule:
    def rule(op: OpBuilder, self: Operand, other: Operand) -> ir.Value:
        prefix = "" if op.result.dtype == torch.bool else "Bitwise"
        return binary(op, f"{prefix}{op_type}", self, other)

    return Rule((getattr(prims, f"bitwise_{op_type.lower()}").default,), rule)


BITS = tuple(_bits(name) for name in ("And", "Or", "Xor"))
