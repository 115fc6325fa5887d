"""Adaptive pooling: the result's size is given, the windows (bins) follow from it, with and without a batch.

    (N?, C, *S) -> (N?, C, *O)    bin i of an axis is floor(i*S/O) … ceil((i + 1)*S/O)

Bins of one axis are equally long where O divides S; otherwise some are longer by one. They are brought to one
length by Gather, which repeats the last position of the shorter ones, so that Infs and NaNs stay in their bins.

Source: `start_index` and `end_index` of ATen/native/AdaptivePooling.h.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, dtype_of, rank_of, shape_of
from fx2onnx.dims import Dim
from fx2onnx.opset.aten.operands import emit
from fx2onnx.opset.aten.pool import Windows, average_windows, max_windows
from fx2onnx.opset.aten.spatial import with_batch
from fx2onnx.rules import Rule, Target, lowers
from fx2onnx.types import TensorType

aten = torch.ops.aten

Size = int | ir.Value


@dataclass(frozen=True)
class Bins:
    """The bins of one axis, both sizes static.

    Attributes:
        positions: (O, L), the places of each bin; shorter bins repeat their last.
        weights: (O, L), their share in the bin's average; repeated places share theirs.
    """

    positions: np.ndarray
    weights: np.ndarray

    @property
    def length(self) -> int:
        """L."""
        return int(self.positions.shape[1])


def bins_of(size: int, out: int) -> Bins:
    """The bins of an axis of `size` that becomes `out`."""
    i = np.arange(out)
    start, end = i * size // out, -(-(i + 1) * size // out)
    steps = np.arange(int((end - start).max()))
    positions = np.minimum(start[:, None] + steps, end[:, None] - 1)
    times = (positions[:, :, None] == positions[:, None, :]).sum(-1)
    return Bins(positions, 1 / (times * (end - start)[:, None]))


# -- average -----------------------------------------------------------------------------------------


def _average_rule(axes: int, *targets: Target) -> Rule:
    """The rule of adaptive average pooling over so many axes."""

    @lowers(*targets)
    def adaptive_avg_pool(op: OpBuilder, self: Value, output_size: Sequence[Size]) -> ir.Value:
        """(N?, C, *S) -> (N?, C, *O), the average of each bin."""
        old, new = shape_of(self)[-axes:], op.result.shape[-axes:]
        if old == new:
            return self
        if all(out == 1 for out in new):
            return _average_of_all(op, self, axes)
        if not _are_static(old, new) or dtype_of(self) == torch.float64:
            return _axis_by_axis(op, self, output_size, _average_of_bins)
        return with_batch(op, self, axes + 2, lambda x: _average_static(op, x, old, new))

    return adaptive_avg_pool


AVERAGE_POOLS = (
    _average_rule(1, aten.adaptive_avg_pool1d.default),
    _average_rule(2, aten.adaptive_avg_pool2d.default, aten._adaptive_avg_pool2d.default),
    _average_rule(3, aten.adaptive_avg_pool3d.default, aten._adaptive_avg_pool3d.default),
)


def _are_static(old: Sequence[Dim | None], new: Sequence[Dim]) -> bool:
    """Is every axis of static sizes, or kept as it is?"""
    pairs = zip(old, new, strict=True)
    return all(a == b or (isinstance(a, int) and isinstance(b, int)) for a, b in pairs)


def _average_of_all(op: OpBuilder, x: ir.Value, axes: int) -> ir.Value:
    """(…, *S) -> (…, 1, …)."""
    if rank_of(x) == axes + 2 and dtype_of(x) != torch.float64:  # no double kernel in ONNX Runtime 1.32
        return emit(op, "GlobalAveragePool", x)
    return emit(op, "ReduceMean", x, op.ints([*range(-axes, 0)]), keepdims=1)


def _average_static(op: OpBuilder, x: ir.Value, old: Sequence[Dim | None], new: Sequence[Dim]) -> ir.Value:
    """One AveragePool where all bins are equal, else Gather for each uneven axis, weights, AveragePool."""
    even = _kernel(old, new)
    bins = {i: bins_of(old[i], new[i]) for i, k in enumerate(even) if k is None}  # type: ignore[arg-type]
    kernel = [bins[i].length if k is None else k for i, k in enumerate(even)]
    x = _gather_bins(op, x, bins)
    if bins:
        weights = np.ones((1,) * len(even))
        for i, axis in bins.items():
            shape = [-1 if j == i else 1 for j in range(len(even))]
            weights = weights * (axis.weights * axis.length).reshape(shape)
        x = emit(op, "Mul", x, op.constant(weights, dtype_of(x)))
    return average_windows(op, x, _side_by_side(kernel), count_include_pad=False)


def _kernel(old: Sequence[Dim | None], new: Sequence[Dim]) -> list[int | None]:
    """For each axis the length of its bins, None where they differ in length."""
    kernel: list[int | None] = []
    for a, b in zip(old, new, strict=True):
        if a == b:
            kernel.append(1)
        else:
            kernel.append(a // b if isinstance(a, int) and isinstance(b, int) and a % b == 0 else None)
    return kernel


def _gather_bins(op: OpBuilder, x: ir.Value, bins: dict[int, Bins]) -> ir.Value:
    for i, axis in bins.items():
        x = op.Gather(x, op.ints(axis.positions.reshape(-1).tolist()), axis=2 + i)
    return x


def _side_by_side(kernel: list[int]) -> Windows:
    zeros = [0] * len(kernel)
    return Windows(kernel, kernel, [1] * len(kernel), zeros, zeros)


# -- maximum -----------------------------------------------------------------------------------------


def _max_rule(axes: int, target: Target) -> Rule:
    """The rule of adaptive max pooling over so many axes."""

    @lowers(target)
    def adaptive_max_pool(
        op: OpBuilder, self: Value, output_size: Sequence[Size]
    ) -> tuple[ir.Value, ir.Value | None]:
        """(N?, C, *S) -> (N?, C, *O) twice: the maximum of each bin, and its position in the flattened *S.

        The positions are only made where the sizes are static.
        """
        result = op.results[0]
        assert isinstance(result, TensorType)
        old, new = shape_of(self)[-axes:], result.shape[-axes:]
        if not _are_static(old, new) or not all(isinstance(s, int) for s in old):
            return _axis_by_axis(op, self, output_size, _max_of_bins), None
        dtype = dtype_of(self)
        x = op.cast(self, torch.float32) if dtype == torch.bfloat16 else self
        made, positions = with_batch(op, x, axes + 2, lambda x: _max_static(op, x, old, new))
        return op.cast(made, dtype), positions

    return adaptive_max_pool


MAX_POOLS = (
    _max_rule(1, aten.adaptive_max_pool1d.default),
    _max_rule(2, aten.adaptive_max_pool2d.default),
    _max_rule(3, aten.adaptive_max_pool3d.default),
)


def _max_static(
    op: OpBuilder, x: ir.Value, old: Sequence[Dim | None], new: Sequence[Dim]
) -> tuple[ir.Value, ir.Value]:
    """One MaxPool where all bins are equal, else Gather for each uneven axis and MaxPool."""
    even = _kernel(old, new)
    bins = {i: bins_of(old[i], new[i]) for i, k in enumerate(even) if k is None}  # type: ignore[arg-type]
    kernel = [bins[i].length if k is None else k for i, k in enumerate(even)]
    made, positions = max_windows(op, _gather_bins(op, x, bins), _side_by_side(kernel))
    if not bins:
        return made, positions
    sizes = [int(s) for s in old]  # type: ignore[arg-type]
    plane = np.arange(math.prod(sizes)).reshape(sizes)
    for i, axis in bins.items():
        plane = plane.take(axis.positions.reshape(-1), axis=i)
    return made, op.Gather(op.ints(plane.reshape(-1).tolist()), positions)


# -- sizes that are only known when the model runs -----------------------------------------------------


def _axis_by_axis(
    op: OpBuilder,
    self: Value,
    output_size: Sequence[Size],
    reduce: Callable[[OpBuilder, ir.Value, int, Size, Size], ir.Value],
) -> ir.Value:
    """(…, *S) -> (…, *O): the bins of one axis after the other; bins are boxes, so this is the same."""
    result = op.results[0]
    assert isinstance(result, TensorType)
    x: ir.Value = self
    first = rank_of(self) - len(output_size)
    for axis, out in enumerate(output_size, start=first):
        if shape_of(self)[axis] != result.shape[axis]:
            x = reduce(op, x, axis, op.size(self, axis), out)
    return x


def _average_of_bins(op: OpBuilder, x: ir.Value, axis: int, size: Size, out: Size) -> ir.Value:
    if out == 1:
        return emit(op, "ReduceMean", x, op.ints([axis]), keepdims=1)
    positions, inside, lengths = _bins_at_run_time(op, size, out)
    behind = op.ints([*range(2, 1 + rank_of(x) - axis)])
    dtype = dtype_of(x)
    wide = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
    bins = op.cast(op.Gather(x, positions, axis=axis), wide)
    kept = op.Where(op.Unsqueeze(inside, behind), bins, op.constant(0, wide))
    total = op.ReduceSum(kept, op.ints([axis + 1]), keepdims=0)
    counts = op.Squeeze(op.Unsqueeze(op.cast(lengths, wide), behind), op.ints([1]))
    return op.cast(op.Div(total, counts), dtype)


def _max_of_bins(op: OpBuilder, x: ir.Value, axis: int, size: Size, out: Size) -> ir.Value:
    if out == 1:
        return emit(op, "ReduceMax", x, op.ints([axis]), keepdims=1)
    positions, _, _ = _bins_at_run_time(op, size, out)
    return emit(op, "ReduceMax", op.Gather(x, positions, axis=axis), op.ints([axis + 1]), keepdims=0)


def _bins_at_run_time(op: OpBuilder, size: Size, out: Size) -> tuple[ir.Value, ir.Value, ir.Value]:
    """(O, L) the places of each bin, (O, L) which of them are not repetitions, (O, 1) the bins' lengths."""
    total, number = op.number(size, torch.int64), op.number(out, torch.int64)
    each = (
        op.constant([[i] for i in range(out)])
        if isinstance(out, int)
        else op.Unsqueeze(op.Range(op.constant(0), number, op.constant(1)), op.ints([1]))
    )
    before = op.Mul(each, total)
    start = op.Div(before, number)
    end = op.Div(op.Add(before, op.Sub(op.Add(total, number), op.constant(1))), number)
    lengths = op.Sub(end, start)
    steps = op.Range(op.constant(0), op.ReduceMax(lengths, keepdims=0), op.constant(1))
    positions = op.Min(op.Add(start, steps), op.Sub(end, op.constant(1)))
    return positions, op.Less(steps, lengths), lengths
