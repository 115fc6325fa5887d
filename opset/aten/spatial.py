"""What operators over windows and positions share: settings per axis, inputs without a batch, half precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, dtype_of, rank_of
from fx2onnx.types import DTYPES


def per_axis(setting: int | Sequence[int | ir.Value], axes: int) -> list[int]:
    """A setting (stride, padding, kernel size …) for each of so many axes; one number stands for all.

    Raises:
        ValueError: a number is a size that is only known when the model runs; ONNX wants an attribute.
    """
    numbers = [setting] if isinstance(setting, int | ir.Value) else list(setting)
    if any(not isinstance(n, int) for n in numbers):
        raise ValueError("a window setting depends on a size that is not static")
    if len(numbers) not in (1, axes):
        raise ValueError(f"{len(numbers)} settings for {axes} axes")
    return [int(n) for n in numbers] * (axes // len(numbers))  # type: ignore[arg-type]


@overload
def with_batch(op: OpBuilder, x: ir.Value, rank: int, build: Callable[[ir.Value], ir.Value]) -> ir.Value: ...
@overload
def with_batch(
    op: OpBuilder, x: ir.Value, rank: int, build: Callable[[ir.Value], tuple[ir.Value, ir.Value]]
) -> tuple[ir.Value, ir.Value]: ...
def with_batch(
    op: OpBuilder,
    x: ir.Value,
    rank: int,
    build: Callable[[ir.Value], ir.Value | tuple[ir.Value, ...]],
) -> ir.Value | tuple[ir.Value, ...]:
    """`build(x)`; an x of one axis less than `rank` gets a batch axis of one for it."""
    if rank_of(x) == rank:
        return build(x)
    zero = op.ints([0])
    made = build(op.Unsqueeze(x, zero))
    if isinstance(made, tuple):
        return tuple(op.Squeeze(value, zero) for value in made)
    return op.Squeeze(made, zero)


def emit(op: OpBuilder, op_type: str, *operands: ir.Value | None, **attributes: object) -> ir.Value:
    """`op.<op_type>(*operands)` where operands may be left out; bfloat16 is computed in float32.

    ONNX Runtime 1.32 has no bfloat16 kernels on the CPU; one rounding from float32 is what PyTorch does. It
    casts float16 by itself.
    """
    while operands[-1] is None:
        operands = operands[:-1]
    build: Callable[..., ir.Value] = getattr(op, op_type)
    if dtype_of(_first(operands)) != torch.bfloat16:
        return build(*operands, **attributes)
    wide = [op.cast(x, torch.float32) if _is_bfloat16(x) else x for x in operands]  # type: ignore[arg-type]
    return op.cast(build(*wide, **attributes), torch.bfloat16)


def _first(operands: Sequence[ir.Value | None]) -> ir.Value:
    return next(x for x in operands if x is not None)


def _is_bfloat16(x: ir.Value | None) -> bool:
    return x is not None and x.dtype == DTYPES[torch.bfloat16]
