"""No operator writes to a tensor: in-place operators become functional, writes through views become scatters.

    y = aten.slice.Tensor(x, 0, 0, 2)          y = aten.slice.Tensor(x, 0, 0, 2)
    z = aten.add_.Tensor(y, 1)           ->    z = aten.add.Tensor(y, 1)
    return x                                   x_1 = aten.slice_scatter.default(x, z, 0, 0, 2)
                                               return x_1

Tensors that share memory are known by the storage of their fake values. Each such family has a root; a write makes a
new value of the root through the chain of views between them, and a view that is read after a write to its family is
made again from the new root. New values of inputs and buffers become extra outputs (`Output.mutated`).

`as_strided`, which reads the memory under a tensor, becomes a `take` from the family's root.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import fx

from fx2onnx import origin
from fx2onnx.errors import UnsupportedOpError
from fx2onnx.graph import Output, TypedGraph
from fx2onnx.passes import memory
from fx2onnx.passes.dead_code import drop_unread
from fx2onnx.passes.views import View, is_metadata_only, make_functional
from fx2onnx.passes.writes import effect, results_of_its_own, written
from fx2onnx.rewrite import call, whole_graph

aten = torch.ops.aten


def rewrite(graph: TypedGraph) -> None:
    """Make every graph functional."""
    for module in graph.graphs():
        mutated = _functionalize(module.graph)
        if module is graph.module:
            _return_mutated(graph, mutated)
        elif mutated:
            line = next((origin.user_line(n) for n in module.graph.nodes if origin.user_line(n)), None)
            raise UnsupportedOpError(
                "the body of a control-flow operator writes to a tensor from outside", where=line
            )


def _functionalize(nodes: fx.Graph) -> dict[str, fx.Node]:
    """Make one graph functional; returns the placeholders that were written to with their values at the end."""
    if not any(_writes(n) or n.target is aten.as_strided.default for n in nodes.nodes):
        return {}
    functional = _Functionalizer(nodes)
    for node in list(nodes.nodes):
        functional.visit(node)
    functional.erase_writers()
    mutated = functional.mutated_placeholders()
    _take_strided(nodes)
    output = nodes.output_node()
    if mutated:
        output.args = ((*output.args[0], *mutated.values()),)  # type: ignore[misc]
    drop_unread(nodes)
    return mutated


def _return_mutated(graph: TypedGraph, mutated: dict[str, fx.Node]) -> None:
    names = {entry.placeholder: entry.name for entry in graph.inputs} | graph.state_names
    graph.outputs += tuple(Output(None, mutated=names[name]) for name in mutated)


def _writes(node: fx.Node) -> bool:
    return bool(written(node))


# eq=False: two tensors are the same only when they are one object
@dataclass(eq=False)
class _Member:
    """A tensor of a family.

    Attributes:
        family: what shares its memory.
        parent: the tensor that it is a view of; None for the root.
        view: the call that makes it from its parent.
        value: the node that holds its value as of `version`.
        version: how many of the family's writes `value` knows of.
    """

    family: _Family
    parent: _Member | None
    view: View | None
    value: fx.Node
    version: int = 0


@dataclass(eq=False)
class _Family:
    """Tensors that share one storage.

    Attributes:
        node: the node that made the storage.
        root: its tensor.
        writes: the tensors that were written to, in order.
    """

    node: fx.Node
    root: _Member = field(init=False)
    writes: list[_Member] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.root = _Member(self, None, None, self.node)


class _Functionalizer:
    """Walks a graph once, keeping the current value of every tensor that shares memory with a written one."""

    def __init__(self, graph: fx.Graph) -> None:
        self.graph = graph
        self.families: dict[int, _Family] = {}
        self.members: dict[fx.Node, _Member] = {}
        self.lists: dict[fx.Node, list[fx.Node]] = {}  # lists of views: the members that they may be views of
        self.sources: dict[
            tuple[fx.Node, fx.Node], fx.Node
        ] = {}  # what a list was made from, by list and member
        self.writers: dict[fx.Node, None] = {}
        self.storages = _Storages(graph)

    # -- reading -----------------------------------------------------------------------------------

    def visit(self, node: fx.Node) -> None:
        """Bring one node to functional form."""
        if node in self.writers:
            return
        if _writes(node) and not is_metadata_only(node):
            self._write(node)
            return
        before = node.all_input_nodes
        after = self._refresh_arguments(node, before)
        if is_metadata_only(node):
            make_functional(node)
        self._register(node, before, after)

    def _refresh_arguments(self, node: fx.Node, before: Sequence[fx.Node]) -> dict[fx.Node, fx.Node]:
        """Let a node read current values; returns them by the members that it read."""
        if not any(n in self.members for n in before):
            return {}
        with self.graph.inserting_before(node):
            after = {n: self._read(n) for n in before if n in self.members}
        if any(a is not b for a, b in after.items()):
            node.args = fx.node.map_arg(node.args, lambda n: after.get(n, n))
            node.kwargs = fx.node.map_arg(node.kwargs, lambda n: after.get(n, n))
        return after

    def _read(self, node: fx.Node) -> fx.Node:
        """The node that holds the tensor's value now."""
        member = self.members.get(node)
        return node if member is None else self._value(member)

    def _value(self, member: _Member) -> fx.Node:
        """The value of a tensor now; a view that is stale is made again at the insertion point."""
        stale = []
        while member.parent is not None and _is_stale(member):
            stale.append(member)
            member = member.parent
        for inner in reversed(stale):
            inner.value = inner.view.made_from(self.graph, inner.parent.value)  # type: ignore[union-attr]
            inner.version = len(inner.family.writes)
        return stale[0].value if stale else member.value

    # -- families ----------------------------------------------------------------------------------

    def _register(self, node: fx.Node, before: Sequence[fx.Node], after: dict[fx.Node, fx.Node]) -> None:
        """Note a tensor whose storage is written to somewhere in the graph."""
        value = node.meta.get("val")
        if isinstance(value, list | tuple) and after:
            self.lists[node] = list(after)
            self.sources.update({(node, member): source for member, source in after.items()})
        if (
            not _is_tensor(node)
            or node.op == "output"
            or (key := self.storages.of(node)) not in self.storages.watched
        ):
            return
        if (family := self.families.get(key)) is None:
            family = self.families[key] = _Family(node)
            self.members[node] = family.root
        elif node.op == "placeholder":
            self._register_tied(node, family)
        elif node.target is aten.as_strided.default:
            self._register_strided(node, family)
        else:
            self._register_view(node, family, before, after)

    def _register_tied(self, node: fx.Node, family: _Family) -> None:
        """Let one tensor that the model holds under two names be one tensor."""
        if not memory.same_layout(node.meta["val"], family.node.meta["val"]):
            raise UnsupportedOpError(
                f"the model writes to {node.target} or {family.node.target}, which are different views of one tensor",
                fix="pass, or register, tensors of their own",
            )
        self.members[node] = family.root

    def _register_view(
        self, node: fx.Node, family: _Family, before: Sequence[fx.Node], after: dict[fx.Node, fx.Node]
    ) -> None:
        items = node.target is operator.getitem and before[0] in self.lists
        candidates = self.lists[before[0]] if items else before
        for parent in candidates:
            if (member := self.members.get(parent)) is not None and member.family is family:
                source = self.sources[before[0], parent] if items else after[parent]
                view = View(node, source, parent)
                self.members[node] = _Member(family, member, view, node, len(family.writes))
                return
        raise UnsupportedOpError(
            f"{node.target} shares memory with a tensor that is written to, in a way that is not known",
            where=origin.user_line(node),
        )

    def _register_strided(self, node: fx.Node, family: _Family) -> None:
        """Let `as_strided` read the family's root, its axes in the order of memory."""
        _, sizes, strides, *offset = node.args
        order = memory.memory_order(family.node.meta["val"])
        start = offset[0] if offset and offset[0] is not None else self._offset_of(node)
        if order is None or start is None:
            raise UnsupportedOpError(
                "aten.as_strided on a tensor with gaps in its memory",
                where=origin.user_line(node),
                fix="index, slice or unfold the tensor",
            )
        with self.graph.inserting_before(node):
            parent = self._in_memory_order(family, order, node)
            source = self._value(parent)
        node.args, node.kwargs = (source, sizes, strides, start), {}
        self.members[node] = _Member(family, parent, View(node, source, source), node, len(family.writes))

    def _in_memory_order(self, family: _Family, order: list[int], like: fx.Node) -> _Member:
        if order == sorted(order):
            return family.root
        root = self._value(family.root)
        permuted = call(self.graph, aten.permute.default, root, order, like=like)
        view = View(permuted, root, family.node)
        return _Member(family, family.root, view, permuted, len(family.writes))

    def _offset_of(self, node: fx.Node) -> int | None:
        """The offset that `as_strided` takes over from its argument, if it is a number."""
        offset = node.meta["val"].storage_offset()
        return int(offset) if memory.is_number(offset) else None

    # -- writing -----------------------------------------------------------------------------------

    def _write(self, node: fx.Node) -> None:
        """Replace a writing operator by functional ones, and give its targets their new values."""
        targets = written(node)
        with self.graph.inserting_before(node):
            args, kwargs = fx.node.map_arg((node.args, node.kwargs), self._read)
            made = effect(node, args, kwargs, [self._read(n) for n in targets])
            for target, value in zip(targets, made.values, strict=True):
                self._assign(self.members[target], value, node)
        self.writers[node] = None
        if isinstance(node.meta.get("val"), torch.Tensor):
            self._bind(node, 0, node, targets, made.results)
        else:
            for item in list(node.users):
                self.writers[item] = None
                self._bind(item, int(item.args[1]), node, targets, made.results)  # type: ignore[arg-type]

    def _bind(
        self,
        item: fx.Node,
        position: int,
        writer: fx.Node,
        targets: Sequence[fx.Node],
        results: Sequence[fx.Node],
    ) -> None:
        """Let the readers of a writer's result read what holds it: a written tensor, or a new one."""
        own = results_of_its_own(writer)
        if position not in own:
            aliases = [i for i in range(len(targets) + len(own)) if i not in own]
            self.members[item] = self.members[targets[aliases.index(position)]]
            return
        result = results[own.index(position)]
        result.meta["val"] = item.meta["val"]  # the storage that later views of it share
        item.replace_all_uses_with(result)
        self._register(result, (), {})

    def _assign(self, target: _Member, value: fx.Node, writer: fx.Node) -> None:
        """Give a tensor a new value, and with it the tensors that it is a view of."""
        changed = [(target, value)]
        member = target
        while member.parent is not None and member.view is not None:
            base = self._value(member.parent)
            value = member.view.undone(self.graph, base, value, writer)
            member = member.parent
            changed.append((member, value))
        target.family.writes.append(target)
        for member, value in changed:
            member.value, member.version = value, len(member.family.writes)

    def erase_writers(self) -> None:
        """Take the writing operators out; their readers read the values by now."""
        for node in reversed(self.writers):
            self.graph.erase_node(node)

    def mutated_placeholders(self) -> dict[str, fx.Node]:
        """The inputs and state that were written to, with the nodes that hold their values at the end."""
        return {
            str(family.node.target): family.root.value
            for family in self.families.values()
            if family.node.op == "placeholder" and family.writes
        }


_LOOK_BACK = 16
"""Writes that are looked at one by one to see whether they touched a tensor; after more it counts as stale."""


def _is_stale(member: _Member) -> bool:
    """Did a write since `member.version` touch this tensor?"""
    missed = len(member.family.writes) - member.version
    if missed > _LOOK_BACK:
        return True
    return any(not _are_apart(member, other) for other in member.family.writes[member.version :])


def _are_apart(a: _Member, b: _Member) -> bool:
    """Have two tensors of a family surely no element in common?"""
    return any(
        base is other_base and view.is_apart_from(other)
        for base, view in _lineage(a)
        for other_base, other in _lineage(b)
    )


def _lineage(member: _Member) -> list[tuple[_Member, View]]:
    """How a tensor is made from the root: each view with what it is a view of, the last one first."""
    found = []
    while member.parent is not None and member.view is not None:
        found.append((member.parent, member.view))
        member = member.parent
    return found


def _is_tensor(node: fx.Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)


class _Storages:
    """Which tensors of a graph share memory, and whose memory is written to or read by `as_strided`."""

    def __init__(self, graph: fx.Graph) -> None:
        self._same: dict[int, int] = {}
        for node in graph.nodes:
            if memory.is_taken_for_copy(node):
                source = self.of(node.all_input_nodes[0])
                self._same[memory.storage_of(node.meta["val"])] = source
        written_to = {self.of(n) for node in graph.nodes for n in written(node) if _is_tensor(n)}
        strided = graph.find_nodes(op="call_function", target=aten.as_strided.default)
        self.watched = written_to | {self.of(node) for node in strided}

    def of(self, node: fx.Node) -> int:
        """Equal for tensors that share memory."""
        storage = memory.storage_of(node.meta["val"])
        return self._same.get(storage, storage)


def _take_strided(graph: fx.Graph) -> None:
    """Replace `as_strided`, which reads a root in memory order now, by `take`."""
    for node in graph.find_nodes(op="call_function", target=aten.as_strided.default):
        with graph.inserting_before(node):
            positions = memory.strided_positions(graph, node, node.args[0])
            taken = call(graph, aten.take.default, node.args[0], positions, like=node)
        node.replace_all_uses_with(taken)
        graph.erase_node(node)


run = whole_graph("functionalize", rewrite)
