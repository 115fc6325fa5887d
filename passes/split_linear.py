"""A linear layer on more than two axes becomes a matrix product with the transposed weight.

    y = aten.linear.default(x, w, b)          t = aten.t.default(w)
                                        ->    m = aten.matmul.default(x, t)
                                              y = aten.add.Tensor(m, b)

ONNX's Gemm takes two axes only; for more, MatMul and Add are what it comes to, and the transposed weight, being made
of state alone, is folded later. Layers on two axes stay whole (Gemm), and so do those whose weight is computed.
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
    """Split the linear layers of every graph whose weights are state."""
    constant = constant_nodes(graph)
    for module in graph.graphs():
        for node in module.graph.find_nodes(op="call_function", target=aten.linear.default):
            x, weight, *bias = node.args
            is_plain = not bias or bias[0] is None or bias[0].meta["val"].dim() <= 1
            if x.meta["val"].dim() > 2 and weight in constant and is_plain:
                _split(node)


def _split(node: fx.Node) -> None:
    graph = node.graph
    x, weight, *rest = node.args
    with graph.inserting_before(node):
        transposed = call(graph, aten.t.default, weight, like=node)
        made = _typed_like(node, aten.matmul.default, x, transposed)
        if rest and rest[0] is not None:
            made = _typed_like(node, aten.add.Tensor, made, rest[0])
    node.replace_all_uses_with(made)
    graph.erase_node(node)


def _typed_like(node: fx.Node, target: Any, *args: Any) -> fx.Node:
    """A call that makes the type of `node`: running it on fake values would only take time."""
    made = node.graph.call_function(target, args)
    made.meta.update(origin(node))
    made.meta["val"] = node.meta["val"]
    return made


run = whole_graph("split_linear", rewrite)
