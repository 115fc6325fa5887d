"""Drop calls that return their argument as it is, and assertions; write every cast as `aten._to_copy`.

    y = aten.dropout.default(x, 0.1, False)          y = aten._to_copy.default(x, dtype=f16)
    z = aten.to.dtype(y, f16)                   ->   return y
    w = aten.contiguous.default(z)
    return w

Only what is exact for every value goes: `x + 0` stays, since it turns -0.0 into 0.0.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

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
    {aten.dropout.default, aten.feature_dropout.default, aten.alpha_dropout.default, aten.feature_alpha_dropout.default}
)
# Same argument back when the shape does not change.
_SHAPES = frozenset(
    {
        aten.expand.default,
        aten.expand_as.default,
        aten.broadcast_to.default,
        aten.view.default,
        aten.reshape.default,
        aten._unsafe_view.default,  # noqa: SLF001
        aten.view_as.default,
        aten.flatten.using_ints,
        aten.slice.Tensor,
        aten.squeeze.default,
        aten.squeeze.dim,
        aten.squeeze.dims,
        aten.atleast_1d.default,
        aten.atleast_2d.default,
        aten.atleast_3d.default,
    }
)


def rewrite(module: fx.GraphModule) -> None:
    """Drop no-ops from one graph."""
    graph = module.graph
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        if node.target in _ASSERTIONS:
            graph.erase_node(node)
        elif _returns_its_argument(node):
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
        elif node.target in _CASTS and not _is_plain_cast(node):
            with graph.inserting_before(node):
                target = aten._to_copy.default  # noqa: SLF001
                cast = call(graph, target, node.args[0], dtype=node.meta["val"].dtype, like=node)
            node.replace_all_uses_with(cast)
            graph.erase_node(node)


def _returns_its_argument(node: fx.Node) -> bool:
    source = node.args[0] if node.args else None
    if not isinstance(source, fx.Node) or not isinstance(source.meta.get("val"), torch.Tensor):
        return False
    old, new = source.meta["val"], node.meta["val"]
    if node.target in _COPIES:
        return True
    if node.target in _CASTS:
        return bool(old.dtype == new.dtype)
    if node.target in _DROPOUTS:
        return not node.args[2] or node.args[1] == 0
    if node.target is aten.as_strided.default:
        return _same_shape(old, new) and _same_elements(old, new)
    return node.target in _SHAPES and _same_shape(old, new) and _keeps_values(node)


def _same_elements(old: torch.Tensor, new: torch.Tensor) -> bool:
    """Do two tensors of one shape step through memory alike? Axes of size 1 are not stepped through."""
    strides = zip(old.shape, old.stride(), new.stride(), strict=True)
    return _same(old.storage_offset(), new.storage_offset()) and all(_same(s, 1) or _same(a, b) for s, a, b in strides)


def _keeps_values(node: fx.Node) -> bool:
    """A slice of the same shape may still be another slice only if its step is negative, which torch forbids."""
    return node.target is not aten.slice.Tensor or len(node.args) < 5 or node.args[4] == 1  # noqa: PLR2004


def _same_shape(old: torch.Tensor, new: torch.Tensor) -> bool:
    if old.dim() != new.dim():
        return False
    return all(_same(a, b) for a, b in zip(old.shape, new.shape, strict=True))


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.SymInt) or isinstance(b, torch.SymInt):
        return _expr(a) == _expr(b)
    return bool(a == b)


def _expr(size: Any) -> Any:
    return size.node.expr if isinstance(size, torch.SymInt) else size


def _is_plain_cast(node: fx.Node) -> bool:
    return node.target is aten._to_copy.default and set(node.kwargs) <= {"dtype"}  # noqa: SLF001


run = each_graph("drop_noops", rewrite)
