"""Relations that do not matter: the model asked about a size, but its graph is the same either way.

A model that asks `seq > 1` on its way gets `seq > 1` as a relation, although the answer often changes nothing
(`is_causal = seq > 1 and mask is None` with a mask). Such a relation would keep a decoder from running on one token.
So the model is traced once more with the other answer, the one that a size of 1 gives: where the graph comes out
the same, the relation goes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import sympy
from torch import fx
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from fx2onnx import dims
from fx2onnx.calls import key_of
from fx2onnx.capture.dynamic import Request
from fx2onnx.errors import CaptureError
from fx2onnx.graph import Relation, TypedGraph
from fx2onnx.types import type_of


def without_idle_relations(
    graph: TypedGraph, requests: Sequence[Request], attempt: Callable[[], TypedGraph]
) -> TypedGraph:
    """`graph` without the relations that a second trace, with the other answers, shows not to matter.

    Args:
        graph: the graph of the first trace.
        requests: the dynamic axes.
        attempt: traces the model as the first time.
    """
    excluded = _excluding_one(graph.relations, requests)
    if all(r.internal for r in excluded):  # they have no influence on the graph
        return _without(graph, excluded)
    try:
        with _other_answers({r.guard for r in excluded}) as answered:
            other = attempt()
    except CaptureError:  # the other branch does not even work at these sizes: the relations are real
        return graph
    if not same_structure(graph.module, other.module):
        return graph
    return _without(graph, [r for r in excluded if r.internal or r.guard in answered])


def _without(graph: TypedGraph, relations: Sequence[Relation]) -> TypedGraph:
    return replace(graph, relations=tuple(r for r in graph.relations if r not in relations))


@contextlib.contextmanager
def _other_answers(guards: set[str]) -> Iterator[set[str]]:
    """While the model is traced, answer these questions about sizes the other way, without a guard.

    Yields the set of those that were asked as a question: a guard can also come from a number that was needed
    (`int(n * 0.5)`), which has no other answer.
    """
    original = ShapeEnv.evaluate_expr
    answered: set[str] = set()

    def evaluate(self: ShapeEnv, orig_expr: Any, *args: Any, **kwargs: Any) -> Any:
        if getattr(orig_expr, "is_Boolean", False) or isinstance(orig_expr, sympy.logic.boolalg.Boolean):
            expr = self.replace(orig_expr)
            for form, answer in ((str(expr), sympy.false), (str(sympy.Not(expr)), sympy.true)):
                if form in guards:
                    answered.add(form)
                    return answer
        return original(self, orig_expr, *args, **kwargs)

    ShapeEnv.evaluate_expr = evaluate  # type: ignore[method-assign]
    try:
        yield answered
    finally:
        ShapeEnv.evaluate_expr = original  # type: ignore[method-assign]


def _excluding_one(relations: Sequence[Relation], requests: Sequence[Request]) -> list[Relation]:
    """The relations of named sizes that keep them from being 1 though the user did not."""
    names = {name for r in requests if r.size is not None for name in dims.names(r.size)}
    names -= {name for r in requests if r.size is not None and r.low > 1 for name in dims.names(r.size)}
    found = []
    for relation in relations:
        concerned = dims.names(relation.left) | dims.names(relation.right)
        tried = (0, 1) if relation.internal else (1,)
        fixes_a_number = relation.internal and relation.sign == "=="
        if (
            relation.guard
            and not fixes_a_number
            and concerned <= names
            and any(_fails(relation, concerned, size) for size in tried)
        ):
            found.append(relation)
    return found


def _fails(relation: Relation, names: set[str], size: int) -> bool:
    return dims.holds(relation.left, relation.sign, relation.right, dict.fromkeys(names, size)) is False


def same_structure(a: fx.GraphModule, b: fx.GraphModule) -> bool:
    """Do two flat graphs make the same calls on the same types?"""
    if len(a.graph.nodes) != len(b.graph.nodes):
        return False
    numbers: dict[fx.Node, int] = {}
    for i, (x, y) in enumerate(zip(a.graph.nodes, b.graph.nodes, strict=True)):
        numbers[x] = numbers[y] = i
        if x.op != y.op or (x.op != "output" and x.target != y.target) or type_of(x) != type_of(y):
            return False
        if _arguments(x, numbers) != _arguments(y, numbers):
            return False
    return True


def _arguments(node: fx.Node, numbers: dict[fx.Node, int]) -> object:
    return key_of(fx.node.map_arg((node.args, dict(node.kwargs)), lambda n: ("node", numbers[n])))
