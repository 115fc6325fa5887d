"""Turn module calls into regions: one sub-graph for each distinct module call.

    a = aten.linear.default(x, w1, b1)    # layers.0          a = Layer(x, w1, b1)
    b = aten.relu.default(a)              # layers.0    ->    b = Layer(a, w2, b2)
    c = aten.linear.default(b, w2, b2)    # layers.1
    d = aten.relu.default(c)              # layers.1          region Layer(x, w, b): …

A region is a contiguous run of nodes of one module call, nested as the modules nest. Calls whose regions compute
the same on the same types share one sub-graph and differ in their arguments. A module call of a single operator
is left as that operator: it would be a function of one node.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import fx

from fx2onnx.calls import key_of
from fx2onnx.graph import TypedGraph, new_module
from fx2onnx.rewrite import origin, whole_graph
from fx2onnx.types import type_of

Frame = tuple[str, str, str]
"""One module call on a node's stack: the call's key, the module's path, its class."""


def rewrite(graph: TypedGraph) -> None:
    """Outline the module calls of the top graph."""
    outliner = _Outliner(graph)
    runs = _runs(outliner.body(), outliner.frames, depth=0)
    if all(not isinstance(run, _Run) for run in runs):
        return
    outliner.top(runs)


@dataclass
class _Run:
    """The nodes of one module call, with the calls inside it."""

    frame: Frame
    nodes: list[fx.Node]
    parts: list[fx.Node | _Run] = field(default_factory=list)


def _frames_of(node: fx.Node) -> tuple[Frame, ...] | None:
    """The module calls around a node, the model's own left out; None when it is not known."""
    stack = node.meta.get("nn_module_stack")
    if not stack:
        return None
    frames = [(key, entry[0], _class_name(entry[1])) for key, entry in stack.items() if entry[0]]
    if any("_empty_nn_module_stack" in key for key, _, _ in frames):
        return None
    return tuple(frame for frame in frames if frame[0] != "L__self__")


def _class_name(cls: Any) -> str:
    return cls if isinstance(cls, str) else f"{cls.__module__}.{cls.__qualname__}"


def _runs(
    nodes: Sequence[fx.Node], frames: dict[fx.Node, tuple[Frame, ...]], depth: int
) -> list[fx.Node | _Run]:
    """Split nodes into contiguous runs of one module call each, at one depth of the stack."""
    parts: list[fx.Node | _Run] = []
    for node in nodes:
        frame = frames[node][depth] if len(frames[node]) > depth else None
        last = parts[-1] if parts else None
        if frame is None:
            parts.append(node)
        elif isinstance(last, _Run) and last.frame == frame:
            last.nodes.append(node)
        else:
            parts.append(_Run(frame, [node]))
    return list(_expanded(parts, frames, depth))


def _expanded(
    parts: Sequence[fx.Node | _Run], frames: dict[fx.Node, tuple[Frame, ...]], depth: int
) -> Iterator[fx.Node | _Run]:
    for part in parts:
        if isinstance(part, _Run):
            part.parts = _runs(part.nodes, frames, depth + 1)
            if _is_one_operator(part.nodes):
                yield from part.nodes
                continue
        yield part


def _is_one_operator(nodes: Sequence[fx.Node]) -> bool:
    calls = [n for n in nodes if n.target is not operator.getitem]
    return len(calls) <= 1


class _Outliner:
    """Builds the regions of one graph."""

    def __init__(self, graph: TypedGraph) -> None:
        self.graph = graph
        self.module = graph.module
        self.shared: dict[tuple[Any, ...], tuple[str, fx.GraphModule]] = {}
        self.names: dict[str, int] = {}
        self.regions: dict[str, fx.GraphModule] = {}
        self.frames = _smoothed(self.body())

    def body(self) -> list[fx.Node]:
        """The nodes of the top graph that compute."""
        return [n for n in self.module.graph.nodes if n.op not in ("placeholder", "output")]

    def top(self, parts: Sequence[fx.Node | _Run]) -> None:
        """Rebuild the top graph from its parts."""
        old = self.module.graph
        graph, env = fx.Graph(), {}
        for node in old.find_nodes(op="placeholder"):
            env[node] = graph.node_copy(node)
        children = self._emit(parts, graph, env)
        for name, value in self._attributes(old).items():
            children.setdefault(name, value)
        result = graph.output(fx.node.map_arg(old.output_node().args[0], lambda n: env[n]))
        result.meta.update(old.output_node().meta)
        meta = self.module.meta
        self.graph.module = new_module(children, graph, type(self.module).__name__)
        self.graph.module.meta.update(meta)

    def _attributes(self, graph: fx.Graph) -> dict[str, Any]:
        return {str(n.target): getattr(self.module, str(n.target)) for n in graph.find_nodes(op="get_attr")}

    def _emit(
        self, parts: Sequence[fx.Node | _Run], graph: fx.Graph, env: dict[fx.Node, fx.Node]
    ) -> dict[str, Any]:
        """Copy parts into a graph, runs as region calls; returns the sub-graphs that the graph calls."""
        children: dict[str, Any] = {}
        for part in parts:
            if isinstance(part, fx.Node):
                env[part] = graph.node_copy(part, lambda n: env[n])
                if part.op == "get_attr":
                    children[str(part.target)] = getattr(self.module, str(part.target))
            elif outputs := _results(part):
                name, module = self._call(part, outputs, graph, env)
                children[name] = module
        return children

    def _call(
        self, run: _Run, outputs: Sequence[fx.Node], graph: fx.Graph, env: dict[fx.Node, fx.Node]
    ) -> tuple[str, fx.GraphModule]:
        members = set(run.nodes)
        inputs = list(
            dict.fromkeys(n for node in run.nodes for n in node.all_input_nodes if n not in members)
        )
        name, module = self._region(run, inputs, outputs)
        node = graph.call_module(name, tuple(env[n] for n in inputs))
        node.meta.update(origin(run.nodes[0]))
        node.meta["nn_module_stack"] = _outer_stack(run)
        _bind_results(node, outputs, env)
        return name, module

    def _region(
        self, run: _Run, inputs: Sequence[fx.Node], outputs: Sequence[fx.Node]
    ) -> tuple[str, fx.GraphModule]:
        """The sub-graph for a run: an equal one that is there already, or a new one."""
        graph, env = fx.Graph(), {}
        for node, name in zip(inputs, self._input_names(run, inputs), strict=True):
            env[node] = graph.placeholder(name)
            env[node].meta["val"] = node.meta["val"]
        children = self._emit(run.parts, graph, env)
        results = [env[n] for n in outputs]
        graph.output(results[0] if len(results) == 1 else tuple(results))
        qualified = run.frame[2]
        key = (qualified, _structure(graph, children))
        if (found := self.shared.get(key)) is None:
            name = self._fresh(qualified.rsplit(".", 1)[-1])
            module = new_module(children, graph, qualified.rsplit(".", 1)[-1])
            module.meta["domain"] = qualified.split(".", 1)[0]
            module.meta["class"] = qualified
            found = self.shared[key] = (name, module)
        return found

    def _fresh(self, name: str) -> str:
        count = self.names[name] = self.names.get(name, 0) + 1
        return name if count == 1 else f"{name}_{count}"

    def _input_names(self, run: _Run, inputs: Sequence[fx.Node]) -> list[str]:
        """Readable names for a region's placeholders: a state's path within the module, else the value's name."""
        path = run.frame[1] + "."
        names: list[str] = []
        for node in inputs:
            state = self.graph.state_names.get(node.name)
            name = (state.removeprefix(path) if state else node.name).replace(".", "_")
            names.append(name if name.isidentifier() else f"p_{name}")
        return names


def _results(run: _Run) -> list[fx.Node]:
    """The nodes of a run that are read outside of it."""
    members = set(run.nodes)
    return [n for n in run.nodes if any(user not in members for user in n.users)]


def _outer_stack(run: _Run) -> dict[str, Any]:
    """The module stack of a call: that of its nodes down to the module that is called."""
    stack = run.nodes[0].meta["nn_module_stack"]
    outer = {}
    for key, entry in stack.items():
        outer[key] = entry
        if key == run.frame[0]:
            break
    return outer


def _bind_results(node: fx.Node, outputs: Sequence[fx.Node], env: dict[fx.Node, fx.Node]) -> None:
    if len(outputs) == 1:
        node.meta["val"] = outputs[0].meta["val"]
        env[outputs[0]] = node
        return
    node.meta["val"] = tuple(n.meta["val"] for n in outputs)
    for i, output in enumerate(outputs):
        item = node.graph.call_function(operator.getitem, (node, i))
        item.meta.update(origin(output))
        item.meta["val"] = output.meta["val"]
        env[output] = item


def _smoothed(nodes: Sequence[fx.Node]) -> dict[fx.Node, tuple[Frame, ...]]:
    """Module calls around each node; a node without a stack joins the calls that go on around it."""
    known = [(n, _frames_of(n)) for n in nodes]
    frames: dict[fx.Node, tuple[Frame, ...]] = {}
    following: tuple[Frame, ...] = ()
    ahead: dict[fx.Node, tuple[Frame, ...]] = {}
    for node, found in reversed(known):
        ahead[node] = following
        following = found if found is not None else following
    last: tuple[Frame, ...] = ()
    for node, found in known:
        if found is None:
            common = [a for a, b in zip(last, ahead[node], strict=False) if a == b]
            found = tuple(common)  # noqa: PLW2901  the frames that are assumed
        frames[node] = last = found
    return frames


def _structure(graph: fx.Graph, children: dict[str, Any]) -> tuple[Any, ...]:
    """What a region computes on which types: equal for regions that can share one sub-graph."""
    numbers: dict[fx.Node, int] = {}
    parts: list[Any] = []

    def numbered(node: fx.Node) -> Any:
        return _Number(numbers[node])

    for node in graph.nodes:
        numbers[node] = len(numbers)
        target = id(children[str(node.target)]) if node.op in ("call_module", "get_attr") else node.target
        if node.op == "placeholder":
            parts.append(("input", type_of(node)))
            continue
        arguments = key_of(fx.node.map_arg((node.args, dict(node.kwargs)), numbered))
        parts.append((node.op, "" if node.op == "output" else target, arguments, type_of(node)))
    return tuple(parts)


@dataclass(frozen=True)
class _Number:
    """Stands for the n-th node of a region in its structure."""

    index: int


run = whole_graph("outline", rewrite)
