"""Lowered graph and bodies → one onnx_ir.Model: functions, names, initializers, opset imports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import onnx_ir as ir
import torch

from fx2onnx.bodies import Body
from fx2onnx.builder import tensor
from fx2onnx.graph import Output, TypedGraph
from fx2onnx.lower import Lowered

# The IR version that came with each opset: older tools read older files. Source: ONNX Versioning.md.
IR_VERSIONS = {18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11, 24: 12, 25: 13, 26: 13, 27: 13, 28: 14}
FUNCTION_IR_VERSION = 10  # the first with value_info in functions
DOMAIN_VERSIONS = {"com.microsoft": 1, "ai.onnx.ml": 3}


def compose(lowered: Lowered, graph: TypedGraph, *, opset: int, producer_version: str) -> ir.Model:
    """The ONNX model of a lowered graph.

    Args:
        lowered: what `fx2onnx.lower.lower_graph` made of `graph`; its graph becomes the model's.
        graph: for the names of outputs and for the metadata.
        opset: version of the ai.onnx domain.
        producer_version: written into the model.
    """
    main = lowered.graph
    _initializers(main)
    _outputs(main, [o for o in graph.outputs if o.name is not None])
    functions = [_function(body, opset) for body in _reachable(lowered.callees)]
    for scope in (main, *(f.graph for f in functions)):
        _unique_names(scope)
    main.opset_imports.update(_imports(main, opset))
    newest = FUNCTION_IR_VERSION if functions else 0
    model = ir.Model(
        main,
        ir_version=max(IR_VERSIONS.get(opset, max(IR_VERSIONS.values())), newest),
        producer_name="fx2onnx",
        producer_version=producer_version,
        functions=functions,
        metadata_props=_metadata(graph),
    )
    for function in functions:
        for domain, version in function.graph.opset_imports.items():
            model.opset_imports.setdefault(domain, version)
    return model


def _metadata(graph: TypedGraph) -> dict[str, str]:
    found = {}
    if graph.relations:
        found["fx2onnx.relations"] = "\n".join(map(str, graph.relations))
    return found


def _initializers(main: ir.Graph) -> None:
    """Register the state that the graph reads; what nothing reads is left out."""
    for value in _read_values(main):
        state = value.meta.get("state")
        if isinstance(state, torch.Tensor) and value.const_value is None:
            value.const_value = tensor(state, value.name)
            main.register_initializer(value)


def _read_values(graph: ir.Graph) -> Iterator[ir.Value]:
    for node in graph.all_nodes():
        yield from (v for v in node.inputs if v is not None)
    yield from graph.outputs


def _outputs(main: ir.Graph, outputs: Sequence[Output]) -> None:
    """Name the outputs; a value that is an input, state or a second output gets an Identity."""
    seen: set[ir.Value] = set()
    for i, (value, output) in enumerate(zip(list(main.outputs), outputs, strict=True)):
        if value.producer() is None or value in seen:
            node = ir.Node("", "Identity", [value], num_outputs=1)
            main.append(node)
            made = node.outputs[0]
            made.type, made.shape = value.type, value.shape
            main.outputs[i] = made
            value = made  # noqa: PLW2901  the output is the copy
        value.name = output.name
        seen.add(value)


def _reachable(callees: Iterable[Body]) -> list[Body]:
    """Every body that is called, each function once, callees before callers."""
    found: dict[tuple[str, str], Body] = {}

    def visit(body: Body) -> None:
        key = (body.domain, body.name)
        if key not in found:
            for callee in body.callees:
                visit(callee)
            found[key] = body

    for body in callees:
        visit(body)
    return list(found.values())


def _function(body: Body, opset: int) -> ir.Function:
    graph = body.graph
    _constants_as_nodes(graph)
    _identity_for_repeated_outputs(graph)
    graph.opset_imports.update(_imports(graph, opset))
    return ir.Function(body.domain, body.name, graph=graph, attributes=())


def _constants_as_nodes(graph: ir.Graph) -> None:
    """Functions have no initializers: their constants become Constant nodes at the top."""
    nodes = []
    for name, value in list(graph.initializers.items()):
        del graph.initializers[name]
        attribute = ir.Attr("value", ir.AttributeType.TENSOR, value.const_value)
        nodes.append(ir.Node("", "Constant", [], attributes=[attribute], outputs=[value]))
    for node in reversed(nodes):
        graph.insert_before(graph[0], node) if len(graph) else graph.append(node)


def _identity_for_repeated_outputs(graph: ir.Graph) -> None:
    """A function's result must be made by a node of it."""
    for i, value in enumerate(list(graph.outputs)):
        if value.producer() is None:
            node = ir.Node("", "Identity", [value], num_outputs=1)
            graph.append(node)
            node.outputs[0].type, node.outputs[0].shape = value.type, value.shape
            graph.outputs[i] = node.outputs[0]


def _imports(graph: ir.Graph, opset: int) -> dict[str, int]:
    """The domains that a graph's nodes use, with their versions."""
    found = {"": opset}
    for node in graph.all_nodes():
        if node.domain:
            found.setdefault(node.domain, node.version or DOMAIN_VERSIONS.get(node.domain, 1))
    return found


def _unique_names(graph: ir.Graph) -> None:
    """Give every value and node a name of its own; inputs and outputs keep theirs, then state."""
    taken = {str(v.name) for v in (*graph.inputs, *graph.outputs)}
    kept = {id(v) for v in (*graph.inputs, *graph.outputs)}
    for value in list(graph.initializers.values()):
        if id(value) not in kept:
            value.name = _fresh(str(value.name), taken)
            kept.add(id(value))
    for node in graph.all_nodes():
        for value in node.outputs:
            if id(value) not in kept:
                value.name = _fresh(value.name or node.op_type, taken)
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                for value in attribute.as_graph().inputs:
                    value.name = _fresh(value.name or "input", taken)
        node.name = node.outputs[0].name if node.outputs else node.op_type


def _fresh(name: str, taken: set[str]) -> str:
    if name in taken:
        count = 2
        while f"{name}_{count}" in taken:
            count += 1
        name = f"{name}_{count}"
    taken.add(name)
    return name
