"""Containers that torch's pytrees don't see into by themselves: dataclasses, and key-value caches of transformers.

Dataclasses are registered when they are met among the arguments or as a result. A cache (`transformers.Cache`) is a
list of layers, a layer (`CacheLayerMixin`) holds `keys` and `values`. Both are registered as pytree nodes of their
tensors, called `past_key_values.0.key`, `past_key_values.0.value` …; everything else they hold is carried along.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.utils._pytree as pytree

_SHORT = {"keys": "key", "values": "value"}


def register_dataclasses(value: Any) -> None:
    """Register the dataclasses among nested values as pytree nodes of their fields."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        if type(value) not in pytree.SUPPORTED_NODES:
            torch.export.register_dataclass(type(value))
        children: Iterable[Any] = vars(value).values()
    elif isinstance(value, Mapping):
        children = value.values()
    elif isinstance(value, list | tuple):
        children = value
    else:
        return
    for child in children:
        register_dataclasses(child)


@contextlib.contextmanager
def dataclass_results(module: torch.nn.Module) -> Iterator[None]:
    """While a model is traced, register the dataclasses that it returns."""

    def hook(_: torch.nn.Module, __: Any, result: Any) -> None:
        register_dataclasses(result)

    handle = module.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()


def register_caches() -> None:
    """Let torch's pytrees see into transformers' caches, when transformers is in use.

    Classes that somebody registered already (transformers' own exporter does) are left as they are.
    """
    module = sys.modules.get("transformers.cache_utils")
    if module is None:
        return
    base: type
    for base in (module.Cache, module.CacheLayerMixin):
        for cls in [base, *_subclasses(base)]:
            if cls not in pytree.SUPPORTED_NODES:
                pytree.register_pytree_node(
                    cls,
                    _flatten,
                    _unflatten,
                    serialized_type_name=f"{cls.__module__}.{cls.__qualname__}",
                    flatten_with_keys_fn=_flatten_with_keys,
                )


def _subclasses(cls: type[Any]) -> Iterator[type[Any]]:
    child: type[Any]
    for child in cls.__subclasses__():
        yield child
        yield from _subclasses(child)


@dataclass
class _Context:
    """What a cache or layer holds besides its children.

    Two are equal when class and children's names agree: other fields (counters, flags) follow from the tensors.
    """

    cls: type
    names: tuple[str, ...]
    layers: int | None
    others: dict[str, Any] = field(compare=False)


def _parts(value: Any) -> tuple[list[Any], _Context]:
    """The children of a cache or layer: its layers, and attributes that hold tensors or caches."""
    children: list[Any] = []
    names: list[str] = []
    others: dict[str, Any] = {}
    layers = None
    for name, held in vars(value).items():
        if name == "layers" and isinstance(held, list):
            layers = len(held)
        elif isinstance(held, torch.Tensor) or (type(held) in pytree.SUPPORTED_NODES and _has_tensors(held)):
            names.append(name)
            children.append(held)
        else:
            others[name] = held
    children += getattr(value, "layers", []) if layers is not None else []
    return children, _Context(type(value), tuple(names), layers, others)


def _has_tensors(value: Any) -> bool:
    return any(isinstance(leaf, torch.Tensor) for leaf in pytree.tree_leaves(value))


def _flatten(value: Any) -> tuple[list[Any], _Context]:
    return _parts(value)


def _flatten_with_keys(value: Any) -> tuple[list[tuple[Any, Any]], _Context]:
    children, context = _parts(value)
    keys: list[Any] = [pytree.GetAttrKey(_SHORT.get(name, name)) for name in context.names]
    keys += [pytree.SequenceKey(i) for i in range(context.layers or 0)]
    return list(zip(keys, children, strict=True)), context


def _unflatten(children: Iterable[Any], context: _Context) -> Any:
    children = list(children)
    made: Any = object.__new__(context.cls)
    made.__dict__.update(context.others)
    made.__dict__.update(zip(context.names, children, strict=False))
    if context.layers is not None:
        made.layers = children[len(context.names) :]
    return made
