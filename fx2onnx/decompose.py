"""Decomposition on demand: one call, traced through torch's own decomposition of its operator.

Only what has no rule is decomposed, one call at a time and one level deep; the pieces are lowered in turn.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import fx
from torch._decomp import decomposition_table
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from fx2onnx.calls import Argument, Call
from fx2onnx.errors import CaptureError
from fx2onnx.rewrite import fake_mode_in
from fx2onnx.torch_sizes import sizes_without_special_cases
from fx2onnx.types import names_of


def decompose(call: Call) -> fx.GraphModule | None:
    """The graph of simpler calls that `call` stands for, None when torch knows none.

    Its placeholders are the call's values in order; it returns a tuple of the call's results.

    Raises:
        CaptureError: torch's decomposition raised on the types at hand.
    """
    failure: Exception | None = None
    for function in _decompositions(call.target):
        try:
            graph = _traced(functools.partial(_run, function, call), call)
        except Exception as error:  # noqa: BLE001  torch's decompositions raise anything; the next one may do
            failure = failure or error
        else:
            if _is_progress(graph, call):
                return graph
    if failure is not None:
        raise CaptureError(f"torch's decomposition of {call.target} failed: {failure}") from failure
    return None


def _traced(function: Callable[..., Any], call: Call) -> fx.GraphModule:
    """The graph of a function of the call's values, on their fake values."""
    fakes = [node.meta["val"] for node in call.values]
    mode = fake_mode_in(fakes) or fake_mode_in([node.meta["val"] for node in _tensors_near(call)])
    with torch.no_grad():
        if mode is None:
            return make_fx(function, tracing_mode="fake")(*fakes)
        with mode, _no_size_is_fixed(mode):
            return make_fx(function)(*fakes)


@contextlib.contextmanager
def _no_size_is_fixed(mode: FakeTensorMode) -> Iterator[None]:
    """A decomposition may not fix a free size to a number: it would silently be fixed in the model.

    Raises:
        ValueError: it did (a loop over a free size, for example).
    """
    shape_env = mode.shape_env
    before = dict(shape_env.replacements) if shape_env is not None else {}
    with sizes_without_special_cases():
        yield
    if shape_env is not None:
        for symbol, value in shape_env.replacements.items():
            if value.is_number and before.get(symbol) != value:
                raise ValueError(f"it fixes the size {names_of(shape_env).get(symbol, symbol)} to {value}")


def _tensors_near(call: Call) -> list[fx.Node]:
    """Nodes of the same graph, to find its fake mode when the call itself takes no tensor."""
    if not call.values:
        return []
    return [n for n in call.values[0].graph.nodes if "val" in n.meta]


def _run(function: Callable[..., Any], call: Call, *values: Any) -> tuple[Any, ...]:
    def fill(argument: Any) -> Any:
        if isinstance(argument, Argument):
            return values[argument.index]
        if isinstance(argument, tuple):
            return [fill(a) for a in argument]
        return argument

    result = function(*map(fill, call.positional), **{k: fill(v) for k, v in call.keywords.items()})
    return tuple(result) if isinstance(result, tuple | list) else (result,)


def _decompositions(target: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """The ways in which torch itself takes an operator apart, the preferred one first."""
    if not isinstance(target, torch._ops.OpOverload):  # noqa: SLF001
        return
    if (function := decomposition_table.get(target)) is not None:
        yield function
    key = torch._C.DispatchKey.CompositeImplicitAutograd  # noqa: SLF001
    if target.has_kernel_for_dispatch_key(key):
        yield functools.partial(target._op_dk, key)  # noqa: SLF001


def _is_progress(graph: fx.GraphModule, call: Call) -> bool:
    """Is the decomposition something else than the call itself?"""
    return all(node.target is not call.target for node in graph.graph.nodes)
