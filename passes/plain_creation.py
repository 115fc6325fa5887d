"""A tensor that is created like another one reads only sizes: the other tensor itself does not matter.

    y = aten.new_zeros.default(x, [4, 4])     ->    y = aten.full.default([4, 4], 0, dtype=torch.float32)

Masks that are filled piece by piece then are made of numbers alone, and are folded. `*_like` calls of a tensor whose
sizes are free stay: they say in one word what would take a list of sizes.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from fx2onnx.passes import memory
from fx2onnx.rewrite import each_graph, origin

aten = torch.ops.aten

_NEW = {aten.new_zeros.default: 0, aten.new_ones.default: 1, aten.new_full.default: None}
_LIKE = {aten.zeros_like.default: 0, aten.ones_like.default: 1, aten.full_like.default: None}


def rewrite(module: fx.GraphModule) -> None:
    """Let every created tensor of known sizes be made by `aten.full`."""
    for node in list(module.graph.nodes):
        if node.target in _NEW:
            _replace(node, node.args[1], node.args[2] if _NEW[node.target] is None else _NEW[node.target])
        elif node.target in _LIKE and all(map(memory.is_number, node.meta["val"].shape)):
            fill = node.args[1] if _LIKE[node.target] is None else _LIKE[node.target]
            _replace(node, [int(s) for s in node.meta["val"].shape], fill)


def _replace(node: fx.Node, sizes: Any, fill: Any) -> None:
    with node.graph.inserting_before(node):
        made = node.graph.call_function(aten.full.default, (sizes, fill), {"dtype": node.meta["val"].dtype})
    made.meta.update(origin(node))
    made.meta["val"] = node.meta["val"]
    node.replace_all_uses_with(made)
    node.graph.erase_node(node)


run = each_graph("plain_creation", rewrite)
