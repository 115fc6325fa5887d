"""Which nodes are made of the model's state alone, in regions too."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor

from fx2onnx.graph import TypedGraph, region_calls
from fx2onnx.passes import memory
from fx2onnx.passes.randomness import is_random


def constant_nodes(graph: TypedGraph) -> set[fx.Node]:
    """The nodes of all graphs that hold state, or are computed from nothing but state and numbers.

    A region's parameter is one of them when every call passes one of them. State without values (fake or meta
    tensors) is not, and neither are the parameters of control-flow bodies.
    """
    calls = region_calls(graph)
    found: set[fx.Node] = set()
    for module in reversed(list(graph.graphs())):  # callers first: they say what regions are given
        sites = calls.get(id(module), ())
        for i, node in enumerate(module.graph.find_nodes(op="placeholder")):
            if module is graph.module:
                is_state = _is_real(graph.state.get(str(node.target)))
            else:
                is_state = bool(sites) and all(site.args[i] in found for site in sites)
            if is_state:
                found.add(node)
        for node in module.graph.nodes:
            if node.op == "call_function" and _is_constant(node, found):
                found.add(node)
    return found


def _is_real(tensor: Any) -> bool:
    return isinstance(tensor, torch.Tensor) and not isinstance(tensor, FakeTensor) and not tensor.is_meta


def _is_constant(node: fx.Node, found: set[fx.Node]) -> bool:
    if any(n not in found for n in node.all_input_nodes) or is_random(node):
        return False
    if node.target is operator.getitem:
        return True
    return isinstance(node.target, torch._ops.OpOverload) and _has_static_sizes(node.meta.get("val"))  # noqa: SLF001


def _has_static_sizes(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(_has_static_sizes(v) for v in value)
    return isinstance(value, torch.Tensor) and all(map(memory.is_number, value.shape))
