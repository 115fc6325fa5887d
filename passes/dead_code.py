"""Drop what nothing reads: calls, state, and the parameters and results of regions.

    region Block(x, w, unused):                    region Block(x, w):
      a = aten.mul.Tensor(x, w)                      a = aten.mul.Tensor(x, w)
      b = aten.exp.default(a)                ->      return a
      return a, b
    r = Block(x, w1, u1); y = r[0]                 y = Block(x, w1)

The model's inputs stay, read or not.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from torch import fx

from fx2onnx.graph import TypedGraph, region_calls
from fx2onnx.rewrite import whole_graph


def rewrite(graph: TypedGraph) -> None:
    """Drop unread nodes of every graph, and unread state of the model."""
    while _drop_from_regions(graph):  # a call that is gone may have been the last reader of another's result
        pass
    read = {str(n.target) for n in graph.module.graph.find_nodes(op="placeholder") if n.users}
    for node in graph.module.graph.find_nodes(op="placeholder"):
        if str(node.target) in graph.state and str(node.target) not in read:
            graph.module.graph.erase_node(node)
    graph.state = {k: v for k, v in graph.state.items() if k in read}
    graph.state_names = {k: v for k, v in graph.state_names.items() if k in read}


def _drop_from_regions(graph: TypedGraph) -> bool:
    """Drop unread nodes, results and parameters of regions; returns whether a region changed."""
    modules = list(graph.graphs())
    calls = region_calls(graph)
    changed = False
    for module in reversed(modules):  # callers first: they say which results are read
        if (sites := calls.get(id(module))) is not None:
            changed |= _drop_results(module, sites)
        drop_unread(module.graph)
    calls = region_calls(graph)  # without the calls that were dropped
    for module in modules:  # called ones first: they say which arguments are read
        drop_unread(module.graph)
        if (sites := calls.get(id(module))) is not None:
            changed |= _drop_parameters(module, sites)
    return changed


def drop_unread(graph: fx.Graph) -> None:
    """Erase the calls of one graph that nothing reads."""
    for node in reversed(list(graph.nodes)):
        if not node.users and node.op not in ("placeholder", "output"):
            graph.erase_node(node)


def _drop_results(module: fx.GraphModule, sites: Sequence[fx.Node]) -> bool:
    """Shorten a region's result to what some call reads; returns whether it did."""
    output = module.graph.output_node()
    results = output.args[0]
    if not isinstance(results, tuple | list):
        return False
    items = [[u for u in site.users if u.target is operator.getitem] for site in sites]
    read = sorted({int(u.args[1]) for users in items for u in users if u.users})  # type: ignore[arg-type]
    if len(read) == len(results) or not read:
        return False
    output.args = (results[read[0]] if len(read) == 1 else tuple(results[i] for i in read),)
    for site, users in zip(sites, items, strict=True):
        value: Any = site.meta["val"]
        site.meta["val"] = value[read[0]] if len(read) == 1 else tuple(value[i] for i in read)
        for user in users:
            _renumber(user, site, read)
    return True


def _renumber(item: fx.Node, site: fx.Node, read: Sequence[int]) -> None:
    if not item.users:
        item.graph.erase_node(item)
    elif len(read) == 1:
        item.replace_all_uses_with(site)
        item.graph.erase_node(item)
    else:
        item.args = (site, read.index(int(item.args[1])))  # type: ignore[arg-type]


def _drop_parameters(module: fx.GraphModule, sites: Sequence[fx.Node]) -> bool:
    """Shorten a region's parameters to what it reads; returns whether it did."""
    parameters = module.graph.find_nodes(op="placeholder")
    kept = [i for i, node in enumerate(parameters) if node.users]
    if len(kept) == len(parameters):
        return False
    for node in parameters:
        if not node.users:
            module.graph.erase_node(node)
    for site in sites:
        site.args = tuple(site.args[i] for i in kept)
    return True


run = whole_graph("dead_code", rewrite)
