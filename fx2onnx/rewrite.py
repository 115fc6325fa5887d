"""What passes are made of: a `Pass`, and typed new nodes.

A pass file holds one rewriting function and `run`, the pass:

    def rewrite(module: fx.GraphModule) -> None: ...        # one graph, in place
    run = each_graph("drop_noops", rewrite)                 # TypedGraph -> TypedGraph, all distinct graphs

or `run = whole_graph("outline", rewrite)` where the rewriting needs the TypedGraph itself. `run(graph)` leaves
the caller's graph as it is; a pipeline copies once and then calls `run.apply`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from fx2onnx.graph import TypedGraph
from fx2onnx.torch_sizes import sizes_without_special_cases


@dataclass(frozen=True)
class Pass:
    """A named rewriting of typed graphs.

    Attributes:
        name: what `--print-after` and error messages call it.
        apply: rewrites a graph in place.
    """

    name: str
    apply: Callable[[TypedGraph], None]

    def __call__(self, graph: TypedGraph) -> TypedGraph:
        """The rewritten graph; `graph` itself is not changed."""
        result = graph.copy()
        self.apply(result)
        return result


def each_graph(name: str, rewrite: Callable[[fx.GraphModule], None]) -> Pass:
    """A pass that rewrites every distinct graph, called ones before their callers."""

    def apply(graph: TypedGraph) -> None:
        for module in graph.graphs():
            rewrite(module)

    return Pass(name, apply)


def whole_graph(name: str, rewrite: Callable[[TypedGraph], None]) -> Pass:
    """A pass whose rewriting needs inputs, outputs or state."""
    return Pass(name, rewrite)


_ORIGIN = ("nn_module_stack", "stack_trace", "torch_fn", "module")


def origin(node: fx.Node) -> dict[str, Any]:
    """The part of a node's meta that says where it came from, for nodes that replace it."""
    return {key: node.meta[key] for key in _ORIGIN if key in node.meta}


def call(graph: fx.Graph, target: Callable[..., Any], *args: Any, like: fx.Node, **kwargs: Any) -> fx.Node:
    """A new, typed call at the graph's insertion point.

    Its value is computed by running `target` on the arguments' fake values; where it came from is taken
    from `like`.
    """
    node = graph.call_function(target, args, kwargs)
    node.meta.update(origin(like))
    node.meta["val"] = fake_call(target, args, kwargs)
    return node


def fake_call(target: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """What `target` makes of the fake values of its arguments (nodes stand for their values)."""
    values, keywords = fx.node.map_arg((args, kwargs), lambda n: n.meta["val"])
    mode = fake_mode_in((values, keywords))
    if mode is None:
        return target(*values, **keywords)
    with mode, torch.no_grad(), sizes_without_special_cases():
        return target(*values, **keywords)


def fake_mode_in(values: Any) -> FakeTensorMode | None:
    """The fake mode of the first fake tensor among nested values."""
    for leaf in torch.utils._pytree.tree_leaves(values):
        if isinstance(leaf, FakeTensor):
            return leaf.fake_mode
    return None
