"""Convolutions and transposed convolutions over one, two and three axes, with and without a batch.

    (N, C, *S), (O, C/g, *K), (O,)? -> (N, O, *S')    S' = (S + 2p - d(K - 1) - 1)//s + 1
    (N, C, *S), (C, O/g, *K), (O,)? -> (N, O, *S')    S' = (S - 1)s - 2p + d(K - 1) + output_padding + 1, transposed

Source: torch.nn.Conv2d and ConvTranspose2d, "Shape"; ONNX Conv and ConvTranspose compute the same sizes from
explicit pads.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, dtype_of, rank_of, shape_of
from fx2onnx.errors import UnsupportedOpError
from fx2onnx.opset.aten.spatial import emit, per_axis, with_batch
from fx2onnx.rules import lowers

aten = torch.ops.aten

Setting = int | Sequence[int]


@lowers(aten.conv1d.default, aten.conv2d.default, aten.conv3d.default)
def conv(
    op: OpBuilder,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Setting = 1,
    padding: Setting = 0,
    dilation: Setting = 1,
    groups: int = 1,
) -> ir.Value:
    """(N?, C, *S), (O, C/g, *K), (O,)? -> (N?, O, *S'), one Conv."""
    pads = per_axis(padding, rank_of(weight) - 2)
    return _conv(op, input, weight, bias, stride, dilation, groups, pads=pads + pads)


@lowers(
    aten.conv1d.padding,
    aten.conv2d.padding,
    aten.conv3d.padding,
    aten._convolution_mode.default,
)
def conv_padding(
    op: OpBuilder,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Setting = 1,
    padding: str = "valid",
    dilation: Setting = 1,
    groups: int = 1,
) -> ir.Value:
    """(N?, C, *S) -> (N?, O, *S) for padding "same" (more of it at the end), unpadded for "valid"."""
    if padding == "valid":
        return _conv(op, input, weight, bias, stride, dilation, groups)
    kernel = shape_of(weight)[2:]
    if any(not isinstance(k, int) for k in kernel):
        return _conv(op, input, weight, bias, stride, dilation, groups, auto_pad="SAME_UPPER")
    steps = per_axis(dilation, len(kernel))
    total = [d * (k - 1) for d, k in zip(steps, kernel, strict=True)]  # type: ignore[operator]
    pads = [t // 2 for t in total] + [t - t // 2 for t in total]
    return _conv(op, input, weight, bias, stride, dilation, groups, pads=pads)


@lowers(aten.conv_transpose1d.default, aten.conv_transpose2d.input, aten.conv_transpose3d.input)
def conv_transpose(
    op: OpBuilder,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Setting = 1,
    padding: Setting = 0,
    output_padding: Setting = 0,
    groups: int = 1,
    dilation: Setting = 1,
) -> ir.Value:
    """(N?, C, *S), (C, O/g, *K), (O,)? -> (N?, O, *S'), one ConvTranspose."""
    _refuse_integers(input)
    axes = rank_of(weight) - 2
    strides, begin = per_axis(stride, axes), per_axis(padding, axes)
    extra = per_axis(output_padding, axes)
    # ONNX Runtime 1.32 refuses an output padding that is not below the stride, which a dilation allows:
    # the result is as much longer when it is taken from the padding at the end.
    taken = [min(e, p) if e >= s else 0 for e, p, s in zip(extra, begin, strides, strict=True)]
    return with_batch(
        op,
        input,
        rank_of(weight),
        lambda x: emit(
            op,
            "ConvTranspose",
            x,
            weight,
            bias,
            strides=strides,
            pads=begin + [p - t for p, t in zip(begin, taken, strict=True)],
            output_padding=[e - t for e, t in zip(extra, taken, strict=True)],
            dilations=per_axis(dilation, axes),
            group=groups,
        ),
    )


@lowers(
    aten.convolution.default,
    aten._convolution.default,
    aten._convolution.deprecated,
)
def convolution(
    op: OpBuilder,
    input: Value,
    weight: Value,
    bias: Value | None,
    stride: Setting,
    padding: Setting,
    dilation: Setting,
    transposed: bool,
    output_padding: Setting,
    groups: int,
    benchmark: bool = False,
    deterministic: bool = False,
    cudnn_enabled: bool = False,
    allow_tf32: bool = False,
) -> ir.Value:
    """Either of the two, as the core operator spells them."""
    if transposed:
        made: ir.Value = conv_transpose.function(
            op, input, weight, bias, stride, padding, output_padding, groups, dilation
        )
    else:
        made = conv.function(op, input, weight, bias, stride, padding, dilation, groups)
    return made


@lowers(aten.conv_tbc.default)
def conv_tbc(op: OpBuilder, self: Value, weight: Value, bias: Value, pad: int = 0) -> ir.Value:
    """(T, N, C), (K, C, O), (O,) -> (T', N, O): time comes first."""
    x = op.Transpose(self, perm=[1, 2, 0])
    made = _conv(op, x, op.Transpose(weight, perm=[2, 1, 0]), bias, 1, 1, 1, pads=[pad, pad])
    return op.Transpose(made, perm=[2, 0, 1])


def _conv(
    op: OpBuilder,
    x: ir.Value,
    weight: ir.Value,
    bias: ir.Value | None,
    stride: Setting,
    dilation: Setting,
    groups: int,
    **padding: list[int] | str,
) -> ir.Value:
    _refuse_integers(x)
    axes = rank_of(weight) - 2
    strides, dilations = per_axis(stride, axes), per_axis(dilation, axes)
    return with_batch(
        op,
        x,
        rank_of(weight),
        lambda x: emit(
            op, "Conv", x, weight, bias, strides=strides, dilations=dilations, group=groups, **padding
        ),
    )


def _refuse_integers(x: ir.Value) -> None:
    if not dtype_of(x).is_floating_point:
        raise UnsupportedOpError(f"a convolution of {dtype_of(x)}; ONNX Conv is for floats")
