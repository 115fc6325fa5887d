"""Operators that read a tensor at places that other tensors say.

`index.Tensor` is NumPy's advanced indexing. An index is None (the whole axis), a tensor of integers (one
axis), or a mask (as many axes as it has). How it is written in ONNX, the first that fits:

    one mask                          Compress on its axes, merged into one
    one tensor of integers            Gather
    tensors that vary in axes of
    their own, in order: x[i[:, None], j]   one Gather after another
    neighbours, not in front          Gather on their axes, merged into one
    others                            GatherND on their axes, brought to the front
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, dtype_of, rank_of, shape_of
from fx2onnx.dims import Dim
from fx2onnx.opset.aten.axes import Size, axis_of, through
from fx2onnx.opset.aten.movement import broadcast, merge, transposed
from fx2onnx.rules import lowers

aten = torch.ops.aten

MASKS = frozenset({torch.bool, torch.uint8})


# -- one index ---------------------------------------------------------------------------------------


@lowers(aten.embedding.default)
def embedding(
    op: OpBuilder,
    weight: Value,
    indices: Value,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> ir.Value:
    """(n, d), (*S) -> (*S, d): row indices[s]."""
    return op.Gather(weight, indices, axis=0)


@lowers(aten.index_select.default)
def index_select(op: OpBuilder, self: Value, dim: int, index: Value) -> ir.Value:
    """(…, n, …), (k,) -> (…, k, …)."""
    if rank_of(self) == 0:
        return self
    positions = index if rank_of(index) else op.Unsqueeze(index, op.ints([0]))
    return op.Gather(self, positions, axis=axis_of(dim, rank_of(self)))


@lowers(aten.gather.default)
def gather(
    op: OpBuilder,
    self: Value,
    dim: int,
    index: Value,
    *,
    sparse_grad: bool = False,
) -> ir.Value:
    """(*S), (*K) -> (*K): x[k_0, …, index[k], …]."""
    x, places = with_axis(op, self), with_axis(op, index)
    made = op.GatherElements(x, places, axis=axis_of(dim, rank_of(x)))
    return made if rank_of(index) else op.Squeeze(made, op.ints([0]))


@lowers(aten.take_along_dim.default)
def take_along_dim(op: OpBuilder, self: Value, indices: Value, dim: int | None = None) -> ir.Value:
    """(*S), (*K) -> (*K): x[k_0, …, indices[k], …], both broadcast in the other axes; flat without `dim`."""
    if dim is None:
        flat = [op.Reshape(x, op.ints([-1])) for x in (self, indices)]
        return op.GatherElements(*flat, axis=0)
    axis = axis_of(dim, rank_of(self))
    return op.GatherElements(
        broadcast_like(op, self, [indices], but=axis),
        broadcast_like(op, indices, [self], but=axis),
        axis=axis,
    )


@lowers(aten.take.default)
def take(op: OpBuilder, self: Value, index: Value) -> ir.Value:
    """(*S), (*K) -> (*K): elements of the flat tensor."""
    return op.Gather(op.Reshape(self, op.ints([-1])), index, axis=0)


def with_axis(op: OpBuilder, x: ir.Value) -> ir.Value:
    """x, as a vector where it has no axes."""
    return x if rank_of(x) else op.Unsqueeze(x, op.ints([0]))


def broadcast_like(
    op: OpBuilder, x: ir.Value, others: Sequence[ir.Value], but: int | None = None
) -> ir.Value:
    """The tensor expanded to what its shape and those of others broadcast to.

    A size that is not known to be 1 is what all others are there, as PyTorch has it in the traced graph.

    Args:
        op: the builder.
        x: the tensor to expand.
        others: what it is to be combined with.
        but: an axis that x keeps as it is.
    """
    rank = max(rank_of(v) for v in (x, *others))
    target = [1 if axis == but else _lacking(op, x, others, axis - rank) for axis in range(rank)]
    if rank == rank_of(x) and all(isinstance(t, int) and t == 1 for t in target):
        return x
    return broadcast(op, x, target)


def _lacking(op: OpBuilder, x: ir.Value, others: Sequence[ir.Value], axis: int) -> Size:
    """The size that x lacks in an axis, counted from the end; 1 where it lacks none."""
    if _size_at(x, axis) != 1:
        return 1
    wider = next((v for v in others if _size_at(v, axis) != 1), None)
    return 1 if wider is None else op.size(wider, axis)


def _size_at(x: ir.Value, axis: int) -> Dim | None:
    return shape_of(x)[axis] if -axis <= rank_of(x) else 1


# -- masks -------------------------------------------------------------------------------------------


@lowers(aten.masked_select.default)
def masked_select(op: OpBuilder, self: Value, mask: Value) -> ir.Value:
    """(*S), (*S) -> (k,): the elements where the mask holds; both are broadcast."""
    x, condition = broadcast_like(op, with_axis(op, self), [mask]), broadcast_like(op, mask, [self])
    return compressed(op, x, op.Reshape(condition, op.ints([-1])))


def compressed(op: OpBuilder, x: ir.Value, mask: ir.Value, axis: int | None = None) -> ir.Value:
    """The slices of x along an axis (or the elements of flat x) where a vector of bools holds."""
    keywords = {} if axis is None else {"axis": axis}
    # ONNX Runtime 1.32 has no kernel of Compress for bfloat16; float32 holds its values.
    return through(op, lambda v: op.Compress(v, mask, **keywords), x, {torch.bfloat16: torch.float32})


# -- advanced indexing -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """An index of `index.Tensor`: the first axis it is for, how many axes, the tensor."""

    axis: int
    axes: int
    index: ir.Value

    @property
    def is_mask(self) -> bool:
        """Is it a mask?"""
        return dtype_of(self.index) in MASKS


def places_of(indices: Sequence[ir.Value | None]) -> list[Place]:
    """The indices that are not None, with their axes."""
    found, axis = [], 0
    for index in indices:
        if index is None:
            axis += 1
            continue
        axes = rank_of(index) if dtype_of(index) in MASKS else 1
        found.append(Place(axis, axes, index))
        axis += axes
    return found


@lowers(aten.index.Tensor, aten._unsafe_index.Tensor)
def index(op: OpBuilder, self: Value, indices: Sequence[Value | None]) -> ir.Value:
    """x[indices]: see the head of this file."""
    places = places_of(indices)
    if not places:
        return self
    if len(places) == 1 and places[0].is_mask:
        return _masked(op, self, places[0])
    places = without_masks(op, places)
    if len(places) == 1:
        return op.Gather(self, places[0].index, axis=places[0].axis)
    if are_neighbours(places) and (blocks := _own_axes([shape_of(p.index) for p in places])):
        return _one_by_one(op, self, places, blocks)
    if are_neighbours(places) and places[0].axis > 0:
        return _merged(op, self, places)
    front = to_front([p.axis for p in places], rank_of(self))
    return op.GatherND(transposed(op, self, front), stacked(op, [p.index for p in places]))


def _masked(op: OpBuilder, x: ir.Value, place: Place) -> ir.Value:
    """x[…, mask]: the mask's axes become one, of which the places where it holds stay."""
    mask = op.cast(place.index, torch.bool)
    flat = mask if place.axes == 1 else op.Reshape(mask, op.ints([-1]))
    if place.axis == 0 and place.axes == rank_of(x) > 0:
        return compressed(op, x, flat)
    if place.axes != 1:
        x = merge(op, x, place.axis, place.axis + place.axes - 1)
    return compressed(op, x, flat, place.axis)


def without_masks(op: OpBuilder, places: Sequence[Place]) -> list[Place]:
    """The places with each mask as the positions where it holds, one vector for each of its axes."""
    made = []
    for place in places:
        if not place.is_mask:
            made.append(place)
            continue
        positions = op.NonZero(op.cast(with_axis(op, place.index), torch.bool))
        rows = [op.Gather(positions, op.constant(i), axis=0) for i in range(place.axes)]
        made += [Place(place.axis + i, 1, row) for i, row in enumerate(rows)]
    return made


def are_neighbours(places: Sequence[Place]) -> bool:
    """Are the axes consecutive? Then the result has the indices' axes in their place, else in front."""
    return places[-1].axis - places[0].axis == len(places) - 1


def _own_axes(shapes: Sequence[Sequence[Dim | None]]) -> list[range] | None:
    """The axes of the broadcast shape that each index has for itself, in order; None where two share one."""
    rank, blocks, end = max(map(len, shapes)), [], 0
    for shape in shapes:
        own = [rank - len(shape) + axis for axis, size in enumerate(shape) if size != 1]
        if own and own[0] < end:
            return None
        blocks.append(range(end, own[-1] + 1 if own else end))
        end = blocks[-1].stop
    blocks[-1] = range(blocks[-1].start, rank)
    return blocks


def _one_by_one(op: OpBuilder, x: ir.Value, places: Sequence[Place], blocks: Sequence[range]) -> ir.Value:
    """One Gather for each index, the last first, so that the axes before it keep their places."""
    rank = max(rank_of(p.index) for p in places)
    for place, block in reversed([*zip(places, blocks, strict=True)]):
        x = op.Gather(x, _on_axes(op, place.index, block, rank), axis=place.axis)
    return x


def _on_axes(op: OpBuilder, index: ir.Value, block: range, rank: int) -> ir.Value:
    """An index with these of the broadcast axes only; in the others its size is 1."""
    first = rank - rank_of(index)
    dropped = [axis for axis in range(rank_of(index)) if first + axis not in block]
    added = range(max(min(first, block.stop) - block.start, 0))
    index = op.Squeeze(index, op.ints(dropped)) if dropped else index
    return op.Unsqueeze(index, op.ints(added)) if added else index


def _merged(op: OpBuilder, x: ir.Value, places: Sequence[Place]) -> ir.Value:
    """One Gather on the axes merged into one; the row i, column j is place i*columns + j of them.

    A negative i is still right there; a negative j is not and is brought into 0 … columns - 1.
    """
    start = places[0].axis
    flat = op.cast(places[0].index, torch.int64)
    for place in places[1:]:
        size = op.vector([op.size(x, place.axis)])
        inner = op.Mod(op.cast(place.index, torch.int64), size)
        flat = op.Add(op.Mul(flat, size), inner)
    return op.Gather(merge(op, x, start, start + len(places) - 1), flat, axis=start)


def to_front(axes: Sequence[int], rank: int) -> list[int]:
    """The permutation that brings these axes to the front."""
    return [*axes, *(axis for axis in range(rank) if axis not in axes)]


def stacked(op: OpBuilder, indices: Sequence[ir.Value]) -> ir.Value:
    """K indices, broadcast to (*S), as (*S, k): what GatherND and ScatterND take."""
    columns = [
        op.Unsqueeze(broadcast_like(op, op.cast(i, torch.int64), indices), op.ints([-1])) for i in indices
    ]
    return columns[0] if len(columns) == 1 else op.Concat(*columns, axis=-1)
