"""Activation functions of torch.nn.functional, and softmax."""

from __future__ import annotations

import math
from collections.abc import Callable

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, dtype_of, rank_of, shape_of
from fx2onnx.opset.aten.elementwise import clip
from fx2onnx.opset.aten.operands import Operand, computed, emit, f64, operand, u8, where
from fx2onnx.rules import lowers

aten = torch.ops.aten

# torch.selu's constants, to double precision. Source: ATen/native/Activation.cpp.
SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


# -- the Relu family ---------------------------------------------------------------------------------


@lowers(aten.relu.default)
def relu(op: OpBuilder, self: Value) -> ir.Value:
    """max(self, 0)."""
    dtype = dtype_of(self)
    if dtype == u8:
        return self
    if dtype == torch.int64:  # ONNX Runtime 1.32 lacks the int64 kernel of Relu
        return op.Max(self, operand(op, 0, dtype))
    return emit(op, "Relu", self)


@lowers(aten.relu6.default)
def relu6(op: OpBuilder, self: Value) -> ir.Value:
    """min(max(self, 0), 6)."""
    return clip(op, self, 0, 6)


@lowers(aten.hardtanh.default)
def hardtanh(op: OpBuilder, self: Value, min_val: float = -1, max_val: float = 1) -> ir.Value:
    """min(max(self, min_val), max_val)."""
    return clip(op, self, min_val, max_val)


@lowers(aten.leaky_relu.default)
def leaky_relu(op: OpBuilder, self: Value, negative_slope: float = 0.01) -> ir.Value:
    """`self` where it is above 0, else negative_slope * self."""
    return _leaky(op, self, negative_slope)


@lowers(aten.rrelu.default)
def rrelu(op: OpBuilder, self: Value, lower: float = 1 / 8, upper: float = 1 / 3) -> ir.Value:
    """In evaluation, leaky_relu with the middle of the two slopes; the rule takes no `training`."""
    return _leaky(op, self, (lower + upper) / 2)


def _leaky(op: OpBuilder, x: Value, slope: float) -> ir.Value:
    if dtype_of(x) != f64:
        return emit(op, "LeakyRelu", x, alpha=float(slope))
    # ONNX Runtime 1.32 lacks the float64 kernel of LeakyRelu
    return op.Where(op.Greater(x, operand(op, 0, f64)), x, op.Mul(x, operand(op, slope, f64)))


@lowers(aten.prelu.default, aten._prelu_kernel.default)
def prelu(op: OpBuilder, self: Value, weight: Value) -> ir.Value:
    """(N, C, *), (C) or (1) -> (N, C, *): self where it is above 0, else weight * self."""
    rank = rank_of(self)
    slope: ir.Value = weight
    if rank_of(weight) == 1 and shape_of(weight) != (1,) and rank > 2:
        slope = op.Unsqueeze(weight, op.ints(list(range(1, rank - 1))))
    elif rank == 0 and rank_of(weight) == 1:
        slope = op.Squeeze(weight, op.ints([0]))
    if dtype_of(self) == f64:  # ONNX Runtime 1.32 lacks the float64 kernel of PRelu
        return op.Where(op.Greater(self, operand(op, 0, f64)), self, op.Mul(self, slope))
    return emit(op, "PRelu", self, slope)


@lowers(aten.threshold.default)
def threshold(op: OpBuilder, self: Value, threshold: Operand, value: Operand) -> ir.Value:
    """`self` where it is above the threshold (or NaN), else value."""
    dtype = dtype_of(self)
    below = emit(op, "LessOrEqual", self, operand(op, threshold, dtype))
    return where(op, below, operand(op, value, dtype), self)


@lowers(aten.hardshrink.default)
def hardshrink(op: OpBuilder, self: Value, lambd: float = 0.5) -> ir.Value:
    """0 where |self| <= lambd, else self. ONNX Shrink makes 0 of NaN, PyTorch keeps it."""
    dtype = dtype_of(self)
    small = emit(op, "LessOrEqual", emit(op, "Abs", self), operand(op, lambd, dtype))
    return where(op, small, operand(op, 0, dtype), self)


@lowers(aten.softshrink.default)
def softshrink(op: OpBuilder, self: Value, lambd: float = 0.5) -> ir.Value:
    """`self - clamp(self, -lambd, lambd)`: moved toward 0 by lambd, 0 in between, NaN kept."""
    return computed(op, lambda x: op.Sub(x, clip(op, x, -lambd, lambd)), self)


# -- exponential ones --------------------------------------------------------------------------------


@lowers(aten.elu.default)
def elu(op: OpBuilder, self: Value, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> ir.Value:
    """`scale * x` where x is above 0, else `scale * alpha * (exp(input_scale * x) - 1)`."""
    if scale == 1 and input_scale == 1 and dtype_of(self) != f64:
        return emit(op, "Elu", self, alpha=float(alpha))
    return computed(op, lambda x: _elu(op, x, alpha, scale, input_scale), self)


@lowers(aten.selu.default)
def selu(op: OpBuilder, self: Value) -> ir.Value:
    """Elu with the constants that keep mean 0 and variance 1."""
    if dtype_of(self) == f64:  # ONNX Runtime 1.32 lacks the float64 kernel of Selu
        return _elu(op, self, SELU_ALPHA, SELU_SCALE, 1)
    return emit(op, "Selu", self, alpha=SELU_ALPHA, gamma=SELU_SCALE)


@lowers(aten.celu.default)
def celu(op: OpBuilder, self: Value, alpha: float = 1.0) -> ir.Value:
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))."""
    return computed(op, lambda x: _elu(op, x, alpha, 1, 1 / alpha), self)


def _elu(op: OpBuilder, x: ir.Value, alpha: float, scale: float, input_scale: float) -> ir.Value:
    dtype = dtype_of(x)
    inner = x if input_scale == 1 else op.Mul(x, operand(op, input_scale, dtype))
    curve = op.Mul(op.Sub(op.Exp(inner), operand(op, 1, dtype)), operand(op, alpha * scale, dtype))
    line = x if scale == 1 else op.Mul(x, operand(op, scale, dtype))
    return op.Where(op.Greater(x, operand(op, 0, dtype)), line, curve)


@lowers(aten.softplus.default)
def softplus(op: OpBuilder, self: Value, beta: float = 1, threshold: float = 20) -> ir.Value:
    """log(1 + exp(beta * x)) / beta, and x itself where beta * x is above the threshold."""
    beyond_float32 = 16  # exp(-16) is below float32's resolution: there the curve is the line already

    def formula(x: ir.Value) -> ir.Value:
        dtype = dtype_of(x)
        inner = x if beta == 1 else op.Mul(x, operand(op, beta, dtype))
        curve = log1p_exp(op, inner)
        if beta != 1:
            curve = op.Div(curve, operand(op, beta, dtype))
        if threshold >= beyond_float32 and dtype != f64:
            return curve
        return op.Where(op.Greater(inner, operand(op, threshold, dtype)), x, curve)

    return computed(op, formula, self)


def log1p_exp(op: OpBuilder, x: ir.Value) -> ir.Value:
    """log(1 + exp(x)). ONNX Runtime 1.32 lacks the float64 kernel: max(x, 0) + log(1 + exp(-|x|))."""
    if dtype_of(x) != f64:
        return op.Softplus(x)
    tail = op.Log(op.Add(op.Exp(op.Neg(op.Abs(x))), operand(op, 1, f64)))
    return op.Add(op.Max(x, operand(op, 0, f64)), tail)


@lowers(aten.log_sigmoid.default)
def log_sigmoid(op: OpBuilder, self: Value) -> ir.Value:
    """log(sigmoid(self)) = -log(1 + exp(-self))."""
    return computed(op, lambda x: op.Neg(log1p_exp(op, op.Neg(x))), self)


# -- gates -------------------------------------------------------------------------------------------


@lowers(aten.gelu.default)
def gelu(op: OpBuilder, self: Value, *, approximate: str = "none") -> ir.Value:
    """`x * Phi(x)`, or its tanh approximation. ONNX Gelu is in opset 20."""
    return computed(op, _GELU[approximate](op), self)


@lowers(aten.gelu.default, since=20)
def gelu_20(op: OpBuilder, self: Value, *, approximate: str = "none") -> ir.Value:
    """`x * Phi(x)`, or its tanh approximation: the same two forms."""
    if dtype_of(self) == f64:  # ONNX Runtime 1.32 lacks the float64 kernel of Gelu
        return _GELU[approximate](op)(self)
    return computed(op, lambda x: op.Gelu(x, approximate=approximate), self)


def _gelu_erf(op: OpBuilder) -> Callable[[ir.Value], ir.Value]:
    def formula(x: ir.Value) -> ir.Value:
        dtype = dtype_of(x)
        phi = op.Add(op.Erf(op.Div(x, operand(op, math.sqrt(2), dtype))), operand(op, 1, dtype))
        return op.Mul(op.Mul(x, phi), operand(op, 0.5, dtype))

    return formula


def _gelu_tanh(op: OpBuilder) -> Callable[[ir.Value], ir.Value]:
    def formula(x: ir.Value) -> ir.Value:
        dtype = dtype_of(x)
        cube = op.Mul(op.Mul(op.Mul(x, x), x), operand(op, 0.044715, dtype))
        inner = op.Mul(op.Add(x, cube), operand(op, math.sqrt(2 / math.pi), dtype))
        gate = op.Add(op.Tanh(inner), operand(op, 1, dtype))
        return op.Mul(op.Mul(x, operand(op, 0.5, dtype)), gate)

    return formula


_GELU = {"none": _gelu_erf, "tanh": _gelu_tanh}


@lowers(aten.silu.default)
def silu(op: OpBuilder, self: Value) -> ir.Value:
    """`x * sigmoid(x)`; ONNX Runtime 1.32 has no kernel for Swish of opset 24."""
    return computed(op, lambda x: op.Mul(x, op.Sigmoid(x)), self)


@lowers(aten.mish.default)
def mish(op: OpBuilder, self: Value) -> ir.Value:
    """`x * tanh(log(1 + exp(x)))`."""
    if dtype_of(self) == f64:
        return op.Mul(self, op.Tanh(log1p_exp(op, self)))
    return computed(op, op.Mish, self)


@lowers(aten.hardsigmoid.default)
def hardsigmoid(op: OpBuilder, self: Value) -> ir.Value:
    """clamp(x + 3, 0, 6) / 6."""
    if dtype_of(self) == f64:
        return _hardsigmoid(op, self)
    return emit(op, "HardSigmoid", self, alpha=1 / 6, beta=0.5)


@lowers(aten.hardswish.default)
def hardswish(op: OpBuilder, self: Value) -> ir.Value:
    """`x * clamp(x + 3, 0, 6) / 6`."""
    if dtype_of(self) == f64:
        return op.Mul(self, _hardsigmoid(op, self))
    return computed(op, op.HardSwish, self)


def _hardsigmoid(op: OpBuilder, x: ir.Value) -> ir.Value:
    """ONNX Runtime 1.32 lacks the float64 kernel of HardSigmoid."""
    return op.Div(clip(op, op.Add(x, operand(op, 3, f64)), 0, 6), operand(op, 6, f64))


@lowers(aten.glu.default)
def glu(op: OpBuilder, self: Value, dim: int = -1) -> ir.Value:
    """(…, 2n, …) -> (…, n, …): the first half times the sigmoid of the second."""

    def formula(x: ir.Value) -> ir.Value:
        a, b = op.Split(x, axis=dim, num_outputs=2, _outputs=2)
        return op.Mul(a, op.Sigmoid(b))

    return computed(op, formula, self)


# -- softmax -----------------------------------------------------------------------------------------


@lowers(aten.softmax.int, aten.special_softmax.default)
def softmax(op: OpBuilder, self: Value, dim: int, dtype: torch.dtype | None = None) -> ir.Value:
    """(*) -> (*): exp(x) / sum(exp(x)) along `dim`, in the result's dtype."""
    return _along(op, "Softmax", self, dim)


@lowers(aten.log_softmax.int, aten.special_log_softmax.default)
def log_softmax(op: OpBuilder, self: Value, dim: int, dtype: torch.dtype | None = None) -> ir.Value:
    """(*) -> (*): log(softmax(x)) along `dim`, in the result's dtype."""
    return _along(op, "LogSoftmax", self, dim)


@lowers(aten._softmax.default)
def softmax_core(op: OpBuilder, self: Value, dim: int, half_to_float: bool) -> ir.Value:
    """(*) -> (*): softmax; the result's dtype says whether half precision becomes float32."""
    return _along(op, "Softmax", self, dim)


@lowers(aten._log_softmax.default)
def log_softmax_core(op: OpBuilder, self: Value, dim: int, half_to_float: bool) -> ir.Value:
    """(*) -> (*): log(softmax); the result's dtype says whether half precision becomes float32."""
    return _along(op, "LogSoftmax", self, dim)


def _along(op: OpBuilder, op_type: str, x: Value, dim: int) -> ir.Value:
    wide = op.cast(x, op.result.dtype)
    if rank_of(x) == 0:  # ONNX has no axis to name: a vector of one
        return op.Reshape(emit(op, op_type, op.Reshape(wide, op.ints([1])), axis=0), op.ints([]))
    return emit(op, op_type, wide, axis=dim)
