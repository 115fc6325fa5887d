"""The text form of a typed graph: what tests, errors and `--print-after` show.

    region Layer of "torch.nn.Layer"(x: f32[batch, 8], w: f32[8, 8]) -> f32[batch, 8]:
      y: f32[batch, 8] = aten.linear.default(x, w)    # model.py:12
      return y

    graph(x: f32[batch, 8]) -> f32[batch, 8]:
      needs batch <= 512
      w: f32[8, 8] = state["layers.0.weight"]
      a: f32[batch, 8] = Layer(x, w)
      return a as "logits"

- A line is `name: type = target(arguments)`. Types: `f32[2*n, 3]` a tensor, `size[n + 1]` a size, `float` and `bool`
  Python numbers, `(f32[n], i64[n])` a tuple, whose parts are read as `a[0]`.
- Regions, and the bodies of control flow, stand before what calls them, each once. A region is called by its name
  and passed as `region name`.
- Names that differ from the text's: `x: f32[3] = input["past.0.key"]`, `return y as "logits"`. Python values among
  inputs and results are written as they are; `x_1 into "x"` is the new value of an input or state that the model writes
  to; `@7` tells a leaf's position in the pytree where it is not the next one.
- Arguments: names, numbers (`inf`, `nan`, `complex(0.0, 1.0)`), strings in double quotes, dtypes (`f32`, `bool`),
  `device("cpu")`, `torch.strided`, lists, tuples, `slice(0, None, 2)`.
- What follows `#` is a comment. With `modules=True` the module calls around nodes are blocks:
  `in "layers.0" pkg.Layer:`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

from torch import fx
from torch.fx.node import map_arg

from fx2onnx import dims, origin
from fx2onnx.graph import Input, Output, Relation, TypedGraph, attribute
from fx2onnx.text_words import PYTHON, RESERVED, constant, literal, target_name
from fx2onnx.types import SizeType, TensorType, Type, type_of, type_of_value


def show(graph: TypedGraph, *, modules: bool = False) -> str:
    """The text of a graph, with the graphs that it calls before it.

    Args:
        graph: the graph; apart from the graphs that it calls, which must be there, it need not be well-formed.
        modules: also show the module calls around nodes.
    """
    regions = region_names(graph)
    blocks = [
        region_text(module, regions, modules=modules)
        for module in graph.graphs()
        if module is not graph.module
    ]
    return "\n\n".join([*blocks, _graph_text(graph, regions, modules=modules)])


def show_type(found: Type | None) -> str:
    """`f32[n, 3]`, `size[n]`, `float`, `(f32[n], None)`."""
    if isinstance(found, TensorType):
        return str(found)
    if isinstance(found, SizeType):
        return f"size[{found}]" if found.kind is int else found.kind.__name__
    if isinstance(found, tuple):
        parts = [show_type(part) for part in found]
        return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
    return "None"


def show_node(node: fx.Node) -> str:
    """The line of one node, for error messages."""
    module = node.graph.owning_module
    regions: dict[int, str] = {}
    if module is not None:
        for other in node.graph.nodes:
            if other.op in ("call_module", "get_attr"):
                regions.setdefault(id(_held(module, other)), str(other.target))
    if node.op == "output":
        return f"return {literal(node.args[0], _Names(node.graph))}"
    if node.op == "placeholder":
        return f"{node.name}{_typed(node)}"
    return _Writer(node.graph, module, regions).line(node)


def _held(module: fx.GraphModule, node: fx.Node) -> Any:
    """What a `get_attr` or `call_module` node names; an object of its own where it is not there."""
    try:
        return attribute(module, str(node.target))
    except AttributeError:
        return node


def region_names(graph: TypedGraph) -> dict[int, str]:
    """A name of its own for each graph that is called, by the id of its GraphModule."""
    names: dict[int, str] = {}
    taken: set[str] = set()
    for module in graph.graphs():
        for node in module.graph.nodes:
            if node.op not in ("call_module", "get_attr"):
                continue
            callee = attribute(module, str(node.target))
            if isinstance(callee, fx.GraphModule) and id(callee) not in names:
                names[id(callee)] = _fresh(str(node.target).replace(".", "_"), taken)
    return names


def _fresh(name: str, taken: set[str]) -> str:
    chosen, count = name, 1
    while chosen in taken or chosen in RESERVED or chosen in PYTHON:
        count += 1
        chosen = f"{name}_{count}"
    taken.add(chosen)
    return chosen


class _Names(dict[fx.Node, str]):
    """How the nodes of one graph are written: by name, with a `_` more where the name has a meaning in text."""

    def __init__(self, graph: fx.Graph) -> None:
        taken = {n.name for n in graph.nodes}
        for node in graph.nodes:
            name = node.name
            while name in RESERVED or (name != node.name and name in taken):
                name += "_"
            self[node] = name

    def __missing__(self, node: fx.Node) -> str:
        return f"{node.name}?"  # a node of another graph: an error that the text must be able to show


# -- graphs ----------------------------------------------------------------------------------------


def region_text(module: fx.GraphModule, regions: dict[int, str], *, modules: bool = False) -> str:
    """The block of a region or of a control-flow body."""
    writer = _Writer(module.graph, module, regions, modules=modules)
    name = regions.get(id(module), type(module).__name__)
    of = f" of {json.dumps(module.meta['class'])}" if "class" in module.meta else ""
    parameters = [f"{writer.names[n]}{_typed(n)}" for n in module.graph.find_nodes(op="placeholder")]
    result = module.graph.output_node().args[0]
    head = f"region {name}{of}({', '.join(parameters)}) -> {_result_type(result)}:"
    return "\n".join([head, *writer.body(), f"  return {literal(result, writer.names)}"])


def _result_type(result: Any) -> str:
    return show_type(type_of_value(map_arg(result, lambda n: n.meta.get("val"))))


def _graph_text(graph: TypedGraph, regions: dict[int, str], *, modules: bool) -> str:
    module = graph.module
    writer = _Writer(module.graph, module, regions, modules=modules)
    placeholders = graph.placeholders()
    parameters = ", ".join(_parameters(graph, placeholders, writer.names))
    values = _result_nodes(module.graph)
    types = [show_type(type_of(v) if isinstance(v, fx.Node) else None) for v in values]
    head = f"graph({parameters}) -> {types[0] if len(types) == 1 else '(' + ', '.join(types) + ')'}:"
    lines = [f"  needs {_relation(r)}" for r in graph.relations]
    lines += [f"  note {json.dumps(note, ensure_ascii=False)}" for note in graph.notes]
    for name in graph.state:
        if (node := placeholders.get(name)) is not None:
            path = json.dumps(graph.state_names.get(name, name), ensure_ascii=False)
            lines.append(f"  {writer.names[node]}{_typed(node)} = state[{path}]")
    results = _results(graph, values, writer.names)
    return "\n".join([head, *lines, *writer.body(), f"  return {', '.join(results)}".rstrip()])


def _result_nodes(graph: fx.Graph) -> Sequence[Any]:
    result = graph.output_node().args[0]
    return result if isinstance(result, tuple | list) else (result,)


def _parameters(
    graph: TypedGraph, placeholders: dict[str, fx.Node], names: dict[fx.Node, str]
) -> Iterator[str]:
    """Inputs in their order, Python values among them where their leaves are."""
    expected = 0
    constants = dict(sorted(graph.input_constants.items()))
    for entry in graph.inputs:
        for leaf in [leaf for leaf in constants if leaf < entry.leaf]:
            yield f"{constant(constants.pop(leaf))}{_at(leaf, expected)}"
            expected = leaf + 1
        yield f"{_parameter(entry, placeholders, names)}{_at(entry.leaf, expected)}"
        expected = entry.leaf + 1
    for leaf, value in constants.items():
        yield f"{constant(value)}{_at(leaf, expected)}"
        expected = leaf + 1


def _parameter(entry: Input, placeholders: dict[str, fx.Node], names: dict[fx.Node, str]) -> str:
    node = placeholders.get(entry.placeholder)
    name = entry.placeholder if node is None else names[node]
    typed = "" if node is None else _typed(node)
    return f"{name}{typed}" + (
        "" if name == entry.name else f" = input[{json.dumps(entry.name, ensure_ascii=False)}]"
    )


def _at(leaf: int, expected: int) -> str:
    return "" if leaf == expected else f" @{leaf}"


def _relation(relation: Relation) -> str:
    """`seq <= 512`; the text alone of a relation that is no comparison."""
    if relation.sign == "holds":
        return json.dumps(relation.text, ensure_ascii=False)
    plain = f"{dims.show(relation.left)} {relation.sign} {dims.show(relation.right)}"
    return plain if relation.text == plain else f"{plain} as {json.dumps(relation.text, ensure_ascii=False)}"


def _results(graph: TypedGraph, values: Sequence[Any], names: dict[fx.Node, str]) -> Iterator[str]:
    """`y`, `y as "logits"`, `None`, `x_1 into "x"`."""
    rest, expected = iter(values), 0
    for output in graph.outputs:
        if output.name is None and output.mutated is None:
            text = constant(output.constant)
        else:
            text = literal(next(rest, None), names)
        if output.mutated is not None:
            text += f" into {json.dumps(output.mutated, ensure_ascii=False)}"
        if output.name is not None and output.name != default_name(output, graph.outputs):
            text += f" as {json.dumps(output.name, ensure_ascii=False)}"
        if output.leaf is not None:
            text += _at(output.leaf, expected)
            expected = output.leaf + 1
        yield text


def default_name(output: Output, outputs: Sequence[Output]) -> str | None:
    """The name of an output that text gives none: `output`, or `output_2` for one of several leaves."""
    if output.mutated is not None:
        return None
    return "output" if sum(o.leaf is not None for o in outputs) == 1 else f"output_{output.leaf}"


# -- nodes -----------------------------------------------------------------------------------------


def _typed(node: fx.Node) -> str:
    found = type_of(node)
    return "" if found is None else f": {show_type(found)}"


def module_frames(node: fx.Node) -> list[tuple[str, str, str]]:
    """The module calls around a node, the model's own left out: the call's key, the module's path, its class."""
    stack: dict[str, tuple[str, Any]] = node.meta.get("nn_module_stack") or {}
    return [
        (key, path, cls if isinstance(cls, str) else f"{cls.__module__}.{cls.__qualname__}")
        for key, (path, cls) in stack.items()
        if path and "_empty_nn_module_stack" not in key
    ]


class _Writer:
    """Writes the nodes of one graph."""

    def __init__(
        self,
        graph: fx.Graph,
        module: fx.GraphModule | None,
        regions: dict[int, str],
        *,
        modules: bool = False,
    ) -> None:
        self.graph, self.module, self.regions, self.modules = graph, module, regions, modules
        self.names = _Names(graph)
        for node in graph.find_nodes(op="get_attr"):
            if (region := self._callee(node)) is not None:
                self.names[node] = f"region {region}"

    def _callee(self, node: fx.Node) -> str | None:
        """The name of the graph that a node holds or calls."""
        if self.module is None:
            return None
        return self.regions.get(id(_held(self.module, node)))

    def body(self) -> Iterator[str]:
        """The lines of all nodes between the placeholders and the output."""
        around: list[tuple[str, str, str]] = []
        for node in self.graph.nodes:
            if node.op in ("placeholder", "output") or (node.op == "get_attr" and self._callee(node)):
                continue
            frames = module_frames(node) if self.modules else []
            shared = _common(around, frames)
            for depth in range(shared, len(frames)):
                _, path, cls = frames[depth]
                yield f"{'  ' * (depth + 1)}in {json.dumps(path)} {cls}:"
            around = frames
            yield "  " * (len(frames) + 1) + self.line(node) + _comment(node)

    def line(self, node: fx.Node) -> str:
        """`name: type = target(arguments)`."""
        return f"{self.names[node]}{_typed(node)} = {self._call(node)}"

    def _call(self, node: fx.Node) -> str:
        if node.op == "get_attr":
            return f"attribute[{json.dumps(str(node.target))}]"
        if self._is_item(node):
            return f"{literal(node.args[0], self.names)}[{node.args[1]}]"
        arguments = [literal(a, self.names) for a in node.args]
        arguments += [f"{k}={literal(v, self.names)}" for k, v in node.kwargs.items()]
        return f"{self._target(node)}({', '.join(arguments)})"

    def _is_item(self, node: fx.Node) -> bool:
        return target_name(node.target) == "getitem" and (
            len(node.args) == 2
            and isinstance(node.args[0], fx.Node)
            and isinstance(node.args[1], int)
            and not node.kwargs
        )

    def _target(self, node: fx.Node) -> str:
        if node.op == "call_module":
            return self._callee(node) or f"module[{json.dumps(str(node.target))}]"
        if node.op == "call_method":
            return f"method[{json.dumps(str(node.target))}]"
        return target_name(node.target) or constant(node.target)


def _common(a: Sequence[Any], b: Sequence[Any]) -> int:
    """The number of leading items that two sequences share."""
    count = 0
    while count < min(len(a), len(b)) and a[count] == b[count]:
        count += 1
    return count


def _comment(node: fx.Node) -> str:
    """`# model.py:12`, the user's line."""
    line = origin.user_line(node)
    if not line:
        return ""
    path, _, rest = line.partition(":") if line[1:2] != ":" else (line[:2], "", line[2:])
    return f"    # {os.path.basename(path)}:{rest.split(':', 1)[0]}"
