"""Views: which calls make them, and how a write to a view reaches the tensor that it is a view of."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx

from fx2onnx import origin
from fx2onnx.errors import UnsupportedOpError
from fx2onnx.rewrite import call

aten = torch.ops.aten

# In-place operators that change how a tensor is seen, not what is in it.
_METADATA_ONLY = {
    aten.squeeze_.default: aten.squeeze.default,
    aten.squeeze_.dim: aten.squeeze.dim,
    aten.squeeze_.dims: aten.squeeze.dims,
    aten.unsqueeze_.default: aten.unsqueeze.default,
    aten.t_.default: aten.t.default,
    aten.transpose_.default: aten.transpose.int,
    aten.swapaxes_.default: aten.swapaxes.default,
    aten.swapdims_.default: aten.swapdims.default,
    aten.detach_.default: aten.detach.default,
    aten.as_strided_.default: aten.as_strided.default,
}

_SAME_SHAPE_SWAP = (aten.transpose.int, aten.t.default, aten.swapaxes.default, aten.swapdims.default, aten.numpy_T.default, aten.mT.default)
_RESHAPES = (
    aten.view.default,
    aten.reshape.default,
    aten._unsafe_view.default,  # noqa: SLF001
    aten.view_as.default,
    aten.reshape_as.default,
    aten.flatten.using_ints,
    aten.unflatten.int,
    aten.squeeze.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.unsqueeze.default,
    aten.ravel.default,
    aten.atleast_1d.default,
    aten.atleast_2d.default,
    aten.atleast_3d.default,
)


def is_metadata_only(node: fx.Node) -> bool:
    """Is this an in-place operator that makes a view (`squeeze_`, `t_` …)?"""
    return node.target in _METADATA_ONLY


def functional_view(node: fx.Node) -> Any:
    """The view operator for an in-place one."""
    return _METADATA_ONLY[node.target]  # type: ignore[index]


def undo_view(graph: fx.Graph, view: fx.Node, base: fx.Node, new: fx.Node, writer: fx.Node) -> fx.Node:
    """The value of `base` after `new` was written to the view of it that the call `view` makes.

    Raises:
        UnsupportedOpError: the view has no inverse (an expansion, another dtype, overlapping strides).
    """
    if view.target is operator.getitem:
        return _undo_piece(graph, view, base, new, writer)
    target, args = view.target, view.args[1:]
    if target is aten.select.int:
        return call(graph, aten.select_scatter.default, base, new, *args, like=writer)
    if target is aten.slice.Tensor:
        return call(graph, aten.slice_scatter.default, base, new, *args, like=writer)
    if target is aten.narrow.default:
        axis, start, length = args
        end = graph.call_function(operator.add, (start, length)) if isinstance(start, fx.Node) else start + length  # type: ignore[operator]
        return call(graph, aten.slice_scatter.default, base, new, axis, start, end, like=writer)
    if target is aten.diagonal.default:
        return call(graph, aten.diagonal_scatter.default, base, new, *args, like=writer)
    if target is aten.permute.default:
        order = [int(d) % len(args[0]) for d in args[0]]  # type: ignore[arg-type, union-attr]
        return call(graph, aten.permute.default, new, [order.index(i) for i in range(len(order))], like=writer)
    if target in _SAME_SHAPE_SWAP:
        return call(graph, target, new, *args, like=writer)
    if target is aten.movedim.int or target is aten.movedim.intlist:
        return call(graph, target, new, args[1], args[0], like=writer)
    if target in _RESHAPES:
        return _reshaped(graph, new, base, writer)
    if _same_tensor(view):
        return new
    if target is aten.as_strided.default:
        return call(graph, aten.as_strided_scatter.default, base, new, *args, like=writer)
    raise UnsupportedOpError(
        f"{writer.target} writes through {target}, which cannot be undone",
        where=origin.user_line(writer),
        fix="write to the tensor itself, or to a copy",
    )


def _same_tensor(view: fx.Node) -> bool:
    """Did the call return its argument as it was (`to` the same dtype, `contiguous`, `dropout` in eval)?"""
    old, new = view.all_input_nodes[0].meta["val"], view.meta["val"]
    return old.dtype == new.dtype and tuple(old.shape) == tuple(new.shape) and old.stride() == new.stride()


def _reshaped(graph: fx.Graph, new: fx.Node, base: fx.Node, writer: fx.Node) -> fx.Node:
    """`new` in the shape of `base`."""
    sizes: list[Any] = []
    for axis, size in enumerate(base.meta["val"].shape):
        free = isinstance(size, torch.SymInt) and size.node.maybe_as_int() is None
        sizes.append(call(graph, aten.sym_size.int, base, axis, like=writer) if free else int(size))
    return call(graph, aten.reshape.default, new, sizes, like=writer)


def _undo_piece(graph: fx.Graph, view: fx.Node, base: fx.Node, new: fx.Node, writer: fx.Node) -> fx.Node:
    """The base after a write to one element of a list of views."""
    pieces, index = view.args
    if not isinstance(pieces, fx.Node) or not isinstance(index, int):
        raise UnsupportedOpError(f"{writer.target} writes to an element of {pieces}", where=origin.user_line(writer))
    if pieces.target is aten.unbind.int:
        axis = pieces.args[1] if len(pieces.args) > 1 else 0
        return call(graph, aten.select_scatter.default, base, new, axis, index, like=writer)
    axis = _split_axis(pieces)
    sizes = [v.shape[axis] for v in pieces.meta["val"]]
    if any(isinstance(s, torch.SymInt) and s.node.maybe_as_int() is None for s in sizes):
        raise UnsupportedOpError(
            f"{writer.target} writes to a piece of a split of unknown size", where=origin.user_line(writer)
        )
    start = sum(int(s) for s in sizes[:index])
    end = start + int(sizes[index])
    return call(graph, aten.slice_scatter.default, base, new, axis, start, end, like=writer)


def _split_axis(pieces: fx.Node) -> int:
    schema = pieces.target._schema.arguments  # type: ignore[union-attr]  # noqa: SLF001
    position = next(i for i, a in enumerate(schema) if a.name == "dim")
    axis = pieces.args[position] if len(pieces.args) > position else pieces.kwargs.get("dim", 0)
    return int(axis)  # type: ignore[arg-type]
