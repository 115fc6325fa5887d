"""Bodies: what calls are lowered to, before they become ONNX functions or are placed inline.

A `Body` is an onnx_ir graph with formal parameters. It is either placed as one call of a function, or its nodes
are copied into the caller (`place`). Equal bodies are one `Body` (`BodyTable`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import onnx
import onnx_ir as ir

from fx2onnx.builder import annotate
from fx2onnx.types import Type


@dataclass(eq=False)
class Body:
    """A lowered call: formal parameters, nodes, results.

    Attributes:
        domain, name: the identity of the ONNX function that it may become.
        graph: its inputs are the parameters, its initializers the constants, its outputs the results.
        parameters: for each input, which argument of the call it is.
        results: for each result of the call, its position among the graph's outputs; None if not made.
        inline: is it copied into its callers instead of being called?
        callees: the bodies that its nodes call.
    """

    domain: str
    name: str
    graph: ir.Graph
    parameters: tuple[int, ...]
    results: tuple[int | None, ...]
    inline: bool
    callees: list[Body] = field(default_factory=list)


def drop_unused(graph: ir.Graph) -> None:
    """Drop nodes, optional results at a node's end, and constants that nothing reads."""
    kept_outputs = {id(v) for v in graph.outputs}
    for node in reversed(graph):
        read = [bool(v.uses()) or id(v) in kept_outputs for v in node.outputs]
        if not any(read):
            graph.remove(node, safe=True)
        elif not read[-1]:
            _drop_last_results(node, read, graph.opset_imports)
    for name, value in list(graph.initializers.items()):
        if not value.uses() and id(value) not in kept_outputs:
            del graph.initializers[name]


def _drop_last_results(node: ir.Node, read: Sequence[bool], opsets: Mapping[str, int]) -> None:
    """Results that the operator need not make: MaxPool without positions has faster kernels."""
    if node.domain not in opsets or not onnx.defs.has(node.op_type, node.domain):
        return
    formals = onnx.defs.get_schema(node.op_type, opsets[node.domain], node.domain).outputs
    count = len(read)
    while count and not read[count - 1] and _is_optional(formals, count - 1):
        count -= 1
    if count < len(read):
        node.resize_outputs(count)


def _is_optional(formals: Sequence[onnx.defs.OpSchema.FormalParameter], index: int) -> bool:
    optional = onnx.defs.OpSchema.FormalParameterOption.Optional
    return index < len(formals) and formals[index].option == optional


def trim(graph: ir.Graph) -> tuple[int, ...]:
    """Drop nodes, constants and inputs that nothing reads; returns the positions of the inputs kept."""
    drop_unused(graph)
    kept_outputs = {id(v) for v in graph.outputs}
    positions = tuple(i for i, v in enumerate(graph.inputs) if v.uses() or id(v) in kept_outputs)
    kept = [graph.inputs[i] for i in positions]
    graph.inputs.clear()
    graph.inputs.extend(kept)
    return positions


class Scope:
    """A graph under construction: where bodies are placed, with small constants shared."""

    def __init__(self, graph: ir.Graph) -> None:
        self.graph = graph
        self.callees: list[Body] = []
        self._constants: dict[tuple[object, ...], ir.Value] = {}

    def constant(self, tensor: ir.TensorProtocol) -> ir.Value:
        """A constant of this graph; equal small ones are one value."""
        key: tuple[object, ...] = (id(tensor),)
        if tensor.size <= 64:
            key = (tensor.dtype, tuple(tensor.shape), tensor.tobytes())
        if (value := self._constants.get(key)) is None:
            value = ir.Value(
                name=f"const_{len(self._constants)}",
                type=ir.TensorType(tensor.dtype),
                shape=ir.Shape(tuple(tensor.shape)),  # type: ignore[arg-type]
                const_value=tensor,
            )
            self.graph.register_initializer(value)
            self._constants[key] = value
        return value

    def place(
        self,
        body: Body,
        arguments: Sequence[ir.Value],
        *,
        types: Sequence[Type | None],
        name: str,
        metadata: Mapping[str, str],
    ) -> list[ir.Value | None]:
        """Let the graph compute a body on arguments; returns the results of the call.

        Args:
            body: what to place.
            arguments: all arguments of the call; the body takes those that it reads.
            types: the types of the call's results.
            name: the stem of the names of new values.
            metadata: where the call came from, written onto each new node.
        """
        actual = [arguments[i] for i in body.parameters]
        place = self._copy if body.inline else self._call
        outputs = place(body, actual, name, metadata)
        results = [None if i is None else outputs[i] for i in body.results]
        for i, (result, of) in enumerate(zip(results, types, strict=True)):
            if result is not None and result.producer() is not None:
                annotate(result, of)
                if result not in arguments:
                    result.name = name if len(results) == 1 else f"{name}.{i}"
        return results

    def _call(
        self, body: Body, actual: Sequence[ir.Value], name: str, metadata: Mapping[str, str]
    ) -> list[ir.Value]:
        del name  # the call's results get theirs from `place`
        node = ir.Node(
            body.domain,
            body.name,
            actual,
            num_outputs=len(body.graph.outputs),
            metadata_props=dict(metadata),
        )
        self.graph.append(node)
        self.callees.append(body)
        return list(node.outputs)

    def _copy(
        self, body: Body, actual: Sequence[ir.Value], name: str, metadata: Mapping[str, str]
    ) -> list[ir.Value]:
        mapped: dict[ir.Value, ir.Value] = dict(zip(body.graph.inputs, actual, strict=True))
        for constant in body.graph.initializers.values():
            if constant.const_value is None:
                raise ValueError(f"{constant.name} has no value")
            mapped[constant] = self.constant(constant.const_value)
        for node in body.graph:
            self.graph.append(copy_node(node, mapped, name, metadata))
        self.callees.extend(body.callees)
        return [mapped[v] for v in body.graph.outputs]


def copy_node(
    node: ir.Node, mapped: dict[ir.Value, ir.Value], name: str, metadata: Mapping[str, str]
) -> ir.Node:
    """A copy of a node that reads the mapped values; its outputs are added to `mapped`."""
    made = ir.Node(
        node.domain,
        node.op_type,
        [None if v is None else mapped.get(v, v) for v in node.inputs],
        attributes=[_copy_attribute(a, mapped, name) for a in node.attributes.values()],
        num_outputs=len(node.outputs),
        version=node.version,
        metadata_props={**node.metadata_props, **metadata},
    )
    for old, new in zip(node.outputs, made.outputs, strict=True):
        new.type, new.shape = old.type, old.shape
        new.name = f"{name}.{old.name}" if old.name else None
        mapped[old] = new
    return made


def _copy_attribute(attribute: ir.Attr, mapped: dict[ir.Value, ir.Value], name: str) -> ir.Attr:
    if attribute.type != ir.AttributeType.GRAPH:
        return attribute
    return ir.Attr(attribute.name, attribute.type, _copy_graph(attribute.as_graph(), mapped, name))


def _copy_graph(graph: ir.Graph, mapped: dict[ir.Value, ir.Value], name: str) -> ir.Graph:
    inner = dict(mapped)
    inputs = []
    for value in graph.inputs:
        inner[value] = ir.Value(name=f"{name}.{value.name}", type=value.type, shape=value.shape)
        inputs.append(inner[value])
    nodes = [copy_node(node, inner, name, {}) for node in graph]
    outputs = [inner.get(v, v) for v in graph.outputs]
    return ir.Graph(inputs, outputs, nodes=nodes, name=graph.name, opset_imports=graph.opset_imports)


class BodyTable:
    """All bodies by what they compute: equal ones are shared, unequal ones get names of their own."""

    def __init__(self) -> None:
        self._by_structure: dict[tuple[object, ...], Body] = {}
        self._names: dict[tuple[str, str], int] = {}

    def share(self, body: Body) -> Body:
        """`body`, named so that no other has its name, or the equal body that was here before."""
        if body.inline:
            return body
        key = (body.domain, body.name, structure(body.graph), body.results)
        if (other := self._by_structure.get(key)) is not None:
            _generalise(other.graph, body.graph)
            return _with_parameters(other, body)
        self._by_structure[key] = body
        body.name = self._fresh(body.domain, body.name)
        return body

    def _fresh(self, domain: str, name: str) -> str:
        # A counter in the name, not the overload field: ONNX Runtime 1.32 drops the overload of a call inside of
        # a function body when it inlines, and then calls the wrong function.
        count = self._names[domain, name] = self._names.get((domain, name), 0) + 1
        return name if count == 1 else f"{name}_{count}"


def _with_parameters(body: Body, like: Body) -> Body:
    """An equal body whose call passes its arguments from other positions."""
    if body.parameters == like.parameters:
        return body
    return Body(body.domain, body.name, body.graph, like.parameters, body.results, body.inline, body.callees)


def structure(graph: ir.Graph) -> tuple[object, ...]:
    """What a graph computes, as a hashable value: equal for graphs that differ in names and shapes only."""
    numbers: dict[ir.Value | None, int] = {None: -1}
    for value in [*graph.inputs, *graph.initializers.values()]:
        numbers[value] = len(numbers)
    types = tuple(v.dtype for v in graph.inputs)
    constants = tuple(_tensor_key(v.const_value) for v in graph.initializers.values())
    nodes = tuple(_node_key(node, numbers) for node in graph)
    return types, constants, nodes, tuple(numbers[v] for v in graph.outputs)


def _node_key(node: ir.Node, numbers: dict[ir.Value | None, int]) -> tuple[object, ...]:
    inputs = tuple(numbers[v] for v in node.inputs)
    for value in node.outputs:
        numbers[value] = len(numbers)
    attributes = tuple(sorted((a.name, _attribute_key(a, numbers)) for a in node.attributes.values()))
    return node.domain, node.op_type, inputs, attributes, len(node.outputs)


def _attribute_key(attribute: ir.Attr, numbers: dict[ir.Value | None, int]) -> object:
    if attribute.type == ir.AttributeType.GRAPH:
        return repr(_subgraph_key(attribute.as_graph(), numbers))
    if attribute.type == ir.AttributeType.TENSOR:
        return repr(_tensor_key(attribute.as_tensor()))
    return repr((attribute.type, attribute.value, attribute.ref_attr_name))


def _subgraph_key(graph: ir.Graph, numbers: dict[ir.Value | None, int]) -> tuple[object, ...]:
    inner = dict(numbers)
    for value in graph.inputs:
        inner[value] = len(inner)
    nodes = tuple(_node_key(node, inner) for node in graph)
    return len(graph.inputs), nodes, tuple(inner[v] for v in graph.outputs)


def _tensor_key(tensor: ir.TensorProtocol | None) -> tuple[object, ...]:
    if tensor is None:
        return ()
    return tensor.dtype, tuple(tensor.shape), tensor.tobytes()


def _generalise(graph: ir.Graph, other: ir.Graph) -> None:
    """Forget the sizes in which two equal graphs differ, so that the shapes written are true for both."""
    pairs = [*zip(graph.inputs, other.inputs, strict=True)]
    for one, same in zip(graph, other, strict=True):
        pairs += zip(one.outputs, same.outputs, strict=True)
    for value, twin in pairs:
        if value.shape is None or twin.shape is None or value.shape.rank() != twin.shape.rank():
            value.shape = None
        elif value.shape != twin.shape:
            value.shape = ir.Shape(
                [a if a == b else None for a, b in zip(value.shape, twin.shape, strict=True)]
            )
