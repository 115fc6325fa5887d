"""Promotion: operands get the dtype that is computed in, for every pair of dtypes, and values stay eager values."""

from __future__ import annotations

import itertools
import operator

import pytest
import torch
from eager import check_passes
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from fx2onnx.graph import Input, Output, TypedGraph, new_module
from fx2onnx.passes import drop_noops, functionalize, promote_types
from fx2onnx.passes.promote_types import _COMPARISONS, _promotes

torch.set_num_threads(1)
aten = torch.ops.aten

INTEGERS = [[1, 2], [3, -4], [5, 6]]
TENSORS = {
    torch.float64: torch.tensor(INTEGERS, dtype=torch.float64) * 0.7,
    torch.float32: torch.tensor(INTEGERS) * 0.3,
    torch.float16: torch.tensor(INTEGERS).half() * 0.5,
    torch.int64: torch.tensor(INTEGERS),
    torch.int32: torch.tensor(INTEGERS, dtype=torch.int32),
    torch.uint8: torch.tensor([[1, 2], [3, 4], [5, 6]], dtype=torch.uint8),
    torch.bool: torch.tensor([[True, False], [True, True], [False, False]]),
}
BINARY = {
    "add": torch.add,
    "mul": torch.mul,
    "div": torch.div,
    "floor div": lambda a, b: torch.div(a, b, rounding_mode="floor"),
    "pow": torch.pow,
    "maximum": torch.maximum,
    "remainder": torch.remainder,
    "atan2": torch.atan2,
    "bitwise_and": torch.bitwise_and,
    "eq": torch.eq,
    "lt": torch.lt,
    "logical_and": torch.logical_and,
    "float_power": torch.float_power,
    "where": lambda a, b: torch.where(a > 0, a, b),
    "clamp": lambda a, b: torch.clamp(a, min=b),
    "cat": lambda a, b: torch.cat([a.reshape(-1), b.reshape(-1)]),
    "stack": lambda a, b: torch.stack(torch.broadcast_tensors(a, b)),
    "outer": lambda a, b: torch.outer(a.reshape(-1), b.reshape(-1)),
}
NUMBERS = {
    "add": operator.add,
    "sub from": lambda x, n: n - x,
    "mul": operator.mul,
    "div": operator.truediv,
    "floor div": operator.floordiv,
    "pow": operator.pow,
    "eq": operator.eq,
    "ge": operator.ge,
    "clamp": lambda x, n: x.clamp(max=n),
    "where": lambda x, n: torch.where(x > 0, x, n),
}
UNARY = {
    "sqrt": torch.sqrt,
    "sigmoid": torch.sigmoid,
    "expit": torch.special.expit,
    "abs": torch.abs,
    "floor": torch.floor,
    "isnan": torch.isnan,
    "logical_not": torch.logical_not,
    "sum": torch.sum,
    "sum of doubles": lambda x: x.sum(0, dtype=torch.float64),
    "sum of small integers": lambda x: x.sum(0, dtype=torch.int32),
    "mean of floats": lambda x: x.mean(1, dtype=torch.float32),
    "prod": torch.prod,
    "cumsum": lambda x: x.cumsum(0),
    "cumsum of small integers": lambda x: x.cumsum(0, dtype=torch.int32),
    "softmax of floats": lambda x: x.softmax(0, dtype=torch.float32),
    "norm of doubles": lambda x: torch.norm(x, 2, dtype=torch.float64),
    "norm of doubles along an axis": lambda x: torch.linalg.vector_norm(x, dim=0, dtype=torch.float64),
    "trace": lambda x: x[:2].trace(),
    "times a size": lambda x: x * x.shape[0],
    "plus half a size": lambda x: x + x.shape[0] / 2,
}


def _cases():
    for (name, function), (a, b) in itertools.product(BINARY.items(), itertools.product(TENSORS, repeat=2)):
        yield f"{name} {a} {b}", function, (TENSORS[a], TENSORS[b])
        if name in ("add", "div", "pow", "lt", "where"):
            yield f"{name} {a} 0-dim {b}", function, (TENSORS[a], TENSORS[b][2, 1])
    for (name, function), n, a in itertools.product(NUMBERS.items(), (2, 2.5, True, -1), TENSORS):
        if name == "pow" and n is True:
            continue  # torch.ops makes the exponent an int, tensor ** True does not
        yield f"{name} {a} {n}", lambda x, function=function, n=n: function(x, n), (TENSORS[a],)
    for (name, function), a in itertools.product(UNARY.items(), TENSORS):
        yield f"{name} {a}", function, (TENSORS[a],)


def traced(function, args) -> TypedGraph:
    """The graph of a function of tensors with fixed sizes; tracing alone is much faster than capturing a model."""
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fakes = [mode.from_tensor(a) for a in args]
        module = make_fx(lambda *xs: (function(*xs),), pre_dispatch=True)(*fakes)
    names = [n.name for n in module.graph.find_nodes(op="placeholder")]
    inputs = tuple(Input(name, name, i) for i, name in enumerate(names))
    return TypedGraph(new_module({}, module.graph, "Case"), inputs, (Output("y", leaf=0),), {}, {})


@pytest.mark.parametrize("group", range(8))
def test_every_pair_of_dtypes(group):
    checked = 0
    for name, function, args in itertools.islice(_cases(), group, None, 8):
        try:
            expected = function(*args)
        except RuntimeError:  # not every operator takes every dtype
            continue
        graph = promote_types.run(drop_noops.run(functionalize.run(traced(function, args))))
        with torch.no_grad():
            (made,) = graph.module(*args)
        assert made.dtype == expected.dtype, name
        tolerance = 1e-3 if made.dtype is torch.float16 else 1e-6
        assert torch.allclose(made, expected, rtol=tolerance, atol=tolerance, equal_nan=True), name
        _check_operands(graph, name)
        checked += 1
    assert checked > 100


def _check_operands(graph, name):
    """All tensors of a call are of the dtype that it computes in."""
    for node in graph.module.graph.nodes:
        if not isinstance(node.target, torch._ops.OpOverload) or not _promotes(node.target):
            continue
        tensors = [n.meta["val"] for n in node.all_input_nodes if isinstance(n.meta["val"], torch.Tensor)]
        operands = tensors[1:] if node.target.overloadpacket is aten.where else tensors
        wanted = {t.dtype for t in operands}
        assert len(wanted) <= 1, f"{name}: {node.target} of {wanted}"
        if node.target.overloadpacket not in _COMPARISONS:
            assert wanted <= {node.meta["val"].dtype}, f"{name}: {node.target}"


def test_a_size_promotes_like_a_number():
    def forward(x):
        return x * x.shape[0], x + x.shape[0] / 2, x > x.shape[0] / 2

    passes = (functionalize.run, drop_noops.run, promote_types.run)
    check_passes(forward, (torch.arange(6),), passes, dynamic_shapes={"x": {0: "n"}})
