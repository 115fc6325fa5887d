"""Checking a lowering rule: export one call, run it in ONNX Runtime, compare with eager PyTorch.

    check(Case(aten.gelu.default, (torch.randn(2, 3),), why="the exact form"))

Calls of an operator are not traced: the graph of one call is written down directly (`graph_of_call`), with
fake tensors whose equal sizes share one symbol.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import sympy
import torch
from torch import fx
from torch._dynamo.source import ConstantSource
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    ShapeEnv,
    StatelessSymbolicContext,
    free_symbols,
)
from torch.utils import _pytree as pytree

from fx2onnx import dims
from fx2onnx.capture import capture
from fx2onnx.compose import compose
from fx2onnx.errors import PinnedDimError
from fx2onnx.graph import Input, Output, TypedGraph, new_module
from fx2onnx.infer import infer
from fx2onnx.lower import lower_graph
from fx2onnx.opset import book
from fx2onnx.opset.cases import Case
from fx2onnx.passes import default_pipeline, prepare_pieces
from fx2onnx.rules import RuleBook
from fx2onnx.torch_sizes import sizes_without_special_cases
from fx2onnx.types import DTYPES, names_of

Axes = Mapping[int, Sequence[int]]

# (rtol, atol) of comparisons; a reduction in another order is within these on the small tensors of cases.
TOLERANCES: dict[torch.dtype, tuple[float, float]] = {
    torch.float64: (1e-7, 1e-9),
    torch.float32: (1e-5, 2e-6),
    torch.float16: (2e-3, 2e-3),
    torch.bfloat16: (1.6e-2, 1e-2),
}


class RuntimeRefusalError(RuntimeError):
    """ONNX Runtime refused to load or to run a model."""


def check(case: Case, *, dynamic: bool, opset: int = 23, rules: RuleBook | None = None) -> onnx.ModelProto:
    """Export a case and compare its results with eager PyTorch's; returns the model.

    Args:
        case: what to export.
        dynamic: with free sizes, run at the example's sizes and at others; else with the example's.
        opset: version of the ai.onnx domain.
        rules: the rule book; the project's own where omitted.

    Raises:
        AssertionError: a value, a dtype or a shape differs.
        RuntimeRefusalError: ONNX Runtime does not load or run the model.
        Fx2OnnxError: the case could not be exported.
    """
    tensors = tensors_of(case)
    axes = dynamic_axes(case, tensors) if dynamic else {}
    graph = graph_of(case, axes)
    # functions are tried with free sizes, the flat form with fixed ones
    model = build(graph, rules or book(), opset=opset, functions="ops" if dynamic else "none")
    runs = [tensors]
    if dynamic and axes:
        runs.append(tuple(case.second) if case.second is not None else other_sizes(tensors, axes))
    session = load(model)
    for inputs in runs:
        expected = eager(case, inputs)
        actual = run(session, inputs)
        assert len(actual) == len(expected), f"{len(actual)} results, eager makes {len(expected)}"
        for made, wanted in zip(actual, expected, strict=True):
            compare(made, wanted, case)
    return model


def tensors_of(case: Case) -> tuple[torch.Tensor, ...]:
    """The tensors among a case's arguments, in pytree order."""
    leaves = pytree.tree_leaves((case.args, dict(case.kwargs)))
    return tuple(leaf for leaf in leaves if isinstance(leaf, torch.Tensor))


def with_tensors(case: Case, tensors: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a case with other tensors (or nodes) in the places of its own."""
    rest = iter(tensors)
    leaves, spec = pytree.tree_flatten((case.args, dict(case.kwargs)))
    filled = [next(rest) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
    args, kwargs = pytree.tree_unflatten(filled, spec)
    return args, kwargs


def eager(case: Case, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """What PyTorch makes of a case with these tensors: its tensor results, numbers as tensors."""
    args, kwargs = with_tensors(case, [t.clone() for t in tensors])
    with torch.no_grad():
        leaves = pytree.tree_leaves(case.target(*args, **kwargs))
    return tuple(leaf if isinstance(leaf, torch.Tensor) else torch.tensor([leaf]) for leaf in leaves)


# -- sizes -------------------------------------------------------------------------------------------


def dynamic_axes(case: Case, tensors: Sequence[torch.Tensor]) -> Axes:
    """The axes of each tensor that are free in the dynamic export of a case."""
    if isinstance(case.dynamic, Mapping):
        return case.dynamic
    if not case.dynamic:
        return {}
    free = {i: [a for a, size in enumerate(t.shape) if size > 1] for i, t in enumerate(tensors)}
    return {i: axes for i, axes in free.items() if axes}


def other_sizes(tensors: Sequence[torch.Tensor], axes: Axes) -> tuple[torch.Tensor, ...]:
    """The tensors with every free size one larger; their values are repeated, so that indices stay valid."""
    made = list(tensors)
    for i, free in axes.items():
        for axis in free:
            size = tensors[i].shape[axis]
            positions = torch.arange(size + 1) % max(size, 1)
            made[i] = made[i].index_select(axis, positions)
    return tuple(made)


# -- graphs ------------------------------------------------------------------------------------------


def graph_of(case: Case, axes: Axes) -> TypedGraph:
    """The typed graph of a case in which these axes are free."""
    if isinstance(case.target, torch._ops.OpOverload):
        return graph_of_call(case, axes)
    return _traced(case, axes)


def _traced(case: Case, axes: Axes) -> TypedGraph:
    """A function of tensors, traced and passed as a model is."""

    def forward(*inputs: torch.Tensor) -> Any:
        args, kwargs = with_tensors(case, inputs)
        return case.target(*args, **kwargs)

    tensors = tensors_of(case)
    shapes = {
        "inputs": tuple(
            {axis: f"d{t.shape[axis]}" for axis in axes.get(i, ())} or None for i, t in enumerate(tensors)
        )
    }
    return default_pipeline()(capture(forward, tensors, dynamic_shapes=shapes if axes else None))


def graph_of_call(case: Case, axes: Axes) -> TypedGraph:
    """The typed graph of one operator call; free axes of equal size share a name (`d3`).

    Raises:
        PinnedDimError: the operator fixes a size that was to be free.
    """
    shape_env = ShapeEnv()
    mode = FakeTensorMode(shape_env=shape_env, static_shapes=False)
    tensors = tensors_of(case)
    with sizes_without_special_cases():
        fakes = [_fake(mode, t, i, axes.get(i, ())) for i, t in enumerate(tensors)]
        _name_sizes(shape_env, tensors, fakes)
        args, kwargs = with_tensors(case, fakes)
        result = infer(case.target, args, kwargs, mode)
    _refuse_pinned(shape_env, tensors, axes)
    graph = fx.Graph()
    nodes = []
    for i, fake in enumerate(fakes):
        nodes.append(graph.placeholder(f"x{i}"))
        nodes[-1].meta["val"] = fake
    args, kwargs = with_tensors(case, nodes)
    call = graph.call_function(case.target, args, kwargs)
    call.meta["val"] = result
    outputs = _results(graph, call, result)
    graph.output(tuple(outputs))
    return TypedGraph(
        new_module({}, graph, "Case"),
        tuple(Input(n.name, n.name, i) for i, n in enumerate(nodes)),
        tuple(Output(f"y{i}", leaf=i) for i in range(len(outputs))),
        {},
        {},
    )


def _fake(mode: FakeTensorMode, tensor: torch.Tensor, index: int, free: Sequence[int]) -> FakeTensor:
    kinds = [DimDynamic.DUCK if axis in free else DimDynamic.STATIC for axis in range(tensor.dim())]
    context: Any = StatelessSymbolicContext(dynamic_sizes=kinds)
    return mode.from_tensor(tensor, source=ConstantSource(f"x{index}"), symbolic_context=context)


def _name_sizes(shape_env: ShapeEnv, tensors: Sequence[torch.Tensor], fakes: Sequence[torch.Tensor]) -> None:
    names = names_of(shape_env)
    for tensor, fake in zip(tensors, fakes, strict=True):
        for number, size in zip(tensor.shape, fake.shape, strict=True):
            if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
                names.rename(size.node.expr, dims.symbol(f"d{number}"))


def _refuse_pinned(shape_env: ShapeEnv, tensors: Sequence[torch.Tensor], axes: Axes) -> None:
    """Every guard must hold at the sizes of the second run too."""
    second = {
        symbol: int(number) + 1
        for symbol, number in shape_env.backed_var_to_val.items()
        if any(int(number) == tensors[i].shape[a] for i, free in axes.items() for a in free)
    }
    for guard in shape_env.guards:
        if free_symbols(guard.expr) and guard.expr.xreplace(second) is sympy.false:
            raise PinnedDimError("a size of the case", str(guard.expr), where=None)


def _results(graph: fx.Graph, call: fx.Node, result: Any) -> list[fx.Node]:
    if not isinstance(result, tuple | list):
        return [call]
    nodes = []
    for i, value in enumerate(result):
        if isinstance(value, torch.Tensor):
            nodes.append(graph.call_function(operator.getitem, (call, i)))
            nodes[-1].meta["val"] = value
    return nodes


# -- models ------------------------------------------------------------------------------------------


def build(graph: TypedGraph, rules: RuleBook, *, opset: int, functions: str) -> onnx.ModelProto:
    """Lower and compose a graph; the model has passed the ONNX checker in full mode."""
    lowered = lower_graph(graph, rules, opset=opset, functions=functions, prepare=prepare_pieces)
    proto = ir.to_proto(compose(lowered, graph, opset=opset, producer_version="testing"))
    onnx.checker.check_model(proto, full_check=True)
    return proto


def load(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    """A session for the model on one CPU thread.

    Raises:
        RuntimeRefusalError: ONNX Runtime does not load it.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime's exceptions share no base class
        raise RuntimeRefusalError(str(error)) from error


def run(session: onnxruntime.InferenceSession, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """What a session makes of tensors that are named `x0`, `x1`, … or `inputs.0`, `inputs.1`, ….

    Raises:
        RuntimeRefusalError: ONNX Runtime fails on the way.
    """
    names = {i.name for i in session.get_inputs()}
    feeds = {
        f"{stem}{i}": x for i, x in enumerate(inputs) for stem in ("x", "inputs.") if f"{stem}{i}" in names
    }
    try:
        made = session.run_with_ort_values(None, {name: to_runtime(x) for name, x in feeds.items()})
    except Exception as error:  # ONNX Runtime's exceptions share no base class
        raise RuntimeRefusalError(str(error)) from error
    return [from_runtime(value) for value in made]


def to_runtime(tensor: torch.Tensor) -> onnxruntime.OrtValue:
    """A tensor as ONNX Runtime takes it; dtypes that NumPy lacks are passed as bits."""
    tensor = tensor.detach().contiguous()
    bits = _BITS.get(tensor.dtype)
    if bits is None:
        return onnxruntime.OrtValue.ortvalue_from_numpy(np.array(tensor.numpy()))
    array = np.array(tensor.view(bits).numpy())
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array, int(DTYPES[tensor.dtype]))


def from_runtime(value: onnxruntime.OrtValue) -> torch.Tensor:
    """What ONNX Runtime made, as a tensor."""
    if value.data_type() == "tensor(bfloat16)":
        return torch.utils.dlpack.from_dlpack(value).clone()
    return torch.from_numpy(np.array(value.numpy()))


_BITS = {
    torch.bfloat16: torch.uint16,
    torch.float8_e4m3fn: torch.uint8,
    torch.float8_e4m3fnuz: torch.uint8,
    torch.float8_e5m2: torch.uint8,
    torch.float8_e5m2fnuz: torch.uint8,
}


def compare(made: torch.Tensor, wanted: torch.Tensor, case: Case) -> None:
    """Raise AssertionError unless dtype, shape and (within the tolerances) values agree; NaNs are equal."""
    assert made.dtype == wanted.dtype, f"made {made.dtype}, eager makes {wanted.dtype}"
    assert made.shape == wanted.shape, f"made {tuple(made.shape)}, eager makes {tuple(wanted.shape)}"
    if case.compare == "types":
        return
    rtol, atol = TOLERANCES.get(wanted.dtype, (0.0, 0.0))
    torch.testing.assert_close(
        made,
        wanted.resolve_neg(),
        rtol=rtol if case.rtol is None else case.rtol,
        atol=atol if case.atol is None else case.atol,
        equal_nan=True,
    )
