"""Operators that write: which arguments they write to, and their functional counterparts."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from fx2onnx import origin
from fx2onnx.errors import UnsupportedOpError
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


def written(node: fx.Node) -> list[Any]:
    """The arguments that a call writes to."""
    if not isinstance(node.target, torch._ops.OpOverload):  # noqa: SLF001
        return []
    if is_hidden_write(node):
        return [node.args[3], node.args[4]]
    names = _written_names(node.target)
    return [_argument(node, position, name) for position, name in names]


@functools.cache
def _written_names(target: torch._ops.OpOverload) -> tuple[tuple[int, str], ...]:  # noqa: SLF001
    arguments = target._schema.arguments  # noqa: SLF001
    return tuple((i, a.name) for i, a in enumerate(arguments) if a.alias_info is not None and a.alias_info.is_write)


def _argument(node: fx.Node, position: int, name: str) -> Any:
    return node.args[position] if position < len(node.args) else node.kwargs.get(name)


def is_hidden_write(node: fx.Node) -> bool:
    """Is this a batch norm in training mode? It updates its running statistics, though its schema does not say so."""
    return (
        node.target is aten.batch_norm.default
        and bool(node.args[5])
        and node.args[3] is not None
        and node.args[4] is not None
    )


def new_values(node: fx.Node, args: Any, kwargs: Any) -> tuple[list[fx.Node], fx.Node | None]:
    """The values that a writing call leaves in its written arguments, by functional calls.

    Args:
        node: the call.
        args, kwargs: its arguments, current values in place of written tensors.

    Returns:
        A node for each written argument, and the node of a result that is a tensor of its own (None when the result
        is the written tensor).

    Raises:
        UnsupportedOpError: no functional counterpart is known.
    """
    if is_hidden_write(node):
        return _batch_norm(node, args)
    if (special := _SPECIAL.get(node.target)) is not None:
        return [special(node, args)], None
    target, args, kwargs, old = _functional(node, args, kwargs)
    if _keeps_type(node):
        made = node.graph.call_function(target, tuple(args), kwargs)
        made.meta.update(node.meta)
        return [made], None
    made = call(node.graph, target, *args, like=node, **kwargs)
    if isinstance(made.meta["val"], tuple | list):
        raise _no_counterpart(node)
    return [_like(node.graph, made, old.meta["val"], node)], None


def _keeps_type(node: fx.Node) -> bool:
    """Does the functional call surely make the dtype and shape of the tensor that is written to?

    So it does when all tensors have one dtype and none is larger: then nothing needs to be computed on fakes.
    """
    value = node.meta.get("val")
    others = [n.meta["val"] for n in node.all_input_nodes if isinstance(n.meta.get("val"), torch.Tensor)]
    return isinstance(value, torch.Tensor) and all(o.dtype == value.dtype for o in others)


def _functional(node: fx.Node, args: Any, kwargs: Any) -> tuple[Any, Any, Any, fx.Node]:
    """The functional overload, its arguments, and the argument that the call writes to."""
    target: torch._ops.OpOverload = node.target  # type: ignore[assignment]  # noqa: SLF001
    names = _written_names(target)
    if len(names) != 1:
        raise _no_counterpart(node)
    position, name = names[0]
    old = args[position] if position < len(args) else kwargs[name]
    own = target._schema.name.split("::")[1]  # noqa: SLF001
    if position == 0:
        packet = getattr(getattr(torch.ops, target.namespace), _COUNTERPARTS.get(own, own.removesuffix("_")), None)
        overload = getattr(packet, target._overloadname, None)  # noqa: SLF001
        if overload is None or own.removesuffix("_") == own and own not in _COUNTERPARTS:
            raise _no_counterpart(node)
        taken = len(overload._schema.arguments)  # noqa: SLF001
        return overload, args[:taken], kwargs, old
    rest = {k: v for k, v in kwargs.items() if k != name}
    return _without_out(node, target, name), args[:position], rest, old


def _without_out(node: fx.Node, target: torch._ops.OpOverload, out: str) -> Any:  # noqa: SLF001
    """The overload that takes the same arguments but `out`."""
    wanted = [(a.name, str(a.type)) for a in target._schema.arguments if a.name != out]  # noqa: SLF001
    packet = target.overloadpacket
    for name in packet.overloads():
        overload = getattr(packet, name)
        if [(a.name, str(a.type)) for a in overload._schema.arguments] == wanted:  # noqa: SLF001
            return overload
    raise _no_counterpart(node)


def _no_counterpart(node: fx.Node) -> UnsupportedOpError:
    return UnsupportedOpError(
        f"{node.target} writes to its arguments and has no functional counterpart", where=origin.user_line(node)
    )


def _like(graph: fx.Graph, made: fx.Node, old: torch.Tensor, node: fx.Node) -> fx.Node:
    """`made` in the dtype and shape of the tensor that it is written to."""
    if made.meta["val"].dtype != old.dtype:
        made = call(graph, aten._to_copy.default, made, dtype=old.dtype, like=node)  # noqa: SLF001
    if tuple(made.meta["val"].shape) != tuple(old.shape):
        made = call(graph, aten.expand.default, made, sizes_of(graph, node, old), like=node)
    return made


def sizes_of(graph: fx.Graph, node: fx.Node, old: torch.Tensor) -> list[Any]:
    """The sizes of the tensor that a call writes to, as numbers and nodes."""
    holder = node.all_input_nodes[0]
    sizes: list[Any] = []
    for axis, size in enumerate(old.shape):
        free = isinstance(size, torch.SymInt) and size.node.maybe_as_int() is None
        sizes.append(call(graph, aten.sym_size.int, holder, axis, like=node) if free else int(size))
    return sizes


def _copy(node: fx.Node, args: Any) -> fx.Node:
    """`x.copy_(y)`: y in the dtype and shape of x."""
    return _like(node.graph, args[1], args[0].meta["val"], node)


def _fill(node: fx.Node, args: Any) -> fx.Node:
    return call(node.graph, aten.full_like.default, args[0], args[1], like=node)


def _zero(node: fx.Node, args: Any) -> fx.Node:
    return call(node.graph, aten.full_like.default, args[0], 0, like=node)


_SPECIAL: dict[Any, Callable[[fx.Node, Any], fx.Node]] = {
    aten.copy_.default: _copy,
    aten.fill_.Tensor: _copy,
    aten.fill_.Scalar: _fill,
    aten.zero_.default: _zero,
}


def _batch_norm(node: fx.Node, args: Any) -> tuple[list[fx.Node], fx.Node]:
    """Batch norm on batch statistics, with the new running statistics as results."""
    x, weight, bias, mean, variance, _, momentum, eps, *_ = args
    graph, item = node.graph, operator.getitem
    target = aten._native_batch_norm_legit_functional.default  # noqa: SLF001
    made = call(graph, target, x, weight, bias, mean, variance, True, momentum, eps, like=node)
    result, new_mean, new_variance = (call(graph, item, made, i, like=node) for i in (0, 3, 4))
    return [new_mean, new_variance], result
