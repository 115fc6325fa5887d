"""Compute each distinct size once, from an input's shape where an input carries it.

    n = aten.sym_size.int(h, 0)        # batch              n = aten.sym_size.int(x, 0)
    a = aten.view.default(h, [n, 4])                   ->   a = aten.view.default(h, [n, 4])
    m = aten.sym_size.int(a, 0)        # batch              b = aten.view.default(a, [n, 2, 2])
    b = aten.view.default(a, [m, 2, 2])

Sizes that are plain numbers are written into the calls that use them. Runs before regions are outlined, so that
regions get their sizes as arguments.
"""

from __future__ import annotations

import torch
from torch import fx

from fx2onnx.dims import Dim
from fx2onnx.graph import TypedGraph
from fx2onnx.rewrite import call, whole_graph
from fx2onnx.types import size_of


def rewrite(graph: TypedGraph) -> None:
    """Share the sizes of the top graph."""
    nodes = graph.module.graph
    inputs = _input_axes(graph)
    first: dict[Dim, fx.Node] = {}
    for node in list(nodes.nodes):
        value = node.meta.get("val")
        if node.op != "call_function" or not isinstance(value, torch.SymInt | int) or isinstance(value, bool):
            continue
        size = size_of(value)
        if isinstance(size, int):
            _write_number(node, size)
        elif (other := first.get(size)) is not None:
            node.replace_all_uses_with(other)
            nodes.erase_node(node)
        else:
            first[size] = _from_input(node, inputs[size]) if size in inputs else node


def _input_axes(graph: TypedGraph) -> dict[Dim, tuple[fx.Node, int]]:
    """For each size: the first input and axis that carry it."""
    placeholders = graph.placeholders()
    found: dict[Dim, tuple[fx.Node, int]] = {}
    for entry in graph.inputs:
        node = placeholders[entry.placeholder]
        for axis, size in enumerate(node.meta["val"].shape):
            found.setdefault(size_of(size), (node, axis))
    return found


def _from_input(node: fx.Node, source: tuple[fx.Node, int]) -> fx.Node:
    """Let `node`'s readers read the size of an input instead."""
    target = torch.ops.aten.sym_size.int
    if node.target is target and node.args == source:
        return node
    with node.graph.inserting_before(node):
        made = call(node.graph, target, *source, like=node)
    node.replace_all_uses_with(made)
    node.graph.erase_node(node)
    return made


def _write_number(node: fx.Node, number: int) -> None:
    for user in list(node.users):
        user.args = fx.node.map_arg(user.args, lambda n: number if n is node else n)
        user.kwargs = fx.node.map_arg(user.kwargs, lambda n: number if n is node else n)
    node.graph.erase_node(node)


run = whole_graph("share_sizes", rewrite)
