"""Batch norm after a convolution becomes part of the convolution's weights.

    y = aten.conv2d.default(x, w, None, …)          s = g * rsqrt(var + eps)
    z = aten.batch_norm.default(y, g, b, …)   ->    z = aten.conv2d.default(x, w * s, b - mean * s, …)

The new weights are written as calls on the old ones and folded later. Only where nothing else reads the convolution's
result, the norm is in evaluation mode, and all weights are state.
"""

from __future__ import annotations

import torch
from torch import fx

from fx2onnx.graph import TypedGraph
from fx2onnx.passes.constness import constant_nodes
from fx2onnx.rewrite import call, whole_graph

aten = torch.ops.aten

_CONVOLUTIONS = frozenset(
    {
        aten.conv1d.default,
        aten.conv2d.default,
        aten.conv3d.default,
        aten.conv1d.padding,
        aten.conv2d.padding,
        aten.conv3d.padding,
    }
)
_LINEAR = frozenset({aten.linear.default})


def rewrite(graph: TypedGraph) -> None:
    """Fuse the batch norms of every graph."""
    constant = constant_nodes(graph)
    for module in graph.graphs():
        for norm in module.graph.find_nodes(op="call_function", target=aten.batch_norm.default):
            if _fits(norm, constant):
                _fuse(norm)


def _fits(norm: fx.Node, constant: set[fx.Node]) -> bool:
    convolution, weight, bias, mean, variance, training = norm.args[:6]
    if not isinstance(convolution, fx.Node) or convolution.target not in _CONVOLUTIONS | _LINEAR:
        return False
    if training or mean is None or variance is None or len(convolution.users) != 1:
        return False
    if convolution.target in _LINEAR and convolution.meta["val"].dim() != 2:
        return False
    weights = [*convolution.args[1:3], weight, bias, mean, variance]
    nodes = [w for w in weights if isinstance(w, fx.Node)]
    return all(w in constant for w in nodes) and len({w.meta["val"].dtype for w in nodes}) == 1


def _fuse(norm: fx.Node) -> None:
    graph = norm.graph
    convolution, gamma, beta, mean, variance, _, _, eps = norm.args[:8]
    x, weight, *rest = convolution.args  # type: ignore[union-attr]
    bias = rest[0] if rest else None
    with graph.inserting_before(norm):
        scale = call(
            graph, aten.rsqrt.default, call(graph, aten.add.Scalar, variance, eps, like=norm), like=norm
        )
        if gamma is not None:
            scale = call(graph, aten.mul.Tensor, scale, gamma, like=norm)
        shape = [-1] + [1] * (weight.meta["val"].dim() - 1)  # type: ignore[union-attr]
        column = call(graph, aten.reshape.default, scale, shape, like=norm)
        new_weight = call(graph, aten.mul.Tensor, weight, column, like=norm)
        shift = call(graph, aten.neg.default, mean, like=norm)
        if bias is not None:
            shift = call(graph, aten.add.Tensor, shift, bias, like=norm)
        new_bias = call(graph, aten.mul.Tensor, shift, scale, like=norm)
        if beta is not None:
            new_bias = call(graph, aten.add.Tensor, new_bias, beta, like=norm)
        fused = call(graph, convolution.target, x, new_weight, new_bias, *rest[1:], like=norm)  # type: ignore[union-attr, arg-type]
    norm.replace_all_uses_with(fused)
    graph.erase_node(norm)
    graph.erase_node(convolution)  # type: ignore[arg-type]


run = whole_graph("fuse_batch_norm", rewrite)
