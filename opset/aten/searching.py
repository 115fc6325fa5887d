"""Operators whose results are positions or counts: nonzero, one_hot, searchsorted, isin, unique, bincount."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, dtype_of, rank_of, shape_of
from fx2onnx.opset.aten.axes import Size, add, axis_of, slice_axis
from fx2onnx.opset.aten.indexing import compressed, with_axis
from fx2onnx.opset.aten.movement import reshaped_like
from fx2onnx.opset.aten.operands import Operand, common_dtype, emit, operand
from fx2onnx.opset.aten.scatter import filled, scatter_elements
from fx2onnx.opset.aten.sorting import sorted_along
from fx2onnx.rules import lowers
from fx2onnx.types import DTYPES, TensorType

aten = torch.ops.aten

# ONNX Runtime 1.32, CPU: the dtypes with a kernel of NonZero; others are asked whether they are zero.
_NONZERO = frozenset({torch.bool, torch.float32, torch.float16, torch.int32, torch.int64, torch.uint8})


# -- nonzero -----------------------------------------------------------------------------------------


@lowers(aten.nonzero.default, aten.argwhere.default)
def nonzero(op: OpBuilder, self: Value) -> ir.Value:
    """(*S) -> (k, rank): where the elements are not zero, in row-major order."""
    places = op.Transpose(nonzero_rows(op, self), perm=[1, 0])
    return places if rank_of(self) else slice_axis(op, places, 1, 0, 0)


@lowers(aten.nonzero_numpy.default, aten.where.default)
def nonzero_numpy(op: OpBuilder, self: Value) -> list[ir.Value]:
    """(*S) -> for each axis (k,): where the elements are not zero."""
    rows = nonzero_rows(op, self)
    return [op.Gather(rows, op.constant(axis), axis=0) for axis in range(len(op.results))]


@lowers(aten.nonzero_static.default)
def nonzero_static(op: OpBuilder, self: Value, *, size: Size, fill_value: int = -1) -> ir.Value:
    """(*S) -> (size, rank): as many places as asked for, the missing ones filled."""
    rank = rank_of(self)
    places = op.Transpose(nonzero_rows(op, self), perm=[1, 0])
    filling = op.Expand(op.constant(fill_value), op.vector([size, max(rank, 1)]))
    made = slice_axis(op, op.Concat(places, filling, axis=0), 0, 0, size)
    return made if rank else slice_axis(op, made, 1, 0, 0)


def nonzero_rows(op: OpBuilder, x: ir.Value) -> ir.Value:
    """(*S) -> (rank, k): one row of positions for each axis."""
    return op.NonZero(with_axis(op, x if dtype_of(x) in _NONZERO else op.cast(x, torch.bool)))


# -- counting ----------------------------------------------------------------------------------------


@lowers(aten.one_hot.default)
def one_hot(op: OpBuilder, self: Value, num_classes: Size = -1) -> ir.Value:
    """(*S) -> (*S, num_classes) of 0 and 1; -1 stands for the largest class and one more."""
    if isinstance(num_classes, int) and num_classes == -1:
        depth = op.Add(op.ReduceMax(self, keepdims=0), op.constant(1))
    else:
        depth = op.scalar(num_classes)
    made = op.OneHot(with_axis(op, self), depth, op.ints([0, 1]), axis=-1)
    return made if rank_of(self) else op.Squeeze(made, op.ints([0]))


@lowers(aten.bincount.default)
def bincount(op: OpBuilder, self: Value, weights: Value | None = None, minlength: Size = 0) -> ir.Value:
    """(n,) -> (max + 1,), at least (minlength,): how often each number is in x, or the sum of its weights."""
    dtype, places = op.result.dtype, op.cast(self, torch.int64)
    last = op.Concat(places, op.vector([add(op, minlength, -1)]), axis=0)  # so that an empty x has a maximum
    length = op.Add(op.ReduceMax(last, keepdims=1), op.ints([1]))
    zeros = op.ConstantOfShape(length, value=ir.tensor([0], dtype=DTYPES[dtype]))
    each = filled(op, 1, places) if weights is None else op.cast(weights, dtype)
    return scatter_elements(op, zeros, places, each, 0, "add")


@lowers(aten.searchsorted.Tensor)
def searchsorted(
    op: OpBuilder,
    sorted_sequence: Value,
    self: Value,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Value | None = None,
) -> ir.Value:
    """(n,), (*S) -> (*S), or (*B, n), (*B, k) -> (*B, k): before which place each value keeps the order."""
    sequence: ir.Value = sorted_sequence
    if sorter is not None:
        sequence = op.GatherElements(sequence, sorter, axis=-1)
    if rank_of(sequence) > 1:
        sequence = op.Unsqueeze(sequence, op.ints([-2]))
    values = op.Unsqueeze(self, op.ints([-1]))
    return _count_before(op, sequence, values, right=right or side == "right")


@lowers(aten.searchsorted.Scalar)
def searchsorted_number(
    op: OpBuilder,
    sorted_sequence: Value,
    self: float | Value,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Value | None = None,
) -> ir.Value:
    """(n,) -> (): before which place a number keeps the order."""
    sequence: ir.Value = sorted_sequence
    if sorter is not None:
        sequence = op.GatherElements(sequence, sorter, axis=-1)
    return _count_before(op, sequence, self, right=right or side == "right")


@lowers(aten.bucketize.Tensor)
def bucketize(
    op: OpBuilder,
    self: Value,
    boundaries: Value,
    *,
    out_int32: bool = False,
    right: bool = False,
) -> ir.Value:
    """(*S), (n,) -> (*S): how many boundaries are below each value; with `right`, or equal to it."""
    return _count_before(op, boundaries, op.Unsqueeze(self, op.ints([-1])), right=right)


@lowers(aten.bucketize.Scalar)
def bucketize_number(
    op: OpBuilder,
    self: float | Value,
    boundaries: Value,
    *,
    out_int32: bool = False,
    right: bool = False,
) -> ir.Value:
    """(n,) -> (): how many boundaries are below a number; with `right`, or equal to it."""
    return _count_before(op, boundaries, self, right=right)


def _count_before(op: OpBuilder, sequence: ir.Value, values: Operand, *, right: bool) -> ir.Value:
    """How many of the last axis of a sequence are below each value (or equal to it); all are below NaN."""
    dtype = common_dtype(sequence, values)
    below = emit(
        op, "Greater" if right else "GreaterOrEqual", operand(op, sequence, dtype), operand(op, values, dtype)
    )
    return op.ReduceSum(op.cast(op.Not(below), op.result.dtype), op.ints([-1]), keepdims=0)


@lowers(aten.isin.Tensor_Tensor)
def isin(
    op: OpBuilder,
    elements: Value,
    test_elements: Value,
    *,
    assume_unique: bool = False,
    invert: bool = False,
) -> ir.Value:
    """(*S), (*T) -> (*S): is each element among the others?"""
    return _is_among(op, op.Unsqueeze(elements, op.ints([-1])), test_elements, invert=invert)


@lowers(aten.isin.Scalar_Tensor)
def isin_number(
    op: OpBuilder,
    element: float | Value,
    test_elements: Value,
    *,
    assume_unique: bool = False,
    invert: bool = False,
) -> ir.Value:
    """(*T) -> (): is a number among the elements?"""
    return _is_among(op, element, test_elements, invert=invert)


@lowers(aten.isin.Tensor_Scalar)
def equals_number(
    op: OpBuilder,
    elements: Value,
    test_element: float | Value,
    *,
    assume_unique: bool = False,
    invert: bool = False,
) -> ir.Value:
    """(*S) -> (*S): is each element this number?"""
    dtype = common_dtype(elements, test_element)
    equal = emit(op, "Equal", operand(op, elements, dtype), operand(op, test_element, dtype))
    return op.Not(equal) if invert else equal


def _is_among(op: OpBuilder, elements: Operand, tests: ir.Value, *, invert: bool) -> ir.Value:
    """Is each element, which has a last axis of 1, equal to one of the tests?"""
    dtype = common_dtype(elements, tests)
    flat = op.Reshape(operand(op, tests, dtype), op.ints([-1]))
    equal = emit(op, "Equal", operand(op, elements, dtype), flat)
    found = op.cast(op.ReduceSum(op.cast(equal, torch.int32), op.ints([-1]), keepdims=0), torch.bool)
    return op.Not(found) if invert else found


# -- unique ------------------------------------------------------------------------------------------


@lowers(aten._unique2.default)
def unique(
    op: OpBuilder,
    self: Value,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """(*S) -> (k,) the distinct elements, (*S) which of them each is, (k,) how often each is there.

    Integers by ONNX Unique. Floats by sorting: ONNX Runtime's Unique takes NaN for equal to its neighbour,
    PyTorch for distinct from all.
    """
    flat = self if rank_of(self) == 1 else op.Reshape(self, op.ints([-1]))
    by_sorting = dtype_of(self).is_floating_point
    made = _unique_by_sorting(op, flat) if by_sorting else _unique_along(op, flat, None)
    return _as_asked(op, made, self)


@lowers(aten._unique.default)
def unique_without_counts(
    op: OpBuilder,
    self: Value,
    sorted: bool = True,
    return_inverse: bool = False,
) -> tuple[ir.Value, ir.Value]:
    """(*S) -> (k,) the distinct elements, (*S) which of them each is."""
    values, inverse, _ = unique.function(op, self, sorted, return_inverse)
    return values, inverse


@lowers(aten.unique_dim.default)
def unique_dim(
    op: OpBuilder,
    self: Value,
    dim: int,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """(…, n, …) -> (…, k, …) the distinct slices in order, (n,) which of them each is, (k,) how often."""
    made = _unique_along(op, self, axis_of(dim, rank_of(self)))
    return _as_asked(op, made, None)


def _unique_along(op: OpBuilder, x: ir.Value, axis: int | None) -> tuple[ir.Value, ir.Value, ir.Value]:
    """ONNX Unique: elements or slices, which each is, how often."""
    # ONNX Runtime 1.32 has Unique for float32, float64, int8 and int64; these hold the values of the others.
    dtype = dtype_of(x)
    native = (torch.float32, torch.float64, torch.int8, torch.int64)
    wide = dtype if dtype in native else torch.float32 if dtype.is_floating_point else torch.int64
    keywords = {} if axis is None else {"axis": axis}
    values, _, inverse, counts = op.Unique(op.cast(x, wide), sorted=1, _outputs=4, **keywords)
    return op.cast(values, dtype), inverse, counts


def _unique_by_sorting(op: OpBuilder, x: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """The runs of equal elements of a sorted vector."""
    ordered, places = sorted_along(op, x, 0, descending=False)
    values, run, counts = _runs(op, ordered, 0)
    return values, op.ScatterElements(places, places, run, axis=0), counts


@lowers(aten.unique_consecutive.default)
def unique_consecutive(
    op: OpBuilder,
    self: Value,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """(*S) -> (k,) the first of each run of equal elements, (*S) the run of each, (k,) how long it is.

    With `dim`, of slices along this axis: (…, k, …), (n,), (k,).
    """
    if dim is not None and rank_of(self) > 0:
        made = _runs(op, self, axis_of(dim, rank_of(self)))
        return _as_asked(op, made, None)
    flat = self if rank_of(self) == 1 else op.Reshape(self, op.ints([-1]))
    return _as_asked(op, _runs(op, flat, 0), self)


def _runs(op: OpBuilder, x: ir.Value, axis: int) -> tuple[ir.Value, ir.Value, ir.Value]:
    """The first of each run of equal slices along an axis, the run of each slice, the length of each run."""
    size = op.vector([op.size(x, axis)])
    differs = op.Not(emit(op, "Equal", slice_axis(op, x, axis, 1), slice_axis(op, x, axis, 0, -1)))
    if others := [a for a in range(rank_of(x)) if a != axis]:
        differs = emit(op, "ReduceMax", differs, op.ints(others), keepdims=0)
    starts = op.Concat(op.constant([True], torch.bool), differs, axis=0)
    if not isinstance(shape_of(x)[axis], int) or shape_of(x)[axis] == 0:
        starts = op.Slice(starts, op.ints([0]), size)  # no slice, no run
    run = op.Sub(op.CumSum(op.cast(starts, torch.int64), op.constant(0)), op.ints([1]))
    first = op.Squeeze(op.NonZero(starts), op.ints([0]))
    ends = op.Concat(slice_axis(op, first, 0, 1), size, axis=0)
    ends = op.Slice(ends, op.ints([0]), op.Shape(first))
    return compressed(op, x, starts, axis), run, op.Sub(ends, first)


def _as_asked(
    op: OpBuilder, made: Sequence[ir.Value], like: ir.Value | None
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """The results in PyTorch's form: the second in x's shape, empty vectors for what was not asked for."""
    values, inverse, counts = made
    if like is not None and rank_of(like) != 1:
        inverse = reshaped_like(op, inverse, like)
    asked = [not (isinstance(r, TensorType) and r.shape == (0,)) for r in (*op.results, None)]
    return values, inverse if asked[1] else op.ints([]), counts if asked[2] else op.ints([])
