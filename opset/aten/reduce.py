"""Reductions: sums, means, extremes, norms, moments.

`dim` is an axis, a list of axes, or None or (in most operators) an empty list for all axes. Axes that are
reduced disappear, or stay with size 1 when `keepdim` is true. Tensors without axes are their own reduction.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, dtype_of, rank_of, shape_of
from fx2onnx.opset.aten.operands import FLOATS, HALVES, emit, f32, operand, u8, where
from fx2onnx.rules import Gap, lowers

aten = torch.ops.aten

Dims = int | Sequence[int] | None

GAPS = (
    Gap((aten.mode.default,), "ours", "ONNX has no operator that counts values along an axis"),
    Gap((aten.nuclear_norm.default, aten.nuclear_norm.dim), "never", "ONNX has no singular values"),
)


# -- axes --------------------------------------------------------------------------------------------


def axes_of(x: ir.Value, dim: Dims) -> list[int]:
    """The axes that `dim` names, in order; all of them for None and an empty list."""
    rank = rank_of(x)
    if dim is None or dim == []:
        return list(range(rank))
    if rank == 0:
        return []
    return sorted(d % rank for d in ([dim] if isinstance(dim, int) else dim))


def reduced(
    op: OpBuilder, op_type: str, x: ir.Value, dim: Dims = None, keepdim: bool = False  # noqa: FBT001, FBT002
) -> ir.Value:
    """`x` reduced along `dim` by an ONNX operator that takes its axes as an input."""
    axes = axes_of(x, dim)
    if not axes:
        return x
    build = functools.partial(emit, op, op_type)
    if dtype_of(x) == torch.bool and op.opset >= 20:  # noqa: PLR2004  bools are in opset 20
        build = getattr(op, op_type)
    if len(axes) == rank_of(x):
        return build(x, keepdims=int(keepdim))
    return build(x, op.ints(axes), keepdims=int(keepdim))


def count(op: OpBuilder, x: ir.Value, dim: Dims) -> int | ir.Value:
    """The number of elements that are reduced to one: a number, or a vector of one int64."""
    sizes = [op.size(x, axis) for axis in axes_of(x, dim)]
    static = math.prod(s for s in sizes if isinstance(s, int))
    free = [s for s in sizes if not isinstance(s, int)]
    if not free or static == 0:
        return static
    if len(free) == 1:
        return free[0] if static == 1 else op.Mul(free[0], op.ints([static]))
    return op.ReduceProd(op.vector(sizes), keepdims=1)


# -- sums and means ----------------------------------------------------------------------------------


@lowers(aten.sum.default)
def sum(op: OpBuilder, self: Value, *, dtype: torch.dtype | None = None) -> ir.Value:  # noqa: A001, ARG001
    """(*) -> (); integers and bools are summed in int64, others in the result's dtype."""
    return reduced(op, "ReduceSum", op.cast(self, op.result.dtype))


@lowers(aten.sum.dim_IntList)
def sum_dim(
    op: OpBuilder,
    self: Value,
    dim: Dims = None,
    keepdim: bool = False,  # noqa: FBT001, FBT002
    *,
    dtype: torch.dtype | None = None,  # noqa: ARG001
) -> ir.Value:
    """The sum along some axes; integers and bools are summed in int64."""
    return reduced(op, "ReduceSum", op.cast(self, op.result.dtype), dim, keepdim)


@lowers(aten.nansum.default)
def nansum(
    op: OpBuilder,
    self: Value,
    dim: Dims = None,
    keepdim: bool = False,  # noqa: FBT001, FBT002
    *,
    dtype: torch.dtype | None = None,  # noqa: ARG001
) -> ir.Value:
    """The sum with every NaN taken as 0."""
    x = op.cast(self, op.result.dtype)
    if dtype_of(self) in FLOATS:
        x = where(op, op.IsNaN(self), operand(op, 0, op.result.dtype), x)
    return reduced(op, "ReduceSum", x, dim, keepdim)


@lowers(aten.mean.default)
def mean(op: OpBuilder, self: Value, *, dtype: torch.dtype | None = None) -> ir.Value:  # noqa: ARG001
    """(*) -> (); the mean of all elements."""
    return _mean(op, self, None, keepdim=False)


@lowers(aten.mean.dim)
def mean_dim(
    op: OpBuilder,
    self: Value,
    dim: Dims,
    keepdim: bool = False,  # noqa: FBT001, FBT002
    *,
    dtype: torch.dtype | None = None,  # noqa: ARG001
) -> ir.Value:
    """The mean along some axes."""
    return _mean(op, self, dim, keepdim=keepdim)


def _mean(op: OpBuilder, x: ir.Value, dim: Dims, *, keepdim: bool) -> ir.Value:
    """The mean; NaN where nothing is averaged (ONNX Runtime 1.32's ReduceMean makes 0 of that)."""
    x = op.cast(x, dtype := op.result.dtype)
    if 0 in [shape_of(x)[axis] for axis in axes_of(x, dim)]:
        zero = reduced(op, "ReduceSum", x, dim, keepdim)
        return emit(op, "Div", zero, operand(op, 0, dtype))
    return reduced(op, "ReduceMean", x, dim, keepdim)


@lowers(aten.nanmean.default)
def nanmean(
    op: OpBuilder,
    self: Value,
    dim: Dims = None,
    keepdim: bool = False,  # noqa: FBT001, FBT002
    *,
    dtype: torch.dtype | None = None,  # noqa: ARG001
) -> ir.Value:
    """The mean of what is not NaN."""
    x = op.cast(self, dtype := op.result.dtype)
    missing = op.IsNaN(x)
    present = op.cast(op.Not(missing), dtype)
    total = reduced(op, "ReduceSum", where(op, missing, operand(op, 0, dtype), x), dim, keepdim)
    return emit(op, "Div", total, reduced(op, "ReduceSum", present, dim, keepdim))


@lowers(aten.prod.default)
def prod(op: OpBuilder, self: Value, *, dtype: torch.dtype | None = None) -> ir.Value:  # noqa: ARG001
    """(*) -> (); integers and bools are multiplied in int64."""
    return reduced(op, "ReduceProd", op.cast(self, op.result.dtype))


@lowers(aten.prod.dim_int)
def prod_dim(
    op: OpBuilder,
    self: Value,
    dim: int,
    keepdim: bool = False,  # noqa: FBT001, FBT002
    *,
    dtype: torch.dtype | None = None,  # noqa: ARG001
) -> ir.Value:
    """The product along an axis; integers and bools are multiplied in int64."""
    return reduced(op, "ReduceProd", op.cast(self, op.result.dtype), dim, keepdim)


@lowers(aten.count_nonzero.default, aten.count_nonzero.dim_IntList)
def count_nonzero(op: OpBuilder, self: Value, dim: Dims = None) -> ir.Value:
    """How many elements are not 0, along some axes. -> int64."""
    return reduced(op, "ReduceSum", op.cast(op.cast(self, torch.bool), torch.int64), dim)


# -- any and all -------------------------------------------------------------------------------------


@lowers(aten.any.default, aten.any.dim)
def any(op: OpBuilder, self: Value, dim: int | None = None, keepdim: bool = False) -> ir.Value:  # noqa: A001, FBT001, FBT002
    """Is an element not 0? False of nothing. -> bool, uint8 for uint8."""
    return _whether(op, "ReduceMax", self, dim, keepdim=keepdim)


@lowers(aten.all.default, aten.all.dim)
def all(op: OpBuilder, self: Value, dim: int | None = None, keepdim: bool = False) -> ir.Value:  # noqa: A001, FBT001, FBT002
    """Is no element 0? True of nothing. -> bool, uint8 for uint8."""
    return _whether(op, "ReduceMin", self, dim, keepdim=keepdim)


@lowers(aten.any.dims)
def any_dims(op: OpBuilder, self: Value, dim: Dims = None, keepdim: bool = False) -> ir.Value:  # noqa: FBT001, FBT002
    """Is an element not 0? An empty list reduces nothing."""
    return _whether(op, "ReduceMax", self, dim, keepdim=keepdim, empty_is_none=True)


@lowers(aten.all.dims)
def all_dims(op: OpBuilder, self: Value, dim: Dims = None, keepdim: bool = False) -> ir.Value:  # noqa: FBT001, FBT002
    """Is no element 0? An empty list reduces nothing."""
    return _whether(op, "ReduceMin", self, dim, keepdim=keepdim, empty_is_none=True)


def _whether(
    op: OpBuilder, op_type: str, x: Value, dim: Dims, *, keepdim: bool, empty_is_none: bool = False
) -> ir.Value:
    truth = op.cast(x, torch.bool)
    if empty_is_none and dim == []:
        return op.cast(truth, op.result.dtype)
    # ONNX Runtime 1.32 refuses to reduce no bools at all; no uint8 make 0 or 255
    if not _never_empty(x, axes_of(x, dim)):
        truth = op.cast(truth, u8)
    return op.cast(op.cast(reduced(op, op_type, truth, dim, keepdim), torch.bool), op.result.dtype)


def _never_empty(x: ir.Value, axes: Sequence[int]) -> bool:
    """Have these axes known sizes above 0?"""
    shape = shape_of(x)
    return not [a for a in axes if not (isinstance(size := shape[a], int) and size > 0)]


# -- extremes ----------------------------------------------------------------------------------------


@lowers(aten.amax.default, aten.max.default)
def amax(op: OpBuilder, self: Value, dim: Dims = None, keepdim: bool = False) -> ir.Value:  # noqa: FBT001, FBT002
    """The largest element along some axes. ONNX says nothing of NaN."""
    return reduced(op, "ReduceMax", self, dim, keepdim)


@lowers(aten.amin.default, aten.min.default)
def amin(op: OpBuilder, self: Value, dim: Dims = None, keepdim: bool = False) -> ir.Value:  # noqa: FBT001, FBT002
    """The smallest element along some axes. ONNX says nothing of NaN."""
    return reduced(op, "ReduceMin", self, dim, keepdim)


@lowers(aten.aminmax.default)
def aminmax(op: OpBuilder, self: Value, *, dim: int | None = None, keepdim: bool = False) -> tuple[Any, Any]:
    """The smallest and the largest element along an axis."""
    return reduced(op, "ReduceMin", self, dim, keepdim), reduced(op, "ReduceMax", self, dim, keepdim)


@lowers(aten.argmax.default)
def argmax(op: OpBuilder, self: Value, dim: int | None = None, keepdim: bool = False) -> ir.Value:  # noqa: FBT001, FBT002
    """The position of the largest element, the first one of equals; counted through all axes without dim."""
    return position(op, "ArgMax", self, dim, keepdim=keepdim)


@lowers(aten.argmin.default)
def argmin(op: OpBuilder, self: Value, dim: int | None = None, keepdim: bool = False) -> ir.Value:  # noqa: FBT001, FBT002
    """The position of the smallest element, the first one of equals; counted through all axes without dim."""
    return position(op, "ArgMin", self, dim, keepdim=keepdim)


@lowers(aten.max.dim)
def max_dim(op: OpBuilder, self: Value, dim: int, keepdim: bool = False) -> tuple[Any, Any]:  # noqa: FBT001, FBT002
    """The largest element along an axis, and its position."""
    return reduced(op, "ReduceMax", self, dim, keepdim), position(op, "ArgMax", self, dim, keepdim=keepdim)


@lowers(aten.min.dim)
def min_dim(op: OpBuilder, self: Value, dim: int, keepdim: bool = False) -> tuple[Any, Any]:  # noqa: FBT001, FBT002
    """The smallest element along an axis, and its position."""
    return reduced(op, "ReduceMin", self, dim, keepdim), position(op, "ArgMin", self, dim, keepdim=keepdim)


def position(op: OpBuilder, op_type: str, x: Value, dim: int | None, *, keepdim: bool) -> ir.Value:
    """ArgMax or ArgMin along an axis, or through all elements in order."""
    rank = rank_of(x)
    if dim is not None and rank > 0:
        return emit(op, op_type, x, axis=dim, keepdims=int(keepdim))
    flat = x if rank == 1 else op.Reshape(x, op.ints([-1]))
    if keepdim and rank == 1:
        return emit(op, op_type, flat, axis=0, keepdims=1)
    found = emit(op, op_type, flat, axis=0, keepdims=0)
    return op.Reshape(found, op.ints([1] * rank)) if keepdim and rank else found


@lowers(aten.median.default)
def median(op: OpBuilder, self: Value) -> ir.Value:
    """(*) -> (): the middle element in order, the lower one of two; NaN where there is one."""
    flat = op.Reshape(self, op.ints([-1]))
    middle, _ = _middle(op, flat, 0)
    return op.Squeeze(middle, op.ints([0]))


@lowers(aten.median.dim)
def median_dim(op: OpBuilder, self: Value, dim: int, keepdim: bool = False) -> tuple[Any, Any]:  # noqa: FBT001, FBT002
    """The middle element along an axis, the lower one of two, and its position."""
    if rank_of(self) == 0:
        return self, op.constant(0)
    values, indices = _middle(op, self, dim % rank_of(self))
    if keepdim:
        return values, indices
    axes = op.ints([dim])
    return op.Squeeze(values, axes), op.Squeeze(indices, axes)


def _middle(op: OpBuilder, x: ir.Value, axis: int) -> tuple[ir.Value, ir.Value]:
    """The lower middle along an axis (kept with size 1), and its position; the first NaN where there is one."""
    size = op.size(x, axis) if not isinstance(shape_of(x)[axis], int) else shape_of(x)[axis]
    if isinstance(size, int):
        half: ir.Value = op.ints([(size + 1) // 2])
    else:
        half = op.Div(op.Add(size, op.ints([1])), op.ints([2]))
    lowest, positions = op.TopK(x, half, axis=axis, largest=0, _outputs=2)
    last = op.ints([-1])
    value, index = op.Gather(lowest, last, axis=axis), op.Gather(positions, last, axis=axis)
    if dtype_of(x) not in FLOATS:
        return value, index
    # TopK leaves the order of NaN open
    nan = op.cast(op.IsNaN(x), u8)
    any_nan = op.cast(op.ReduceMax(nan, op.ints([axis]), keepdims=1), torch.bool)
    value = where(op, any_nan, operand(op, math.nan, dtype_of(x)), value)
    return value, op.Where(any_nan, op.ArgMax(nan, axis=axis, keepdims=1), index)


# -- moments -----------------------------------------------------------------------------------------


@lowers(aten.var.correction)
def var(
    op: OpBuilder, self: Value, dim: Dims = None, *, correction: float | None = None, keepdim: bool = False
) -> ir.Value:
    """The mean square of the distance from the mean, with n - correction (1 where omitted) for n."""
    return _moments(op, self, dim, correction, keepdim=keepdim)[0]


@lowers(aten.std.correction)
def std(
    op: OpBuilder, self: Value, dim: Dims = None, *, correction: float | None = None, keepdim: bool = False
) -> ir.Value:
    """The root of the variance."""
    return _moments(op, self, dim, correction, keepdim=keepdim, root=True)[0]


@lowers(aten.var_mean.correction)
def var_mean(
    op: OpBuilder, self: Value, dim: Dims = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Any, Any]:
    """The variance, and the mean."""
    return _moments(op, self, dim, correction, keepdim=keepdim)


@lowers(aten.std_mean.correction)
def std_mean(
    op: OpBuilder, self: Value, dim: Dims = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Any, Any]:
    """The root of the variance, and the mean."""
    return _moments(op, self, dim, correction, keepdim=keepdim, root=True)


@lowers(aten.var.default, aten.var.dim)
def var_unbiased(op: OpBuilder, self: Value, *options: Any) -> ir.Value:
    """`var` with a bool for the correction."""
    return _moments(op, self, *_unbiased(options))[0]


@lowers(aten.std.default, aten.std.dim)
def std_unbiased(op: OpBuilder, self: Value, *options: Any) -> ir.Value:
    """`std` with a bool for the correction."""
    return _moments(op, self, *_unbiased(options), root=True)[0]


@lowers(aten.var_mean.default, aten.var_mean.dim)
def var_mean_unbiased(op: OpBuilder, self: Value, *options: Any) -> tuple[Any, Any]:
    """`var_mean` with a bool for the correction."""
    return _moments(op, self, *_unbiased(options))


@lowers(aten.std_mean.default, aten.std_mean.dim)
def std_mean_unbiased(op: OpBuilder, self: Value, *options: Any) -> tuple[Any, Any]:
    """`std_mean` with a bool for the correction."""
    return _moments(op, self, *_unbiased(options), root=True)


def _unbiased(options: Sequence[Any]) -> tuple[Dims, float, bool]:
    """(unbiased) or (dim, unbiased, keepdim) as dim, correction, keepdim."""
    dim, unbiased, keepdim = options if len(options) == 3 else (None, options[0], False)  # noqa: PLR2004
    return dim, float(unbiased), keepdim


def _moments(
    op: OpBuilder,
    x: ir.Value,
    dim: Dims,
    correction: float | None,
    keepdim: bool = False,  # noqa: FBT001, FBT002
    *,
    root: bool = False,
) -> tuple[ir.Value, ir.Value]:
    """Variance (or its root) and mean along some axes, in float32 for half precision."""
    dtype = dtype_of(x)
    wide = op.cast(x, f32 if dtype in HALVES else dtype)
    center = wide if not axes_of(x, dim) else reduced(op, "ReduceMean", wide, dim, True)  # noqa: FBT003
    distance = op.Sub(wide, center)
    correction = 1 if correction is None else correction
    if correction == 0:
        spread = reduced(op, "ReduceMean", op.Mul(distance, distance), dim, keepdim)
    else:
        squares = reduced(op, "ReduceSumSquare", distance, dim, keepdim)
        if not axes_of(x, dim):
            squares = op.Mul(distance, distance)
        spread = op.Div(squares, _freedom(op, x, dim, correction, dtype_of(wide)))
    if root:
        spread = op.Sqrt(spread)
    average = center
    if not keepdim and axes_of(x, dim):
        average = op.Squeeze(center, op.ints(axes_of(x, dim)))
    return op.cast(spread, dtype), op.cast(average, dtype)


def _freedom(op: OpBuilder, x: ir.Value, dim: Dims, correction: float, dtype: torch.dtype) -> ir.Value:
    """max(n - correction, 0) as a tensor without axes."""
    n = count(op, x, dim)
    if isinstance(n, int):
        return op.constant(max(n - correction, 0), dtype)
    number = op.Sub(op.cast(op.scalar(n), dtype), op.constant(correction, dtype))
    return op.Max(number, op.constant(0, dtype))


# -- norms and logarithms ----------------------------------------------------------------------------


@lowers(aten.linalg_vector_norm.default)
def vector_norm(
    op: OpBuilder,
    self: Value,
    ord: float = 2,  # noqa: A002
    dim: Dims = None,
    keepdim: bool = False,  # noqa: FBT001, FBT002
    *,
    dtype: torch.dtype | None = None,  # noqa: ARG001
) -> ir.Value:
    """The sum of |x|**ord along some axes to the power of 1/ord; the extremes for infinite ord."""
    return _norm(op, self, ord, dim, keepdim=keepdim)


@lowers(aten.norm.Scalar, aten.norm.ScalarOpt_dtype)
def norm_all(op: OpBuilder, self: Value, p: float | None = 2, *, dtype: torch.dtype | None = None) -> ir.Value:  # noqa: ARG001
    """(*) -> (): the p-norm of all elements."""
    return _norm(op, self, 2 if p is None else p, None, keepdim=False)


@lowers(aten.norm.ScalarOpt_dim, aten.norm.ScalarOpt_dim_dtype)
def norm_dim(
    op: OpBuilder,
    self: Value,
    p: float | None,
    dim: Dims,
    keepdim: bool = False,  # noqa: FBT001, FBT002
    *,
    dtype: torch.dtype | None = None,  # noqa: ARG001
) -> ir.Value:
    """The p-norm along some axes."""
    return _norm(op, self, 2 if p is None else p, dim, keepdim=keepdim)


def _norm(op: OpBuilder, x: ir.Value, p: float, dim: Dims, *, keepdim: bool) -> ir.Value:
    dtype = op.result.dtype
    wide = op.cast(x, f32 if dtype in HALVES else dtype)
    return op.cast(_norm_of(op, wide, p, dim, keepdim=keepdim), dtype)


def _norm_of(op: OpBuilder, x: ir.Value, p: float, dim: Dims, *, keepdim: bool) -> ir.Value:
    dtype = dtype_of(x)
    if not axes_of(x, dim) and p != 0:
        return op.Abs(x)
    if p in (1, 2):
        return reduced(op, f"ReduceL{int(p)}", x, dim, keepdim)
    if math.isinf(p):
        return reduced(op, "ReduceMax" if p > 0 else "ReduceMin", op.Abs(x), dim, keepdim)
    if p == 0:
        nonzero = op.cast(op.Not(op.Equal(x, operand(op, 0, dtype))), dtype)
        return reduced(op, "ReduceSum", nonzero, dim, keepdim)
    powers = op.Pow(op.Abs(x), operand(op, p, dtype))
    return op.Pow(reduced(op, "ReduceSum", powers, dim, keepdim), operand(op, 1 / p, dtype))


@lowers(aten.logsumexp.default, aten.special_logsumexp.default)
def logsumexp(op: OpBuilder, self: Value, dim: Dims, keepdim: bool = False) -> ir.Value:  # noqa: FBT001, FBT002
    """log(sum(exp(x))) along some axes, with the largest element taken out."""
    return reduced(op, "ReduceLogSumExp", op.cast(self, op.result.dtype), dim, keepdim)


