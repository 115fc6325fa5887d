"""Does a pass keep what a model computes? Graphs are run on real inputs and compared with eager PyTorch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx, nn
from torch.utils import _pytree as pytree

from fx2onnx.capture import capture
from fx2onnx.graph import TypedGraph, attribute
from fx2onnx.passes import Pipeline, functionalize
from fx2onnx.rewrite import Pass
from fx2onnx.text import show
from fx2onnx.verifier import check


def tensors(values: Any) -> list[torch.Tensor]:
    """The tensors among nested values."""
    return [leaf for leaf in pytree.tree_leaves(values) if isinstance(leaf, torch.Tensor)]


class Runner(fx.Interpreter):
    """Runs a graph node by node, and regions likewise."""

    def call_module(self, target: str, args: Any, _: Any) -> Any:
        return Runner(attribute(self.module, target)).run(*args)


def run(graph: TypedGraph, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """All results of a graph, new values of inputs and state among them; the inputs are not copied."""
    given = dict(zip((i.placeholder for i in graph.inputs), inputs, strict=True)) | graph.state
    with torch.no_grad():
        return list(Runner(graph.module).run(*(given[name] for name in graph.placeholders())))


def check_passes(
    model: Callable[..., Any],
    args: Sequence[Any],
    passes: Sequence[Pass] = Pipeline().passes,
    *,
    dynamic_shapes: Any = None,
    tolerance: float = 0.0,
) -> TypedGraph:
    """Run passes one after the other; after each, the graph must compute what the model does.

    Results, new values of inputs, dtypes and shapes are compared; the invariants must hold, a second run must change
    nothing, and no input may be written to.
    """
    graph = capture(
        copy.deepcopy(model) if isinstance(model, nn.Module) else model, args, dynamic_shapes=dynamic_shapes
    )
    own = copy.deepcopy(args)
    with torch.no_grad():
        expected = tensors(model(*own))
    functional = False
    for step in passes:
        graph = step(graph)
        functional |= step.name == functionalize.run.name
        check(graph, stage=step.name, functional=functional)
        assert show(step(graph)) == show(graph), f"{step.name} is not idempotent"
        if functional:
            _compare(graph, tensors(copy.deepcopy(args)), expected, tensors(own), tolerance)
    return graph


def _compare(
    graph: TypedGraph,
    given: list[torch.Tensor],
    expected: list[torch.Tensor],
    written: list[torch.Tensor],
    tolerance: float,
) -> None:
    """Results against eager results, and new values of inputs against the arguments that eager wrote to."""
    before = [t.clone() for t in given]
    made = run(graph, given)
    assert all(map(torch.equal, given, before)), "an input was written to"
    for value, wanted in zip(made[: len(expected)], expected, strict=True):
        torch.testing.assert_close(value, wanted, rtol=tolerance, atol=tolerance, equal_nan=True)
    mutated = [o for o in graph.outputs if o.mutated is not None]
    new = dict(zip((o.mutated for o in mutated), made[len(expected) :], strict=True))
    for entry, old, wanted in zip(graph.inputs, before, written, strict=True):
        torch.testing.assert_close(new.get(entry.name, old), wanted, rtol=tolerance, atol=tolerance)
