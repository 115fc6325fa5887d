"""Normalisation: over the batch, layers, groups, instances, by root mean square, and of weights.

PyTorch computes half precision in float32 and rounds once, at the end; so do ONNX Runtime's kernels. Epsilons
are float32 attributes in ONNX, also for double.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, dtype_of, rank_of, shape_of
from fx2onnx.opset.aten import spatial
from fx2onnx.opset.aten.operands import f32, f64
from fx2onnx.rules import lowers
from fx2onnx.types import TensorType

aten = torch.ops.aten

Size = int | ir.Value


# -- over the batch ------------------------------------------------------------------------------------


class Channels(NamedTuple):
    """What batch normalisation holds for each channel, all (C,); None stands for ones or zeros."""

    weight: ir.Value | None
    bias: ir.Value | None
    mean: ir.Value | None
    variance: ir.Value | None


class Statistics(NamedTuple):
    """What a batch says about its channels, all (C,).

    Attributes:
        mean: the mean of each channel.
        variance: the biased variance, over the number of elements.
        inverse: 1/sqrt(variance + eps).
        unbiased: the variance over the number of elements less one.
    """

    mean: ir.Value
    variance: ir.Value
    inverse: ir.Value
    unbiased: ir.Value


@lowers(aten.batch_norm.default)
def batch_norm(
    op: OpBuilder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> ir.Value:
    """(N, C, *) -> (N, C, *), by the running statistics or, in training, by the batch's own."""
    channels = Channels(weight, bias, running_mean, running_var)
    if training:
        return _by_batch(op, input, channels, eps)[0]
    return _by_running(op, input, channels, eps)


@lowers(aten.native_batch_norm.default, aten._native_batch_norm_legit.default)
def native_batch_norm(
    op: OpBuilder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[ir.Value, ...]:
    """(N, C, *) -> (N, C, *), mean (C,), 1/sqrt(var + eps) (C,); the latter are (0,) unless in training."""
    channels = Channels(weight, bias, running_mean, running_var)
    if not training:
        return _by_running(op, input, channels, eps), *_empty(op, 2)
    made, found = _by_batch(op, input, channels, eps)
    return made, *_as_results(op, 1, found.mean, found.inverse)


@lowers(aten._native_batch_norm_legit.no_stats)
def native_batch_norm_no_stats(
    op: OpBuilder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[ir.Value, ...]:
    """(N, C, *) -> (N, C, *), mean (C,), 1/sqrt(var + eps) (C,), all of the batch."""
    made, found = _by_batch(op, input, Channels(weight, bias, None, None), eps)
    return made, *_as_results(op, 1, found.mean, found.inverse)


@lowers(aten._native_batch_norm_legit_no_training.default)
def native_batch_norm_no_training(
    op: OpBuilder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value,
    running_var: Value,
    momentum: float,
    eps: float,
) -> tuple[ir.Value, ...]:
    """(N, C, *) -> (N, C, *) by the running statistics, and two tensors (0,)."""
    made = _by_running(op, input, Channels(weight, bias, running_mean, running_var), eps)
    return made, *_empty(op, 2)


@lowers(aten._batch_norm_no_update.default)
def batch_norm_no_update(
    op: OpBuilder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    momentum: float,
    eps: float,
) -> tuple[ir.Value, ...]:
    """(N, C, *) -> (N, C, *) by the running statistics, and three tensors (0,)."""
    made = _by_running(op, input, Channels(weight, bias, running_mean, running_var), eps)
    return made, *_empty(op, 3)


@lowers(aten._native_batch_norm_legit_functional.default)
def native_batch_norm_functional(
    op: OpBuilder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value,
    running_var: Value,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[ir.Value, ...]:
    """As `native_batch_norm`, and the running mean (C,) and variance (C,) after it."""
    channels = Channels(weight, bias, running_mean, running_var)
    if not training:
        return _by_running(op, input, channels, eps), *_empty(op, 2), running_mean, running_var
    made, found = _by_batch(op, input, channels, eps)
    means = _as_results(op, 1, found.mean, found.inverse)
    return made, *means, *_updated(op, channels, found, momentum)


@lowers(aten._batch_norm_with_update_functional.default)
def batch_norm_with_update(
    op: OpBuilder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value,
    running_var: Value,
    momentum: float,
    eps: float,
) -> tuple[ir.Value, ...]:
    """As `native_batch_norm_functional` in training, with an empty reserve as fourth result."""
    channels = Channels(weight, bias, running_mean, running_var)
    made, found = _by_batch(op, input, channels, eps)
    means = _as_results(op, 1, found.mean, found.inverse)
    reserve = op.constant([], _result(op, 3).dtype)
    return made, *means, reserve, *_updated(op, channels, found, momentum)


def _by_running(op: OpBuilder, x: ir.Value, channels: Channels, eps: float) -> ir.Value:
    """One BatchNormalization."""
    weight, bias, mean, variance = channels
    if mean is None or variance is None:
        raise ValueError("there are no running statistics to normalise by")
    size, dtype = op.size(x, 1), dtype_of(mean if weight is None else weight)
    weight = _full(op, 1, [size], dtype) if weight is None else weight
    bias = _full(op, 0, [size], dtype) if bias is None else bias
    return spatial.emit(op, "BatchNormalization", x, weight, bias, mean, variance, epsilon=eps)


def _by_batch(op: OpBuilder, x: ir.Value, channels: Channels, eps: float) -> tuple[ir.Value, Statistics]:
    """By the batch's own mean and variance; ONNX Runtime 1.32 has no training mode of BatchNormalization."""
    dtype, wide = dtype_of(x), f64 if dtype_of(x) == f64 else f32
    axes = [0, *range(2, rank_of(x))]
    centred, mean, variance = _moments(op, op.cast(x, wide), axes)
    deviation = op.Sqrt(op.Add(variance, op.constant(eps, wide)))
    made = _scaled_channels(op, op.Div(centred, deviation), channels.weight, channels.bias, wide)
    flat = op.ints(axes)
    statistics = Statistics(
        op.Squeeze(mean, flat),
        op.Squeeze(variance, flat),
        op.Squeeze(op.Reciprocal(deviation), flat),
        op.Squeeze(_unbiased(op, x, variance), flat),
    )
    return op.cast(made, dtype), statistics


def _unbiased(op: OpBuilder, x: ir.Value, variance: ir.Value) -> ir.Value:
    """The variance times n/(n - 1), n the number of elements of a channel."""
    wide = dtype_of(variance)
    channels = op.number(op.size(x, 1), torch.int64)
    number = op.cast(op.Div(op.Size(x), channels), wide)
    return op.Mul(variance, op.Div(number, op.Sub(number, op.constant(1, wide))))


def _updated(
    op: OpBuilder, channels: Channels, found: Statistics, momentum: float
) -> tuple[ir.Value, ir.Value]:
    """The running statistics after a batch: (1 - momentum) * old + momentum * new."""

    def moved(old: ir.Value | None, new: ir.Value) -> ir.Value:
        assert old is not None
        wide = dtype_of(new)
        kept = op.Mul(op.cast(old, wide), op.constant(1 - momentum, wide))
        return op.cast(op.Add(kept, op.Mul(new, op.constant(momentum, wide))), dtype_of(old))

    return moved(channels.mean, found.mean), moved(channels.variance, found.unbiased)


# -- over instances and groups of channels -------------------------------------------------------------


@lowers(aten.instance_norm.default)
def instance_norm(
    op: OpBuilder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> ir.Value:
    """(N, C, *) -> (N, C, *), by each instance's own statistics or by the running ones."""
    if not use_input_stats:
        return _by_running(op, input, Channels(weight, bias, running_mean, running_var), eps)
    return _by_instance(op, input, weight, bias, eps)


@lowers(aten.group_norm.default)
def group_norm(
    op: OpBuilder,
    input: Value,
    num_groups: int,
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> ir.Value:
    """(N, C, *) -> (N, C, *), each group of channels by its own statistics.

    Groups are the channels of InstanceNormalization: ONNX Runtime 1.32 has no kernel of GroupNormalization.
    """
    if shape_of(input)[1] == num_groups and rank_of(input) > 2:
        return _by_instance(op, input, weight, bias, eps)
    grouped = op.Reshape(input, op.ints([0, num_groups, -1]))
    made = _by_instance(op, grouped, None, None, eps)
    sizes = [s if isinstance(s, int) else None for s in shape_of(input)]
    back = op.Shape(input) if sizes[2:].count(None) > 1 or sizes[1] is None else _back(op, sizes)
    made = op.Reshape(made, back)
    return _scaled_channels(op, made, weight, bias, dtype_of(input))


def _back(op: OpBuilder, sizes: Sequence[int | None]) -> ir.Value:
    """Sizes in which the batch is kept and one more may be free, as the shape of a Reshape."""
    rest = [-1 if s is None else s for s in sizes[1:]]
    return op.ints([0, *rest] if sizes[0] is None else [sizes[0], *rest])


@lowers(aten.native_group_norm.default)
def native_group_norm(
    op: OpBuilder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    N: Size,
    C: Size,
    HxW: Size,
    group: int,
    eps: float,
) -> tuple[ir.Value, ...]:
    """(N, C, *) -> (N, C, *), mean (N, G), 1/sqrt(var + eps) (N, G)."""
    made = group_norm.function(op, input, group, weight, bias, eps)
    wide = f64 if dtype_of(input) == f64 else f32
    grouped = op.Reshape(op.cast(input, wide), op.vector([N, group, -1]))
    _, mean, variance = _moments(op, grouped, [2], keepdims=False)
    return made, *_as_results(op, 1, mean, _inverse(op, variance, eps))


def _by_instance(
    op: OpBuilder, x: ir.Value, weight: ir.Value | None, bias: ir.Value | None, eps: float
) -> ir.Value:
    """One InstanceNormalization; of doubles by its formula, as ONNX Runtime 1.32 has no such kernel."""
    dtype = dtype_of(x)
    if dtype == f64:
        centred, _, variance = _moments(op, x, [*range(2, rank_of(x))])
        made = op.Div(centred, op.Sqrt(op.Add(variance, op.constant(eps, dtype))))
        return _scaled_channels(op, made, weight, bias, dtype)
    wide = dtype if all(p is None or p.dtype == x.dtype for p in (weight, bias)) else f32
    size = [op.size(x, 1)]
    scale = _full(op, 1, size, wide) if weight is None else op.cast(weight, wide)
    shift = _full(op, 0, size, wide) if bias is None else op.cast(bias, wide)
    made = spatial.emit(op, "InstanceNormalization", op.cast(x, wide), scale, shift, epsilon=eps)
    return op.cast(made, dtype)


def _scaled_channels(
    op: OpBuilder, x: ir.Value, weight: ir.Value | None, bias: ir.Value | None, wide: torch.dtype
) -> ir.Value:
    """(N, C, *) * (C,) + (C,), computed in `wide`."""
    behind = op.ints([*range(1, rank_of(x) - 1)])

    def channelwise(parameter: ir.Value) -> ir.Value:
        return op.cast(op.Unsqueeze(parameter, behind) if rank_of(x) > 2 else parameter, wide)

    if weight is not None:
        x = op.Mul(x, channelwise(weight))
    return x if bias is None else op.Add(x, channelwise(bias))


# -- over layers ---------------------------------------------------------------------------------------


@lowers(aten.layer_norm.default)
def layer_norm(
    op: OpBuilder,
    input: Value,
    normalized_shape: Sequence[Size],
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> ir.Value:
    """(*, *normalized_shape) -> the same, one LayerNormalization over the last axes.

    ONNX computes in float32 (`stash_type`), ONNX Runtime in double where the input is double.
    """
    wide = _common_dtype(input, weight, bias)
    scale = _full(op, 1, normalized_shape, wide) if weight is None else op.cast(weight, wide)
    shift = None if bias is None else op.cast(bias, wide)
    operands = [op.cast(input, wide), scale] + ([] if shift is None else [shift])
    made = op.LayerNormalization(*operands, axis=-len(normalized_shape), epsilon=eps)
    return op.cast(made, dtype_of(input))


@lowers(aten.native_layer_norm.default)
def native_layer_norm(
    op: OpBuilder,
    input: Value,
    normalized_shape: Sequence[Size],
    weight: Value | None,
    bias: Value | None,
    eps: float,
) -> tuple[ir.Value, ...]:
    """As `layer_norm`, and mean and 1/sqrt(var + eps), both (*, 1, …)."""
    made = layer_norm.function(op, input, normalized_shape, weight, bias, eps)
    wide = f64 if dtype_of(input) == f64 else f32
    axes = [*range(-len(normalized_shape), 0)]
    _, mean, variance = _moments(op, op.cast(input, wide), axes)
    return made, *_as_results(op, 1, mean, _inverse(op, variance, eps))


@lowers(aten.rms_norm.default, since=23)
def rms_norm(
    op: OpBuilder,
    input: Value,
    normalized_shape: Sequence[Size],
    weight: Value | None = None,
    eps: float | None = None,
) -> ir.Value:
    """(*, *normalized_shape) -> the same over the root of its mean square, one RMSNormalization."""
    wide = _common_dtype(input, weight)
    wide = f32 if wide == torch.bfloat16 else wide  # ONNX Runtime 1.32 has no bfloat16 kernel
    scale = _full(op, 1, normalized_shape, wide) if weight is None else op.cast(weight, wide)
    made = op.RMSNormalization(
        op.cast(input, wide),
        scale,
        axis=-len(normalized_shape),
        epsilon=_rms_epsilon(input, eps),
        stash_type=int(ir.DataType.DOUBLE if wide == f64 else ir.DataType.FLOAT),
    )
    return op.cast(made, dtype_of(input))


@lowers(aten.rms_norm.default)
def rms_norm_by_formula(
    op: OpBuilder,
    input: Value,
    normalized_shape: Sequence[Size],
    weight: Value | None = None,
    eps: float | None = None,
) -> ir.Value:
    """(*, *normalized_shape) -> the same over the root of its mean square."""
    x = op.cast(input, f64 if dtype_of(input) == f64 else f32)
    made = op.Div(x, _root_mean_square(op, x, len(normalized_shape), _rms_epsilon(input, eps)))
    if weight is not None:
        made = op.Mul(made, op.cast(weight, dtype_of(x)))
    return op.cast(made, dtype_of(input))


def _fused_rms_norm(
    op: OpBuilder,
    input: Value,
    normalized_shape: Sequence[Size],
    weight: Value | None,
    eps: float | None,
) -> tuple[ir.Value, ...]:
    """As `rms_norm`, and the reciprocal of the root of the mean square (*, 1, …)."""
    rule = rms_norm if op.opset >= rms_norm.since else rms_norm_by_formula
    made = rule.function(op, input, normalized_shape, weight, eps)
    x = op.cast(input, f64 if dtype_of(input) == f64 else f32)
    root = _root_mean_square(op, x, len(normalized_shape), _rms_epsilon(input, eps))
    return made, *_as_results(op, 1, op.Reciprocal(root))


FUSED_RMS_NORM = lowers(aten._fused_rms_norm.default)(_fused_rms_norm)


def _root_mean_square(op: OpBuilder, x: ir.Value, axes: int, eps: float) -> ir.Value:
    """sqrt(mean(x²) + eps) over the last axes, which become 1."""
    square = op.ReduceMean(op.Mul(x, x), op.ints([*range(-axes, 0)]), keepdims=1)
    return op.Sqrt(op.Add(square, op.constant(eps, dtype_of(x))))


def _rms_epsilon(x: ir.Value, eps: float | None) -> float:
    """The default is the epsilon of the dtype that is computed in: float32 for half precision."""
    if eps is not None:
        return eps
    return torch.finfo(f64 if dtype_of(x) == f64 else f32).eps


# -- of weights ----------------------------------------------------------------------------------------


@lowers(aten._weight_norm.default)
def weight_norm(op: OpBuilder, v: Value, g: Value, dim: int = 0) -> ir.Value:
    """(*) -> (*): v with the norms g along `dim`; over everything for -1."""
    made: ir.Value = weight_norm_interface.function(op, v, g, dim)[0]
    return made


@lowers(aten._weight_norm_interface.default)
def weight_norm_interface(op: OpBuilder, v: Value, g: Value, dim: int = 0) -> tuple[ir.Value, ir.Value]:
    """As `weight_norm`, and the norms of v."""
    axes = [axis for axis in range(rank_of(v)) if axis != dim]
    norm = spatial.emit(op, "ReduceL2", v, op.ints(axes), keepdims=1)
    return spatial.emit(op, "Mul", v, spatial.emit(op, "Div", g, norm)), norm


# -- shared --------------------------------------------------------------------------------------------


def _moments(
    op: OpBuilder, x: ir.Value, axes: Sequence[int], *, keepdims: bool = True
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """X less its mean, its mean, and its biased variance over some axes."""
    over = op.ints(list(axes))
    mean = op.ReduceMean(x, over, keepdims=1)
    centred = op.Sub(x, mean)
    variance = op.ReduceMean(op.Mul(centred, centred), over, keepdims=int(keepdims))
    return centred, mean if keepdims else op.Squeeze(mean, over), variance


def _inverse(op: OpBuilder, variance: ir.Value, eps: float) -> ir.Value:
    """1/sqrt(variance + eps)."""
    return op.Reciprocal(op.Sqrt(op.Add(variance, op.constant(eps, dtype_of(variance)))))


def _common_dtype(x: ir.Value, *parameters: ir.Value | None) -> torch.dtype:
    """The dtype of all, or float32 where half precision meets float32 parameters."""
    dtype = dtype_of(x)
    return dtype if all(p is None or p.dtype == x.dtype for p in parameters) else f32


def _full(op: OpBuilder, number: float, sizes: Sequence[Size], dtype: torch.dtype) -> ir.Value:
    """(*sizes), all of one number."""
    static = [s for s in sizes if isinstance(s, int)]
    if len(static) == len(sizes):
        return op.constant(torch.full(static, number), dtype)
    return op.Expand(op.constant(number, dtype), op.vector(sizes))


def _result(op: OpBuilder, index: int) -> TensorType:
    found = op.results[index]
    assert isinstance(found, TensorType)
    return found


def _as_results(op: OpBuilder, first: int, *values: ir.Value) -> tuple[ir.Value, ...]:
    """Values in the dtypes of the results from `first` on."""
    return tuple(op.cast(v, _result(op, i).dtype) for i, v in enumerate(values, start=first))


def _empty(op: OpBuilder, number: int) -> tuple[ir.Value, ...]:
    """What PyTorch returns for statistics that it did not make: tensors (0,), from the second result on."""
    return tuple(op.constant([], _result(op, 1 + i).dtype) for i in range(number))
