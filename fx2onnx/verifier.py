"""What holds for every typed graph between two passes: a table of invariants, and `check`, which goes through it."""

from __future__ import annotations

import contextlib
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch import fx
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from fx2onnx import dims, origin
from fx2onnx.calls import bind
from fx2onnx.dims import Dim
from fx2onnx.errors import InvariantError
from fx2onnx.graph import TypedGraph, attribute
from fx2onnx.infer import NotInferableError, argument_values, infer, same_size, same_type, sizes_in
from fx2onnx.interpret import run
from fx2onnx.passes.writes import written
from fx2onnx.text import show_node, show_type
from fx2onnx.types import SizeType, TensorType, Type, type_of, type_of_value


@dataclass(frozen=True)
class Problem:
    """A place where an invariant does not hold."""

    what: str
    node: fx.Node | None = None


Invariant = Callable[[TypedGraph], Iterator[Problem]]


# -- structure -------------------------------------------------------------------------------------


def arguments_come_first(graph: TypedGraph) -> Iterator[Problem]:
    """Nodes read nodes of their own graph that stand before them."""
    for module in graph.graphs():
        made: set[fx.Node] = set()
        for node in module.graph.nodes:
            for argument in node.all_input_nodes:
                if argument not in made:
                    late = "comes later" if argument.graph is module.graph else "is of another graph"
                    yield Problem(f"{node.name} reads {argument.name}, which {late}", node)
            made.add(node)


def callees_exist(graph: TypedGraph) -> Iterator[Problem]:
    """`call_module` nodes call regions, `get_attr` nodes hold something, and there are no other kinds of calls."""
    for module in [graph.module, *_reachable(graph.module)]:
        for node in module.graph.nodes:
            if node.op == "call_method":
                yield Problem(f"{node.name} is a method call", node)
            elif node.op in ("call_module", "get_attr"):
                yield from _missing_callee(module, node)


def _missing_callee(module: fx.GraphModule, node: fx.Node) -> Iterator[Problem]:
    try:
        found = attribute(module, str(node.target))
    except AttributeError:
        yield Problem(f"{node.name} names {node.target}, which is not there", node)
        return
    if node.op == "call_module" and not isinstance(found, fx.GraphModule):
        yield Problem(f"{node.name} calls a {type(found).__name__}, not a region", node)


def _reachable(module: fx.GraphModule) -> Iterator[fx.GraphModule]:
    """The called graphs that are there; unlike `TypedGraph.graphs` it passes over what is missing."""
    seen: set[int] = set()
    stack = [module]
    while stack:
        current = stack.pop()
        for node in current.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                with contextlib.suppress(AttributeError):
                    callee = attribute(current, str(node.target))
                    if isinstance(callee, fx.GraphModule) and id(callee) not in seen:
                        seen.add(id(callee))
                        stack.append(callee)
                        yield callee


def placeholders_are_known(graph: TypedGraph) -> Iterator[Problem]:
    """Every placeholder of the top graph is an input or a state, and each of those has one."""
    inputs, state = [i.placeholder for i in graph.inputs], list(graph.state)
    found = graph.placeholders()
    for name, count in Counter([*inputs, *state]).items():
        if count > 1:
            yield Problem(f"the placeholder {name} is named {count} times", found.get(name))
        if name not in found:
            yield Problem(f"{name} is {'an input' if name in inputs else 'a state'} and has no placeholder")
    for name, node in found.items():
        if name not in inputs and name not in graph.state:
            yield Problem(f"the placeholder {name} is neither an input nor a state", node)


def names_are_unique(graph: TypedGraph) -> Iterator[Problem]:
    """Inputs and outputs of the model have names of their own, and so do the nodes of a graph."""
    names = [*(i.name for i in graph.inputs), *(o.name for o in graph.outputs if o.name is not None)]
    for name, count in Counter(names).items():
        if count > 1:
            yield Problem(f"{count} inputs or outputs are called {name!r}")
    for module in graph.graphs():
        for name, count in Counter(n.name for n in module.graph.nodes).items():
            if count > 1:
                node = next(n for n in module.graph.nodes if n.name == name)
                yield Problem(f"{count} nodes are called {name!r}", node)


def outputs_are_described(graph: TypedGraph) -> Iterator[Problem]:
    """The graph returns a flat tuple of tensors, one for each output that is no constant."""
    node = graph.module.graph.output_node()
    values = node.args[0]
    if not isinstance(values, tuple):
        yield Problem("the graph returns something else than a tuple", node)
        return
    described = [o for o in graph.outputs if o.name is not None or o.mutated is not None]
    if len(values) != len(described):
        yield Problem(f"the graph returns {len(values)} values, {len(described)} are described", node)
    for value, output in zip(values, described, strict=False):
        what = output.name or f"the new {output.mutated}"
        if not isinstance(value, fx.Node) or not isinstance(type_of(value), TensorType):
            yield Problem(f"{what} is no tensor", node)
    for name, count in Counter(o.mutated for o in described if o.mutated is not None).items():
        if count > 1:
            yield Problem(f"{count} outputs are new values of {name}", node)


# -- types -----------------------------------------------------------------------------------------


def values_are_typed(graph: TypedGraph) -> Iterator[Problem]:
    """Every node that makes something has a value in `meta["val"]` with a type."""
    for module in graph.graphs():
        for node in module.graph.nodes:
            if node.op == "output" or (node.op == "get_attr" and _holds_graph(module, node)):
                continue
            if "val" not in node.meta and not _returns_nothing(node):
                yield Problem(f"{node.name} has no value", node)
            elif type_of(node) is None and not _returns_nothing(node) and node.users:
                yield Problem(f"{node.name} has no type", node)


def _holds_graph(module: fx.GraphModule, node: fx.Node) -> bool:
    return isinstance(attribute(module, str(node.target)), fx.GraphModule)


def _returns_nothing(node: fx.Node) -> bool:
    return isinstance(node.target, OpOverload) and not node.target._schema.returns  # noqa: SLF001


def state_has_its_type(graph: TypedGraph) -> Iterator[Problem]:
    """A state's placeholder has the dtype and shape of its tensor."""
    placeholders = graph.placeholders()
    for name, tensor in graph.state.items():
        found = type_of_value(tensor)
        node = placeholders.get(name)
        if node is not None and not same_type(type_of(node), found):
            yield Problem(f"{name} is {show_type(type_of(node))}, its tensor {show_type(found)}", node)


def region_calls_fit(graph: TypedGraph) -> Iterator[Problem]:
    """A call of a region passes and gets what the region takes and makes."""
    for module in graph.graphs():
        for node in module.graph.find_nodes(op="call_module"):
            region = attribute(module, str(node.target))
            formal = region.graph.find_nodes(op="placeholder")
            if node.kwargs or len(node.args) != len(formal):
                yield Problem(
                    f"{node.name} passes {len(node.args)} values, the region takes {len(formal)}", node
                )
                continue
            for parameter, argument in zip(formal, node.args, strict=True):
                found = type_of(argument) if isinstance(argument, fx.Node) else type_of_value(argument)
                if not same_type(type_of(parameter), found):
                    wanted = show_type(type_of(parameter))
                    yield Problem(
                        f"{node.name} passes {show_type(found)} as {parameter.name}: {wanted}", node
                    )
            result = fx.node.map_arg(region.graph.output_node().args[0], lambda n: n.meta.get("val"))
            if not same_type(type_of_value(result), type_of(node)):
                made = show_type(type_of_value(result))
                yield Problem(f"{node.name} is {show_type(type_of(node))}, the region makes {made}", node)


def types_are_inferred_types(graph: TypedGraph) -> Iterator[Problem]:
    """What PyTorch makes of the stored types of a call's arguments is the stored type of its result.

    Sizes that depend on data are new symbols each time, and compared up to their names. Equal calls are looked at
    once.
    """
    mode = fake_mode_of(graph)
    seen: set[Any] = set()
    with _without_traces(mode):
        for module in graph.graphs():
            for node in _calls(module):
                key = _key(node)
                if key is None or key not in seen:
                    seen.add(key)
                    yield from _inferred_otherwise(module, node, mode)


def _calls(module: fx.GraphModule) -> list[fx.Node]:
    return [n for n in module.graph.nodes if n.op == "call_function"]


def _key(node: fx.Node) -> Any:
    """Equal for calls that have equal types all around; None for a call that must be looked at by itself."""
    if not isinstance(node.target, OpOverload):
        return None
    try:
        key = bind(node).key
        hash(key)
    except TypeError:  # a list of several values as one argument, or an unhashable constant
        return None
    return key


def fake_mode_of(graph: TypedGraph) -> FakeTensorMode | None:
    """The mode of the graph's fake tensors; None when it has none."""
    for module in graph.graphs():
        for node in module.graph.nodes:
            for leaf in torch.utils._pytree.tree_leaves(node.meta.get("val")):  # noqa: SLF001
                if isinstance(leaf, FakeTensor):
                    return leaf.fake_mode
    return None


@contextlib.contextmanager
def _without_traces(mode: FakeTensorMode | None) -> Iterator[None]:
    """Within this context, running operators leaves no guards and no pending symbols in the graph's ShapeEnv."""
    shape_env: ShapeEnv | None = None if mode is None else mode.shape_env
    if shape_env is None:
        yield
        return
    with shape_env.suppress_guards(), shape_env.ignore_fresh_unbacked_symbols():
        yield


def _inferred_otherwise(
    module: fx.GraphModule, node: fx.Node, mode: FakeTensorMode | None
) -> Iterator[Problem]:
    stored = type_of(node)
    if node.target is operator.getitem and isinstance(stored_of := type_of(node.args[0]), tuple):  # type: ignore[arg-type]
        position = node.args[1]
        if not isinstance(position, int) or position >= len(stored_of):
            yield Problem(f"{node.name} is item {position} of {show_type(stored_of)}", node)
        elif not same_type(stored_of[position], stored):
            yield Problem(
                f"{node.name} is {show_type(stored)}, the item {show_type(stored_of[position])}", node
            )
        return
    args, kwargs = argument_values(module, node)
    try:
        found = type_of_value(infer(node.target, args, kwargs, mode))  # type: ignore[arg-type]
    except NotInferableError:
        return
    except Exception as error:  # noqa: BLE001  operators raise what they like for arguments that do not fit
        first = (str(error).splitlines() or ["no message"])[0]
        yield Problem(f"{node.target} does not take the arguments of {node.name}: {first}", node)
        return
    if not _Renaming(_fresh_names(found)).same(found, stored):
        yield Problem(f"{node.name} is {show_type(stored)}, PyTorch makes {show_type(found)}", node)


def _fresh_names(type_: Type | None) -> set[str]:
    """The sizes of a type that have torch's own names for sizes that depend on data (`u7`)."""
    return {
        name
        for size in sizes_in(type_)
        for name in dims.names(size)
        if name[:1] == "u" and name[1:].isdigit()
    }


class _Renaming:
    """Compares types in which some names of the first stand for any size of the second."""

    def __init__(self, fresh: set[str]) -> None:
        self.fresh = fresh
        self.bound: dict[Any, sympy.Expr] = {}

    def same(self, a: Type | None, b: Type | None) -> bool:
        if isinstance(a, TensorType) and isinstance(b, TensorType):
            return (
                a.dtype == b.dtype
                and len(a.shape) == len(b.shape)
                and all(self._size(x, y) for x, y in zip(a.shape, b.shape, strict=True))
            )
        if isinstance(a, SizeType) and isinstance(b, SizeType) and a.expr is not None and b.expr is not None:
            return a.kind is b.kind and self._size(a.expr, b.expr)
        if isinstance(a, tuple) and isinstance(b, tuple):
            return len(a) == len(b) and all(self.same(x, y) for x, y in zip(a, b, strict=True))
        return same_type(a, b)

    def _size(self, a: Dim, b: Dim) -> bool:
        if isinstance(a, int):
            return same_size(a, b)
        if a.is_Symbol and a.name in self.fresh and a not in self.bound:
            self.bound[a] = sympy.Integer(b) if isinstance(b, int) else b
            return True
        return same_size(dims.dim(a.xreplace(self.bound)), b)


# -- mutation --------------------------------------------------------------------------------------


def nothing_is_written(graph: TypedGraph) -> Iterator[Problem]:
    """No call changes its arguments."""
    for module in graph.graphs():
        for node in _calls(module):
            if any(argument is not None for argument in written(node)):
                yield Problem(f"{node.name} writes to its arguments ({node.target})", node)


INVARIANTS: tuple[tuple[str, Invariant], ...] = (
    ("what is called is there", callees_exist),
    ("every argument is made before it is read", arguments_come_first),
    ("every placeholder is an input or a state", placeholders_are_known),
    ("names are unique", names_are_unique),
    ("every value has a type", values_are_typed),
    ("state has its tensor's type", state_has_its_type),
    ("the results are the described outputs", outputs_are_described),
    ("region calls fit their regions", region_calls_fit),
    ("no mutation is left", nothing_is_written),
    ("the stored type is the inferred type", types_are_inferred_types),
)
"""The invariants in order; later ones may rely on earlier ones."""


def check(graph: TypedGraph, *, stage: str, functional: bool = True) -> None:
    """Go through the invariants.

    Args:
        graph: any typed graph.
        stage: the pass or stage that made it, for the message.
        functional: must the graph be free of mutation? Before `functionalize` it need not.

    Raises:
        InvariantError: the first invariant that does not hold, with the node, the user's line and the graph around.
    """
    for sentence, holds in INVARIANTS:
        if holds is nothing_is_written and not functional:
            continue
        if (problem := next(holds(graph), None)) is not None:
            raise _error(problem, sentence, stage)


def _error(problem: Problem, sentence: str, stage: str) -> InvariantError:
    what = f'after {stage}, "{sentence}" does not hold: {problem.what}'
    if problem.node is None:
        return InvariantError(what)
    return InvariantError(f"{what}\n{around(problem.node)}", where=origin.user_line(problem.node))


def around(node: fx.Node, lines: int = 4) -> str:
    """The lines of a graph around a node, which is marked."""
    nodes = list(node.graph.nodes)
    position = nodes.index(node)
    shown = nodes[max(0, position - lines) : position + lines + 1]
    return "\n".join(f"  {'>' if n is node else ' '} {show_node(n)}" for n in shown)


# -- values ----------------------------------------------------------------------------------------

_TOLERANCE = {torch.float16: 2e-2, torch.bfloat16: 4e-2, torch.float64: 1e-9}


def outputs_unchanged(before: TypedGraph, after: TypedGraph, inputs: Sequence[torch.Tensor]) -> None:
    """Run two graphs on real inputs and compare their results.

    Args:
        before, after: a graph, and what a pass made of it.
        inputs: tensors in the order of `before.inputs`; they are not changed.

    Raises:
        InvariantError: a result has another dtype, another shape or other values (beyond rounding).
    """
    expected, made = run(before, inputs), run(after, inputs)
    for leaf, value in expected.items():
        if leaf not in made:
            raise InvariantError(f"result {leaf} is gone")
        if problem := _unlike(made[leaf], value):
            raise InvariantError(f"result {leaf} has changed: {problem}")


def _unlike(made: torch.Tensor, expected: torch.Tensor) -> str | None:
    if (made.dtype, made.shape) != (expected.dtype, expected.shape):
        return f"{made.dtype}{list(made.shape)} instead of {expected.dtype}{list(expected.shape)}"
    if not expected.is_floating_point() and not expected.is_complex():
        return None if torch.equal(made, expected) else "other values"
    limit = _TOLERANCE.get(expected.dtype, 1e-4)
    scale = expected[expected.isfinite()].abs().max().item() if expected.isfinite().any() else 1.0
    if torch.allclose(made, expected, rtol=limit, atol=limit * max(scale, 1e-30), equal_nan=True):
        return None
    return (
        f"values differ by {(made - expected).abs().nan_to_num().max().item():.3g} at a scale of {scale:.3g}"
    )
