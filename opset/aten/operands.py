"""What elementwise rules do with their operands: bring them to one dtype, compute where the runtime can.

An operand is a tensor, a size, or a Python number. PyTorch computes in the dtype that all operands promote to
(`common_dtype`), half-precision formulas in float32 (`computed`). ONNX Runtime's CPU lacks kernels for some
dtypes; `emit` computes in a wider dtype there, with the same result (`LACKING`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, dtype_of, rank_of
from fx2onnx.rules import Rule, Target
from fx2onnx.types import DTYPES, SizeType, TensorType

Operand = ir.Value | float

i8, i16, i32, i64 = torch.int8, torch.int16, torch.int32, torch.int64
u8, u16, u32, u64 = torch.uint8, torch.uint16, torch.uint32, torch.uint64
f16, bf16, f32, f64 = torch.float16, torch.bfloat16, torch.float32, torch.float64

FLOATS = frozenset({f16, bf16, f32, f64})
HALVES = frozenset({f16, bf16})
UNSIGNED = frozenset({u8, u16, u32, u64})

_BF16 = {bf16: f32}
_NARROW = {i8: i32, i16: i32, u8: i32, u16: i32, bf16: f32}
_ORDER = {i16: i32, u16: i32, bf16: f32}
_ORDER_OF_BOOLS = {**_ORDER, torch.bool: u8}
_COMPARED = {bf16: f32, torch.bool: u8}

# ONNX Runtime 1.32, CPU: operators without a kernel for a dtype, with the wider dtype in which the result is
# the same after the cast back (integers wrap alike, one rounding from float32 is the half operator's own).
# No operator that is not here has a bfloat16 kernel; float16 is cast by the runtime itself.
LACKING: Mapping[str, Mapping[torch.dtype, torch.dtype]] = {
    "ArgMax": _ORDER_OF_BOOLS,
    "ArgMin": _ORDER_OF_BOOLS,
    "Clip": _ORDER,
    "CumSum": _NARROW,
    "Greater": _COMPARED,
    "GreaterOrEqual": _COMPARED,
    "Less": _COMPARED,
    "LessOrEqual": _COMPARED,
    "MatMul": _NARROW,
    "Max": _ORDER_OF_BOOLS,
    "Min": _ORDER_OF_BOOLS,
    "Pow": _NARROW,
    "ReduceMax": _ORDER_OF_BOOLS,
    "ReduceMin": _ORDER_OF_BOOLS,
    "ReduceProd": _NARROW,
    "ReduceSum": _NARROW,
    "Relu": {i16: i32, bf16: f32},
    "Trilu": {**_NARROW, u32: i64, u64: i64},
}


def emit(op: OpBuilder, op_type: str, *operands: ir.Value, **attributes: object) -> ir.Value:
    """`op.<op_type>(*operands)`, computed in a wider dtype where the runtime lacks the kernel.

    The first operand says the dtype; operands of other dtypes (axes) stay as they are.
    """
    dtype = dtype_of(operands[0])
    build: Callable[..., ir.Value] = getattr(op, op_type)
    wide = LACKING.get(op_type, _BF16).get(dtype)
    if wide is None:
        return build(*operands, **attributes)
    made = build(*(op.cast(x, wide) if x.dtype == DTYPES[dtype] else x for x in operands), **attributes)
    return op.cast(made, dtype) if made.dtype == DTYPES[wide] else made


def where(op: OpBuilder, condition: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
    """`a` where the condition holds, else `b`; both of one dtype."""
    # ONNX Runtime 1.32 has no kernels of Where for these; the casts keep every value.
    wide = {torch.bool: u8, i16: i32, u16: i32, u64: i64, bf16: f32}.get(dtype := dtype_of(a))
    if wide is None:
        return op.Where(condition, a, b)
    return op.cast(op.Where(condition, op.cast(a, wide), op.cast(b, wide)), dtype)


def common_dtype(a: Operand, b: Operand) -> torch.dtype:
    """The dtype that PyTorch promotes two operands to: tensors with axes outrank scalars, these numbers."""
    return torch.result_type(_stand_in(a), _stand_in(b))


def _stand_in(x: Operand) -> torch.Tensor | float:
    """What stands for an operand in torch.result_type."""
    if not isinstance(x, ir.Value):
        return x
    if isinstance(x, Value) and isinstance(x.of, SizeType):
        return x.of.kind(1)  # type: ignore[no-any-return]  # int, float or bool
    return _sample(dtype_of(x), rank_of(x) > 0)


@functools.cache
def _sample(dtype: torch.dtype, has_axes: bool) -> torch.Tensor:
    return torch.empty((1,) if has_axes else (), dtype=dtype, device="meta")


def operand(op: OpBuilder, x: Operand, dtype: torch.dtype) -> ir.Value:
    """An operand as an ONNX value of this dtype; numbers and sizes broadcast to any shape.

    An integer that does not fit wraps around, as it does in PyTorch.
    """
    if isinstance(x, ir.Value):
        if isinstance(x, Value) and x.is_size and not _has_axes(op):
            x = op.scalar(x)
        return op.cast(x, dtype)
    return op.constant(torch.tensor(x).to(dtype) if isinstance(x, int) else x, dtype)


def _has_axes(op: OpBuilder) -> bool:
    """Does every result have an axis, so that a vector of one broadcasts like a number?"""
    return all(isinstance(r, TensorType) and len(r.shape) > 0 for r in op.results)


def computed(
    op: OpBuilder,
    formula: Callable[..., ir.Value],
    *operands: Operand,
    dtype: torch.dtype | None = None,
    result: torch.dtype | None = None,
) -> ir.Value:
    """`formula(*operands)` in the dtype that PyTorch computes in: float32 for half precision.

    Args:
        op: the builder.
        formula: of as many values as there are operands, all of one dtype; makes a value of that dtype.
        *operands: tensors, sizes or numbers.
        dtype: what the operands promote to; the result's dtype where omitted.
        result: the dtype of the value returned; `dtype` where omitted.
    """
    dtype = dtype or op.result.dtype
    wide = f32 if dtype in HALVES else dtype
    return op.cast(formula(*(operand(op, x, wide) for x in operands)), result or dtype)


def in_half_range(x: Operand, dtype: torch.dtype) -> bool:
    """Does a number keep its value (up to rounding) in this dtype?

    PyTorch keeps the number in a half-precision operator in float32, so a factor of 1e-8 or 1e5 counts.
    """
    if isinstance(x, ir.Value) or dtype not in HALVES or x == 0 or not math.isfinite(x):
        return True
    limits = torch.finfo(dtype)
    return limits.tiny <= abs(x) <= limits.max


def binary(op: OpBuilder, op_type: str, a: Operand, b: Operand) -> ir.Value:
    """`op.<op_type>(a, b)` in the result's dtype."""
    dtype = op.result.dtype
    if not (in_half_range(a, dtype) and in_half_range(b, dtype)):
        return computed(op, getattr(op, op_type), a, b)
    return emit(op, op_type, operand(op, a, dtype), operand(op, b, dtype))


@dataclass(frozen=True)
class _InResultDtype:
    """The rule of a row: all operands in the result's dtype become the operator's inputs."""

    op_type: str

    def __call__(self, op: OpBuilder, *operands: Operand) -> ir.Value:
        dtype = op.result.dtype
        return emit(op, self.op_type, *(operand(op, x, dtype) for x in operands))


def elementwise_rows(table: Mapping[Target, str]) -> tuple[Rule, ...]:
    """Rules for operators that are one ONNX operator on operands brought to the result's dtype."""
    return tuple(Rule((target,), _InResultDtype(op_type)) for target, op_type in table.items())
