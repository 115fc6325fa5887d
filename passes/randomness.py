"""Which calls draw random numbers: they are neither merged nor evaluated."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from fx2onnx.graph import attribute, subgraphs


def is_random(node: fx.Node) -> bool:
    """Does the call of an operator draw random numbers?"""
    return (
        isinstance(node.target, torch._ops.OpOverload)  # noqa: SLF001
        and torch.Tag.nondeterministic_seeded in node.target.tags
    )


class RandomCalls:
    """The calls of one graph that draw random numbers, those of regions and control-flow bodies among them."""

    def __init__(self, module: fx.GraphModule) -> None:
        self.module = module
        self.known: dict[int, bool] = {}

    def __contains__(self, node: fx.Node) -> bool:
        if node.op == "call_module":
            return self._has_random(attribute(self.module, str(node.target)))
        if node.op == "call_function" and not isinstance(node.target, torch._ops.OpOverload):  # noqa: SLF001
            bodies = (n for n in node.all_input_nodes if n.op == "get_attr")
            return any(self._has_random(attribute(self.module, str(body.target))) for body in bodies)
        return is_random(node)

    def _has_random(self, callee: Any) -> bool:
        if not isinstance(callee, fx.GraphModule):
            return False
        if (found := self.known.get(id(callee))) is None:
            own = any(is_random(node) for node in callee.graph.nodes)
            found = own or any(self._has_random(inner) for inner in subgraphs(callee))
            self.known[id(callee)] = found
        return found
