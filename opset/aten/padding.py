"""Operators that add a border to a tensor, or cut one off."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, dtype_of, rank_of
from fx2onnx.errors import UnsupportedOpError
from fx2onnx.opset.aten.axes import INT64_MAX, Size, through
from fx2onnx.rules import lowers

aten = torch.ops.aten

_MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@lowers(aten.constant_pad_nd.default)
def constant_pad_nd(op: OpBuilder, self: Value, pad: Sequence[Size], value: float = 0) -> ir.Value:
    """(…, n, …) -> (…, before + n + after, …) with a value around; negative pads cut."""
    return padded(op, self, onnx_pads(pad, rank_of(self)), value)


@lowers(
    aten.reflection_pad1d.default,
    aten.reflection_pad2d.default,
    aten.reflection_pad3d.default,
)
def reflection_pad(op: OpBuilder, self: Value, padding: Sequence[Size]) -> ir.Value:
    """(…, n, …) -> (…, before + n + after, …), mirrored at the outermost elements."""
    return padded(op, self, onnx_pads(padding, rank_of(self)), mode="reflect")


@lowers(
    aten.replication_pad1d.default,
    aten.replication_pad2d.default,
    aten.replication_pad3d.default,
)
def replication_pad(op: OpBuilder, self: Value, padding: Sequence[Size]) -> ir.Value:
    """(…, n, …) -> (…, before + n + after, …), the outermost elements repeated."""
    return padded(op, self, onnx_pads(padding, rank_of(self)), mode="edge")


@lowers(aten._pad_circular.default)
def circular_pad(op: OpBuilder, self: Value, pad: Sequence[Size]) -> ir.Value:
    """(…, n, …) -> (…, before + n + after, …), continued from the other end."""
    return padded(op, self, onnx_pads(pad, rank_of(self)), mode="wrap")


@lowers(aten.pad.default)
def pad(
    op: OpBuilder, self: Value, pad: Sequence[Size], mode: str = "constant", value: float | None = None
) -> ir.Value:
    """(…, n, …) -> (…, before + n + after, …): torch.nn.functional.pad."""
    pads = onnx_pads(pad, rank_of(self))
    return padded(op, self, pads, value or 0, _MODES.get(mode, mode))


def onnx_pads(pad: Sequence[Size], rank: int) -> list[Size]:
    """PyTorch's pads (last axis first, before and after in turn) as ONNX's (all before, then all after)."""
    before: list[Size] = [*pad[::2]]
    after: list[Size] = [*pad[1::2]]
    missing = [0] * (rank - len(before))
    return [*missing, *before[::-1], *missing, *after[::-1]]


def padded(
    op: OpBuilder, x: ir.Value, pads: Sequence[Size], value: float = 0, mode: str = "constant"
) -> ir.Value:
    """The tensor with ONNX pads; negative ones cut."""
    if all(p == 0 for p in pads):
        return x
    if all(isinstance(p, int) and p <= 0 for p in pads):
        return _cropped(op, x, pads)  # type: ignore[arg-type]  # all are numbers
    if mode in ("reflect", "edge") and any(isinstance(p, int) and p < 0 for p in pads):
        # What is cut off on one side is still there to be mirrored or repeated on the other.
        grown = padded(op, x, [max(p, 0) if isinstance(p, int) else p for p in pads], mode=mode)
        return _cropped(op, grown, [min(p, 0) if isinstance(p, int) else 0 for p in pads])
    if mode == "wrap" and op.opset < 19:  # the mode is new there
        return _wrapped(op, x, pads)
    vector = op.vector(pads)
    fill = [] if value == 0 or mode != "constant" else [op.constant(value, dtype_of(x))]
    # ONNX Runtime 1.32 has no kernels of Pad for these; the wider dtypes hold their values.
    wider = {torch.int16: torch.int32, torch.uint16: torch.int32}
    if op.opset < 21:
        wider[torch.bfloat16] = torch.float32
    return through(
        op, lambda v: op.Pad(v, vector, *(op.cast(f, dtype_of(v)) for f in fill), mode=mode), x, wider
    )


def _cropped(op: OpBuilder, x: ir.Value, pads: Sequence[int]) -> ir.Value:
    rank = rank_of(x)
    cut = [i for i in range(rank) if pads[i] or pads[i + rank]]
    starts, ends = [-pads[i] for i in cut], [pads[i + rank] or INT64_MAX for i in cut]
    return op.Slice(x, op.ints(starts), op.ints(ends), op.ints(cut))


def _wrapped(op: OpBuilder, x: ir.Value, pads: Sequence[Size]) -> ir.Value:
    """The mode "wrap" of ONNX Pad 19, by slices, one axis after the other.

    Raises:
        UnsupportedOpError: the pads are not static.
    """
    rank = rank_of(x)
    for axis in range(rank):
        before, after = pads[axis], pads[axis + rank]
        if not isinstance(before, int) or not isinstance(after, int):
            raise UnsupportedOpError("circular pads of free sizes need opset 19")
        if before < 0 or after < 0:
            crop = [0] * (2 * rank)
            crop[axis], crop[axis + rank] = min(before, 0), min(after, 0)
            x = _cropped(op, x, crop)
        axes = op.ints([axis])
        left = [op.Slice(x, op.ints([-before]), op.ints([INT64_MAX]), axes)] if before > 0 else []
        right = [op.Slice(x, op.ints([0]), op.ints([after]), axes)] if after > 0 else []
        if left or right:
            x = op.Concat(*left, x, *right, axis=axis)
    return x
