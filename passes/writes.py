"""Operators that write: which arguments they write to, and their functional counterparts."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from fx2onnx import origin
from fx2onnx.errors import UnsupportedOpError
from fx2onnx.passes import memory
from fx2onnx.rewrite import call

aten = torch.ops.aten

_COUNTERPARTS = {
    "__iand__": "bitwise_and",
    "__ior__": "bitwise_or",
    "__ixor__": "bitwise_xor",
    "__ilshift__": "bitwise_left_shift",
    "__irshift__": "bitwise_right_shift",
    "_index_put_impl_": "index_put",
}
# Their counterparts change more than values, or show memory that nothing wrote to.
_REFUSED = frozenset({aten.set_, aten.set_data, aten.resize_, aten.resize_as_, aten._resize_output_})  # noqa: SLF001

# Operators that write though their schema does not say so: the arguments, and when.
_HIDDEN: dict[Any, tuple[tuple[str, str], str]] = {
    aten.batch_norm.default: (("running_mean", "running_var"), "training"),
    aten.native_batch_norm.default: (("running_mean", "running_var"), "training"),
    aten.instance_norm.default: (("running_mean", "running_var"), "use_input_stats"),
}


@dataclass(frozen=True)
class Effect:
    """What a writing call does, said by functional calls.

    Attributes:
        values: for each written argument, the node that holds its new value.
        results: the nodes of the call's results that are tensors of their own, in order.
    """

    values: list[fx.Node]
    results: list[fx.Node]


def written(node: fx.Node) -> list[fx.Node]:
    """The tensors that a call writes to."""
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):  # noqa: SLF001
        return []
    if node.target in _HIDDEN:
        return _hidden(node)
    found = [_argument(node, position, name) for position, name in _written_names(node.target)]
    return [n for argument in found for n in _nodes_in(argument)]


def results_of_its_own(node: fx.Node) -> list[int]:
    """The positions of a writing call's results that are new tensors, not tensors that it wrote to."""
    returns = node.target._schema.returns  # type: ignore[union-attr]  # noqa: SLF001
    return [i for i, r in enumerate(returns) if r.alias_info is None or not r.alias_info.is_write]


def _hidden(node: fx.Node) -> list[fx.Node]:
    names, condition = _HIDDEN[node.target]
    if not _named(node, condition):
        return []
    return [n for name in names for n in _nodes_in(_named(node, name))]


def _nodes_in(argument: Any) -> list[fx.Node]:
    found: list[fx.Node] = []
    fx.node.map_arg(argument, found.append)
    return found


@functools.cache
def _written_names(target: torch._ops.OpOverload) -> tuple[tuple[int, str], ...]:  # noqa: SLF001
    arguments = target._schema.arguments  # noqa: SLF001
    return tuple(
        (i, a.name) for i, a in enumerate(arguments) if a.alias_info is not None and a.alias_info.is_write
    )


def _argument(node: fx.Node, position: int, name: str) -> Any:
    return node.args[position] if position < len(node.args) else node.kwargs.get(name)


def _named(node: fx.Node, name: str) -> Any:
    formals = node.target._schema.arguments  # type: ignore[union-attr]  # noqa: SLF001
    position = next(i for i, a in enumerate(formals) if a.name == name)
    return _argument(node, position, name)


def effect(node: fx.Node, args: Any, kwargs: Any, olds: Sequence[fx.Node]) -> Effect:
    """The functional calls that do what a writing call does, made at the graph's insertion point.

    Args:
        node: the writing call.
        args, kwargs: its arguments, current values in place of tensors that were written to.
        olds: the current values of the tensors that the call writes to.

    Raises:
        UnsupportedOpError: no functional counterpart is known.
    """
    if (special := _SPECIAL.get(node.target)) is not None:
        return special(node, args, olds)
    target, args, kwargs = _functional(node, args, kwargs)
    if _keeps_type(node):
        made = node.graph.call_function(target, tuple(args), kwargs)
        made.meta.update(node.meta)
        return Effect([made], [])
    made = call(node.graph, target, *args, like=node, **kwargs)
    parts = _parts(node, made)
    own = len(results_of_its_own(node))
    types = _types_after(node, olds)
    values = [_like(node, *each) for each in zip(parts[own:], olds, types, strict=True)]
    return Effect(values, parts[:own])


def _parts(node: fx.Node, made: fx.Node) -> list[fx.Node]:
    """The results of a functional call: first what is new, then the new values of written arguments."""
    values = made.meta["val"]
    if isinstance(values, torch.Tensor):
        return [made]
    return [call(node.graph, operator.getitem, made, i, like=node) for i in range(len(values))]


def _types_after(node: fx.Node, olds: Sequence[fx.Node]) -> list[torch.Tensor]:
    """The fake values of the written arguments after the call (an `out=` may have been resized)."""
    returns = [r.alias_info is not None and r.alias_info.is_write for r in node.target._schema.returns]  # type: ignore[union-attr]  # noqa: SLF001
    if not any(returns):
        return [n.meta["val"] for n in olds]
    values = node.meta["val"]
    return (
        [values]
        if isinstance(values, torch.Tensor)
        else [v for v, own in zip(values, returns, strict=True) if own]
    )


# Pointwise, but the result is bool.
_TO_BOOL = frozenset({aten.logical_not_, aten.logical_and_, aten.logical_or_, aten.logical_xor_})
# Pointwise, but not tagged so.
_POINTWISE = frozenset({aten.hardswish_, aten.relu6_, aten.dropout_})


def _keeps_type(node: fx.Node) -> bool:
    """Does the functional call surely make the dtype and shape of the tensor that is written to?

    So it does when it is pointwise on floats of one dtype: then nothing needs to be computed on fakes.
    """
    value, target = node.meta.get("val"), node.target
    if not isinstance(value, torch.Tensor) or not value.is_floating_point() or not _is_pointwise(target):
        return False
    tensors = [n.meta["val"] for n in node.all_input_nodes if isinstance(n.meta.get("val"), torch.Tensor)]
    return all(t.dtype == value.dtype for t in tensors)


@functools.cache
def _is_pointwise(target: torch._ops.OpOverload) -> bool:  # noqa: SLF001
    """Does an operator work in place, element by element, in the dtype of its operands?"""
    packet = target.overloadpacket
    positions = [position for position, _ in _written_names(target)]
    tagged = torch.Tag.pointwise in target.tags and packet not in _TO_BOOL
    return positions == [0] and (tagged or packet in _POINTWISE)


def _functional(node: fx.Node, args: Any, kwargs: Any) -> tuple[Any, list[Any], dict[str, Any]]:
    """The functional overload and its arguments."""
    target: torch._ops.OpOverload = node.target  # type: ignore[assignment]  # noqa: SLF001
    formals = target._schema.arguments  # noqa: SLF001
    if (overload := _counterpart(target)) is None:
        raise _no_counterpart(node)
    dropped = {a.name for a in formals if _is_out(a) or a.name == _UNSAFE}
    taken = [value for formal, value in zip(formals, args, strict=False) if formal.name not in dropped]
    return overload, taken, {k: v for k, v in kwargs.items() if k not in dropped}


_UNSAFE = "unsafe"  # an argument of `_index_put_impl_` alone


@functools.cache
def _counterpart(target: torch._ops.OpOverload) -> torch._ops.OpOverload | None:  # noqa: SLF001
    """The overload of the functional operator that takes the same arguments and writes to none."""
    if target.overloadpacket in _REFUSED:
        return None
    wanted = _signature(target)
    for packet in _packets(target):
        for name in packet.overloads():
            overload = getattr(packet, name)
            if not overload._schema.is_mutable and _signature(overload) == wanted:  # noqa: SLF001
                return overload  # type: ignore[no-any-return]
    return None


def _signature(target: torch._ops.OpOverload) -> list[tuple[str, str]]:  # noqa: SLF001
    """Names and types of the arguments that are read; the first's name (`self` or `input`) does not matter."""
    formals = [a for a in target._schema.arguments if not _is_out(a) and a.name != _UNSAFE]  # noqa: SLF001
    return [(a.name if i else "", str(a.type)) for i, a in enumerate(formals)]


def _is_out(formal: Any) -> bool:
    return bool(formal.kwarg_only and formal.alias_info is not None and formal.alias_info.is_write)


def _packets(target: torch._ops.OpOverload) -> Iterator[Any]:  # noqa: SLF001
    namespace = getattr(torch.ops, target.namespace)
    own = target._schema.name.split("::")[1]  # noqa: SLF001
    stem = own.removesuffix("_")
    for name in (_COUNTERPARTS.get(own, stem), f"{stem}_functional"):
        if hasattr(namespace, name):
            yield getattr(namespace, name)


def _no_counterpart(node: fx.Node) -> UnsupportedOpError:
    return UnsupportedOpError(
        f"{node.target} writes to its arguments and has no functional counterpart",
        where=origin.user_line(node),
    )


def _like(node: fx.Node, made: fx.Node, old: fx.Node, wanted: torch.Tensor | None = None) -> fx.Node:
    """`made` in the dtype and shape of the tensor that it is written to.

    Args:
        node: the writing call.
        made: the new value.
        old: the value before.
        wanted: the type after the write, where it is not that of `old`.
    """
    graph, wanted = node.graph, old.meta["val"] if wanted is None else wanted
    if made.meta["val"].dtype != wanted.dtype:
        made = call(graph, aten._to_copy.default, made, dtype=wanted.dtype, like=node)  # noqa: SLF001
    shape = made.meta["val"].shape
    if len(shape) != wanted.dim() or not all(map(memory.same_number, shape, wanted.shape)):
        made = call(graph, aten.expand.default, made, memory.sizes_of(graph, old, node), like=node)
    return made


# -- operators without a counterpart of their name ---------------------------------------------------


def _copy(node: fx.Node, args: Any, olds: Sequence[fx.Node]) -> Effect:
    """`x.copy_(y)`: y in the dtype and shape of x."""
    return Effect([_like(node, args[1], olds[0])], [])


def _fill(node: fx.Node, args: Any, olds: Sequence[fx.Node]) -> Effect:
    return Effect([call(node.graph, aten.full_like.default, args[0], args[1], like=node)], [])


def _zero(node: fx.Node, args: Any, olds: Sequence[fx.Node]) -> Effect:
    return Effect([call(node.graph, aten.full_like.default, args[0], 0, like=node)], [])


def _fill_diagonal(node: fx.Node, args: Any, olds: Sequence[fx.Node]) -> Effect:
    """On two axes; wrapped diagonals of tall matrices, and those of more axes, are rare."""
    x, value, *wrap = args
    if x.meta["val"].dim() != 2 or any(wrap):
        raise _no_counterpart(node)
    diagonal = call(node.graph, aten.diagonal.default, x, like=node)
    filled = call(node.graph, aten.full_like.default, diagonal, value, like=node)
    return Effect([call(node.graph, aten.diagonal_scatter.default, x, filled, like=node)], [])


def _batch_norm(node: fx.Node, args: Any, olds: Sequence[fx.Node]) -> Effect:
    """Batch norm on batch statistics, with the new running statistics as results."""
    x, weight, bias, mean, variance, _, momentum, eps, *_ = args
    target = aten._native_batch_norm_legit_functional.default  # noqa: SLF001
    made = call(node.graph, target, x, weight, bias, mean, variance, True, momentum, eps, like=node)
    result, save_mean, save_rstd, *new = _parts(node, made)
    own = [result] if node.target is aten.batch_norm.default else [result, save_mean, save_rstd]
    return Effect([_like(node, *each) for each in zip(new, olds, strict=True)], own)


def _instance_norm(node: fx.Node, args: Any, olds: Sequence[fx.Node]) -> Effect:
    """Instance norm; the running statistics move towards the mean of all instances' statistics."""
    x, weight, bias, mean, variance, _, momentum, eps, *rest = args
    graph = node.graph
    result = call(graph, node.target, x, weight, bias, None, None, True, momentum, eps, *rest, like=node)  # type: ignore[arg-type]
    axes = list(range(2, x.meta["val"].dim()))
    values = []
    for old, seen in (
        (mean, call(graph, aten.mean.dim, x, axes, like=node)),
        (variance, call(graph, aten.var.correction, x, axes, like=node)),
    ):
        instances = call(graph, aten.mean.dim, seen, [0], like=node)
        kept = call(graph, aten.mul.Tensor, old, 1 - momentum, like=node)
        values.append(call(graph, aten.add.Tensor, kept, instances, alpha=momentum, like=node))
    return Effect([_like(node, *each) for each in zip(values, olds, strict=True)], [result])


_SPECIAL: dict[Any, Callable[[fx.Node, Any, Sequence[fx.Node]], Effect]] = {
    aten.copy_.default: _copy,
    aten.fill_.Tensor: _copy,
    aten.fill_.Scalar: _fill,
    aten.zero_.default: _zero,
    aten.fill_diagonal_.default: _fill_diagonal,
    aten.batch_norm.default: _batch_norm,
    aten.native_batch_norm.default: _batch_norm,
    aten.instance_norm.default: _instance_norm,
}
