"""Sums, means and maxima over bags of embeddings.

    weight (V, D), indices (n,), offsets (B,) -> (B, D)

Bag b holds the indices from offsets[b] up to offsets[b + 1]; the last one goes to the end, or to the last offset
where that is included (then there are B + 1 offsets). An empty bag gives zeros.

    indices    4 1 | | 7 7 2        offsets    0 2 2
    marks      1 0   2 0 0 (0)      how many bags begin at each place
    bags       0 0   2 2 2          their running sum, less one
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, dtype_of, shape_of
from fx2onnx.opset.aten.operands import HALVES, f32
from fx2onnx.rules import lowers

aten = torch.ops.aten

SUM, MEAN, MAX = 0, 1, 2
LARGEST_CONSTANT = 4096  # elements

Size = int | ir.Value

Results = tuple[ir.Value, None, None, None]


class Bags(NamedTuple):
    """Where each index goes.

    Attributes:
        each: (n, 1) int64, the bag of each index; B for those that go nowhere.
        number: n, the number of indices.
        total: B, the number of bags.
        spill: may there be indices that go nowhere?
    """

    each: ir.Value
    number: Size
    total: Size
    spill: bool


@lowers(aten._embedding_bag.default, aten._embedding_bag_forward_only.default)
def embedding_bag_core(
    op: OpBuilder,
    weight: Value,
    indices: Value,
    offsets: Value,
    scale_grad_by_freq: bool = False,
    mode: int = SUM,
    sparse: bool = False,
    per_sample_weights: Value | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> Results:
    """(V, D), (n,), (B,) -> (B, D); what is for the backward pass is not made. -1 is no padding."""
    ignored = None if padding_idx < 0 else padding_idx
    made = _embedding_bag(
        op, weight, indices, offsets, mode, per_sample_weights, include_last_offset, ignored
    )
    return made, None, None, None


@lowers(aten.embedding_bag.default, aten.embedding_bag.padding_idx)
def embedding_bag(
    op: OpBuilder,
    weight: Value,
    indices: Value,
    offsets: Value,
    scale_grad_by_freq: bool = False,
    mode: int = SUM,
    sparse: bool = False,
    per_sample_weights: Value | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Results:
    """(V, D), (n,), (B,) -> (B, D); what is for the backward pass is not made. A negative padding counts from V."""
    ignored = padding_idx
    if padding_idx is not None and padding_idx < 0:
        rows = shape_of(weight)[0]
        if not isinstance(rows, int):
            raise ValueError("a negative padding_idx needs a static number of embeddings")
        ignored = padding_idx + rows
    made = _embedding_bag(
        op, weight, indices, offsets, mode, per_sample_weights, include_last_offset, ignored
    )
    return made, None, None, None


def _embedding_bag(
    op: OpBuilder,
    weight: Value,
    indices: Value,
    offsets: Value,
    mode: int,
    per_sample_weights: Value | None,
    include_last_offset: bool,
    padding_idx: int | None,
) -> ir.Value:
    dtype = dtype_of(weight)
    wide = f32 if dtype in HALVES else dtype
    rows = op.cast(op.Gather(weight, indices, axis=0), wide)
    if per_sample_weights is not None:
        rows = op.Mul(rows, op.Unsqueeze(op.cast(per_sample_weights, wide), op.ints([1])))
    bags = _bags(op, indices, offsets, include_last_offset, padding_idx)
    width = op.size(weight, 1)
    if mode == MAX:
        made = _reduced(op, rows, width, bags, "max", -math.inf)
        empty = op.Equal(_sizes(op, bags, wide), op.constant(0, wide))
        made = op.Where(empty, op.constant(0, wide), made)
    else:
        made = _reduced(op, rows, width, bags, "add", 0)
    if mode == MEAN:
        made = op.Div(made, op.Max(_sizes(op, bags, wide), op.constant(1, wide)))
    return op.cast(made, dtype)


def _bags(
    op: OpBuilder, indices: Value, offsets: Value, include_last_offset: bool, padding_idx: int | None
) -> Bags:
    """Which bag each index goes to."""
    number, begins = op.size(indices, 0), op.size(offsets, 0)
    marks = op.ScatterElements(
        _filled(op, [_plus(op, number, 1)], 0, torch.int64),
        op.cast(offsets, torch.int64),
        _filled(op, [begins], 1, torch.int64),
        axis=0,
        reduction="add",
    )
    running = op.Sub(op.CumSum(marks, op.constant(0)), op.constant(1))
    each = op.Slice(running, op.ints([0]), op.ints([-1]), op.ints([0]))
    count = _plus(op, begins, -1) if include_last_offset else begins
    if padding_idx is not None:
        is_padding = op.Equal(indices, op.constant(padding_idx, dtype_of(indices)))
        each = op.Where(is_padding, op.vector([count]), each)
    spill = include_last_offset or padding_idx is not None
    return Bags(op.Unsqueeze(each, op.ints([1])), number, count, spill)


def _reduced(
    op: OpBuilder, rows: ir.Value, width: Size, bags: Bags, reduction: str, begin: float
) -> ir.Value:
    """(n, D) -> (B, D): rows of one bag added, or their maximum; `begin` for bags without any.

    ScatterElements goes through its updates one by one, in the order in which PyTorch adds.
    """
    into = op.Expand(bags.each, op.vector([bags.number, width]))
    room = _filled(op, [_plus(op, bags.total, int(bags.spill)), width], begin, dtype_of(rows))
    made = op.ScatterElements(room, into, rows, axis=0, reduction=reduction)
    return op.Slice(made, op.ints([0]), op.ints([-1]), op.ints([0])) if bags.spill else made


def _sizes(op: OpBuilder, bags: Bags, dtype: torch.dtype) -> ir.Value:
    """(B, 1), how many indices are in each bag."""
    return _reduced(op, _filled(op, [bags.number, 1], 1, dtype), 1, bags, "add", 0)


def _plus(op: OpBuilder, size: Size, more: int) -> Size:
    if isinstance(size, int):
        return size + more
    return op.Add(size, op.ints([more])) if more else size


def _filled(op: OpBuilder, sizes: Sequence[Size], number: float, dtype: torch.dtype) -> ir.Value:
    """A tensor of one number."""
    static = [s for s in sizes if isinstance(s, int)]
    if len(static) == len(sizes) and math.prod(static) <= LARGEST_CONSTANT:
        return op.constant(torch.full(static, number), dtype)
    return op.Expand(op.constant(number, dtype), op.vector(sizes))
