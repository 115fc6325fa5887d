"""TypedGraph → bodies and calls: each distinct call is lowered once, each distinct region once.

`Lowering` walks a graph and places, for every call, the body that its rule (or its decomposition) makes.
The memo key of a call is its operator with the types of its values and its static arguments, so the work
is proportional to what is distinct. Operators without rule and decomposition are collected over the whole
model and reported together.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir
import torch
from torch import fx

from fx2onnx import origin, rewrite
from fx2onnx.bodies import Body, BodyTable, Scope, drop_unused, trim
from fx2onnx.builder import OpBuilder, Value
from fx2onnx.calls import STORAGE, Argument, Call, bind, key_of
from fx2onnx.decompose import decompose
from fx2onnx.errors import (
    Fx2OnnxError,
    InvariantError,
    MissingOp,
    NoLoweringError,
    RuleError,
    UnsupportedOpError,
)
from fx2onnx.graph import TypedGraph, attribute
from fx2onnx.rules import Rule, RuleBook, is_script
from fx2onnx.types import DTYPES, SizeType, TensorType, Type, type_of


@dataclass(frozen=True)
class Lowered:
    """A lowered model: the top graph with its initializers, and what it calls."""

    graph: ir.Graph
    callees: tuple[Body, ...]


def lower_graph(
    graph: TypedGraph,
    book: RuleBook,
    *,
    opset: int,
    dialect: str = "onnx",
    functions: str = "modules",
    prepare: Callable[[fx.GraphModule], fx.GraphModule] = lambda pieces: pieces,
) -> Lowered:
    """Lower a whole model.

    Args:
        graph: a functional typed graph.
        book: the rules.
        opset: version of the ai.onnx domain.
        dialect: "onnx" or "onnxruntime".
        functions: "modules" (functions for module regions and for operators), "ops" (operators only) or
            "none" (everything inline).
        prepare: brings the graph of a decomposed call to the form that rules expect.

    Raises:
        NoLoweringError: operators without rule and decomposition, all of them.
        RuleError: a rule raised.
    """
    lowering = Lowering(book, opset, dialect, functions, prepare)
    lowered = lowering.top(graph)
    if lowering.missing:
        raise NoLoweringError(lowering.missing_ops())
    return lowered


class Lowering:
    """The state of one run: memos of calls and regions, and what was missing."""

    def __init__(
        self,
        book: RuleBook,
        opset: int,
        dialect: str,
        functions: str,
        prepare: Callable[[fx.GraphModule], fx.GraphModule],
    ) -> None:
        self.book, self.opset, self.dialect, self.functions = book, opset, dialect, functions
        self.prepare = prepare
        self.table = BodyTable()
        self.missing: dict[Any, tuple[str | None, list[str]]] = {}
        self._calls: dict[tuple[Any, ...], Body | None] = {}
        self._regions: dict[int, Body] = {}

    # -- graphs ------------------------------------------------------------------------------------

    def top(self, graph: TypedGraph) -> Lowered:
        """The model's graph: inputs typed and named, state as initializers."""
        onnx = self._new_graph("main")
        scope, env = Scope(onnx), {}
        placeholders = graph.placeholders()
        for entry in graph.inputs:
            node = placeholders[entry.placeholder]
            env[node] = Value(entry.name, _value_type(node))
            onnx.inputs.append(env[node])
        for name, tensor in graph.state.items():
            value = Value(graph.state_names.get(name, name), _value_type(placeholders[name]))
            env[placeholders[name]] = value
            value.meta["state"] = tensor
        results = self._run(graph.module, scope, env)
        if not self.missing:
            onnx.outputs.extend(results)
            drop_unused(onnx)
        return Lowered(onnx, tuple(scope.callees))

    def region(self, module: fx.GraphModule) -> Body:
        """The body of a module region, lowered once however often it is called."""
        if (body := self._regions.get(id(module))) is None:
            domain = str(module.meta.get("domain", "fx2onnx"))
            body = self._graph_body(module, domain, type(module).__name__)
            body.inline = self.functions != "modules"
            body = self._regions[id(module)] = self.table.share(body)
        return body

    def _graph_body(self, module: fx.GraphModule, domain: str, name: str) -> Body:
        onnx = self._new_graph(name)
        scope, env = Scope(onnx), {}
        for node in module.graph.find_nodes(op="placeholder"):
            env[node] = Value(str(node.target), _value_type(node))
            onnx.inputs.append(env[node])
        outputs = self._run(module, scope, env)
        return self._finish(onnx, outputs, domain, name, scope.callees)

    def _run(self, module: fx.GraphModule, scope: Scope, env: dict[fx.Node, Any]) -> list[Any]:
        """Lower a graph's nodes in order; returns what its output node holds, flat."""
        for node in module.graph.nodes:
            if node.op == "call_function":
                env[node] = self._call_function(node, scope, env)
            elif node.op == "call_module":
                env[node] = self._call_region(module, node, scope, env)
            elif node.op == "get_attr":
                env[node] = attribute(module, str(node.target))
        (result,) = module.graph.output_node().args
        flat = result if isinstance(result, tuple | list) else (result,)
        return [env[n] if isinstance(n, fx.Node) else n for n in flat]

    def _new_graph(self, name: str) -> ir.Graph:
        return ir.Graph([], [], nodes=[], opset_imports={"": self.opset}, name=name)

    # -- nodes -------------------------------------------------------------------------------------

    def _call_function(self, node: fx.Node, scope: Scope, env: dict[fx.Node, Any]) -> Any:
        if node.target is operator.getitem and isinstance(env.get(node.args[0]), list):  # type: ignore[arg-type]
            return env[node.args[0]][node.args[1]]  # type: ignore[index]
        if any(env.get(n) is _MISSING for n in node.all_input_nodes):
            return self._after_missing(node)
        call = bind(node)
        if (body := self._body_of(call, node)) is None:
            return self._after_missing(node)
        results = scope.place(
            body,
            [_read(env, n, node) for n in call.values],
            types=call.results,
            name=node.name,
            metadata=metadata(node),
        )
        return results if isinstance(node.meta.get("val"), tuple | list) else results[0]

    def _call_region(
        self, module: fx.GraphModule, node: fx.Node, scope: Scope, env: dict[fx.Node, Any]
    ) -> Any:
        body = self.region(attribute(module, str(node.target)))
        if self.missing:
            return self._after_missing(node)
        several = isinstance(node.meta["val"], tuple | list)
        found = type_of(node)
        types = found if several else (found,)
        arguments = [_read(env, n, node) for n in node.args]  # type: ignore[arg-type]
        results = scope.place(body, arguments, types=types, name=node.name, metadata=metadata(node))  # type: ignore[arg-type]
        return results if several else results[0]

    def _after_missing(self, node: fx.Node) -> Any:
        """Go on past an operator without a rule, so that the others are found too."""
        if isinstance(node.target, torch._ops.OpOverload):  # noqa: SLF001
            call = bind(node)
            self._body_of(call, node)
        return (
            [_MISSING] * len(node.meta["val"]) if isinstance(node.meta.get("val"), tuple | list) else _MISSING
        )

    # -- calls -------------------------------------------------------------------------------------

    def _body_of(self, call: Call, node: fx.Node) -> Body | None:
        """The body of a call; None when it, or a piece of its decomposition, has no rule."""
        if call.key not in self._calls:
            self._calls[call.key] = self._new_body(call, node)
        elif call.target in self.missing:
            self._note_missing(call, node)
        return self._calls[call.key]

    def _new_body(self, call: Call, node: fx.Node) -> Body | None:
        rule = self.book.find(call.target, opset=self.opset, dialect=self.dialect)
        if rule is not None:
            return self.table.share(self._by_rule(rule, call, node))
        pieces = None if self.book.gap(call.target) is not None else decompose(call)
        if pieces is None:
            self._note_missing(call, node)
            return None
        for piece in pieces.graph.nodes:
            piece.meta.update(rewrite.origin(node))
        body = self._graph_body(self.prepare(pieces), *function_name(call.target))
        return None if self._is_broken(body) else self.table.share(body)

    def _is_broken(self, body: Body) -> bool:
        """Does a result depend on an operator without a rule?"""
        return bool(self.missing) and None in body.results

    def _by_rule(self, rule: Rule, call: Call, node: fx.Node) -> Body:
        domain, name = function_name(call.target)
        onnx = self._new_graph(name)
        op = OpBuilder(onnx, opset=self.opset, target=self.dialect, results=call.results)
        parameters = [Value(n, t) for n, t in zip(call.names, call.types, strict=True)]  # type: ignore[arg-type]
        onnx.inputs.extend(parameters)
        made = _apply(rule, op, call, parameters, node)
        outputs = list(made) if isinstance(made, tuple | list) else [made]
        _check_results(rule, call, outputs, node)
        body = self._finish(onnx, outputs, domain, name, [])
        body.inline |= rule.inline or all(isinstance(r, SizeType) for r in call.results)
        return body

    def _finish(
        self,
        onnx: ir.Graph,
        outputs: Sequence[Any],
        domain: str,
        name: str,
        callees: Sequence[Body],
    ) -> Body:
        made = [v for v in dict.fromkeys(outputs) if isinstance(v, ir.Value)]
        onnx.outputs.extend(made)
        results = tuple(made.index(v) if isinstance(v, ir.Value) else None for v in outputs)
        parameters = trim(onnx)
        inline = self.functions == "none" or len(onnx) <= 1 or any(v.producer() is None for v in made)
        return Body(domain, name, onnx, parameters, results, inline, list(callees))

    # -- what is missing ---------------------------------------------------------------------------

    def _note_missing(self, call: Call, node: fx.Node) -> None:
        gap = self.book.gap(call.target)
        _, places = self.missing.setdefault(call.target, (gap.reason if gap else None, []))
        path = origin.module_path(node)
        line = origin.user_line(node) or "unknown line"
        place = f"{line} (in {path})" if path else line
        if place not in places:
            places.append(place)

    def missing_ops(self) -> list[MissingOp]:
        """The operators that could not be lowered."""
        return [
            MissingOp(str(target), str(getattr(target, "_schema", "")), tuple(places), reason)
            for target, (reason, places) in self.missing.items()
        ]


class _Missing:
    """The value of a call that could not be lowered."""


_MISSING = _Missing()


def _read(env: dict[fx.Node, Any], node: fx.Node, reader: fx.Node) -> ir.Value:
    value: Any = env[node]
    if not isinstance(value, ir.Value) and value is not _MISSING:
        raise InvariantError(
            f"{reader.name} reads {node.name}, which the rule of {node.target} does not make",
            where=origin.user_line(reader),
        )
    return value  # type: ignore[return-value]


def _value_type(node: fx.Node) -> TensorType | SizeType:
    found = type_of(node)
    if isinstance(found, TensorType) and found.dtype not in DTYPES:
        raise UnsupportedOpError(
            f"{node.name} is {found.dtype}, which ONNX Runtime has no tensors of",
            where=origin.user_line(node),
        )
    if not isinstance(found, TensorType | SizeType):
        raise InvariantError(f"the placeholder {node.name} has no type")
    return found


def function_name(target: Any) -> tuple[str, str]:
    """Domain and name of the ONNX function for an operator: `aten`, `gelu` or `add_Tensor`."""
    if not isinstance(target, torch._ops.OpOverload):  # noqa: SLF001
        return "python", getattr(target, "__name__", str(target))
    name, overload = target._schema.name.split("::")[1], target._overloadname  # noqa: SLF001
    return target.namespace, name if overload == "default" else f"{name}_{overload}"


def metadata(node: fx.Node) -> dict[str, str]:
    """Where a node came from, for the ONNX node's metadata."""
    found = {}
    if line := origin.user_line(node):
        found["fx2onnx.source"] = line
    if path := origin.module_path(node):
        found["fx2onnx.module"] = path
    return found


def _apply(rule: Rule, op: OpBuilder, call: Call, parameters: Sequence[Value], node: fx.Node) -> Any:
    def fill(argument: Any) -> Any:
        if isinstance(argument, Argument):
            return parameters[argument.index]
        if isinstance(argument, tuple):
            return [fill(a) for a in argument]
        return argument

    positional, keywords = arguments_for(rule, call)
    positional = [fill(a) for a in positional]
    keywords = {k: fill(v) for k, v in keywords.items()}
    try:
        if is_script(rule.function):
            return op.call_inline(rule.function, *positional, **keywords)
        return rule.function(op, *positional, **keywords)
    except Fx2OnnxError:
        raise
    except Exception as error:
        raise RuleError(
            f"the rule {rule.name} for {call.target} raised {type(error).__name__}: {error}",
            where="\n".join(filter(None, [rule.where, origin.user_line(node)])),
        ) from error


def arguments_for(rule: Rule, call: Call) -> tuple[list[Any], dict[str, Any]]:
    """The call's arguments as far as the rule takes them; what it does not take must be the default.

    Raises:
        RuleError: the call sets an argument that the rule does not take.
    """
    positional, keywords = list(call.positional), dict(call.keywords)
    if is_script(rule.function) or not isinstance(call.target, torch._ops.OpOverload):  # noqa: SLF001
        return positional, keywords
    taken = rule.parameters
    if taken is None:
        return positional, {k: v for k, v in keywords.items() if v is not None}
    defaults = {a.name: a.default_value for a in call.target._schema.arguments}  # noqa: SLF001
    formal = [a.name for a in call.target._schema.arguments if not a.kwarg_only and a.name not in STORAGE]  # noqa: SLF001
    extra = dict(zip(formal[taken.positional :], positional[taken.positional :], strict=True))
    extra |= {k: keywords.pop(k) for k in list(keywords) if k not in taken.names}
    keywords |= {k: extra.pop(k) for k in list(extra) if k in taken.names}
    if wrong := [k for k, v in extra.items() if key_of(v) != key_of(defaults[k])]:
        raise RuleError(
            f"the rule {rule.name} for {call.target} takes no argument {', '.join(wrong)}, "
            f"which this call sets to {', '.join(repr(extra[k]) for k in wrong)}",
            where=rule.where,
        )
    return positional[: taken.positional], keywords


def _check_results(rule: Rule, call: Call, outputs: Sequence[Any], node: fx.Node) -> None:
    """A rule's results must have the dtype and the static sizes that the typed graph has for them."""
    where = "\n".join(filter(None, [rule.where, origin.user_line(node)]))
    if len(outputs) != len(call.results):
        raise RuleError(
            f"the rule {rule.name} for {call.target} made {len(outputs)} results, not {len(call.results)}",
            where=where,
        )
    for made, expected in zip(outputs, call.results, strict=True):
        if isinstance(made, ir.Value) and isinstance(expected, TensorType) and not fits(made, expected):
            raise RuleError(
                f"the rule {rule.name} for {call.target} made {made.dtype}{made.shape}, "
                f"but PyTorch makes {expected}",
                where=where,
            )


def fits(made: ir.Value, expected: TensorType) -> bool:
    """Can an ONNX value (as far as its type is known) be a tensor of this type?"""
    if made.dtype is not None and made.dtype != DTYPES.get(expected.dtype):
        return False
    if made.shape is None:
        return True
    if made.shape.rank() != len(expected.shape):
        return False
    pairs = zip(made.shape, expected.shape, strict=True)
    return all(a == b for a, b in pairs if isinstance(a, int) and isinstance(b, int))


__all__ = ["Lowered", "Lowering", "Type", "fits", "function_name", "lower_graph", "metadata"]
