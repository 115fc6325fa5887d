"""Common subexpressions: of calls that are equal, the first is kept.

    a = aten.mul.Tensor(x, 2)            a = aten.mul.Tensor(x, 2)
    b = aten.mul.Tensor(x, 2)      ->    c = aten.add.Tensor(a, a)
    c = aten.add.Tensor(a, b)

Calls that draw random numbers are never merged, nor are those of regions in which that happens. `mul(x, 2)` and
`mul(x, 2.0)` are different calls.
"""

from __future__ import annotations

from typing import Any

from torch import fx

from fx2onnx.calls import key_of
from fx2onnx.passes.randomness import RandomCalls
from fx2onnx.rewrite import each_graph


def rewrite(module: fx.GraphModule) -> None:
    """Merge equal calls of one graph."""
    random = RandomCalls(module)
    first: dict[Any, fx.Node] = {}
    for node in list(module.graph.nodes):
        if node.op not in ("call_function", "call_module", "get_attr") or node in random:
            continue
        key = (node.op, node.target, key_of(node.args), key_of(dict(node.kwargs)))
        kept = first.setdefault(key, node)
        if kept is not node:
            node.replace_all_uses_with(kept)
            module.graph.erase_node(node)


run = each_graph("cse", rewrite)
