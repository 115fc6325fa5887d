"""Max and average pooling over windows of one, two and three axes, with and without a batch.

    (N?, C, *S) -> (N?, C, *S')    S' = (S + 2p - d(K - 1) - 1)//s + 1

Source: torch.nn.MaxPool2d and AvgPool2d; sizes from `pooling_output_shape` of ATen/native/Pool.h. ONNX's ceil_mode
differs between versions in whether the last window may start in the padding, so it is not used: `Windows`
says the same by padding at the end.

ONNX Runtime 1.32's MaxPool skips NaN where PyTorch hands it on, and gives the lowest finite number for a window
of -inf only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, dtype_of, shape_of
from fx2onnx.errors import UnsupportedOpError
from fx2onnx.opset.aten.spatial import emit, per_axis, with_batch
from fx2onnx.rules import Gap, Rule, Target, lowers

aten = torch.ops.aten

Setting = int | Sequence[int]


@dataclass(frozen=True)
class Windows:
    """The windows of a pooling, one number for each axis.

    Attributes:
        kernel, strides, dilations: as ONNX has them.
        begin: padding in front.
        end: padding behind; in ceil mode long enough for the last window, which must start inside of the
            input or the padding in front: `min(p + s - 1, d(K - 1))` does it for every size.
    """

    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    begin: list[int]
    end: list[int]

    @property
    def pads(self) -> list[int]:
        """Padding as the attribute of ONNX."""
        return self.begin + self.end


def windows(
    axes: int, kernel_size: Setting, stride: Setting, padding: Setting, dilation: Setting, ceil_mode: bool
) -> Windows:
    """The windows of PyTorch's settings for so many axes; without a stride they lie side by side."""
    kernel = per_axis(kernel_size, axes)
    strides = per_axis(stride, axes) if stride else kernel
    begin, dilations = per_axis(padding, axes), per_axis(dilation, axes)
    end = begin
    if ceil_mode:
        reach = [d * (k - 1) for d, k in zip(dilations, kernel, strict=True)]
        end = [min(p + s - 1, r) for p, s, r in zip(begin, strides, reach, strict=True)]
    return Windows(kernel, strides, dilations, begin, end)


# -- maximum -----------------------------------------------------------------------------------------

# ONNX Runtime 1.32 has MaxPool of float, double, int8 and uint8; the wider dtypes hold these exactly.
_MAX_POOL_DTYPES = {
    torch.bfloat16: torch.float32,
    torch.int16: torch.float32,
    torch.int32: torch.float64,
}


def _max_pool_rules(axes: int, values: Target, both: Target) -> tuple[Rule, Rule]:
    """The rules of max pooling over so many axes: the maxima alone, and with their positions."""

    @lowers(both)
    def max_pool_with_indices(
        op: OpBuilder,
        self: Value,
        kernel_size: Setting,
        stride: Setting = (),
        padding: Setting = 0,
        dilation: Setting = 1,
        ceil_mode: bool = False,
    ) -> tuple[ir.Value, ir.Value]:
        """(N?, C, *S) -> (N?, C, *S') twice: the maxima, and their positions in the flattened *S."""
        area = windows(axes, kernel_size, stride, padding, dilation, ceil_mode)
        return with_batch(op, self, axes + 2, lambda x: _max_pool(op, x, area))

    @lowers(values)
    def max_pool(
        op: OpBuilder,
        self: Value,
        kernel_size: Setting,
        stride: Setting = (),
        padding: Setting = 0,
        dilation: Setting = 1,
        ceil_mode: bool = False,
    ) -> ir.Value:
        """(N?, C, *S) -> (N?, C, *S'), one MaxPool."""
        area = windows(axes, kernel_size, stride, padding, dilation, ceil_mode)
        return with_batch(op, self, axes + 2, lambda x: _max_pool(op, x, area)[0])

    return max_pool, max_pool_with_indices


MAX_POOLS = (
    *_max_pool_rules(1, aten.max_pool1d.default, aten.max_pool1d_with_indices.default),
    *_max_pool_rules(2, aten.max_pool2d.default, aten.max_pool2d_with_indices.default),
    *_max_pool_rules(3, aten.max_pool3d.default, aten.max_pool3d_with_indices.default),
)


def _max_pool(op: OpBuilder, x: ir.Value, area: Windows) -> tuple[ir.Value, ir.Value]:
    dtype = dtype_of(x)
    if dtype == torch.int64:
        return _max_pool_by_rank(op, x, area)
    made, positions = max_windows(op, op.cast(x, _MAX_POOL_DTYPES.get(dtype, dtype)), area)
    return op.cast(made, dtype), positions


def max_windows(op: OpBuilder, x: ir.Value, area: Windows) -> tuple[ir.Value, ir.Value]:
    """(N, C, *S) -> (N, C, *S') twice: MaxPool, its indices counted within the plane as PyTorch does."""
    made, indices = op.MaxPool(
        x,
        kernel_shape=area.kernel,
        strides=area.strides,
        dilations=area.dilations,
        pads=area.pads,
        _outputs=2,
    )
    if shape_of(x)[:2] == (1, 1):
        return made, indices
    return made, op.Mod(indices, plane_size(op, x))


def plane_size(op: OpBuilder, x: ir.Value) -> ir.Value:
    """The number of positions in the axes behind batch and channels, of rank 0."""
    sizes = shape_of(x)[2:]
    if all(isinstance(s, int) for s in sizes):
        return op.constant(math.prod(sizes))
    return op.ReduceProd(op.Shape(x, start=2), keepdims=0)


def _max_pool_by_rank(op: OpBuilder, x: ir.Value, area: Windows) -> tuple[ir.Value, ir.Value]:
    """MaxPool of int64, exactly: no float holds all of them, but doubles hold their ranks."""
    distinct, _, ranks, _ = op.Unique(x, sorted=1, _outputs=4)
    ranks = op.cast(op.Reshape(ranks, op.Shape(x)), torch.float64)
    highest, positions = max_windows(op, ranks, area)
    return op.Gather(distinct, op.cast(highest, torch.int64)), positions


# -- average -----------------------------------------------------------------------------------------


def _avg_pool_rule(axes: int, target: Target) -> Rule:
    """The rule of average pooling over so many axes."""

    @lowers(target)
    def avg_pool(
        op: OpBuilder,
        self: Value,
        kernel_size: Setting,
        stride: Setting = (),
        padding: Setting = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> ir.Value:
        """(N?, C, *S) -> (N?, C, *S'), the sum of each window over its size or over `divisor_override`."""
        if not dtype_of(self).is_floating_point:
            raise UnsupportedOpError(f"average pooling of {dtype_of(self)}; ONNX AveragePool is for floats")
        area = windows(axes, kernel_size, stride, padding, 1, ceil_mode)

        def build(x: ir.Value) -> ir.Value:
            if divisor_override is not None:
                return _windows_over(op, x, area, divisor_override)
            return _averages(op, x, area, count_include_pad)

        return with_batch(op, self, axes + 2, build)

    return avg_pool


AVERAGE_POOLS = (
    _avg_pool_rule(1, aten.avg_pool1d.default),
    _avg_pool_rule(2, aten.avg_pool2d.default),
    _avg_pool_rule(3, aten.avg_pool3d.default),
)


def _windows_over(op: OpBuilder, x: ir.Value, area: Windows, divisor: int) -> ir.Value:
    """The sum of each window over a given number: its average over all places, times their number."""
    average = average_windows(op, x, area, count_include_pad=True)
    factor = math.prod(area.kernel) / divisor
    return average if factor == 1 else op.Mul(average, op.constant(factor, dtype_of(x)))


def _averages(op: OpBuilder, x: ir.Value, area: Windows, count_include_pad: bool) -> ir.Value:
    """Averages in which padding counts as zeros or not at all; what ceil mode adds behind never counts."""
    if not count_include_pad or not any(area.begin):
        return average_windows(op, x, area, count_include_pad=False)
    if area.begin == area.end:
        return average_windows(op, x, area, count_include_pad=True)
    padded = op.Pad(x, op.ints([0, 0, *area.begin, 0, 0, *area.begin]))
    rest = [e - b for b, e in zip(area.begin, area.end, strict=True)]
    inner = Windows(area.kernel, area.strides, area.dilations, [0] * len(rest), rest)
    return average_windows(op, padded, inner, count_include_pad=False)


def average_windows(op: OpBuilder, x: ir.Value, area: Windows, *, count_include_pad: bool) -> ir.Value:
    """(N, C, *S) -> (N, C, *S'), one AveragePool."""
    return emit(
        op,
        "AveragePool",
        x,
        kernel_shape=area.kernel,
        strides=area.strides,
        pads=area.pads,
        count_include_pad=int(count_include_pad),
    )


GAPS = (
    Gap(
        (aten.fractional_max_pool2d.default, aten.fractional_max_pool3d.default),
        "ours",
        "its windows lie at random places",
    ),
)
