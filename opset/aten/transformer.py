"""PyTorch's fast paths for whole attention blocks and encoder layers, written out.

Tracing avoids them; programs that were traced elsewhere may hold them. Masks say which keys are closed, and a query
to which none is open becomes NaN here. Source: ATen/native/transformers/{attention,transformer}.cpp.
"""

from __future__ import annotations

import math

import onnx_ir as ir
import torch

from fx2onnx.builder import OpBuilder, Value, dtype_of
from fx2onnx.opset.aten.spatial import emit
from fx2onnx.rules import lowers

aten = torch.ops.aten


@lowers(aten._native_multi_head_attention.default)
def native_multi_head_attention(
    op: OpBuilder,
    query: Value,
    key: Value,
    value: Value,
    embed_dim: int,
    num_head: int,
    qkv_weight: Value,
    qkv_bias: Value,
    proj_weight: Value,
    proj_bias: Value,
    mask: Value | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[ir.Value, ir.Value]:
    """(N, L, E) three times -> (N, L, E) and the weights (N, L, L), or (N, H, L, L) where not averaged."""
    parts = _projections(op, (query, key, value), qkv_weight, qkv_bias)
    q, k, v = (_heads(op, part, num_head) for part in parts)
    width = embed_dim // num_head
    scaled = op.Mul(q, op.constant(1 / math.sqrt(width), dtype_of(query)))
    scores = op.MatMul(scaled, op.Transpose(k, perm=[0, 1, 3, 2]))
    if mask is not None:
        closed = _mask_of_scores(op, mask, mask_type)
        scores = op.Where(closed, op.constant(-math.inf, dtype_of(query)), scores)
    weights = op.Softmax(scores, axis=-1)
    context = op.Transpose(op.MatMul(weights, v), perm=[0, 2, 1, 3])
    made = _linear(op, op.Reshape(context, op.ints([0, 0, embed_dim])), proj_weight, proj_bias)
    if average_attn_weights:
        weights = emit(op, "ReduceMean", weights, op.ints([1]), keepdims=0)
    return made, weights


@lowers(aten._transformer_encoder_layer_fwd.default)
def transformer_encoder_layer(
    op: OpBuilder,
    src: Value,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Value,
    qkv_bias: Value,
    proj_weight: Value,
    proj_bias: Value,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Value,
    norm_bias_1: Value,
    norm_weight_2: Value,
    norm_bias_2: Value,
    ffn_weight_1: Value,
    ffn_bias_1: Value,
    ffn_weight_2: Value,
    ffn_bias_2: Value,
    mask: Value | None = None,
    mask_type: int | None = None,
) -> ir.Value:
    """(N, L, E) -> (N, L, E), as torch.nn.TransformerEncoderLayer."""

    def norm(x: ir.Value, weight: ir.Value, bias: ir.Value) -> ir.Value:
        return op.LayerNormalization(x, weight, bias, axis=-1, epsilon=eps)

    x = norm(src, norm_weight_1, norm_bias_1) if norm_first else src
    attended, _ = native_multi_head_attention.function(
        op,
        x,
        x,
        x,
        embed_dim,
        num_heads,
        qkv_weight,
        qkv_bias,
        proj_weight,
        proj_bias,
        mask,
        False,
        True,
        mask_type,
    )
    x = op.Add(attended, src)
    x = x if norm_first else norm(x, norm_weight_1, norm_bias_1)
    inner = norm(x, norm_weight_2, norm_bias_2) if norm_first else x
    inner = _linear(op, inner, ffn_weight_1, ffn_bias_1)
    inner = _gelu(op, inner) if use_gelu else op.Relu(inner)
    x = op.Add(_linear(op, inner, ffn_weight_2, ffn_bias_2), x)
    return x if norm_first else norm(x, norm_weight_2, norm_bias_2)


def _projections(
    op: OpBuilder, inputs: tuple[ir.Value, ir.Value, ir.Value], weight: ir.Value, bias: ir.Value
) -> list[ir.Value]:
    """(N, L, E) three times -> query, key and value (N, L, E); one product where the inputs are one."""
    if inputs[0] is inputs[1] is inputs[2]:
        joint = _linear(op, inputs[0], weight, bias)
        return [*op.Split(joint, axis=-1, num_outputs=3, _outputs=3)]
    weights = op.Split(weight, axis=0, num_outputs=3, _outputs=3)
    biases = op.Split(bias, axis=0, num_outputs=3, _outputs=3)
    return [_linear(op, x, w, b) for x, w, b in zip(inputs, weights, biases, strict=True)]


def _heads(op: OpBuilder, x: ir.Value, heads: int) -> ir.Value:
    """(N, L, E) -> (N, H, L, E/H)."""
    return op.Transpose(op.Reshape(x, op.ints([0, 0, heads, -1])), perm=[0, 2, 1, 3])


def _mask_of_scores(op: OpBuilder, mask: Value, mask_type: int | None) -> ir.Value:
    """The mask of closed keys for (N, H, L, L): 0 is (L, L), 1 is (N, L) for keys, 2 has all axes."""
    closed = op.cast(mask, torch.bool)
    return op.Unsqueeze(closed, op.ints([1, 2])) if mask_type == 1 else closed


def _linear(op: OpBuilder, x: ir.Value, weight: ir.Value, bias: ir.Value) -> ir.Value:
    """(*, I), (O, I), (O,) -> (*, O)."""
    return op.Add(op.MatMul(x, op.Transpose(weight, perm=[1, 0])), bias)


def _gelu(op: OpBuilder, x: ir.Value) -> ir.Value:
    """X * Φ(x), the exact form."""
    if op.opset >= 20:
        return op.Gelu(x)
    dtype = dtype_of(x)
    half = op.Mul(x, op.constant(0.5, dtype))
    inner = op.Erf(op.Mul(x, op.constant(math.sqrt(0.5), dtype)))
    return op.Mul(half, op.Add(inner, op.constant(1, dtype)))
