"""Interpolation: images and signals of another size, by the nearest place or linear or cubic mixing.

    (N, C, *S) -> (N, C, *O)    O is given, or floor(S * scale)

A place o of the result lies at s of the input:

    nearest             s = floor(o * r)                ONNX: asymmetric, floor
    nearest-exact       s = floor((o + 1/2) * r)        ONNX: half_pixel, round_prefer_ceil
    align_corners       s = o * (S - 1)/(O - 1)         ONNX: align_corners
    else                s = (o + 1/2) * r - 1/2         ONNX: half_pixel

where r is 1/scale where a scale is given, else S/O. Source: ATen/native/UpSample.h.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from fx2onnx import dims
from fx2onnx.builder import OpBuilder, Value, dtype_of, rank_of, shape_of
from fx2onnx.dims import Dim
from fx2onnx.errors import UnsupportedOpError
from fx2onnx.opset.aten.spatial import emit
from fx2onnx.rules import Gap, Rule, lowers

aten = torch.ops.aten

Size = int | ir.Value


@dataclass(frozen=True)
class Resizing:
    """The spatial axes of one interpolation.

    Attributes:
        old: what is known of the sizes before.
        new: what is known of the sizes after.
        sizes: the sizes after as arguments, None where scales say them.
        scales: the scales that were given, None where sizes were.
    """

    old: tuple[Dim | None, ...]
    new: tuple[Dim, ...]
    sizes: tuple[Size, ...] | None
    scales: tuple[float, ...] | None

    @property
    def is_static(self) -> bool:
        """Are all sizes numbers?"""
        return all(isinstance(s, int) for s in (*self.old, *self.new))


def _resizing(
    op: OpBuilder, x: Value, sizes: Sequence[Size] | None, scales: Sequence[float | None] | None
) -> Resizing:
    """What PyTorch's arguments say; a scale that is not positive counts as none."""
    axes = rank_of(x) - 2
    old, new = shape_of(x)[2:], op.result.shape[2:]
    given = [s for s in scales or () if s is not None and s > 0]
    if not given:
        return Resizing(old, new, tuple(sizes or ()), None)
    if len(given) != axes:
        raise ValueError(f"scales for {len(given)} of {axes} axes")
    return Resizing(old, new, None if sizes is None else tuple(sizes), tuple(given))


# -- the nearest place -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Nearest:
    """One of the two ways to choose the nearest place.

    Attributes:
        operators: ATen's operators over one, two and three axes, which show where they look.
        shift: 1/2 where the middle of a place counts, 0 where its beginning does.
        attributes: the same for ONNX's Resize.
    """

    operators: tuple[Any, ...]
    shift: float
    attributes: dict[str, str]


NEAREST = Nearest(
    (aten.upsample_nearest1d, aten.upsample_nearest2d, aten.upsample_nearest3d),
    0.0,
    {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
)
NEAREST_EXACT = Nearest(
    (aten._upsample_nearest_exact1d, aten._upsample_nearest_exact2d, aten._upsample_nearest_exact3d),
    0.5,
    {"coordinate_transformation_mode": "half_pixel", "nearest_mode": "round_prefer_ceil"},
)


def _nearest_rules(way: Nearest) -> tuple[Rule, Rule]:
    """The rules of nearest interpolation over one, two and three axes."""

    @lowers(*(packet.vec for packet in way.operators))
    def upsample_nearest_vec(
        op: OpBuilder,
        input: Value,
        output_size: Sequence[Size] | None,
        scale_factors: Sequence[float] | None,
    ) -> ir.Value:
        """(N, C, *S) -> (N, C, *O)."""
        return _nearest(op, input, _resizing(op, input, output_size, scale_factors), way)

    @lowers(*(packet.default for packet in way.operators))
    def upsample_nearest(
        op: OpBuilder, self: Value, output_size: Sequence[Size], *scales: float | None
    ) -> ir.Value:
        """(N, C, *S) -> (N, C, *O), with a scale for each axis."""
        return _nearest(op, self, _resizing(op, self, output_size, scales), way)

    return upsample_nearest_vec, upsample_nearest


NEAREST_RULES = _nearest_rules(NEAREST)
NEAREST_EXACT_RULES = _nearest_rules(NEAREST_EXACT)


def _nearest(op: OpBuilder, x: Value, to: Resizing, way: Nearest) -> ir.Value:
    """One Resize where it surely chooses the places that PyTorch does; else a Gather for each axis.

    Both compute places in float32, PyTorch as o * (S/O), ONNX Runtime as o / (O/S). Where o * S/O is a whole
    number they may fall on different sides of it: 41 * (1/41) is below 1.
    """
    # ONNX Runtime 1.32 has no Resize of doubles
    if dtype_of(x) != torch.float64 and all(_is_safe(to, axis, way) for axis in range(len(to.old))):
        return _resize(op, x, to, mode="nearest", **way.attributes)
    made: ir.Value = x
    for axis in range(len(to.old)):
        if to.old[axis] != to.new[axis] or (to.scales and to.scales[axis] != 1):
            made = op.Gather(made, _places(op, x, to, axis, way), axis=axis + 2)
    return made


def _is_safe(to: Resizing, axis: int, way: Nearest) -> bool:
    """Does float32 rounding of the places not matter on this axis?"""
    old, new = to.old[axis], to.new[axis]
    if isinstance(old, int) and isinstance(new, int):
        return _looks_alike(to, axis, way)
    if to.scales is None:
        return old is not None and _doubles(old, new)
    scale = to.scales[axis]
    if _is_ignored_sometimes(to, scale, way):
        return False
    some = Resizing((1024,) * len(to.old), (int(1024 * scale),) * len(to.old), None, to.scales)
    return float(np.float32(scale)) == scale and _looks_alike(some, axis, way)


def _is_ignored_sometimes(to: Resizing, scale: float, way: Nearest) -> bool:
    """Does PyTorch go by the sizes where these are equal or double, though a slightly larger scale was given?

    Its kernels for two axes do (`nearest_idx`); for a single place it makes no difference.
    """
    return way is NEAREST and len(to.old) == 2 and (1 < scale < 1.5 or 2 < scale < 2.5)


def _looks_alike(to: Resizing, axis: int, way: Nearest) -> bool:
    """Does ONNX Runtime look where PyTorch does, on a static axis?"""
    expected = _torch_places(to, axis, way)
    old, new = to.old[axis], to.new[axis]
    scale = to.scales[axis] if to.scales else None
    assert isinstance(old, int)
    assert isinstance(new, int)
    if way.shift == 0:
        stretch = np.float32(scale) if scale else np.float32(new) / np.float32(old)
        places = np.floor(np.arange(new, dtype=np.float32) / stretch)
        return np.array_equal(np.clip(places, 0, old - 1), expected)
    # ONNX Runtime's float32 arithmetic with halves is exact for powers of two; else no place may be near a jump
    ratio = 1 / scale if scale else old / new
    exact = (np.arange(new) + way.shift) * ratio
    far = np.abs(exact - np.round(exact)) > 1e-6 * max(old, 8)
    is_power = np.frexp(ratio)[0] == 0.5
    return bool((is_power or far.all()) and np.array_equal(np.clip(np.floor(exact), 0, old - 1), expected))


def _torch_places(to: Resizing, axis: int, way: Nearest, dtype: torch.dtype = torch.float32) -> np.ndarray:
    """(O,), where PyTorch looks for each place of a static axis, computing in this dtype.

    It is asked: its kernels round the places of one and of two axes differently.
    """
    old, new, axes = int(to.old[axis] or 0), to.new[axis], len(to.old)
    scales = [None] * axes if to.scales is None else [to.scales[axis], *[1.0] * (axes - 1)]
    ones = [1] * (axes - 1)
    ramp = torch.arange(old, dtype=dtype).view(1, 1, -1, *ones)
    places: torch.Tensor = way.operators[axes - 1].default(ramp, [new, *ones], *scales)
    return places.view(-1).numpy().astype(np.int64)


def _doubles(old: Dim, new: Dim) -> bool:
    """Is an axis (about) doubled: is the old size half of the new one, rounded up or down?

    Then o * S/O is whole for o = 0 only, or the ratio is exactly 1/2.
    """
    return any(dims.same(dims.floordiv(dims.dim(new + up), 2), old) is True for up in (0, 1))


def _places(op: OpBuilder, x: Value, to: Resizing, axis: int, way: Nearest) -> ir.Value:
    """(O,), where PyTorch looks for each place of an axis, step by step where sizes are free."""
    old, new = to.old[axis], to.new[axis]
    scale = to.scales[axis] if to.scales else None
    wide = torch.float64 if dtype_of(x) == torch.float64 else torch.float32
    if isinstance(old, int) and isinstance(new, int):
        return op.constant(_torch_places(to, axis, way, wide))
    size = op.number(op.size(x, axis + 2), torch.int64)
    out = op.number(_new_size(op, x, to, axis), torch.int64)
    ratio = op.Div(op.cast(size, wide), op.cast(out, wide))
    if scale is not None:
        given = op.constant(1 / scale, wide)
        whole = op.Or(op.Equal(out, size), op.Equal(out, op.Add(size, size)))
        ratio = op.Where(whole, ratio, given) if _is_ignored_sometimes(to, scale, way) else given
    steps = op.Range(op.constant(0, wide), op.cast(out, wide), op.constant(1, wide))
    if way.shift:
        steps = op.Add(steps, op.constant(way.shift, wide))
    where = op.Mul(steps, ratio)
    return op.Min(op.cast(op.Floor(where), torch.int64), op.Sub(size, op.constant(1)))


# -- mixing ----------------------------------------------------------------------------------------------


def _mixing_rules(attributes: dict[str, Any], *packets: Any) -> tuple[Rule, Rule]:
    """The rules of linear or cubic interpolation."""

    @lowers(*(packet.vec for packet in packets))
    def upsample_vec(
        op: OpBuilder,
        input: Value,
        output_size: Sequence[Size] | None,
        align_corners: bool,
        scale_factors: Sequence[float] | None,
    ) -> ir.Value:
        """(N, C, *S) -> (N, C, *O)."""
        to = _resizing(op, input, output_size, scale_factors)
        return _mixed(op, input, to, align_corners, attributes)

    @lowers(*(packet.default for packet in packets))
    def upsample(
        op: OpBuilder,
        self: Value,
        output_size: Sequence[Size],
        align_corners: bool,
        *scales: float | None,
    ) -> ir.Value:
        """(N, C, *S) -> (N, C, *O), with a scale for each axis."""
        return _mixed(op, self, _resizing(op, self, output_size, scales), align_corners, attributes)

    return upsample_vec, upsample


LINEAR_RULES = _mixing_rules(
    {"mode": "linear"}, aten.upsample_linear1d, aten.upsample_bilinear2d, aten.upsample_trilinear3d
)
CUBIC_RULES = _mixing_rules({"mode": "cubic", "cubic_coeff_a": -0.75}, aten.upsample_bicubic2d)

# With a filter that widens as the image shrinks, and that PyTorch cuts off at the borders.
ANTIALIASED_LINEAR_RULES = _mixing_rules(
    {"mode": "linear", "antialias": 1, "exclude_outside": 1},
    aten._upsample_bilinear2d_aa,
)
ANTIALIASED_CUBIC_RULES = _mixing_rules(
    {"mode": "cubic", "cubic_coeff_a": -0.5, "antialias": 1, "exclude_outside": 1},
    aten._upsample_bicubic2d_aa,
)


def _mixed(
    op: OpBuilder, x: Value, to: Resizing, align_corners: bool, attributes: dict[str, Any]
) -> ir.Value:
    if not dtype_of(x).is_floating_point:
        raise UnsupportedOpError(
            f"interpolation of {dtype_of(x)} by mixing: PyTorch rounds it in a fixed-point way of its own",
            fix="interpolate floats: x.float()",
        )
    mode = "align_corners" if align_corners else "half_pixel"
    return _resize(op, x, to, coordinate_transformation_mode=mode, **attributes)


# -- Resize ----------------------------------------------------------------------------------------------


def _resize(op: OpBuilder, x: Value, to: Resizing, **attributes: Any) -> ir.Value:
    """One Resize over the spatial axes, by scales where they were given, else by sizes.

    ONNX Runtime rounds scales to float32 and multiplies sizes by them. Where that may come to another size
    than PyTorch's, the scale is rounded up and what is too much is cut off.
    """
    axes = [*range(2, rank_of(x))]
    if to.old == to.new and all(scale == 1 for scale in to.scales or ()):
        return x
    aligned = attributes["coordinate_transformation_mode"] == "align_corners"
    if to.scales is None or (aligned and not _are_exact(to)):
        sizes = op.vector([_new_size(op, x, to, axis) for axis in range(len(axes))])
        return emit(op, "Resize", x, None, None, sizes, axes=axes, **attributes)
    scales = [_rounded_up(s) for s in to.scales]
    made = emit(op, "Resize", x, None, op.constant(scales, torch.float32), axes=axes, **attributes)
    if _are_exact(to) or _come_out_right(to, scales):
        return made
    ends = op.vector([_new_size(op, x, to, axis) for axis in range(len(axes))])
    return op.Slice(made, op.ints([0] * len(axes)), ends, op.ints(axes))


def _rounded_up(scale: float) -> float:
    """The smallest float32 that is not below."""
    near = np.float32(scale)
    return float(near if float(near) >= scale else np.nextafter(near, np.float32(np.inf)))


def _are_exact(to: Resizing) -> bool:
    """Are all scales float32 numbers, so that every product of size and scale is the same in float32?"""
    return to.scales is not None and all(float(np.float32(s)) == s for s in to.scales)


def _come_out_right(to: Resizing, scales: Sequence[float]) -> bool:
    """Are all sizes static, and those that ONNX Runtime computes?"""
    return to.is_static and all(
        int(np.float32(old) * np.float32(s)) == new
        for old, new, s in zip(to.old, to.new, scales, strict=True)
    )


def _new_size(op: OpBuilder, x: Value, to: Resizing, axis: int) -> Size:
    """The size of an axis afterwards: known, an argument, or floor(S * scale) in double."""
    new = to.new[axis]
    if isinstance(new, int):
        return new
    if to.sizes is not None:
        return to.sizes[axis]
    assert to.scales is not None
    old = op.size(x, axis + 2)
    if isinstance(old, int):
        return int(old * to.scales[axis])
    product = op.Mul(op.cast(old, torch.float64), op.constant(to.scales[axis], torch.float64))
    return op.cast(op.Floor(product), torch.int64)


GAPS = (
    Gap(
        (aten._upsample_lanczos2d_aa.default, aten._upsample_lanczos2d_aa.vec),
        "never",
        "ONNX Resize knows no Lanczos filter",
    ),
)
