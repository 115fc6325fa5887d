"""Sampling images at the places of a grid, and the grids of affine maps."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, rank_of
from fx2onnx.opset.aten.spatial import emit
from fx2onnx.rules import lowers

aten = torch.ops.aten

Size = int | ir.Value

# by ATen's number; opset 20 renamed the modes
_MODES_16 = ("bilinear", "nearest", "bicubic")
_MODES_20 = ("linear", "nearest", "cubic")
_PADDINGS = ("zeros", "border", "reflection")


@lowers(
    aten.grid_sampler.default,
    aten.grid_sampler_2d.default,
    aten.grid_sampler_3d.default,
    aten._grid_sampler_2d_cpu_fallback.default,
)
def grid_sampler(
    op: OpBuilder,
    input: Value,
    grid: Value,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> ir.Value:
    """(N, C, H, W), (N, H', W', 2) -> (N, C, H', W'), or with depth; one GridSample.

    Raises:
        ValueError: with depth before opset 20.
    """
    if rank_of(input) > 4 and op.opset < 20:
        raise ValueError(f"grid sampling with depth needs opset 20, this is {op.opset}")
    modes = _MODES_20 if op.opset >= 20 else _MODES_16
    return emit(
        op,
        "GridSample",
        input,
        grid,
        mode=modes[interpolation_mode],
        padding_mode=_PADDINGS[padding_mode],
        align_corners=int(align_corners),
    )


@lowers(aten.affine_grid_generator.default, since=20)
def affine_grid_generator(op: OpBuilder, theta: Value, size: Sequence[Size], align_corners: bool) -> ir.Value:
    """(N, 2, 3), (N, C, H, W) -> (N, H, W, 2), or with depth; one AffineGrid.

    Older opsets take PyTorch's decomposition.
    """
    return emit(op, "AffineGrid", theta, op.vector(size), align_corners=int(align_corners))
