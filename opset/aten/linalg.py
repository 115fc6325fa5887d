"""Matrix products and what is made of them."""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Sequence

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, dtype_of, rank_of, shape_of
from fx2onnx.opset.aten.operands import FLOATS, Operand, bf16, computed, emit, f32, f64, operand
from fx2onnx.rules import Gap, lowers

aten = torch.ops.aten

GAPS = (
    Gap(
        (
            aten.inverse.default,
            aten.linalg_inv.default,
            aten.linalg_inv_ex.default,
            aten.linalg_solve.default,
            aten.linalg_solve_ex.default,
            aten.linalg_cholesky.default,
            aten.linalg_cholesky_ex.default,
            aten.linalg_qr.default,
            aten.linalg_svd.default,
            aten._linalg_svd.default,
            aten.linalg_eigh.default,
            aten._linalg_eigh.default,
            aten.linalg_eig.default,
            aten.linalg_pinv.default,
            aten.linalg_lstsq.default,
            aten.linalg_lu.default,
            aten.linalg_matrix_exp.default,
            aten.linalg_slogdet.default,
            aten._linalg_slogdet.default,
            aten.slogdet.default,
            aten.logdet.default,
        ),
        "never",
        "ONNX has no matrix decompositions",
    ),
)


# -- products ----------------------------------------------------------------------------------------


@lowers(
    aten.mm.default,
    aten.bmm.default,
    aten.matmul.default,
    aten.linalg_matmul.default,
    aten.mv.default,
    aten.dot.default,
    aten.vdot.default,
)
def matmul(op: OpBuilder, self: Value, other: Value) -> ir.Value:
    """(…, n, k), (…, k, m) -> (…, n, m); vectors as in ONNX MatMul, which follows numpy.matmul."""
    return emit(op, "MatMul", self, other)


@lowers(aten.mm.dtype, aten.bmm.dtype)
def matmul_in(op: OpBuilder, self: Value, other: Value, out_dtype: torch.dtype) -> ir.Value:
    """A product of half-precision matrices in float32."""
    return op.MatMul(op.cast(self, out_dtype), op.cast(other, out_dtype))


@lowers(aten.outer.default, aten.ger.default)
def outer(op: OpBuilder, self: Value, vec2: Value) -> ir.Value:
    """(n), (m) -> (n, m)."""
    dtype = op.result.dtype
    column = op.Unsqueeze(operand(op, self, dtype), op.ints([1]))
    return _times(op, column, operand(op, vec2, dtype))


def _times(op: OpBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
    return op.And(a, b) if dtype_of(a) == torch.bool else emit(op, "Mul", a, b)


@lowers(aten.linear.default)
def linear(op: OpBuilder, input: Value, weight: Value, bias: Value | None = None) -> ir.Value:
    """(*, in), (out, in), (out) -> (*, out): one Gemm for matrices, MatMul and Add for the rest."""
    dtype = dtype_of(input)
    if rank_of(weight) == 1:  # (in) -> a number for each row
        return _plus(op, emit(op, "MatMul", input, weight), bias)
    if rank_of(input) == 1:
        return _plus(op, emit(op, "MatMul", weight, input), bias)
    if rank_of(input) == 2 and dtype in FLOATS and (bias is None or rank_of(bias) <= 2):
        return gemm(op, input, weight, bias, transB=1)
    transposed = op.Transpose(weight, perm=[1, 0])
    return _plus(op, emit(op, "MatMul", input, transposed), bias)


def _plus(op: OpBuilder, product: ir.Value, bias: ir.Value | None) -> ir.Value:
    return product if bias is None else emit(op, "Add", product, bias)


def gemm(op: OpBuilder, a: ir.Value, b: ir.Value, c: ir.Value | None, **attributes: float) -> ir.Value:
    """ONNX Gemm of matrices: alpha * a @ b + beta * c."""
    operands = (a, b) if c is None else (a, b, c)
    return emit(op, "Gemm", *operands, **attributes)


@lowers(aten.addmm.default)
def addmm(
    op: OpBuilder, self: Value, mat1: Value, mat2: Value, *, beta: Operand = 1, alpha: Operand = 1
) -> ir.Value:
    """`beta * self + alpha * mat1 @ mat2`; with beta 0, self is not read, so that its NaN do not count."""
    if isinstance(beta, int | float) and isinstance(alpha, int | float) and dtype_of(mat1) in FLOATS:
        factors = {"alpha": float(alpha), "beta": float(beta) if beta else 1.0}
        attributes = {name: factor for name, factor in factors.items() if factor != 1}
        return gemm(op, mat1, mat2, self if beta else None, **attributes)
    return _added(op, self, emit(op, "MatMul", mat1, mat2), beta, alpha)


@lowers(aten.baddbmm.default, aten.addmv.default)
def baddbmm(
    op: OpBuilder, self: Value, a: Value, b: Value, *, beta: Operand = 1, alpha: Operand = 1
) -> ir.Value:
    """`beta * self + alpha * a @ b`."""
    return _added(op, self, emit(op, "MatMul", a, b), beta, alpha)


@lowers(aten.addbmm.default)
def addbmm(
    op: OpBuilder, self: Value, batch1: Value, batch2: Value, *, beta: Operand = 1, alpha: Operand = 1
) -> ir.Value:
    """`beta * self + alpha * sum(batch1 @ batch2)`, summed over the batch."""
    products = emit(op, "MatMul", batch1, batch2)
    return _added(op, self, emit(op, "ReduceSum", products, op.ints([0]), keepdims=0), beta, alpha)


@lowers(aten.addr.default)
def addr(
    op: OpBuilder, self: Value, vec1: Value, vec2: Value, *, beta: Operand = 1, alpha: Operand = 1
) -> ir.Value:
    """`beta * self + alpha * outer(vec1, vec2)`."""
    dtype = op.result.dtype
    column = op.Unsqueeze(operand(op, vec1, dtype), op.ints([1]))
    product = _times(op, column, operand(op, vec2, dtype))
    return _added(op, self, product, beta, alpha)


def _added(op: OpBuilder, self: Value, product: ir.Value, beta: Operand, alpha: Operand) -> ir.Value:
    """`beta * self + alpha * product`, without self where beta is 0."""
    dtype = op.result.dtype
    if dtype == torch.bool:
        return product if not beta else op.Or(self, product)

    def scaled(x: ir.Value, factor: Operand) -> ir.Value:
        if not isinstance(factor, ir.Value) and factor == 1:
            return x
        return op.Mul(x, operand(op, factor, dtype_of(x)))

    def formula(self: ir.Value, product: ir.Value) -> ir.Value:
        return op.Add(scaled(self, beta), scaled(product, alpha))

    if not isinstance(beta, ir.Value) and beta == 0:
        return computed(op, lambda x: scaled(x, alpha), product)
    return computed(op, formula, self, product)


# -- Einstein sums -----------------------------------------------------------------------------------


@lowers(aten.einsum.default)
def einsum(
    op: OpBuilder, equation: str, tensors: Sequence[Value], *, path: Sequence[int] | None = None
) -> ir.Value:
    """Products of tensors summed over the letters that the result lacks; ONNX Einsum, in its own letters."""
    ranks = [rank_of(t) for t in tensors]
    text = canonical_equation(equation, ranks)
    inputs = _without_broadcasts(op, text, tensors)

    def formula(*values: ir.Value) -> ir.Value:
        return op.Einsum(*values, equation=text)

    dtype = op.result.dtype
    # ONNX Runtime 1.32 has Einsum for float32, float64, int32 and int64 only: PyTorch sums half precision in
    # float32, and small integers wrap around
    wide = {bf16: f32, torch.float16: f32}.get(dtype, dtype)
    if not dtype.is_floating_point and dtype != torch.int64:
        wide = torch.int32
    return op.cast(formula(*(op.cast(x, wide) for x in inputs)), dtype)


def canonical_equation(equation: str, ranks: Sequence[int]) -> str:
    """An equation with letters for the ellipsis and with its result written out.

    Args:
        equation: as torch.einsum takes it, e.g. `"b...i, b...j -> b...ij"` or `"ij,jk"`.
        ranks: of the operands.
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    free = [c for c in string.ascii_letters if c not in equation]
    hidden = [
        rank - len(term.replace("...", "")) if "..." in term else 0
        for term, rank in zip(terms, ranks, strict=True)
    ]
    ellipsis = "".join(free[: max(hidden)])
    named = [
        term.replace("...", ellipsis[len(ellipsis) - n :]) for term, n in zip(terms, hidden, strict=True)
    ]
    if arrow:
        return f"{','.join(named)}->{right.replace('...', ellipsis)}"
    letters = "".join(terms).replace(".", "")
    once = sorted(c for c in set(letters) if letters.count(c) == 1)
    return f"{','.join(named)}->{ellipsis}{''.join(once)}"


def _without_broadcasts(op: OpBuilder, equation: str, tensors: Sequence[Value]) -> list[ir.Value]:
    """The operands with axes of size 1 widened to the size of their letter elsewhere, as torch allows."""
    terms = equation.partition("->")[0].split(",")
    sizes: dict[str, tuple[Value, int]] = {}
    for term, x in zip(terms, tensors, strict=True):
        for axis, letter in enumerate(term):
            if shape_of(x)[axis] != 1:
                sizes.setdefault(letter, (x, axis))
    return [_widened(op, term, x, sizes) for term, x in zip(terms, tensors, strict=True)]


def _widened(op: OpBuilder, term: str, x: Value, sizes: dict[str, tuple[Value, int]]) -> ir.Value:
    shape = shape_of(x)
    if not [c for axis, c in enumerate(term) if shape[axis] == 1 and c in sizes]:
        return x
    target = [op.size(*sizes[c]) if c in sizes else 1 for c in term]
    return op.Expand(x, op.vector(target))


# -- distances and other forms -----------------------------------------------------------------------


@lowers(aten._trilinear.default)
def trilinear(
    op: OpBuilder,
    i1: Value,
    i2: Value,
    i3: Value,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> ir.Value:
    """The sum over `sumdim` of the product of three tensors, each with new axes of size 1 at `expand…`."""

    def formula(*factors: ir.Value) -> ir.Value:
        a, b, c = (
            op.Unsqueeze(x, op.ints(list(axes))) if axes else x
            for x, axes in zip(factors, (expand1, expand2, expand3), strict=True)
        )
        product = op.Mul(op.Mul(a, b), c)
        return op.ReduceSum(product, op.ints(list(sumdim)), keepdims=0) if sumdim else product

    return computed(op, formula, i1, i2, i3)


@lowers(aten.bilinear.default)
def bilinear(
    op: OpBuilder, input1: Value, input2: Value, weight: Value, bias: Value | None = None
) -> ir.Value:
    """(*, i), (*, j), (o, i, j), (o) -> (*, o): the sum over i and j of x_i * W_oij * y_j.

    As matrices: y times W_o, (o, *, i), then times x and summed over i.
    """
    batch = string.ascii_uppercase[: rank_of(input1) - 1]
    dtype = dtype_of(input1)
    wide = f32 if dtype != f64 else f64
    made = op.Einsum(
        *(op.cast(x, wide) for x in (input1, weight, input2)), equation=f"{batch}a,oab,{batch}b->{batch}o"
    )
    return op.cast(made if bias is None else op.Add(made, op.cast(bias, wide)), dtype)


@lowers(aten.cross.default, aten.linalg_cross.default)
def cross(op: OpBuilder, self: Value, other: Value, dim: int | None = None) -> ir.Value:
    """(…, 3, …), (…, 3, …) -> (…, 3, …): a_1 b_2 - a_2 b_1 and so on, along `dim`."""
    shape = shape_of(self)
    axis = shape.index(3) if dim is None else dim
    if rank_of(self) == rank_of(other):
        axis %= rank_of(self)
    following, preceding = op.ints([1, 2, 0]), op.ints([2, 0, 1])

    def formula(a: ir.Value, b: ir.Value) -> ir.Value:
        left = op.Mul(op.Gather(a, following, axis=axis), op.Gather(b, preceding, axis=axis))
        right = op.Mul(op.Gather(a, preceding, axis=axis), op.Gather(b, following, axis=axis))
        return op.Sub(left, right)

    return computed(op, formula, self, other)


@lowers(aten.det.default, aten.linalg_det.default)
def det(op: OpBuilder, self: Value) -> ir.Value:
    """(…, n, n) -> (…)."""
    return emit(op, "Det", self)


@lowers(aten.cdist.default, aten._cdist_forward.default)
def cdist(op: OpBuilder, x1: Value, x2: Value, p: float = 2, compute_mode: int | None = None) -> ir.Value:
    """(…, n, d), (…, m, d) -> (…, n, m): the p-norms of all differences of rows."""

    def formula(a: ir.Value, b: ir.Value) -> ir.Value:
        difference = op.Sub(op.Unsqueeze(a, op.ints([-2])), op.Unsqueeze(b, op.ints([-3])))
        return _NORMS.get(p, _power_norm)(op, difference, p)

    return computed(op, formula, x1, x2)


def _power_norm(op: OpBuilder, x: ir.Value, p: float) -> ir.Value:
    powers = op.Pow(op.Abs(x), operand(op, p, dtype_of(x)))
    return op.Pow(_last(op, "ReduceSum", powers), operand(op, 1 / p, dtype_of(x)))


def _count_norm(op: OpBuilder, x: ir.Value, _: float) -> ir.Value:
    different = op.Not(op.Equal(x, operand(op, 0, dtype_of(x))))
    return _last(op, "ReduceSum", op.cast(different, dtype_of(x)))


def _last(op: OpBuilder, op_type: str, x: ir.Value) -> ir.Value:
    build: Callable[..., ir.Value] = getattr(op, op_type)
    return build(x, op.ints([-1]), keepdims=0)


_NORMS: dict[float, Callable[[OpBuilder, ir.Value, float], ir.Value]] = {
    0: _count_norm,
    1: lambda op, x, _: _last(op, "ReduceL1", x),
    2: lambda op, x, _: _last(op, "ReduceL2", x),
    math.inf: lambda op, x, _: _last(op, "ReduceMax", op.Abs(x)),
}
