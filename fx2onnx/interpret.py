"""Running a typed graph on real tensors, node by node, as PyTorch computes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from fx2onnx.graph import TypedGraph, attribute


class _Runner(fx.Interpreter):
    """Runs a graph node by node, and regions likewise: their Python code is never generated."""

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        # passes drop copies, and with them the strides that a view needs
        if target is torch.ops.aten.view.default:
            target = torch.ops.aten.reshape.default
        return super().call_function(target, args, kwargs)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        del kwargs  # regions take their values by position
        return _Runner(attribute(self.module, str(target))).run(*args)


def run(graph: TypedGraph, inputs: Sequence[torch.Tensor]) -> dict[int, torch.Tensor]:
    """The tensors that a graph makes of real inputs, by the position of the leaf."""
    given = {i.placeholder: t.clone() for i, t in zip(graph.inputs, inputs, strict=True)}
    given |= {name: tensor.clone() for name, tensor in graph.state.items()}
    with torch.no_grad():
        values = _Runner(graph.module).run(*(given[name] for name in graph.placeholders()))
    made = [o for o in graph.outputs if o.name is not None or o.mutated is not None]
    return {o.leaf: value for o, value in zip(made, values, strict=True) if o.leaf is not None}
