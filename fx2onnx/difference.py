"""The first difference between two typed graphs, names of values aside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import fx

from fx2onnx.calls import key_of
from fx2onnx.graph import TypedGraph, attribute
from fx2onnx.infer import same_size, same_type
from fx2onnx.text import show_node, show_type
from fx2onnx.text_words import constant
from fx2onnx.types import type_of


def difference(a: TypedGraph, b: TypedGraph) -> str | None:
    """What differs first between two graphs, or None when they say the same.

    Compared are inputs, state (names and types, not values), relations, notes, calls, types and outputs; names of
    values, the order of placeholders in the FX graph, and where nodes came from are not.
    """
    comparison = _Comparison()
    return next(comparison.graphs(a, b), None)


class _Comparison:
    """Pairs nodes of two graphs as it goes."""

    def __init__(self) -> None:
        self.pairs: dict[fx.Node, fx.Node] = {}
        self.regions: dict[int, int] = {}

    def graphs(self, a: TypedGraph, b: TypedGraph) -> Iterator[str]:
        """The differences of two typed graphs."""
        yield from self._inputs(a, b)
        yield from self._state(a, b)
        yield from _facts(a, b)
        yield from self._bodies(a.module, b.module, "the graph")
        yield from self._outputs(a, b)

    def _inputs(self, a: TypedGraph, b: TypedGraph) -> Iterator[str]:
        names = [[i.name for i in g.inputs] for g in (a, b)]
        if names[0] != names[1]:
            yield f"inputs {', '.join(names[0])} against {', '.join(names[1])}"
            return
        nodes = [g.placeholders() for g in (a, b)]
        for one, other in zip(a.inputs, b.inputs, strict=True):
            if one.leaf != other.leaf:
                yield f"input {one.name} is leaf {one.leaf} against {other.leaf}"
            yield from self._placeholders(
                nodes[0].get(one.placeholder), nodes[1].get(other.placeholder), f"input {one.name}"
            )
        constants = [{k: constant(v) for k, v in g.input_constants.items()} for g in (a, b)]
        if constants[0] != constants[1]:
            yield f"constants among the inputs {constants[0]} against {constants[1]}"

    def _state(self, a: TypedGraph, b: TypedGraph) -> Iterator[str]:
        names = [[g.state_names.get(n, n) for n in g.state] for g in (a, b)]
        if names[0] != names[1]:
            yield f"state {', '.join(names[0])} against {', '.join(names[1])}"
            return
        nodes = [g.placeholders() for g in (a, b)]
        for one, other, name in zip(a.state, b.state, names[0], strict=True):
            yield from self._placeholders(nodes[0].get(one), nodes[1].get(other), f"state {name}")

    def _placeholders(self, a: fx.Node | None, b: fx.Node | None, what: str) -> Iterator[str]:
        if a is None or b is None:
            if a is not b:
                yield f"{what} has a placeholder in one graph only"
            return
        self.pairs[a] = b
        if not same_type(type_of(a), type_of(b)):
            yield f"{what} is {show_type(type_of(a))} against {show_type(type_of(b))}"

    def _outputs(self, a: TypedGraph, b: TypedGraph) -> Iterator[str]:
        if len(a.outputs) != len(b.outputs):
            yield f"{len(a.outputs)} outputs against {len(b.outputs)}"
            return
        for one, other in zip(a.outputs, b.outputs, strict=True):
            if (one.name, one.leaf) != (other.name, other.leaf):
                yield f"output {one.name} (leaf {one.leaf}) against {other.name} (leaf {other.leaf})"
            if constant(one.constant) != constant(other.constant):
                yield f"constant result {constant(one.constant)} against {constant(other.constant)}"
            if one.mutated != other.mutated:
                yield f"output {one.name} is a new value of {one.mutated} against {other.mutated}"

    # -- nodes -------------------------------------------------------------------------------------

    def _bodies(self, a: fx.GraphModule, b: fx.GraphModule, where: str) -> Iterator[str]:
        ones, others = _computing(a), _computing(b)
        for x, y in zip(ones, others, strict=False):
            yield from self._nodes(a, b, x, y, where)
            self.pairs[x] = y
        if len(ones) != len(others):
            longer, first = (ones, "first") if len(ones) > len(others) else (others, "second")
            extra = longer[min(len(ones), len(others))]
            yield f"in {where}, only the {first} has: {show_node(extra)}"

    def _nodes(
        self, a: fx.GraphModule, b: fx.GraphModule, x: fx.Node, y: fx.Node, where: str
    ) -> Iterator[str]:
        found = f"in {where}: {show_node(x)}    against    {show_node(y)}"
        if x.op != y.op or not same_type(type_of(x), type_of(y)):
            yield found
        elif x.op in ("call_module", "get_attr"):
            yield from self._callees(a, b, x, y)
        elif x.op != "output" and x.target != y.target:
            yield found
        arguments = [self._arguments(m, n, second=n is y) for m, n in ((a, x), (b, y))]
        if x.op != "placeholder" and arguments[0] != arguments[1]:
            yield found
        for one, other in zip(_held(a, x), _held(b, y), strict=False):
            yield from self._regions(one, other)

    def _callees(self, a: fx.GraphModule, b: fx.GraphModule, x: fx.Node, y: fx.Node) -> Iterator[str]:
        one, other = attribute(a, str(x.target)), attribute(b, str(y.target))
        if isinstance(one, fx.GraphModule) and isinstance(other, fx.GraphModule):
            yield from self._regions(one, other)
        elif x.target != y.target:
            yield f"{show_node(x)} against {show_node(y)}"

    def _regions(self, a: fx.GraphModule, b: fx.GraphModule) -> Iterator[str]:
        """Two called graphs; each pair is compared once."""
        if (known := self.regions.get(id(a))) is not None:
            if known != id(b):
                yield f"calls of {type(a).__name__} share one region in one graph only"
            return
        if id(b) in self.regions.values():
            yield f"calls of {type(b).__name__} share one region in one graph only"
            return
        self.regions[id(a)] = id(b)
        if a.meta.get("class") != b.meta.get("class"):
            yield f"a region of {a.meta.get('class')} against {b.meta.get('class')}"
        for x, y in zip(*(m.graph.find_nodes(op="placeholder") for m in (a, b)), strict=False):
            yield from self._placeholders(x, y, f"{x.name} of region {type(a).__name__}")
        if len(a.graph.find_nodes(op="placeholder")) != len(b.graph.find_nodes(op="placeholder")):
            yield f"region {type(a).__name__} takes different numbers of values"
        yield from self._bodies(a, b, f"region {type(a).__name__}")

    def _arguments(self, module: fx.GraphModule, node: fx.Node, *, second: bool) -> object:
        """A node's arguments in a form that is equal for equal ones; nodes stand as their partner in the second."""

        def partner(argument: fx.Node) -> object:
            if argument.op == "get_attr" and isinstance(
                attribute(module, str(argument.target)), fx.GraphModule
            ):
                return "region"
            return argument if second else self.pairs.get(argument)

        return key_of(fx.node.map_arg((node.args, dict(node.kwargs)), _wrap(partner)))


class _Partner:
    """Keeps FX from taking the nodes of a mapped argument for arguments."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Partner) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


def _wrap(function: Any) -> Any:
    return lambda node: _Partner(function(node))


def _computing(module: fx.GraphModule) -> list[fx.Node]:
    """The nodes of a graph but its placeholders and those that hold graphs."""
    return [n for n in module.graph.nodes if n.op != "placeholder" and not _is_holder(module, n)]


def _is_holder(module: fx.GraphModule, node: fx.Node) -> bool:
    return node.op == "get_attr" and isinstance(attribute(module, str(node.target)), fx.GraphModule)


def _held(module: fx.GraphModule, node: fx.Node) -> list[fx.GraphModule]:
    """The graphs that are passed to an operator."""
    return [attribute(module, str(n.target)) for n in node.all_input_nodes if _is_holder(module, n)]


def _facts(a: TypedGraph, b: TypedGraph) -> Iterator[str]:
    if len(a.relations) != len(b.relations):
        yield f"relations {', '.join(map(str, a.relations))} against {', '.join(map(str, b.relations))}"
        return
    for one, other in zip(a.relations, b.relations, strict=True):
        sides = same_size(one.left, other.left) and same_size(one.right, other.right)
        if not sides or (one.sign, one.text) != (other.sign, other.text):
            yield f"relation {one} against {other}"
    if a.notes != b.notes:
        yield f"notes {a.notes} against {b.notes}"
