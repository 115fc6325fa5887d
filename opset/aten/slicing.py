"""Operators that take parts of a tensor along an axis, and those that write parts back."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, rank_of, shape_of
from fx2onnx.dims import Dim
from fx2onnx.opset.aten.axes import INT64_MAX, Size, add, axis_of, is_static, mul, slice_axis, sub
from fx2onnx.opset.aten.movement import transposed
from fx2onnx.rules import lowers
from fx2onnx.types import TensorType

aten = torch.ops.aten


# -- one place or a range ----------------------------------------------------------------------------


@lowers(aten.select.int, aten.select_copy.int)
def select(op: OpBuilder, self: Value, dim: int, index: Size) -> ir.Value:
    """(…, n, …) -> (…, …): what is at `index`, counted from the end where negative, as ONNX Gather does."""
    return op.Gather(self, op.scalar(index), axis=axis_of(dim, rank_of(self)))


@lowers(aten.slice.Tensor, aten.slice_copy.Tensor)
def slice_(
    op: OpBuilder,
    self: Value,
    dim: int = 0,
    start: Size | None = None,
    end: Size | None = None,
    step: Size = 1,
) -> ir.Value:
    """(…, n, …) -> (…, m, …): x[start:end:step]; ONNX Slice clamps as Python does."""
    axis = axis_of(dim, rank_of(self))
    if step == 1 and shape_of(self)[axis] == op.result.shape[axis]:
        return self
    return slice_axis(op, self, axis, 0 if start is None else start, INT64_MAX if end is None else end, step)


@lowers(aten.narrow.default, aten.narrow_copy.default)
def narrow(op: OpBuilder, self: Value, dim: int, start: Size, length: Size) -> ir.Value:
    """(…, n, …) -> (…, length, …): x[start : start + length]."""
    axis = axis_of(dim, rank_of(self))
    if shape_of(self)[axis] == op.result.shape[axis]:
        return self
    if isinstance(start, int) and start < 0:
        start = add(op, op.size(self, axis), start)
    return slice_axis(op, self, axis, start, add(op, start, length))


# -- splitting ---------------------------------------------------------------------------------------


@lowers(aten.split.Tensor, aten.split_copy.Tensor, aten.unsafe_split.Tensor)
def split(op: OpBuilder, self: Value, split_size: Size, dim: int = 0) -> list[ir.Value]:
    """(…, n, …) -> parts of `split_size`, the last one shorter."""
    axis, count = axis_of(dim, rank_of(self)), len(op.results)
    rest = sub(op, op.size(self, axis), mul(op, split_size, count - 1))
    return parts(op, self, axis, [*[split_size] * (count - 1), rest])


@lowers(
    aten.split.sizes,
    aten.split_with_sizes.default,
    aten.split_with_sizes_copy.default,
    aten.unsafe_split_with_sizes.default,
)
def split_with_sizes(op: OpBuilder, self: Value, split_sizes: Sequence[Size], dim: int = 0) -> list[ir.Value]:
    """(…, n, …) -> parts of these sizes."""
    return parts(op, self, axis_of(dim, rank_of(self)), split_sizes)


@lowers(aten.chunk.default, aten.unsafe_chunk.default)
def chunk(op: OpBuilder, self: Value, chunks: int, dim: int = 0) -> list[ir.Value]:
    """(…, n, …) -> at most `chunks` parts of ceil(n / chunks), the last one shorter.

    ONNX Split with num_outputs has the same sizes, as long as no part is missing.
    """
    axis, count = axis_of(dim, rank_of(self)), len(op.results)
    known = part_sizes(op, axis)
    if count == chunks > 1 and not is_static(known):
        return list(op.Split(self, axis=axis, num_outputs=chunks, _outputs=chunks))
    size = op.size(self, axis)
    if isinstance(size, int):
        return parts(op, self, axis, known)
    each = op.Div(op.Add(size, op.ints([chunks - 1])), op.ints([chunks]))
    return parts(op, self, axis, [*[each] * (count - 1), sub(op, size, mul(op, each, count - 1))])


@lowers(aten.tensor_split.sections)
def tensor_split(op: OpBuilder, self: Value, sections: int, dim: int = 0) -> list[ir.Value]:
    """(…, n, …) -> `sections` parts whose sizes differ by at most one, the larger ones first."""
    axis = axis_of(dim, rank_of(self))
    size = op.size(self, axis)
    if isinstance(size, int) or sections == 1:
        return parts(op, self, axis, part_sizes(op, axis))
    fill = op.ints(range(sections - 1, -1, -1))
    lengths = op.Div(op.Add(size, fill), op.ints([sections]))
    return list(op.Split(self, lengths, axis=axis, _outputs=sections))


@lowers(aten.tensor_split.indices)
def tensor_split_at(op: OpBuilder, self: Value, indices: Sequence[Size], dim: int = 0) -> list[ir.Value]:
    """(…, n, …) -> x[:i_0], x[i_0:i_1], …, x[i_k:]."""
    axis = axis_of(dim, rank_of(self))
    known = part_sizes(op, axis)
    if is_static(known) and sum(known) == shape_of(self)[axis]:
        return parts(op, self, axis, known)
    bounds = [0, *indices, INT64_MAX]
    return [slice_axis(op, self, axis, a, b) for a, b in itertools.pairwise(bounds)]


def part_sizes(op: OpBuilder, axis: int) -> list[Dim]:
    """The size of each result along an axis."""
    return [r.shape[axis] for r in op.results if isinstance(r, TensorType)]


def parts(op: OpBuilder, x: ir.Value, axis: int, lengths: Sequence[Size]) -> list[ir.Value]:
    """The tensor split into parts of these lengths; the types of the results make them numbers."""
    known = part_sizes(op, axis)
    if len(known) == 1:
        return [x]
    if len(set(known)) == 1:
        return list(op.Split(x, axis=axis, num_outputs=len(known), _outputs=len(known)))
    sizes = [k if isinstance(k, int) else s for k, s in zip(known, lengths, strict=True)]
    return list(op.Split(x, op.vector(sizes), axis=axis, _outputs=len(known)))


@lowers(aten.unbind.int, aten.unbind_copy.int)
def unbind(op: OpBuilder, self: Value, dim: int = 0) -> list[ir.Value]:
    """(…, n, …) -> n tensors (…, …). One Gather each: with Split every part needs a Squeeze too."""
    axis = axis_of(dim, rank_of(self))
    return [op.Gather(self, op.constant(i), axis=axis) for i in range(len(op.results))]


# -- writing parts back ------------------------------------------------------------------------------


@lowers(aten.slice_scatter.default)
def slice_scatter(
    op: OpBuilder,
    self: Value,
    src: Value,
    dim: int = 0,
    start: Size | None = None,
    end: Size | None = None,
    step: Size = 1,
) -> ir.Value:
    """A copy of x with x[start:end:step] = src."""
    axis = axis_of(dim, rank_of(self))
    start, end = 0 if start is None else start, INT64_MAX if end is None else end
    new = op.cast(src, op.result.dtype)
    if step != 1:
        return put_rows(op, self, axis, _positions(op, op.size(self, axis), start, end, step), new)
    size = shape_of(src)[axis]
    if size in (0, shape_of(self)[axis]):
        return self if size == 0 else new
    return _replace(op, self, axis, start, end, new)


def _positions(op: OpBuilder, size: Size, start: Size, end: Size, step: Size) -> ir.Value:
    """0, 1, … size - 1, of which [start:end:step]."""
    if isinstance(size, int) and isinstance(start, int) and isinstance(end, int) and isinstance(step, int):
        return op.ints(range(size)[start:end:step])
    every = op.Range(op.constant(0), op.scalar(size), op.constant(1))
    return slice_axis(op, every, 0, start, end, step)


@lowers(aten.select_scatter.default)
def select_scatter(op: OpBuilder, self: Value, src: Value, dim: int, index: Size) -> ir.Value:
    """A copy of x with x[index] = src along one axis."""
    axis = axis_of(dim, rank_of(self))
    new = op.cast(src, op.result.dtype)
    if shape_of(self)[axis] == 1:
        return op.Unsqueeze(new, op.ints([axis]))
    if axis == 0:
        return op.ScatterND(self, op.vector([index]), new)
    end = INT64_MAX if index == -1 else add(op, index, 1)
    return _replace(op, self, axis, index, end, op.Unsqueeze(new, op.ints([axis])))


def _replace(op: OpBuilder, x: ir.Value, axis: int, start: Size, end: Size, src: ir.Value) -> ir.Value:
    """x[:start], src and x[end:] in one; src is not empty, so that start < end."""
    size = shape_of(x)[axis]
    before = [] if start == 0 else [slice_axis(op, x, axis, 0, start)]
    reaches_end = isinstance(end, int) and end >= (size if isinstance(size, int) else INT64_MAX)
    after = [] if reaches_end else [slice_axis(op, x, axis, end)]
    return op.Concat(*before, src, *after, axis=axis) if before or after else src


def put_rows(op: OpBuilder, x: ir.Value, axis: int, index: ir.Value, src: ir.Value) -> ir.Value:
    """A copy of x with x[index[i]] = src[i] along one axis; `index` is a vector."""
    perm = [axis, *(a for a in range(rank_of(x)) if a != axis)]
    back = [perm.index(a) for a in range(rank_of(x))]
    rows = op.Unsqueeze(index, op.ints([-1]))
    made = op.ScatterND(transposed(op, x, perm), rows, transposed(op, src, perm))
    return transposed(op, made, back)
