"""The weights of a group norm become a product and a sum behind it.

                                                         n = aten.group_norm.default(x, 2, None, None, eps)
    y = aten.group_norm.default(x, 2, w, b, eps)   ->    u = aten.reshape.default(w, [8, 1, 1])
                                                         m = aten.mul.Tensor(n, u)   … and the same with b

ONNX Runtime has no kernel that takes the weights with the groups, so this is what it comes to; the weights in the shape
that is multiplied, being made of state alone, are folded later. Norms of one channel a group stay whole
(InstanceNormalization takes their weights), and so do those whose weights are computed.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from fx2onnx.graph import TypedGraph
from fx2onnx.passes.constness import constant_nodes
from fx2onnx.rewrite import call, origin, whole_graph

aten = torch.ops.aten


def rewrite(graph: TypedGraph) -> None:
    """Split the group norms of every graph whose weights are state."""
    constant = constant_nodes(graph)
    for module in graph.graphs():
        for node in module.graph.find_nodes(op="call_function", target=aten.group_norm.default):
            if _fits(node, constant):
                _split(node)


def _fits(node: fx.Node, constant: set[fx.Node]) -> bool:
    x, groups, *weights = node.args[:4]
    value = x.meta["val"]  # type: ignore[union-attr]
    given = [w for w in weights if isinstance(w, fx.Node)]
    is_plain = all(w in constant and w.meta["val"].dtype == value.dtype for w in given)
    return bool(given) and is_plain and value.dim() > 2 and value.shape[1] != groups


def _split(node: fx.Node) -> None:
    graph = node.graph
    x, groups, *rest = node.args
    weights, eps = rest[:2], rest[2:3]
    with graph.inserting_before(node):
        made = _typed_like(node, aten.group_norm.default, x, groups, None, None, *eps)
        for weight, target in zip(weights, (aten.mul.Tensor, aten.add.Tensor), strict=False):
            if isinstance(weight, fx.Node):
                axes = x.meta["val"].dim() - 2  # type: ignore[union-attr]
                column = call(graph, aten.reshape.default, weight, [-1, *[1] * axes], like=node)
                made = _typed_like(node, target, made, column)
    node.replace_all_uses_with(made)
    graph.erase_node(node)


def _typed_like(node: fx.Node, target: Any, *args: Any) -> fx.Node:
    """A call that makes the type of `node`."""
    made = node.graph.call_function(target, args)
    made.meta.update(origin(node))
    made.meta["val"] = node.meta["val"]
    return made


run = whole_graph("split_group_norm", rewrite)
