"""torchvision's own operators: suppression of overlapping boxes, pooling over regions, deformable convolution.

The keys of the rules are torchvision's operators, so this module can only be imported when torchvision has been:
it is when the first call of its namespace is looked up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, dtype_of, shape_of
from fx2onnx.rules import Gap, lowers

torchvision = torch.ops.torchvision

Size = int | ir.Value

f32, f64, i64 = torch.float32, torch.float64, torch.int64


# -- boxes -----------------------------------------------------------------------------------------------


@lowers(torchvision.nms.default)
def nms(op: OpBuilder, dets: Value, scores: Value, iou_threshold: float) -> ir.Value:
    """(N, 4), (N,) -> (M,), which boxes are kept, the best first."""
    if dtype_of(dets) == f64:
        raise ValueError("NonMaxSuppression compares float32 boxes; these are double")
    boxes = op.Unsqueeze(op.cast(dets, f32), op.ints([0]))
    ranks = op.Unsqueeze(op.cast(scores, f32), op.ints([0, 1]))
    limit = op.constant(_rounded_down(iou_threshold), f32)
    kept = op.NonMaxSuppression(boxes, ranks, op.constant(torch.iinfo(i64).max), limit)
    return op.Gather(kept, op.constant(2), axis=1)


def _rounded_down(threshold: float) -> float:
    """The largest float32 that is not above: a float32 overlap exceeds both or neither."""
    near = np.float32(threshold)
    return float(near if float(near) <= threshold else np.nextafter(near, np.float32(-np.inf)))


# -- regions ---------------------------------------------------------------------------------------------


@lowers(torchvision.roi_align.default)
def roi_align(
    op: OpBuilder,
    input: Value,
    rois: Value,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> ir.Value:
    """(N, C, H, W), (K, 5) -> (K, C, H', W'): the averages over the cells of each region; one RoiAlign."""
    index, corners = _regions(op, rois)
    return op.RoiAlign(
        input,
        corners,
        index,
        coordinate_transformation_mode="half_pixel" if aligned else "output_half_pixel",
        mode="avg",
        output_height=pooled_height,
        output_width=pooled_width,
        sampling_ratio=max(sampling_ratio, 0),
        spatial_scale=spatial_scale,
    )


@lowers(torchvision.roi_align.default, since=22)
def roi_align_by_samples(
    op: OpBuilder,
    input: Value,
    rois: Value,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> ir.Value:
    """(N, C, H, W), (K, 5) -> (K, C, H', W'), by sampling with GridSample.

    ONNX Runtime 1.32 has no kernel of RoiAlign from opset 22 on. A cell's samples are evenly spread over it:
    `sampling_ratio` along each axis, or as many as the cell is long. Samples more than one place outside are 0.
    """
    wide = f64 if dtype_of(input) == f64 else f32
    image = op.cast(input, wide)
    index, corners = _regions(op, op.cast(rois, wide))
    offset = op.constant(0.5 if aligned else 0.0, wide)
    scaled = op.Sub(op.Mul(corners, op.constant(spatial_scale, wide)), offset)
    x1, y1, x2, y2 = op.Split(scaled, axis=1, num_outputs=4, _outputs=4)
    rows = _samples(op, y1, y2, pooled_height, sampling_ratio, aligned=aligned)
    columns = _samples(op, x1, x2, pooled_width, sampling_ratio, aligned=aligned)
    drawn = _drawn(op, image, index, rows, columns)  # (K, C, H'*G, W'*G')
    total = _cell_sums(op, drawn, (pooled_height, pooled_width), rows, columns)
    counts = op.Unsqueeze(op.Mul(rows.count, columns.count), op.ints([2, 3]))
    return op.cast(op.Div(total, counts), dtype_of(input))


@dataclass(frozen=True)
class Samples:
    """Where one axis of each region is sampled.

    Attributes:
        places: (K, cells * G) places in the image.
        used: (K, cells * G), False for samples beyond a region's number; None if there are none.
        count: (K, 1), how many samples each cell of a region has, at least one.
        each: G, the number for which there is room, as a size.
    """

    places: ir.Value
    used: ir.Value | None
    count: ir.Value
    each: Size


def _samples(
    op: OpBuilder, begin: ir.Value, end: ir.Value, cells: int, ratio: int, *, aligned: bool
) -> Samples:
    """The samples of one axis of the regions from begin to end, both (K, 1)."""
    wide = dtype_of(begin)
    length = op.Sub(end, begin)
    if not aligned:
        length = op.Max(length, op.constant(1, wide))
    cell = op.Div(length, op.constant(cells, wide))
    if ratio > 0:
        count = op.constant([[ratio]], wide)
        each: Size = ratio
        steps = op.constant([[(i % ratio) + 0.5 for i in range(cells * ratio)]], wide)
        number = op.constant([[i // ratio for i in range(cells * ratio)]], wide)
        used = None
    else:
        raw = op.Ceil(cell)
        count = op.Max(raw, op.constant(1, wide))
        each = op.Reshape(op.cast(op.ReduceMax(count, keepdims=0), i64), op.ints([1]))
        room = op.Squeeze(op.Mul(each, op.ints([cells])), op.ints([0]))
        places = op.Unsqueeze(op.Range(op.constant(0), room, op.constant(1)), op.ints([0]))
        steps = op.Add(op.cast(op.Mod(places, each), wide), op.constant(0.5, wide))
        number = op.cast(op.Div(places, each), wide)
        used = op.Less(steps, raw)
    inside = op.Add(number, op.Div(steps, count))
    return Samples(op.Add(begin, op.Mul(inside, cell)), used, count, each)


def _drawn(op: OpBuilder, image: ir.Value, index: ir.Value, rows: Samples, columns: Samples) -> ir.Value:
    """(N, C, H, W) -> (K, C, R, S) at the places (K, R) and (K, S), 0 where a sample is outside or not used.

    The images are stacked as slices of one block (1, C, N, H, W), so that each region can look into its own.
    """
    wide = dtype_of(image)
    height, width = (op.number(op.size(image, axis), wide) for axis in (2, 3))
    depth = op.number(op.size(image, 0), wide)
    y = op.Unsqueeze(rows.places, op.ints([2]))
    x = op.Unsqueeze(columns.places, op.ints([1]))
    z = op.Unsqueeze(op.cast(index, wide), op.ints([1, 2]))
    parts = [_normalised(op, x, width), _normalised(op, y, height), _normalised(op, z, depth)]
    shape = op.Shape(op.Add(x, y))
    grid = op.Concat(*(op.Unsqueeze(op.Expand(part, shape), op.ints([-1])) for part in parts), axis=-1)
    block = op.Unsqueeze(op.Transpose(image, perm=[1, 0, 2, 3]), op.ints([0]))
    made = op.GridSample(block, op.Unsqueeze(grid, op.ints([0])), mode="linear", padding_mode="border")
    kept = op.And(
        op.Unsqueeze(_is_kept(op, rows, height), op.ints([2])),
        op.Unsqueeze(_is_kept(op, columns, width), op.ints([1])),
    )
    drawn = op.Transpose(op.Squeeze(made, op.ints([0])), perm=[1, 0, 2, 3])
    return op.Where(op.Unsqueeze(kept, op.ints([1])), drawn, op.constant(0, wide))


def _normalised(op: OpBuilder, place: ir.Value, size: ir.Value) -> ir.Value:
    """Places 0 … size - 1 as GridSample counts them (without align_corners): (2*place + 1)/size - 1."""
    wide = dtype_of(size)
    doubled = op.Add(op.Mul(place, op.constant(2, wide)), op.constant(1, wide))
    return op.Sub(op.Div(doubled, size), op.constant(1, wide))


def _is_kept(op: OpBuilder, samples: Samples, size: ir.Value) -> ir.Value:
    """Is a sample used, and not more than one place outside?"""
    wide = dtype_of(size)
    inside = op.And(
        op.GreaterOrEqual(samples.places, op.constant(-1, wide)), op.LessOrEqual(samples.places, size)
    )
    return inside if samples.used is None else op.And(inside, samples.used)


def _cell_sums(
    op: OpBuilder, drawn: ir.Value, cells: tuple[int, int], rows: Samples, columns: Samples
) -> ir.Value:
    """(K, C, H'*G, W'*G') -> (K, C, H', W')."""
    split = op.Reshape(drawn, op.vector([0, 0, cells[0], rows.each, cells[1], columns.each]))
    return op.ReduceSum(split, op.ints([3, 5]), keepdims=0)


@lowers(torchvision.roi_pool.default)
def roi_pool(
    op: OpBuilder,
    input: Value,
    rois: Value,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
) -> tuple[ir.Value, None]:
    """(N, C, H, W), (K, 5) -> (K, C, H', W'), the maxima over the cells of each region; one MaxRoiPool.

    Where they lie, for the backward pass, is not made. ONNX Runtime 1.32 has no kernel from opset 22 on.
    """
    made = op.MaxRoiPool(input, rois, pooled_shape=[pooled_height, pooled_width], spatial_scale=spatial_scale)
    return made, None


def _regions(op: OpBuilder, rois: ir.Value) -> tuple[ir.Value, ir.Value]:
    """(K, 5) -> the image of each region (K,), and its corners (K, 4)."""
    first, corners = op.Split(rois, op.ints([1, 4]), axis=1, _outputs=2)
    return op.cast(op.Squeeze(first, op.ints([1])), i64), corners


# -- deformable convolution --------------------------------------------------------------------------------


@lowers(torchvision.deform_conv2d.default, since=19)
def deform_conv2d(
    op: OpBuilder,
    input: Value,
    weight: Value,
    offset: Value,
    mask: Value,
    bias: Value,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> ir.Value:
    """(N, C, H, W), (O, C/g, *K), (N, 2*G*K, H', W'), (N, G*K, H', W'), (O,) -> (N, O, H', W'); one DeformConv."""
    return op.DeformConv(
        input,
        weight,
        offset,
        bias,
        *([mask] if use_mask else []),
        strides=[stride_h, stride_w],
        pads=[pad_h, pad_w, pad_h, pad_w],
        dilations=[dilation_h, dilation_w],
        group=groups,
        offset_group=offset_groups,
        kernel_shape=_kernel(weight),
    )


def _kernel(weight: Value) -> list[int]:
    sizes = shape_of(weight)[2:]
    if not all(isinstance(s, int) for s in sizes):
        raise ValueError("the kernel of a deformable convolution is not static")
    return [int(s) for s in sizes]  # type: ignore[arg-type]


GAPS = (
    Gap(
        (torchvision.ps_roi_align.default, torchvision.ps_roi_pool.default),
        "ours",
        "no rule is written for position-sensitive regions",
    ),
)
