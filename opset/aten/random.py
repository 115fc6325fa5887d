"""Random tensors. The dtype, the shape and the distribution are PyTorch's, the values the runtime's own.

ONNX Runtime 1.32 has the Random operators up to opset 21 only. From 22 on, numbers are made of random bits:
of the mask of a Dropout.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, shape_of, tensor
from fx2onnx.opset.aten.creation import Size
from fx2onnx.opset.aten.operands import Operand, f32, f64, operand
from fx2onnx.rules import lowers
from fx2onnx.types import DTYPES

aten = torch.ops.aten

LAST_RANDOM_OPSET = 21


# -- distributions -----------------------------------------------------------------------------------


@lowers(aten.rand.default)
def rand(op: OpBuilder, size: Sequence[Size], *, dtype: torch.dtype | None = None) -> ir.Value:
    """(*size), evenly distributed over [0, 1)."""
    return _in_result_dtype(op, uniform(op, op.vector(size), _wide(op)))


@lowers(aten.rand_like.default)
def rand_like(op: OpBuilder, self: Value, *, dtype: torch.dtype | None = None) -> ir.Value:
    """(*) -> (*), evenly distributed over [0, 1)."""
    return _in_result_dtype(op, uniform(op, _shape(op, self), _wide(op)))


@lowers(aten.randn.default)
def randn(op: OpBuilder, size: Sequence[Size], *, dtype: torch.dtype | None = None) -> ir.Value:
    """(*size), normally distributed."""
    return _in_result_dtype(op, normal(op, op.vector(size), _wide(op)))


@lowers(aten.randn_like.default)
def randn_like(op: OpBuilder, self: Value, *, dtype: torch.dtype | None = None) -> ir.Value:
    """(*) -> (*), normally distributed."""
    return _in_result_dtype(op, normal(op, _shape(op, self), _wide(op)))


@lowers(aten.bernoulli.default)
def bernoulli(op: OpBuilder, self: Value) -> ir.Value:
    """(*) -> (*): 1 with the probability that the element says, else 0."""
    drawn = uniform(op, _shape(op, self), f32)
    return op.cast(op.Less(drawn, op.cast(self, f32)), op.result.dtype)


@lowers(aten.bernoulli.p)
def bernoulli_p(op: OpBuilder, self: Value, p: float = 0.5) -> ir.Value:
    """(*) -> (*): 1 with probability p, else 0."""
    return op.cast(_coin(op, _shape(op, self), p), op.result.dtype)


@lowers(aten.randint.default, aten.randint.low)
def randint(op: OpBuilder, *arguments: Any, dtype: torch.dtype | None = None) -> ir.Value:
    """(high, size) or (low, high, size) -> (*size), whole numbers in [low, high)."""
    *bounds, size = arguments
    return _whole(op, op.vector(size), bounds)


@lowers(aten.randint_like.default, aten.randint_like.low_dtype)
def randint_like(op: OpBuilder, self: Value, *bounds: Operand, dtype: torch.dtype | None = None) -> ir.Value:
    """(*) -> (*), whole numbers in [low, high)."""
    return _whole(op, _shape(op, self), bounds)


@lowers(aten.randperm.default)
def randperm(op: OpBuilder, n: Size, *, dtype: torch.dtype | None = None) -> ir.Value:
    """(n): 0 … n - 1 in random order, the order of n random numbers."""
    count = op.vector([n])
    _, order = op.TopK(uniform(op, count, f64), count, axis=0, _outputs=2)
    return op.cast(order, op.result.dtype)


def _whole(op: OpBuilder, shape: ir.Value, bounds: Sequence[Operand]) -> ir.Value:
    """Whole numbers in [0, high) or [low, high)."""
    low, high = bounds if len(bounds) > 1 else (0, bounds[0])
    bottom, top = operand(op, low, f64), operand(op, high, f64)
    scaled = op.Mul(uniform(op, shape, f64), op.Sub(top, bottom))
    return op.cast(op.Floor(op.Add(scaled, bottom)), op.result.dtype)


# -- numbers of a shape ------------------------------------------------------------------------------


def uniform(op: OpBuilder, shape: ir.Value, dtype: torch.dtype) -> ir.Value:
    """Numbers of this shape (an int64 vector), evenly distributed over [0, 1), in float32 or float64."""
    if op.opset <= LAST_RANDOM_OPSET:
        return op.RandomUniformLike(op.ConstantOfShape(shape), dtype=DTYPES[dtype])
    digits = 24 if dtype == f32 else 53  # of a significand
    bits = _coin(op, op.Concat(shape, op.ints([digits]), axis=0), 0.5)
    return op.MatMul(
        op.cast(bits, dtype), op.constant(0.5 ** torch.arange(1.0, digits + 1, dtype=f64), dtype)
    )


def normal(op: OpBuilder, shape: ir.Value, dtype: torch.dtype) -> ir.Value:
    """Numbers of this shape, normally distributed; from opset 22 on by the Box-Muller transform."""
    if op.opset <= LAST_RANDOM_OPSET:
        return op.RandomNormalLike(op.ConstantOfShape(shape), dtype=DTYPES[dtype])
    above_zero = op.Sub(operand(op, 1, dtype), uniform(op, shape, dtype))
    radius = op.Sqrt(op.Mul(op.Log(above_zero), operand(op, -2, dtype)))
    angle = op.Mul(uniform(op, shape, dtype), operand(op, 2 * math.pi, dtype))
    return op.Mul(radius, op.Cos(angle))


def _coin(op: OpBuilder, shape: ir.Value, p: float) -> ir.Value:
    """Bools of this shape, true with probability p: the elements that Dropout keeps."""
    ones = op.ConstantOfShape(shape, value=tensor(torch.ones(1)))
    dropped, training = op.constant(1 - p, f32), op.constant(True, torch.bool)
    if p == 0:  # Dropout takes no ratio of 1
        return op.Not(op.cast(ones, torch.bool))
    _, kept = op.Dropout(ones, dropped, training, _outputs=2)
    return kept


def _shape(op: OpBuilder, x: Value) -> ir.Value:
    """The shape of a tensor, a constant where it is static."""
    static = [s for s in shape_of(x) if isinstance(s, int)]
    return op.ints(static) if len(static) == len(shape_of(x)) else op.Shape(x)


def _wide(op: OpBuilder) -> torch.dtype:
    """The dtype in which numbers for the result are drawn."""
    return f64 if op.result.dtype == f64 else f32


def _in_result_dtype(op: OpBuilder, x: ir.Value) -> ir.Value:
    return op.cast(x, op.result.dtype)
