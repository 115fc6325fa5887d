"""Batch norm after a convolution becomes part of the convolution's weights.

    y = aten.conv2d.default(x, w, None, …)          s = g * rsqrt(var + eps)
    z = aten.batch_norm.default(y, g, b, …)   ->    z = aten.conv2d.default(x, w * s, b - mean * s, …)

The new weights are written as calls on the old ones and folded later. Only where nothing else reads the convolution's
result or its weight, the norm is in evaluation mode, and all weights are state. The same goes for transposed
convolutions, and for linear layers on two axes.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from fx2onnx.graph import TypedGraph
from fx2onnx.passes.constness import constant_nodes
from fx2onnx.rewrite import call, origin, whole_graph

aten = torch.ops.aten

_CONVOLUTIONS = frozenset(
    {
        *(aten.conv1d.default, aten.conv2d.default, aten.conv3d.default),
        *(aten.conv1d.padding, aten.conv2d.padding, aten.conv3d.padding),
        aten.linear.default,
    }
)
_TRANSPOSED = frozenset(
    {aten.conv_transpose1d.default, aten.conv_transpose2d.input, aten.conv_transpose3d.input}
)


@dataclass(frozen=True)
class _Pair:
    """A convolution, and the batch norm of its result.

    Attributes:
        norm: the node whose value is the normalized tensor.
        convolution: the call before it.
        gamma, beta, mean, variance, eps: the norm's arguments; gamma and beta may be None.
    """

    norm: fx.Node
    convolution: fx.Node
    gamma: fx.Node | None
    beta: fx.Node | None
    mean: fx.Node
    variance: fx.Node
    eps: float

    @property
    def weight(self) -> fx.Node:
        """The convolution's weight."""
        return self.convolution.args[1]  # type: ignore[return-value]

    @property
    def bias(self) -> fx.Node | None:
        """The convolution's bias."""
        return self.convolution.args[2] if len(self.convolution.args) > 2 else None  # type: ignore[return-value]

    @property
    def is_transposed(self) -> bool:
        """Does the weight have the output channels on its second axis?"""
        if self.convolution.target is aten.convolution.default:
            return bool(self.convolution.args[6])
        return self.convolution.target in _TRANSPOSED

    @property
    def groups(self) -> int:
        """The number of groups of channels of a transposed convolution."""
        position = 8 if self.convolution.target is aten.convolution.default else 6
        return int(self.convolution.args[position]) if len(self.convolution.args) > position else 1  # type: ignore[arg-type]


def rewrite(graph: TypedGraph) -> None:
    """Fuse the batch norms of every graph."""
    constant = constant_nodes(graph)
    for module in graph.graphs():
        pairs = [pair for pair in _pairs(module.graph) if _fits(pair, constant)]
        fused = {pair.convolution for pair in pairs}
        for pair in pairs:
            if all(user in fused for user in pair.weight.users):
                _fuse(pair)


def _pairs(graph: fx.Graph) -> Iterator[_Pair]:
    """The batch norms in evaluation mode whose argument is a convolution."""
    for norm in graph.find_nodes(op="call_function", target=aten.batch_norm.default):
        x, gamma, beta, mean, variance, training, _, eps = norm.args[:8]
        if _is_convolution(x) and not training and mean is not None and variance is not None:
            yield _Pair(norm, x, gamma, beta, mean, variance, eps)
    target = aten._native_batch_norm_legit_no_training.default  # noqa: SLF001
    for norm in graph.find_nodes(op="call_function", target=target):
        x, gamma, beta, mean, variance, _, eps = norm.args
        items = list(norm.users)
        if _is_convolution(x) and len(items) == 1 and items[0].args[1] == 0:
            yield _Pair(items[0], x, gamma, beta, mean, variance, eps)


def _is_convolution(node: Any) -> bool:
    return isinstance(node, fx.Node) and node.target in {
        *_CONVOLUTIONS,
        *_TRANSPOSED,
        aten.convolution.default,
    }


def _fits(pair: _Pair, constant: set[fx.Node]) -> bool:
    weights = [pair.weight, pair.bias, pair.gamma, pair.beta, pair.mean, pair.variance]
    nodes = [w for w in weights if w is not None]
    if not all(w in constant for w in nodes) or len({w.meta["val"].dtype for w in nodes}) != 1:
        return False
    # the norm's channels are axis 1: without a batch axis, that is not the axis of the convolution's channels
    is_batched = pair.convolution.meta["val"].dim() == pair.weight.meta["val"].dim()
    return is_batched and len(pair.convolution.users) == 1


def _fuse(pair: _Pair) -> None:
    graph, norm, convolution = pair.norm.graph, pair.norm, pair.convolution
    with graph.inserting_before(norm):
        scale = _vector(pair, aten.rsqrt.default, _vector(pair, aten.add.Scalar, pair.variance, pair.eps))
        if pair.gamma is not None:
            scale = _vector(pair, aten.mul.Tensor, scale, pair.gamma)
        shift = _vector(pair, aten.neg.default, pair.mean)
        if pair.bias is not None:
            shift = _vector(pair, aten.add.Tensor, shift, pair.bias)
        bias = _vector(pair, aten.mul.Tensor, shift, scale)
        if pair.beta is not None:
            bias = _vector(pair, aten.add.Tensor, bias, pair.beta)
        args = (convolution.args[0], _scaled_weight(pair, scale), bias, *convolution.args[3:])
        fused = _typed(pair, norm.meta["val"], convolution.target, *args)
        fused.kwargs = convolution.kwargs
    old = norm.args[0] if norm.target is operator.getitem else None
    norm.replace_all_uses_with(fused)
    graph.erase_node(norm)
    if isinstance(old, fx.Node):
        graph.erase_node(old)
    graph.erase_node(convolution)


def _scaled_weight(pair: _Pair, scale: fx.Node) -> fx.Node:
    """The weight with each output channel scaled."""
    graph, weight, norm = pair.norm.graph, pair.weight, pair.norm
    value = weight.meta["val"]
    sizes = [int(s) for s in value.shape]
    rest = [1] * (len(sizes) - 2)
    if not pair.is_transposed:
        column = call(graph, aten.reshape.default, scale, [-1, 1, *rest], like=norm)
        return _typed(pair, value, aten.mul.Tensor, weight, column)
    groups = pair.groups
    split = call(graph, aten.reshape.default, weight, [groups, sizes[0] // groups, *sizes[1:]], like=norm)
    column = call(graph, aten.reshape.default, scale, [groups, 1, sizes[1], *rest], like=norm)
    scaled = _typed(pair, split.meta["val"], aten.mul.Tensor, split, column)
    return _typed(pair, value, aten.reshape.default, scaled, sizes)


def _vector(pair: _Pair, target: Any, *args: Any) -> fx.Node:
    """A call that makes a number for each channel."""
    return _typed(pair, pair.mean.meta["val"], target, *args)


def _typed(pair: _Pair, value: torch.Tensor, target: Any, *args: Any) -> fx.Node:
    """A new call whose type is known: running it on fake values would only take time."""
    node = pair.norm.graph.call_function(target, args)
    node.meta.update(origin(pair.norm))
    node.meta["val"] = value
    return node


run = whole_graph("fuse_batch_norm", rewrite)
