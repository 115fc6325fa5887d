"""Scaled dot-product attention.

    query (*, H, L, E), key (*, H, S, E), value (*, H, S, V), mask (*, L, S)? -> (*, H, L, V)
    softmax(query @ key.mT * scale + mask) @ value

A query to which no key is open (a mask of False or -inf all along the row) gets zeros in PyTorch, not NaNs.

ONNX has an operator for it since opset 23. ONNX Runtime 1.32 has CPU kernels of it in float32 and float16 for
opsets 23 and 24 (at 25 it runs as a function of 71 nodes); they give such queries zeros too. Latency of the native
operator over that of Transpose, Mul, MatMul, mask, Softmax, MatMul, medians of 25 runs on 2 cores, heads of 64:

    batch, heads (key), L, S       no mask   causal   bool mask   bool mask (B, 1, 1, S)   float mask
    1, 12 (12), 128, 128             1.09     0.86      0.62              0.78                0.82
    1, 12 (12), 512, 512             0.86     0.73      0.38              0.58                0.59
    8, 12 (12), 128, 128             0.96     0.79      0.48              0.55                0.49
    4, 12 (12), 512, 512             0.82     0.71      0.49              0.65                0.51
    1, 32 (8),  128, 128             0.77     0.94      0.77              0.73                0.13
    1, 32 (8),    1, 512             0.35      -        0.32              0.30                0.38

So it is used wherever there is a kernel for it. (A causal or masked softmax takes twice as long as a free one in
either form; `is_causal`, a bool and a float mask are equally fast.)
"""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, dtype_of, rank_of, shape_of
from fx2onnx.errors import UnsupportedOpError
from fx2onnx.opset.aten.operands import HALVES, f16, f32
from fx2onnx.rules import lowers

aten = torch.ops.aten

NATIVE_OPSETS = (23, 24)
NATIVE_DTYPES = frozenset({f16, f32})
LARGEST_TRIANGLE = 2**18  # elements of a causal mask that is kept as a constant


@lowers(aten.scaled_dot_product_attention.default)
def scaled_dot_product_attention(
    op: OpBuilder,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> ir.Value:
    """(*, H, L, E), (*, H', S, E), (*, H', S, V), (*, L, S)? -> (*, H, L, V); H' divides H with `enable_gqa`."""
    _refuse_dropout(dropout_p)
    if _is_native(op, query, key, value):
        return _native(op, query, key, value, attn_mask, is_causal, scale)
    return _by_formula(op, query, key, value, attn_mask, is_causal, scale, enable_gqa)


@lowers(aten._scaled_dot_product_flash_attention_for_cpu.default)
def flash_attention_for_cpu(
    op: OpBuilder,
    query: Value,
    key: Value,
    value: Value,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Value | None = None,
    scale: float | None = None,
) -> tuple[ir.Value, ir.Value]:
    """As `scaled_dot_product_attention`, and the logarithm of the sum of each row's exponentials (B, H, L)."""
    made = scaled_dot_product_attention.function(
        op, query, key, value, attn_mask, dropout_p, is_causal, scale=scale
    )
    wide = _wide(query)
    scores = _scores(op, op.cast(query, wide), op.cast(key, wide), scale)
    masked = _masked(op, scores, query, key, attn_mask, is_causal)
    return made, op.ReduceLogSumExp(masked, op.ints([-1]), keepdims=0)


@lowers(aten._scaled_dot_product_efficient_attention.default)
def efficient_attention(
    op: OpBuilder,
    query: Value,
    key: Value,
    value: Value,
    attn_bias: Value | None,
    compute_log_sumexp: bool,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
) -> tuple[ir.Value | None, ...]:
    """As `scaled_dot_product_attention`; what is for the backward pass is not made."""
    made = scaled_dot_product_attention.function(
        op, query, key, value, attn_bias, dropout_p, is_causal, scale=scale
    )
    return made, *(None for _ in op.results[1:])


@lowers(aten._scaled_dot_product_flash_attention.default)
def flash_attention(
    op: OpBuilder,
    query: Value,
    key: Value,
    value: Value,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> tuple[ir.Value | None, ...]:
    """As `scaled_dot_product_attention`; what is for the backward pass is not made."""
    made = scaled_dot_product_attention.function(
        op, query, key, value, None, dropout_p, is_causal, scale=scale
    )
    return made, *(None for _ in op.results[1:])


def _refuse_dropout(p: float) -> None:
    if p > 0:
        raise UnsupportedOpError(
            f"attention with dropout_p={p} is random", fix="call model.eval(), or pass dropout_p=0"
        )


# -- the operator --------------------------------------------------------------------------------------


def _is_native(op: OpBuilder, query: Value, key: Value, value: Value) -> bool:
    """Is there a kernel of Attention for these? Batches must be equal, nothing may be empty."""
    q, k, v = shape_of(query), shape_of(key), shape_of(value)
    return (
        op.opset in NATIVE_OPSETS
        and dtype_of(query) in NATIVE_DTYPES
        and len(q) == len(k) == len(v) == 4
        and q[0] == k[0] == v[0]
        and k[1] == v[1]
        and (q[1] == k[1] or (isinstance(q[1], int) and isinstance(k[1], int) and q[1] % k[1] == 0))
        and 0 not in (*q, *k, *v)
    )


def _native(
    op: OpBuilder,
    query: Value,
    key: Value,
    value: Value,
    mask: Value | None,
    is_causal: bool,
    scale: float | None,
) -> ir.Value:
    """One Attention."""
    operands: list[ir.Value] = [query, key, value]
    if mask is not None:
        kept = mask if dtype_of(mask) == torch.bool else op.cast(mask, dtype_of(query))
        operands.append(_spread_mask(op, kept, query, key))
    attributes: dict[str, Any] = {"is_causal": 1} if is_causal else {}
    if scale is not None:
        attributes["scale"] = scale
    return op.Attention(*operands, **attributes)


def _spread_mask(op: OpBuilder, mask: ir.Value, query: Value, key: Value) -> ir.Value:
    """The mask with L and S of its own: ONNX Runtime 1.32 broadcasts its batch and heads only."""
    rows, columns = shape_of(mask)[-2:]
    spread_rows = rows == 1 and shape_of(query)[-2] != 1
    spread_columns = columns == 1 and shape_of(key)[-2] != 1
    if not spread_rows and not spread_columns:
        return mask
    sizes = [op.size(query, -2) if spread_rows else 1, op.size(key, -2) if spread_columns else 1]
    return op.Expand(mask, op.vector(sizes))


# -- the formula ---------------------------------------------------------------------------------------


def _wide(x: ir.Value) -> torch.dtype:
    """The dtype that PyTorch computes attention in."""
    return f32 if dtype_of(x) in HALVES else dtype_of(x)


def _by_formula(
    op: OpBuilder,
    query: Value,
    key: Value,
    value: Value,
    mask: Value | None,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> ir.Value:
    """MatMul, mask, Softmax, MatMul; queries that share keys get an axis of their own."""
    wide = _wide(query)
    q, k, v = (op.cast(x, wide) for x in (query, key, value))
    grouped = enable_gqa and shape_of(query)[-3] != shape_of(key)[-3]
    open_mask: ir.Value | None = mask
    if grouped:
        q, k, v, open_mask = _grouped(op, query, key, (q, k, v), mask)
    scores = _masked(op, _scores(op, q, k, scale), query, key, open_mask, is_causal)
    weights = _zero_where_closed(op, op.Softmax(scores, axis=-1), open_mask)
    made = op.MatMul(weights, v)
    if grouped:
        made = op.reshape(made, [*op.sizes(query)[:-1], op.size(value, -1)], op.results[0].shape)  # type: ignore[union-attr]
    return op.cast(made, dtype_of(query))


def _scores(op: OpBuilder, q: ir.Value, k: ir.Value, scale: float | None) -> ir.Value:
    """(*, L, E), (*, S, E) -> (*, L, S): q @ k.mT * scale, by default 1/sqrt(E)."""
    rank = rank_of(k)
    transposed = op.Transpose(k, perm=[*range(rank - 2), rank - 1, rank - 2])
    return op.MatMul(op.Mul(q, _scale(op, q, scale)), transposed)


def _scale(op: OpBuilder, q: ir.Value, scale: float | None) -> ir.Value:
    width = op.size(q, -1)
    if scale is None and isinstance(width, int):
        scale = 1 / math.sqrt(width) if width else 1.0
    if scale is not None:
        return op.constant(scale, dtype_of(q))
    return op.Reciprocal(op.Sqrt(op.number(width, dtype_of(q))))


def _masked(
    op: OpBuilder, scores: ir.Value, query: Value, key: Value, mask: ir.Value | None, is_causal: bool
) -> ir.Value:
    """Scores with -inf where a key is closed to a query, or with a float mask added."""
    dtype = dtype_of(scores)
    if is_causal:
        scores = op.Add(scores, _triangle(op, query, key, dtype))
    if mask is None:
        return scores
    if dtype_of(mask) == torch.bool:
        return op.Where(mask, scores, op.constant(-math.inf, dtype))
    return op.Add(scores, op.cast(mask, dtype))


def _triangle(op: OpBuilder, query: Value, key: Value, dtype: torch.dtype) -> ir.Value:
    """(L, S), -inf above the diagonal from the upper left corner, else 0."""
    rows, columns = op.size(query, -2), op.size(key, -2)
    if isinstance(rows, int) and isinstance(columns, int) and rows * columns <= LARGEST_TRIANGLE:
        return op.constant(torch.full((rows, columns), -math.inf).triu(1), dtype)
    full = op.Expand(op.constant(-math.inf, dtype), op.vector([rows, columns]))
    return op.Trilu(full, op.constant(1), upper=1)


def _zero_where_closed(op: OpBuilder, weights: ir.Value, mask: ir.Value | None) -> ir.Value:
    """Softmax weights, 0 instead of NaN in the rows in which every key is closed."""
    if mask is None:
        return weights
    zero = op.constant(0, dtype_of(weights))
    if dtype_of(mask) == torch.bool:
        return op.Where(mask, weights, zero)
    lowest = op.constant(-math.inf, dtype_of(weights))
    return op.Where(op.Equal(op.cast(mask, dtype_of(weights)), lowest), zero, weights)


def _grouped(
    op: OpBuilder,
    query: Value,
    key: Value,
    operands: tuple[ir.Value, ir.Value, ir.Value],
    mask: Value | None,
) -> tuple[ir.Value, ir.Value, ir.Value, ir.Value | None]:
    """(*, H, L, E) -> (*, H', H/H', L, E) and (*, H', S, E) -> (*, H', 1, S, E): each key serves a group."""
    q, k, v = operands
    heads, shared = shape_of(query)[-3], shape_of(key)[-3]
    if not isinstance(heads, int) or not isinstance(shared, int):
        raise TypeError(f"grouped queries with {heads} and {shared} heads, which are not static")
    groups = [shared, heads // shared]
    sizes, shape = op.sizes(query), shape_of(query)
    q = op.reshape(q, [*sizes[:-3], *groups, *sizes[-2:]], [*shape[:-3], *groups, *shape[-2:]])
    axis = op.ints([-3])
    return q, op.Unsqueeze(k, axis), op.Unsqueeze(v, axis), _grouped_mask(op, mask, groups)


def _grouped_mask(op: OpBuilder, mask: Value | None, groups: list[int]) -> ir.Value | None:
    """(*, H or 1, L, S) -> (*, H' or 1, H/H' or 1, L, S)."""
    if mask is None or rank_of(mask) <= 2:
        return mask
    if shape_of(mask)[-3] == 1:
        return op.Unsqueeze(mask, op.ints([-3]))
    sizes, shape = op.sizes(mask), shape_of(mask)
    return op.reshape(mask, [*sizes[:-3], *groups, *sizes[-2:]], [*shape[:-3], *groups, *shape[-2:]])
