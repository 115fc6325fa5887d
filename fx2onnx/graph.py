"""TypedGraph: an fx.GraphModule of ATen calls with its inputs, outputs, state and size relations.

The IR is torch.fx itself, so every FX tool works on it:

- targets of `call_function` nodes are ATen overloads, higher-order control-flow operators, Python scalar
  operators on SymInts (`operator.add` …), `operator.getitem` and custom operators;
- a module call that is a region of its own is a `call_module` node whose submodule is a GraphModule of the
  same kind; equal layers share one submodule and differ in the arguments of the call;
- `node.meta["val"]` is a FakeTensor, a SymInt, or a tuple of them (`fx2onnx.types.type_of` reads it),
  `node.meta["nn_module_stack"]` the modules around it and `node.meta["stack_trace"]` the user's lines.

Placeholders of the top graph are the model's tensors inputs and its state (parameters, buffers, constants);
`TypedGraph.inputs` and `TypedGraph.state` say which is which, by placeholder name.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import fx
from torch.fx._lazy_graph_module import _LazyGraphModule

from fx2onnx.dims import Dim


@dataclass(frozen=True)
class Input:
    """One tensor input of the model.

    Attributes:
        name: its name in the ONNX model, the user's or its path in the arguments.
        placeholder: the name of its placeholder node.
        leaf: its position among the leaves of `(args, kwargs)` in pytree order.
    """

    name: str
    placeholder: str
    leaf: int


@dataclass(frozen=True)
class Output:
    """One leaf of what the model returns.

    Attributes:
        name: its name in the ONNX model, None for a constant that is not in the model.
        constant: the Python value (None, a number, a string) of a leaf that no node makes.
        leaf: its position among the leaves of the result in pytree order; None for an extra output that
            holds a mutated input or buffer.
        mutated: the name of the input or buffer whose new value this is.
    """

    name: str | None
    constant: Any = None
    leaf: int | None = None
    mutated: str | None = None


@dataclass(frozen=True)
class Relation:
    """A fact about sizes that the traced model relies on, e.g. `seq <= 1024`.

    Attributes:
        left, sign, right: a comparison (`==`, `!=`, `<`, `<=`, `>`, `>=`), or sign "holds" where only the text says it.
        where: the user's line that needs it.
        text: how it is written.
        guard: the tracer's own form of it; empty for a bound that the user gave.
        internal: did torch ask only to know a layout or a shape?
    """

    left: Dim
    sign: str
    right: Dim
    where: str | None = None
    text: str = ""
    guard: str = ""
    internal: bool = False

    def __str__(self) -> str:
        return self.text


@dataclass
class TypedGraph:
    """A captured model.

    Attributes:
        module: the GraphModule; its graph returns a flat tuple, one entry for each `Output` that is no
            constant.
        inputs: the tensor inputs, in the order of the ONNX model's inputs.
        outputs: the leaves of the result in pytree order, then extra outputs.
        state: placeholder name → tensor (parameters, buffers, constants, folded values).
        state_names: placeholder name → qualified name in the model (`encoder.0.weight`).
        in_spec: the pytree of `(args, kwargs)`; out_spec: the pytree of the result.
        relations: facts about sizes that must hold for the graph to be the model.
        notes: what the user should know: mutations that are not returned, train mode, assumptions.
    """

    module: fx.GraphModule
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    state: dict[str, torch.Tensor]
    state_names: dict[str, str]
    in_spec: pytree.TreeSpec | None = None
    out_spec: pytree.TreeSpec | None = None
    input_constants: dict[int, Any] = field(default_factory=dict)
    relations: tuple[Relation, ...] = ()
    notes: tuple[str, ...] = ()
    sizes: dict[str, tuple[str, int]] = field(default_factory=dict)

    def graphs(self) -> Iterator[fx.GraphModule]:
        """Every distinct graph, each once, the called ones before their callers."""
        seen: set[int] = set()
        yield from _graphs(self.module, seen)

    def copy(self) -> TypedGraph:
        """A copy whose graphs can be rewritten; tensors and fake values are shared."""
        copies: dict[int, fx.GraphModule] = {}
        return replace(
            self,
            module=copy_module(self.module, copies),
            state=dict(self.state),
            state_names=dict(self.state_names),
        )

    def flatten(self) -> TypedGraph:
        """The same model as one graph without module regions."""
        flat = self.copy()
        for module in flat.graphs():
            inline_regions(module)
        return flat

    def placeholders(self) -> dict[str, fx.Node]:
        """The placeholder nodes of the top graph by name."""
        return {str(n.target): n for n in self.module.graph.find_nodes(op="placeholder")}

    def __str__(self) -> str:
        from fx2onnx.text import show  # noqa: PLC0415  the text form stands above the graph

        return show(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedGraph:
        return self.copy()


def subgraphs(module: fx.GraphModule) -> Iterator[fx.GraphModule]:
    """The graphs that this graph calls: module regions and bodies of control-flow operators."""
    for node in module.graph.nodes:
        if node.op in ("call_module", "get_attr"):
            callee = attribute(module, str(node.target))
            if isinstance(callee, fx.GraphModule):
                yield callee


def _graphs(module: fx.GraphModule, seen: set[int]) -> Iterator[fx.GraphModule]:
    if id(module) in seen:
        return
    seen.add(id(module))
    for callee in subgraphs(module):
        yield from _graphs(callee, seen)
    yield module


def attribute(module: torch.nn.Module, path: str) -> Any:
    """What the dotted `path` of a `get_attr` or `call_module` node names in `module`."""
    found: Any = module
    for part in path.split("."):
        found = getattr(found, part)
    return found


def new_module(attributes: dict[str, Any], graph: fx.Graph, name: str) -> fx.GraphModule:
    """A GraphModule over `graph` whose Python code is only generated when it is called."""
    root = torch.nn.Module()
    for key, value in attributes.items():
        setattr(root, key, value)
    return _LazyGraphModule(root, graph, name)


def copy_module(module: fx.GraphModule, copies: dict[int, fx.GraphModule]) -> fx.GraphModule:
    """A copy of a graph and of the graphs it calls; shared ones stay shared."""
    if (done := copies.get(id(module))) is not None:
        return done
    graph = fx.Graph()
    mapped: dict[fx.Node, fx.Node] = {}
    result = graph.graph_copy(module.graph, mapped)
    output = module.graph.output_node()
    graph.output(result).meta = copy.copy(output.meta)
    attributes = {
        str(n.target): (copy_module(callee, copies) if isinstance(callee, fx.GraphModule) else callee)
        for n in module.graph.nodes
        if n.op in ("call_module", "get_attr")
        for callee in [attribute(module, str(n.target))]
    }
    made = new_module(attributes, graph, type(module).__name__)
    made.meta.update(module.meta)
    copies[id(module)] = made
    return made


def inline_regions(module: fx.GraphModule) -> None:
    """Replace every `call_module` node by the nodes of the region it calls."""
    for node in list(module.graph.find_nodes(op="call_module")):
        region = attribute(module, str(node.target))
        names = [n for n in region.graph.nodes if n.op == "placeholder"]
        mapped: dict[fx.Node, fx.Node] = dict(zip(names, node.args, strict=True))
        with module.graph.inserting_before(node):
            result = module.graph.graph_copy(region.graph, mapped)
        _replace_call(node, result)
    module.graph.eliminate_dead_code()


def _replace_call(node: fx.Node, result: Any) -> None:
    """Let the users of a region call (getitem nodes, or the value itself) use what the region made."""
    if isinstance(result, fx.Node):
        node.replace_all_uses_with(result)
    else:
        for user in list(node.users):
            user.replace_all_uses_with(result[user.args[1]])
            user.graph.erase_node(user)
    node.graph.erase_node(node)


def region_calls(graph: TypedGraph) -> dict[int, list[fx.Node]]:
    """For each region (by the id of its GraphModule): all nodes that call it."""
    found: dict[int, list[fx.Node]] = {}
    for module in graph.graphs():
        for node in module.graph.find_nodes(op="call_module"):
            found.setdefault(id(attribute(module, str(node.target))), []).append(node)
    return found
