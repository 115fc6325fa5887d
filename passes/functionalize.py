"""No operator writes to a tensor: in-place operators become functional, writes through views become scatters.

    y = aten.slice.Tensor(x, 0, 0, 2)          y = aten.slice.Tensor(x, 0, 0, 2)
    z = aten.add_.Tensor(y, 1)           ->    z = aten.add.Tensor(y, 1)
    return x                                   x_1 = aten.slice_scatter.default(x, z, 0, 0, 2)
                                               return x_1

Tensors that share memory are known by the storage of their fake values. Each such family has a base; a write makes a
new value of the base through the chain of views between them, and a view that is read after a write to its family is
made again from the new base. New values of inputs and buffers become extra outputs (`Output.mutated`).
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from fx2onnx import origin
from fx2onnx.errors import UnsupportedOpError
from fx2onnx.graph import Output, TypedGraph
from fx2onnx.passes.views import functional_view, is_metadata_only, undo_view
from fx2onnx.passes.writes import is_hidden_write, new_values, written
from fx2onnx.rewrite import whole_graph


def rewrite(graph: TypedGraph) -> None:
    """Make the top graph functional."""
    nodes = graph.module.graph
    if not any(_writes(node) for node in nodes.nodes):
        return
    functional = _Functionalizer(nodes)
    for node in list(nodes.nodes):
        functional.visit(node)
    functional.erase_writers()
    mutated = functional.mutated_placeholders()
    output = nodes.output_node()
    output.args = ((*output.args[0], *mutated.values()),)  # type: ignore[misc]
    names = {entry.placeholder: entry.name for entry in graph.inputs} | graph.state_names
    graph.outputs += tuple(Output(None, mutated=names[name]) for name in mutated)


def _writes(node: fx.Node) -> bool:
    return node.op == "call_function" and (bool(written(node)) or is_hidden_write(node))


@dataclass
class _Family:
    """Tensors that share one storage.

    Attributes:
        base: the node that made the storage.
        current: the node that holds the base's value now.
        version: how often the family was written to.
    """

    base: fx.Node
    current: fx.Node
    version: int = 0


@dataclass
class _Member:
    """A tensor of a family: how it is made from another member, and the node that holds its value."""

    family: _Family
    parent: fx.Node | None
    version: int
    value: fx.Node
    made_by: fx.Node = field(repr=False)  # the view call, or getitem of one


class _Functionalizer:
    """Walks a graph once, keeping the current value of every tensor that shares memory with a written one."""

    def __init__(self, graph: fx.Graph) -> None:
        self.graph = graph
        self.families: dict[int, _Family] = {}
        self.members: dict[fx.Node, _Member] = {}
        self.sources: dict[fx.Node, list[fx.Node]] = {}  # the arguments of nodes as they were traced
        self.writers: list[fx.Node] = []
        self.watched = {
            key for node in graph.nodes if _writes(node) for n in _written_nodes(node) for key in _storages(n)
        }

    # -- reading -----------------------------------------------------------------------------------

    def visit(self, node: fx.Node) -> None:
        """Bring one node to functional form."""
        if _writes(node) and not is_metadata_only(node):
            self._write(node)
            return
        self.sources[node] = node.all_input_nodes
        self._refresh_arguments(node)
        if is_metadata_only(node):
            node.target = functional_view(node)
        if node.op != "output":
            self._register(node)

    def _refresh_arguments(self, node: fx.Node) -> None:
        if any(n in self.members for n in node.all_input_nodes):
            with self.graph.inserting_before(node):
                node.args = fx.node.map_arg(node.args, self._read)
                node.kwargs = fx.node.map_arg(node.kwargs, self._read)

    def _read(self, node: fx.Node) -> fx.Node:
        """The node that holds the tensor's value now; a view that is stale is made again."""
        member = self.members.get(node)
        if member is None:
            return node
        if member.version != member.family.version:
            member.value = self._made_again(node, member)
            member.version = member.family.version
        return member.value

    def _made_again(self, node: fx.Node, member: _Member) -> fx.Node:
        if member.parent is None:
            return member.family.current
        parent = self._read(member.parent)
        if member.made_by is member.parent:  # the result of an in-place operator is its first argument
            return parent
        call = member.made_by
        if call.target is operator.getitem:
            return _again(self.graph, call, _again(self.graph, call.args[0], parent))  # type: ignore[arg-type]
        return _again(self.graph, call, parent)

    # -- families ----------------------------------------------------------------------------------

    def _register(self, node: fx.Node) -> None:
        """Note a tensor whose storage is written to somewhere in the graph."""
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor):
            return
        key = _storage(value)
        if key not in self.watched:
            return
        family = self.families.get(key)
        if family is None:
            family = self.families[key] = _Family(node, node)
            self.members[node] = _Member(family, None, 0, node, node)
            return
        parent = self._parent(node, key)
        if parent is None:
            raise UnsupportedOpError(
                f"{node.target} shares memory with a tensor that is written to, in a way that is not known",
                where=origin.user_line(node),
            )
        self.members[node] = _Member(family, parent, family.version, node, node)

    def _parent(self, node: fx.Node, key: int) -> fx.Node | None:
        """The member that a view was made from; for an element of a list of views, the list's argument."""
        source = node.args[0] if node.target is operator.getitem else node
        for argument in self.sources.get(source, ()):  # type: ignore[arg-type]
            if argument in self.members and _storage(argument.meta["val"]) == key:
                return argument
        return None

    # -- writing -----------------------------------------------------------------------------------

    def _write(self, node: fx.Node) -> None:
        """Replace a writing operator by functional ones, and give its targets their new values."""
        targets = _written_nodes(node)
        with self.graph.inserting_before(node):
            args, kwargs = fx.node.map_arg((node.args, node.kwargs), self._read)
            values, results = new_values(node, args, kwargs)
            for target, value in zip(targets, values, strict=True):
                self._assign(target, value, node)
        self.writers.append(node)
        if results is not None:  # an operator that also returns a tensor of its own
            node.replace_all_uses_with(results)
        elif node.users:
            (target,) = targets  # the result of an in-place operator is the tensor that it wrote to
            member = self.members[target]
            self.members[node] = _Member(member.family, target, member.version, member.value, target)

    def _assign(self, target: fx.Node, value: fx.Node, writer: fx.Node) -> None:
        """Give a member a new value, and with it the members that it is a view of."""
        member = self.members[target]
        if member.parent is None:
            member.family.current = value
            member.family.version += 1
        elif member.made_by is member.parent:
            self._assign(member.parent, value, writer)
        else:
            parent = self._read(member.parent)
            self._assign(member.parent, undo_view(self.graph, member.made_by, parent, value, writer), writer)
        member.value, member.version = value, member.family.version

    def erase_writers(self) -> None:
        """Take the writing operators out; their readers read the values by now."""
        for node in reversed(self.writers):
            self.graph.erase_node(node)

    def mutated_placeholders(self) -> dict[str, fx.Node]:
        """The inputs and state that were written to, with the nodes that hold their values at the end."""
        return {
            family.base.name: family.current
            for family in self.families.values()
            if family.base.op == "placeholder" and family.version
        }


def _again(graph: fx.Graph, view: fx.Node, new: fx.Node) -> fx.Node:
    """The same view of `new`; what a call views is its first tensor."""
    made = graph.node_copy(view, lambda n: n)
    old = view.all_input_nodes[0]
    made.args = fx.node.map_arg(made.args, lambda n: new if n is old else n)
    made.kwargs = fx.node.map_arg(made.kwargs, lambda n: new if n is old else n)
    return made


def _written_nodes(node: fx.Node) -> list[fx.Node]:
    return [n for n in written(node) if isinstance(n, fx.Node)]


def _storage(value: torch.Tensor) -> int:
    return value.untyped_storage()._cdata  # noqa: SLF001


def _storages(node: fx.Node) -> list[int]:
    value: Any = node.meta.get("val")
    return [_storage(value)] if isinstance(value, torch.Tensor) else []


run = whole_graph("functionalize", rewrite)
