"""A linear layer on more than two axes becomes a matrix product with the transposed weight.

    y = aten.linear.default(x, w, b)          t = aten.t.default(w)
                                        ->    m = aten.matmul.default(x, t)
                                              y = aten.add.Tensor(m, b)

ONNX's Gemm takes two axes only; for more, MatMul and Add are what it comes to, and the transposed weight, being made
of state alone, is folded later. Layers on two axes stay whole (Gemm), and so do those whose weight is computed.
"""

from __future__ import annotations

import torch
from torch import fx

from fx2onnx.graph import TypedGraph
from fx2onnx.passes.constness import constant_nodes
from fx2onnx.rewrite import call, whole_graph

aten = torch.ops.aten


def rewrite(graph: TypedGraph) -> None:
    """Split the linear layers of every graph whose weights are state."""
    constant = constant_nodes(graph)
    for module in graph.graphs():
        for node in module.graph.find_nodes(op="call_function", target=aten.linear.default):
            x, weight = node.args[:2]
            if x.meta["val"].dim() > 2 and weight in constant:
                _split(node)


def _split(node: fx.Node) -> None:
    graph = node.graph
    x, weight, *rest = node.args
    with graph.inserting_before(node):
        transposed = call(graph, aten.t.default, weight, like=node)
        made = call(graph, aten.matmul.default, x, transposed, like=node)
        if rest and rest[0] is not None:
            made = call(graph, aten.add.Tensor, made, rest[0], like=node)
    node.replace_all_uses_with(made)
    graph.erase_node(node)


run = whole_graph("split_linear", rewrite)
