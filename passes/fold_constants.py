"""Evaluate what is made of state alone on the real weights, once.

    w: f32[8, 4] = state["weight"]                      t: f32[4, 8] = state["weight.t"]
    t = aten.t.default(w)                         ->    y = aten.matmul.default(x, t)
    y = aten.matmul.default(x, t)

A value is folded when it is no larger than the state that it is made of, or small. In a region it becomes a parameter,
whose value each call passes. A weight that is also read as it is (a tied embedding) is not stored a second time:
what is made of it stays a call. Views of weights stay views, which need no memory. Random operators are never folded.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import fx

from fx2onnx.calls import key_of
from fx2onnx.graph import TypedGraph, region_calls
from fx2onnx.passes import dead_code
from fx2onnx.passes.constness import constant_nodes
from fx2onnx.rewrite import origin, whole_graph

SMALL = 64 * 1024
"""Bytes up to which a value may be larger than what it is made of (position tables)."""

SMALL_MASK = 1024 * 1024
"""The same for what several calls make out of nothing but numbers."""


def rewrite(graph: TypedGraph) -> None:
    """Move constant values out of regions, then evaluate those of the top graph."""
    constant = constant_nodes(graph)
    calls = region_calls(graph)
    for module in graph.graphs():  # called ones first: callers get what is moved out
        if sites := calls.get(id(module)):
            _hoist(module, sites, constant)
    dead_code.rewrite(graph)  # weights that regions no longer take are not read as they are any more
    _fold(graph, constant)


# -- what is folded ----------------------------------------------------------------------------------


class _Plan:
    """Which constants of a graph are replaced by their values.

    Attributes:
        folded: the constants that are, in order.
        staying: the nodes that are still computed afterwards, and the placeholders that they read.
    """

    def __init__(self, graph: fx.Graph, constant: set[fx.Node], *, in_region: bool = False) -> None:
        self.constant = constant
        self.sources = _sources(graph, constant)
        refused: set[fx.Node] = set()
        while True:
            self.folded, self.staying = self._split(graph, refused)
            twice = {node for node in self.folded if self._would_store_twice(node)}
            if in_region or not twice:  # what would be stored twice shows in the top graph only
                return
            refused |= twice

    def _split(self, graph: fx.Graph, refused: set[fx.Node]) -> tuple[list[fx.Node], set[fx.Node]]:
        folded: list[fx.Node] = []
        staying: set[fx.Node] = set()
        for node in reversed(graph.nodes):
            if node not in self.constant:
                staying.add(node)
            elif any(user in staying for user in node.users):
                if node not in refused and self._can_be_folded(node):
                    folded.append(node)
                else:
                    staying.add(node)
        return folded[::-1], staying

    def _can_be_folded(self, node: fx.Node) -> bool:
        if node.op == "placeholder" or not isinstance(node.meta["val"], torch.Tensor) or _is_one_number(node):
            return False
        size = _bytes(node)
        numbers_alone = node.all_input_nodes and all(map(_is_number, self.sources[node]))
        return size <= (SMALL_MASK if numbers_alone else SMALL) or size <= sum(
            map(_bytes, self.sources[node])
        )

    def _would_store_twice(self, node: fx.Node) -> bool:
        """Is the value large, and made of state that the graph also reads as it is?"""
        return _bytes(node) > SMALL and not self.staying.isdisjoint(self.sources[node])


def _is_number(placeholder: fx.Node) -> bool:
    return bool(placeholder.meta["val"].numel() <= 1)


def _is_one_number(node: fx.Node) -> bool:
    """Is this a number that is written as a tensor? It reads better where it is used."""
    return not node.all_input_nodes and node.meta["val"].numel() <= 1


def _sources(graph: fx.Graph, constant: set[fx.Node]) -> dict[fx.Node, frozenset[fx.Node]]:
    """The placeholders that each constant is made of."""
    found: dict[fx.Node, frozenset[fx.Node]] = {}
    for node in graph.nodes:
        if node in constant:
            inputs = [found[n] for n in node.all_input_nodes]
            own = frozenset({node}) if node.op == "placeholder" else frozenset()
            found[node] = inputs[0] if len(inputs) == 1 else own.union(*inputs)
    return found


def _bytes(node: fx.Node) -> int:
    value: torch.Tensor = node.meta["val"]
    return int(value.numel()) * value.element_size()


def _made_of(graph: fx.Graph, ends: Iterable[fx.Node]) -> list[fx.Node]:
    """The nodes that some nodes are made of, these included, in the graph's order."""
    found = set(ends)
    for node in reversed(graph.nodes):
        if node in found:
            found.update(node.all_input_nodes)
    return [node for node in graph.nodes if node in found]


def _new_placeholder(graph: fx.Graph, node: fx.Node, plan: _Plan) -> fx.Node:
    """A placeholder after the others for the value of `node`, called after what it is made of: `weight_t`."""
    sources = [n.name for n in graph.find_nodes(op="placeholder") if n in plan.sources[node]]
    name = f"{sources[0]}_{_operator_name(node)}" if sources else node.name
    others = graph.find_nodes(op="placeholder")
    with graph.inserting_after(others[-1]) if others else graph.inserting_before(next(iter(graph.nodes))):
        made = graph.placeholder(name)
    made.target = made.name
    made.meta["val"] = node.meta["val"]
    return made


def _operator_name(node: fx.Node) -> str:
    """`t` for `aten.t.default`; the node's name for the item of a list."""
    schema = getattr(node.target, "_schema", None)
    return node.name if schema is None else str(schema.name).split("::")[1].lstrip("_")


def _replace(node: fx.Node, value: fx.Node, staying: set[fx.Node]) -> None:
    """Let the readers of `node` that stay read `value`."""
    for user in list(node.users):
        if user in staying:
            user.replace_input_with(node, value)


# -- regions ---------------------------------------------------------------------------------------


def _hoist(module: fx.GraphModule, sites: Sequence[fx.Node], constant: set[fx.Node]) -> None:
    """Turn a region's constants into parameters that its callers compute."""
    graph = module.graph
    plan = _Plan(graph, constant, in_region=True)
    moved = plan.folded
    if not moved:
        return
    computed = [node for node in _made_of(graph, moved) if node.op != "placeholder"]
    parameters = graph.find_nodes(op="placeholder")
    for site in sites:
        mapped = _copied(computed, dict(zip(parameters, site.args, strict=True)), site)
        constant.update(mapped[node] for node in computed)
        site.args = (*site.args, *(mapped[node] for node in moved))
    for node in moved:
        parameter = _new_placeholder(graph, node, plan)
        constant.add(parameter)
        _replace(node, parameter, plan.staying)
    dead_code.drop_unread(graph)


def _copied(computed: Sequence[fx.Node], mapped: dict[fx.Node, Any], site: fx.Node) -> dict[fx.Node, Any]:
    """Copy nodes of a region to before a call of it; returns `mapped` with the copies."""
    for node in computed:
        with site.graph.inserting_before(site):
            copy = site.graph.node_copy(node, lambda n: mapped[n])
        copy.meta.update(origin(site))
        mapped[node] = copy
    return mapped


# -- the top graph ---------------------------------------------------------------------------------


def _fold(graph: TypedGraph, constant: set[fx.Node]) -> None:
    """Evaluate constants of the top graph, equal ones once, and make them state."""
    nodes = graph.module.graph
    plan = _Plan(nodes, constant)
    if not plan.folded:
        return
    keys = _keys(_made_of(nodes, plan.folded))
    first: dict[int, fx.Node] = {}
    for node in plan.folded:
        first.setdefault(keys[node], node)
    values = _evaluated(graph, _made_of(nodes, first.values()), set(first.values()))
    names = _names(graph, plan)
    made: dict[int, fx.Node] = {}
    for node in plan.folded:
        key = keys[node]
        if first[key] not in values:
            continue
        if key not in made:
            made[key] = _new_placeholder(nodes, node, plan)
            graph.state[made[key].name] = values[node]
            graph.state_names[made[key].name] = names(node)
        _replace(node, made[key], plan.staying)
    dead_code.rewrite(graph)


def _keys(nodes: Iterable[fx.Node]) -> dict[fx.Node, int]:
    """A number for each node, the same for calls that have the same value."""
    numbers: dict[Any, int] = {}
    keys: dict[fx.Node, int] = {}
    for node in nodes:
        key: Any = node
        if node.op != "placeholder":
            arguments = fx.node.map_arg((node.args, dict(node.kwargs)), lambda n: _Number(keys[n]))
            key = (node.target, key_of(arguments))
        keys[node] = numbers.setdefault(key, len(numbers))
    return keys


class _Number(int):
    """Stands for a node among arguments; as a type of its own it is no number that was written there."""

    __slots__ = ()


def _evaluated(
    graph: TypedGraph, needed: Sequence[fx.Node], wanted: set[fx.Node]
) -> dict[fx.Node, torch.Tensor]:
    """The values of the wanted nodes; intermediate ones are freed as soon as nothing needs them.

    What cannot be computed here (an operator without a kernel for real tensors) is left out.
    """
    values: dict[fx.Node, Any] = {}
    last = {n: node for node in needed for n in node.all_input_nodes}
    with torch.no_grad():
        for node in needed:
            inputs = node.all_input_nodes
            if node.op == "placeholder":
                values[node] = graph.state[str(node.target)]
            elif all(n in values for n in inputs):
                args, kwargs = fx.node.map_arg((node.args, dict(node.kwargs)), lambda n: values[n])
                try:
                    values[node] = node.target(*args, **kwargs)  # type: ignore[operator]
                except (RuntimeError, NotImplementedError, TypeError, ValueError):
                    continue
            for n in inputs:
                if last[n] is node and n not in wanted:
                    values.pop(n, None)
    return values


def _names(graph: TypedGraph, plan: _Plan) -> Any:
    """Readable names for folded values: that of the first state they are made of, with the operator's."""
    taken = set(graph.state_names.values())

    def name(node: fx.Node) -> str:
        sources = sorted(str(n.target) for n in plan.sources[node])
        own = _operator_name(node)
        stem = f"{graph.state_names[sources[0]]}.{own}" if sources else own
        chosen = next(n for n in _numbered(stem) if n not in taken)
        taken.add(chosen)
        return chosen

    return name


def _numbered(stem: str) -> Iterator[str]:
    yield stem
    yield from (f"{stem}_{i}" for i in itertools.count(2))


run = whole_graph("fold_constants", rewrite)
