"""ExportedProgram → TypedGraph: inputs, outputs and state told apart, symbols named, relations read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sympy
import torch
from torch import fx
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from fx2onnx import dims
from fx2onnx.capture.dynamic import Request
from fx2onnx.capture.relations import place_of, relations_of
from fx2onnx.capture.results import outputs_of
from fx2onnx.capture.signature import Arguments
from fx2onnx.dims import Dim
from fx2onnx.errors import CaptureError, PinnedDimError
from fx2onnx.graph import Input, Relation, TypedGraph
from fx2onnx.types import names_of


def typed_graph(
    program: torch.export.ExportedProgram,
    arguments: Arguments,
    requests: Sequence[Request],
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
) -> TypedGraph:
    """The typed graph of a traced program; the program's graph itself becomes the graph's.

    Raises:
        PinnedDimError: a size that must stay dynamic is fixed.
    """
    module = program.graph_module
    placeholders = module.graph.find_nodes(op="placeholder")
    by_leaf, state, state_names = _sort_placeholders(program, placeholders)
    relations: list[Relation] = []
    if (shape_env := _shape_env(placeholders)) is not None:
        relations += _name_sizes(shape_env, by_leaf, requests)
        _name_rest(shape_env, by_leaf, arguments)
        relations += relations_of(shape_env)
    inputs = _inputs(arguments, by_leaf, input_names)
    values, spec = _user_outputs(program)
    outputs = outputs_of(values, spec, output_names, [i.name for i in inputs])
    tensors = [v for v, o in zip(values, outputs, strict=True) if o.name is not None]
    module.graph.output_node().args = (tuple(tensors),)
    for node in placeholders:
        if node.name not in state and all(node is not by_leaf[i.leaf] for i in inputs):
            _drop_constant_input(module.graph, node)
    return TypedGraph(
        module,
        inputs,
        outputs,
        state,
        state_names,
        in_spec=arguments.spec,
        out_spec=spec,
        input_constants=_input_constants(arguments),
        relations=_distinct(relations),
    )


def _sort_placeholders(
    program: torch.export.ExportedProgram, placeholders: Sequence[fx.Node]
) -> tuple[dict[int, fx.Node], dict[str, torch.Tensor], dict[str, str]]:
    """User inputs by leaf position; state tensors and their qualified names by placeholder name."""
    by_leaf: dict[int, fx.Node] = {}
    state: dict[str, torch.Tensor] = {}
    names: dict[str, str] = {}
    for node, spec in zip(placeholders, program.graph_signature.input_specs, strict=True):
        if spec.kind is InputKind.USER_INPUT:
            by_leaf[len(by_leaf)] = node
        elif spec.kind in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR):
            state[node.name] = _state_tensor(program, str(spec.target))
            names[node.name] = str(spec.target)
        elif node.users:
            raise CaptureError(f"the model holds {spec.target}, which is no tensor ({spec.kind.name})")
    return by_leaf, state, names


def _state_tensor(program: torch.export.ExportedProgram, target: str) -> torch.Tensor:
    found: torch.Tensor | None = program.state_dict.get(target)
    if found is None:
        found = program.constants[target]
    assert isinstance(found, torch.Tensor)  # the caller asks for tensors only
    return found.detach()


def _shape_env(placeholders: Sequence[fx.Node]) -> ShapeEnv | None:
    for node in placeholders:
        mode = getattr(node.meta.get("val"), "fake_mode", None)
        if mode is not None and mode.shape_env is not None:
            return mode.shape_env  # type: ignore[no-any-return]
    return None


def _symbolic(node: fx.Node, axis: int) -> sympy.Expr | int:
    """The size of an input's axis: torch's expression, or the number it is fixed to."""
    size = node.meta["val"].shape[axis]
    if isinstance(size, torch.SymInt):
        number = size.node.maybe_as_int()
        return size.node.expr if number is None else number
    return int(size)


def _name_sizes(
    shape_env: ShapeEnv, by_leaf: dict[int, fx.Node], requests: Sequence[Request]
) -> Iterator[Relation]:
    """Give torch's symbols the user's names; names alone first, then expressions over names.

    Yields what the model needs of the user's sizes beyond their names.
    """
    names = names_of(shape_env)
    for request in sorted(requests, key=lambda r: not _is_name(r.size)):
        found = _symbolic(by_leaf[request.leaf.index], request.axis)
        if isinstance(found, int):
            if request.strict:
                raise PinnedDimError(request.text, str(found), where=_where_fixed(shape_env, request))
            continue
        if found.is_Symbol and found not in names:
            if request.size is not None:
                names.rename(found, request.size)
        elif request.size is not None:
            known = names.from_torch(found)
            if dims.same(known, request.size) is not True:
                text = f"{dims.show(request.size)} == {dims.show(known)}"
                where = _where_fixed(shape_env, request)
                yield Relation(request.size, "==", known, where, text)
        yield from _bound_relations(request)


def _is_name(size: Dim | None) -> bool:
    return not isinstance(size, int) and size is not None and bool(size.is_Symbol)


def _bound_relations(request: Request) -> Iterator[Relation]:
    """The bounds that the user gave with a Dim."""
    if request.size is None:
        return
    text = dims.show(request.size)
    if request.low > 0:
        yield Relation(request.size, ">=", request.low, None, f"{text} >= {request.low}")
    if request.high is not None:
        yield Relation(request.size, "<=", request.high, None, f"{text} <= {request.high}")


def _where_fixed(shape_env: ShapeEnv, request: Request) -> str | None:
    """The line that fixed an axis: torch remembers it for each symbol that it replaced."""
    position = f".size()[{request.axis}]"
    for source, symbol in shape_env.source_to_var.items():
        if source.endswith(position) and _is_source_of(source, request):
            place = shape_env.replacements_slocs.get(symbol)
            if place is not None:
                return place_of(place)
    return None


def _is_source_of(source: str, request: Request) -> bool:
    """Does torch's source `L['x'][0].size()[1]` speak of a leaf with this path?"""
    parts = [
        part.strip("'\"")
        for part in source.split(".size()", maxsplit=1)[0].removeprefix("L").strip("[]").split("][")
    ]
    return parts[-1:] == [str(request.leaf.path[-1])] and parts[0] in (
        str(request.leaf.path[0]),
        "args",
        "kwargs",
    )


def _name_rest(shape_env: ShapeEnv, by_leaf: dict[int, fx.Node], arguments: Arguments) -> None:
    """Name the free sizes that the user did not name after the input that carries them."""
    names = names_of(shape_env)
    for leaf in arguments.tensors():
        node = by_leaf[leaf.index]
        for axis in range(leaf.value.dim()):
            found = _symbolic(node, axis)
            if not isinstance(found, int) and found.is_Symbol and found not in names:
                names.rename(found, dims.symbol(f"{leaf.name}.{axis}"))


def _inputs(
    arguments: Arguments, by_leaf: dict[int, fx.Node], input_names: Sequence[str] | None
) -> tuple[Input, ...]:
    tensors = arguments.tensors()
    names = [*(input_names or ()), *(leaf.name for leaf in tensors[len(input_names or ()) :])]
    return tuple(
        Input(name, by_leaf[leaf.index].name, leaf.index) for name, leaf in zip(names, tensors, strict=True)
    )


def _input_constants(arguments: Arguments) -> dict[int, Any]:
    return {leaf.index: leaf.value for leaf in arguments.leaves if not isinstance(leaf.value, torch.Tensor)}


def _user_outputs(program: torch.export.ExportedProgram) -> tuple[list[Any], Any]:
    """The values that the model returns (nodes and constants), and their pytree."""
    (results,) = program.graph_module.graph.output_node().args
    specs = program.graph_signature.output_specs
    values = [
        value
        for value, spec in zip(results, specs, strict=True)  # type: ignore[arg-type]
        if spec.kind is OutputKind.USER_OUTPUT
    ]
    return values, program.call_spec.out_spec


def _drop_constant_input(graph: fx.Graph, node: fx.Node) -> None:
    """A Python value among the inputs is part of the graph: its placeholder goes."""
    value = node.meta.get("val")
    for user in list(node.users):
        user.args = fx.node.map_arg(user.args, lambda n: value if n is node else n)
        user.kwargs = fx.node.map_arg(user.kwargs, lambda n: value if n is node else n)
    graph.erase_node(node)


def _distinct(relations: Sequence[Relation]) -> tuple[Relation, ...]:
    return tuple({r.text: r for r in reversed(relations)}.values())[::-1]
