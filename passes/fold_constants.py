"""Evaluate what is made of state alone on the real weights, once.

    w: f32[8, 4] = state["weight"]                      t: f32[4, 8] = state["weight.t"]
    t = aten.t.default(w)                         ->    y = aten.matmul.default(x, t)
    y = aten.matmul.default(x, t)

A value is folded when it is no larger than the state that it is made of, or small. In a region it becomes a parameter,
whose value each call passes. A weight that is also read as it is (a tied embedding) is not stored a second time:
what is made of it stays a call. Views of weights stay views, which need no memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import fx

from fx2onnx.calls import key_of
from fx2onnx.graph import TypedGraph, region_calls
from fx2onnx.passes.constness import constant_nodes
from fx2onnx.passes import dead_code
from fx2onnx.rewrite import origin, whole_graph

SMALL = 64 * 1024
"""Bytes up to which a value may be larger than what it is made of (masks, position tables)."""


def rewrite(graph: TypedGraph) -> None:
    """Move constant values out of regions, then evaluate those of the top graph."""
    constant = constant_nodes(graph)
    calls = region_calls(graph)
    for module in graph.graphs():  # called ones first: callers get what is moved out
        if module is not graph.module:
            _hoist(module, calls.get(id(module), ()), constant)
    dead_code.rewrite(graph)  # weights that regions no longer take are not read as they are any more
    _Folder(graph, constant).run()


def _frontier(graph: fx.Graph, constant: set[fx.Node]) -> list[fx.Node]:
    """Computed constants that something not constant reads, and that are worth keeping."""
    return [
        node
        for node in graph.nodes
        if node.op == "call_function"
        and node in constant
        and isinstance(node.meta.get("val"), torch.Tensor)
        and any(user not in constant for user in node.users)
        and _is_worth_it(node)
    ]


def _is_worth_it(node: fx.Node) -> bool:
    """Is the value no larger than the state that it is made of, or small?"""
    size = _bytes(node)
    return size <= SMALL or size <= sum(_bytes(n) for n in _sources(node))


def _bytes(node: fx.Node) -> int:
    value = node.meta["val"]
    return int(value.numel()) * value.element_size() if isinstance(value, torch.Tensor) else 0


def _sources(node: fx.Node) -> list[fx.Node]:
    """The placeholders that a constant is made of."""
    return [n for n in _expression(node) if n.op == "placeholder"]


def _expression(node: fx.Node) -> list[fx.Node]:
    """A node and all that it is made of, in order."""
    found: dict[fx.Node, None] = {}

    def visit(n: fx.Node) -> None:
        if n not in found:
            for argument in n.all_input_nodes:
                visit(argument)
            found[n] = None

    visit(node)
    return list(found)


# -- regions ---------------------------------------------------------------------------------------


def _hoist(module: fx.GraphModule, sites: Sequence[fx.Node], constant: set[fx.Node]) -> None:
    """Turn a region's constants into parameters that its callers compute."""
    for node in _frontier(module.graph, constant):
        parameters = module.graph.find_nodes(op="placeholder")
        expression = _expression(node)
        parameter = _new_placeholder(module.graph, node.name)
        parameter.meta["val"] = node.meta["val"]
        constant.add(parameter)
        for site in sites:
            argument = _copied(expression, dict(zip(parameters, site.args, strict=True)), site, constant)
            site.args = (*site.args, argument)
        for user in list(node.users):
            if user not in constant:
                user.replace_input_with(node, parameter)
    dead_code.drop_unread(module.graph)


def _new_placeholder(graph: fx.Graph, name: str) -> fx.Node:
    """A placeholder after the others."""
    others = graph.find_nodes(op="placeholder")
    with graph.inserting_after(others[-1]) if others else graph.inserting_before(next(iter(graph.nodes))):
        made = graph.placeholder(name)
    made.target = made.name
    return made


def _copied(
    expression: Sequence[fx.Node], mapped: dict[fx.Node, Any], site: fx.Node, constant: set[fx.Node]
) -> fx.Node:
    """The nodes of an expression, copied before a call."""
    for node in expression:
        if node not in mapped:
            with site.graph.inserting_before(site):
                made = site.graph.node_copy(node, lambda n: mapped[n])
            made.meta.update(origin(site))
            constant.add(made)
            mapped[node] = made
    result: fx.Node = mapped[expression[-1]]
    return result


# -- the top graph ---------------------------------------------------------------------------------


class _Folder:
    """Evaluates constants of the top graph; equal expressions once."""

    def __init__(self, graph: TypedGraph, constant: set[fx.Node]) -> None:
        self.graph, self.constant = graph, constant
        self.nodes = graph.module.graph
        self.values: dict[fx.Node, Any] = {}
        self.placeholders: dict[Any, fx.Node] = {}
        self.keys: dict[fx.Node, Any] = {}
        self.names = {*graph.state_names.values()}

    def run(self) -> None:
        """Fold, then drop what is not read any more."""
        with torch.no_grad():
            for node in _frontier(self.nodes, self.constant):
                if not self._would_store_twice(node):
                    self._fold(node)
        dead_code.drop_unread(self.nodes)

    def _would_store_twice(self, node: fx.Node) -> bool:
        """Is the value large, and made of state that the graph also reads as it is?"""
        if _bytes(node) <= SMALL:
            return False
        return any(self._is_read_as_it_is(source) for source in _sources(node))

    def _is_read_as_it_is(self, source: fx.Node) -> bool:
        return any(user not in self.constant for user in source.users)

    def _fold(self, node: fx.Node) -> None:
        key = self._key(node)
        if (placeholder := self.placeholders.get(key)) is None:
            placeholder = self.placeholders[key] = self._new_state(node)
        for user in list(node.users):
            if user not in self.constant:
                user.replace_input_with(node, placeholder)

    def _key(self, node: fx.Node) -> Any:
        """Equal for expressions that have the same value."""
        if node not in self.keys:
            if node.op == "placeholder":
                self.keys[node] = node
            else:
                arguments = fx.node.map_arg((node.args, dict(node.kwargs)), lambda n: ("key", self._key(n)))
                self.keys[node] = (node.target, key_of(arguments))
        return self.keys[node]

    def _new_state(self, node: fx.Node) -> fx.Node:
        value = self._value(node)
        stem = self._name(node)
        placeholder = _new_placeholder(self.nodes, node.name)
        placeholder.meta.update(val=node.meta["val"])
        self.graph.state[placeholder.name] = value
        self.graph.state_names[placeholder.name] = stem
        self.constant.add(placeholder)
        return placeholder

    def _value(self, node: fx.Node) -> Any:
        for part in _expression(node):
            if part not in self.values:
                self.values[part] = self._computed(part)
        return self.values[node]

    def _computed(self, node: fx.Node) -> Any:
        if node.op == "placeholder":
            return self.graph.state[str(node.target)]
        args, kwargs = fx.node.map_arg((node.args, dict(node.kwargs)), lambda n: self.values[n])
        return node.target(*args, **kwargs)  # type: ignore[operator]

    def _name(self, node: fx.Node) -> str:
        """A readable name: that of the first state that it is made of, with the operator's."""
        sources = [self.graph.state_names[str(n.target)] for n in _sources(node)]
        operator_name = str(node.target).split(".")[1] if "." in str(node.target) else node.name
        stem = f"{sources[0]}.{operator_name}" if sources else operator_name
        name = next(name for name in _numbered(stem) if name not in self.names)
        self.names.add(name)
        return name


def _numbered(stem: str) -> Iterator[str]:
    yield stem
    count = 2
    while True:
        yield f"{stem}_{count}"
        count += 1


run = whole_graph("fold_constants", rewrite)
