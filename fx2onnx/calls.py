"""One call of the typed graph, bound to its operator's schema, with the key under which it is lowered once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from fx2onnx.types import SizeType, Type, type_of, type_of_value

# Arguments that say where and how a tensor is stored, never what is in it.
STORAGE = frozenset(
    {"layout", "device", "pin_memory", "memory_format", "non_blocking", "generator", "copy", "requires_grad"}
)


@dataclass(frozen=True, slots=True)
class Argument:
    """Stands for the n-th distinct tensor or size among a call's arguments."""

    index: int


@dataclass(frozen=True)
class Call:
    """A call with its values taken out.

    Attributes:
        target: the operator.
        positional, keywords: the arguments with `Argument(i)` in place of tensors and sizes.
        values: the nodes that these stand for, each once.
        types: their types.
        results: the types of what the call makes.
        names: the schema's name for each value.
        key: equal for calls that are lowered to the same thing.
    """

    target: Callable[..., Any]
    positional: tuple[Any, ...]
    keywords: dict[str, Any]
    values: tuple[fx.Node, ...]
    types: tuple[Type | None, ...]
    results: tuple[Type | None, ...]
    names: tuple[str, ...]
    key: tuple[Any, ...]


def bind(node: fx.Node) -> Call:
    """The call that a `call_function` node makes."""
    binder = _Binder()
    positional, keywords = _by_schema(node)
    positional = tuple(binder.argument(name, value) for name, value in positional)
    keywords = {name: binder.argument(name, value) for name, value in keywords.items()}
    types = tuple(type_of(value) for value in binder.values)
    results = results_of(node)
    key = (node.target, key_of(positional), key_of(keywords), types, results)
    return Call(
        node.target,  # type: ignore[arg-type]  # a call_function's target is callable
        positional,
        keywords,
        tuple(binder.values),
        types,
        results,
        tuple(binder.names),
        key,
    )


def results_of(node: fx.Node) -> tuple[Type | None, ...]:
    """The types of a node's results: one for a tensor, one each for a tuple or list."""
    value = node.meta.get("val")
    if isinstance(value, tuple | list):
        return tuple(type_of_value(v) for v in value)
    return (type_of_value(value),)


def _by_schema(node: fx.Node) -> tuple[tuple[tuple[str, Any], ...], dict[str, Any]]:
    """Positional and keyword arguments with names; defaults of the schema are filled in."""
    if not isinstance(node.target, torch._ops.OpOverload):  # noqa: SLF001
        return tuple((f"input_{i}", a) for i, a in enumerate(node.args)), dict(node.kwargs)
    positional: list[tuple[str, Any]] = []
    keywords: dict[str, Any] = {}
    given = dict(node.kwargs)
    for i, formal in enumerate(node.target._schema.arguments):  # noqa: SLF001
        if formal.name in STORAGE:
            continue
        if i < len(node.args):
            value: Any = node.args[i]
        else:
            value = given.get(formal.name, formal.default_value)
        if formal.kwarg_only:
            keywords[formal.name] = value
        else:
            positional.append((formal.name, value))
    return tuple(positional), keywords


class _Binder:
    """Takes the nodes out of nested arguments."""

    def __init__(self) -> None:
        self.values: list[fx.Node] = []
        self.names: list[str] = []
        self._index: dict[fx.Node, int] = {}

    def argument(self, name: str, value: Any) -> Any:
        if isinstance(value, fx.Node):
            return self._node(name, value)
        if isinstance(value, list | tuple):
            return tuple(self.argument(f"{name}_{i}", v) for i, v in enumerate(value))
        if isinstance(value, slice):
            return slice(*(self.argument(name, v) for v in (value.start, value.stop, value.step)))
        return value

    def _node(self, name: str, node: fx.Node) -> Any:
        found = node.meta.get("val")
        if isinstance(found, tuple | list):
            raise TypeError(f"{node.name} makes several values and is passed as one")
        static = type_of_value(found)
        if isinstance(static, SizeType) and isinstance(static.expr, int):
            return static.expr
        if isinstance(found, bool | float):
            return found
        if node not in self._index:
            self._index[node] = len(self.values)
            self.values.append(node)
            self.names.append(name)
        return Argument(self._index[node])


def key_of(argument: Any) -> Any:
    """A hashable form in which 1, 1.0 and True differ, and so do 0.0 and -0.0."""
    if isinstance(argument, tuple | list):
        return ("list", *map(key_of, argument))
    if isinstance(argument, dict):
        return ("dict", *((k, key_of(v)) for k, v in argument.items()))
    if isinstance(argument, slice):
        return ("slice", key_of(argument.start), key_of(argument.stop), key_of(argument.step))
    if isinstance(argument, float | complex):
        return (type(argument), repr(argument))
    return (type(argument), argument)
