"""Drop calls that return their argument as it is, and assertions; write casts as `_to_copy` and views as `reshape`.

    y = aten.dropout.default(x, 0.1, False)          y = aten._to_copy.default(x, dtype=f16)
    z = aten.to.dtype(y, f16)                   ->   return y
    w = aten.contiguous.default(z)
    return w

Only what is exact for every value goes: `x + 0` stays, since it turns -0.0 into 0.0. A cast to a wider dtype and back
goes too. No call writes any more, so how a tensor lies in memory does not matter: `view` is `reshape`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from fx2onnx.passes import memory
from fx2onnx.passes.dead_code import drop_unread
from fx2onnx.rewrite import call, each_graph

aten = torch.ops.aten

_ASSERTIONS = frozenset(
    {
        aten._assert_async.msg,  # noqa: SLF001
        aten._assert_async.default,  # noqa: SLF001
        aten._assert_scalar.default,  # noqa: SLF001
        aten._assert_tensor_metadata.default,  # noqa: SLF001
        aten.sym_constrain_range.default,
        aten.sym_constrain_range_for_size.default,
        torch.ops.profiler._record_function_exit._RecordFunction,  # noqa: SLF001
        torch.ops.profiler._record_function_enter_new.default,  # noqa: SLF001
        torch._C._set_grad_enabled,  # noqa: SLF001
    }
)
_COPIES = frozenset(
    {
        aten.alias.default,
        aten.clone.default,
        aten.contiguous.default,
        aten.detach.default,
        aten.lift_fresh.default,
        aten.lift_fresh_copy.default,
        aten.lift.default,
        aten.positive.default,
        aten.resolve_conj.default,
        aten.resolve_neg.default,
    }
)
_CASTS = frozenset(
    {
        aten._to_copy.default,  # noqa: SLF001
        aten.to.dtype,
        aten.to.device,
        aten.to.dtype_layout,
        aten.to.other,
        aten.type_as.default,
        torch.ops.prims.convert_element_type.default,
    }
)
_DROPOUTS = frozenset(
    {
        aten.dropout.default,
        aten.feature_dropout.default,
        aten.alpha_dropout.default,
        aten.feature_alpha_dropout.default,
    }
)
# The argument is the result when the shape does not change: its elements stay in row-major order.
_KEEP_ORDER = frozenset(
    {
        aten.expand.default,
        aten.expand_as.default,
        aten.broadcast_to.default,
        aten.view.default,
        aten.reshape.default,
        aten.reshape_as.default,
        aten._unsafe_view.default,  # noqa: SLF001
        aten._reshape_alias.default,  # noqa: SLF001
        aten.view_as.default,
        aten.flatten.using_ints,
        aten.unflatten.int,
        aten.ravel.default,
        aten.slice.Tensor,
        aten.narrow.default,
        aten.squeeze.default,
        aten.squeeze.dim,
        aten.squeeze.dims,
        aten.atleast_1d.default,
        aten.atleast_2d.default,
        aten.atleast_3d.default,
        aten.repeat.default,
        aten.tile.default,
    }
)
# The argument is the result when it is real.
_OF_COMPLEX = frozenset(
    {aten.real.default, aten.conj.default, aten._conj.default, aten.conj_physical.default}
)  # noqa: SLF001
# Views of what lies in memory in a certain way, as operators that take any tensor.
_ANY_LAYOUT = {
    aten.view.default: aten.reshape.default,
    aten._unsafe_view.default: aten.reshape.default,  # noqa: SLF001
    aten.view_as.default: aten.reshape_as.default,
}
_NEED_LAYOUT = frozenset({aten.view.dtype, aten.view_as_complex.default})
_JOINS = frozenset({aten.cat.default, aten.concat.default, aten.concatenate.default})
_SPLITS = frozenset(
    {
        *(aten.chunk.default, aten.split.Tensor, aten.split.sizes, aten.split_with_sizes.default),
        *(
            aten.tensor_split.sections,
            aten.tensor_split.indices,
            aten.unsafe_chunk.default,
            aten.unsafe_split.Tensor,
        ),
        aten.unsafe_split_with_sizes.default,
    }
)


def rewrite(module: fx.GraphModule) -> None:
    """Drop no-ops from one graph, and what was computed for assertions alone."""
    graph = module.graph
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        if node.target in _ASSERTIONS:
            graph.erase_node(node)
        elif (source := _argument_returned(node)) is not None:
            node.replace_all_uses_with(source)
            graph.erase_node(node)
        elif node.target in _CASTS and not _is_plain_cast(node):
            _write_plain_cast(node)
        elif node.target in _ANY_LAYOUT:
            node.target = _ANY_LAYOUT[node.target]  # type: ignore[index]
    drop_unread(graph)


def _write_plain_cast(node: fx.Node) -> None:
    graph = node.graph
    with graph.inserting_before(node):
        target = aten._to_copy.default  # noqa: SLF001
        cast = call(graph, target, node.args[0], dtype=node.meta["val"].dtype, like=node)
    node.replace_all_uses_with(cast)
    graph.erase_node(node)


def _argument_returned(node: fx.Node) -> fx.Node | None:
    """The argument that a call returns as it is; None when it does something."""
    target: Any = node.target
    if target in _JOINS:
        parts: Any = node.args[0]
        return _if_tensor(parts[0]) if len(parts) == 1 else None
    if target is operator.getitem:
        return _only_piece(node.args[0])
    source = _if_tensor(node.args[0] if node.args else None)
    if source is None or not isinstance(node.meta.get("val"), torch.Tensor):
        return None
    if target in _CASTS:
        return _cast_back_to(source, node.meta["val"].dtype)
    if target in _KEEP_ORDER:
        return source if _has_same_shape(source, node) else None
    check = _CHECKS.get(target)
    return source if check is not None and check(node, source) else None


def _if_tensor(argument: Any) -> fx.Node | None:
    is_tensor = isinstance(argument, fx.Node) and isinstance(argument.meta.get("val"), torch.Tensor)
    return argument if is_tensor else None


def _only_piece(pieces: Any) -> fx.Node | None:
    """What was split into a single piece."""
    is_split = isinstance(pieces, fx.Node) and pieces.target in _SPLITS and len(pieces.meta["val"]) == 1
    return _if_tensor(pieces.args[0]) if is_split else None


def _cast_back_to(source: fx.Node, dtype: torch.dtype) -> fx.Node | None:
    """The tensor of this dtype that a cast of `source` to it returns exactly."""
    if source.meta["val"].dtype == dtype:
        return source
    if source.target is not aten._to_copy.default:  # noqa: SLF001
        return None
    first = _if_tensor(source.args[0])
    if first is None or first.meta["val"].dtype != dtype:
        return None
    return first if _holds(source.meta["val"].dtype, dtype) else None


def _holds(wide: torch.dtype, dtype: torch.dtype) -> bool:
    """Has `wide` every value of `dtype`?"""
    if wide.is_complex:
        return False
    return wide.is_floating_point == dtype.is_floating_point and torch.promote_types(wide, dtype) == wide


def _is_idle_dropout(node: fx.Node, _: fx.Node) -> bool:
    return not node.args[2] or bool(node.args[1] == 0)


def _may_lie_anywhere(node: fx.Node, _: fx.Node) -> bool:
    """Does no reader depend on how the copy lies in memory?"""
    return not any(user.target in _NEED_LAYOUT for user in node.users)


def _is_real(_: fx.Node, source: fx.Node) -> bool:
    return not source.meta["val"].is_complex()


def _keeps_axes(node: fx.Node, source: fx.Node) -> bool:
    """Does a permutation leave every axis where it is?"""
    rank: int = source.meta["val"].dim()
    if node.target is aten.permute.default:
        order: Any = node.args[1]
        return [d % max(rank, 1) for d in order] == list(range(rank))
    if node.target in (aten.t.default, aten.numpy_T.default):
        return rank < 2
    a, b = (d % max(rank, 1) for d in node.args[1:3])  # type: ignore[operator]
    return bool(a == b)


def _pads_nothing(node: fx.Node, _: fx.Node) -> bool:
    widths: Any = node.args[1]
    return all(isinstance(w, int) and w == 0 for w in widths)


_CHECKS: dict[Any, Callable[[fx.Node, fx.Node], bool]] = {
    **dict.fromkeys(_COPIES, _may_lie_anywhere),
    **dict.fromkeys(_DROPOUTS, _is_idle_dropout),
    **dict.fromkeys(_OF_COMPLEX, _is_real),
    **dict.fromkeys((aten.pad.default, aten.constant_pad_nd.default), _pads_nothing),
    **dict.fromkeys(
        (aten.permute.default, aten.transpose.int, aten.swapaxes.default, aten.swapdims.default), _keeps_axes
    ),
    **dict.fromkeys((aten.t.default, aten.numpy_T.default, aten.movedim.int), _keeps_axes),
}


def _has_same_shape(source: fx.Node, node: fx.Node) -> bool:
    old, new = source.meta["val"].shape, node.meta["val"].shape
    return len(old) == len(new) and all(map(memory.same_number, old, new))


def _is_plain_cast(node: fx.Node) -> bool:
    return node.target is aten._to_copy.default and set(node.kwargs) <= {"dtype"}  # noqa: SLF001


run = each_graph("drop_noops", rewrite)
