"""Views: calls whose result shares memory with an argument.

A `View` remembers one such call. It can be made again from another tensor (`made_from`), and undone: `undone` gives the
value of the viewed tensor after something was written to the view. What has no functional inverse in ATen is undone
by position: the same view of the numbers 0 … n-1 says where each element of the view lies.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from fx2onnx import origin
from fx2onnx.errors import UnsupportedOpError
from fx2onnx.passes import memory
from fx2onnx.passes.memory import sizes_of
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
    aten.as_strided_.default: aten.as_strided.default,
    aten.detach_.default: aten.detach.default,
}
_NOT_A_WRITE = {aten.requires_grad_.default, aten.retain_grad.default}

_OWN_INVERSE = frozenset(
    {
        aten.transpose.int,
        aten.t.default,
        aten.swapaxes.default,
        aten.swapdims.default,
        aten.numpy_T.default,
        aten.mT.default,
    }
)
_RESHAPES = frozenset(
    {
        aten.view.default,
        aten.reshape.default,
        aten._unsafe_view.default,  # noqa: SLF001
        aten._reshape_alias.default,  # noqa: SLF001
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
    }
)
# Views that put each element where the same view puts its number: they are undone by position.
_MOVE_ELEMENTS = frozenset(
    {
        aten.unfold.default,
        aten.expand.default,
        aten.expand_as.default,
        aten.broadcast_to.default,
        aten.broadcast_tensors.default,
        aten.meshgrid.default,
        aten.meshgrid.indexing,
        aten.narrow.Tensor,
        aten.split.Tensor,
        aten.split.sizes,
        aten.split_with_sizes.default,
        aten.chunk.default,
        aten.tensor_split.sections,
        aten.tensor_split.indices,
        aten.hsplit.int,
        aten.hsplit.array,
        aten.vsplit.int,
        aten.vsplit.array,
        aten.dsplit.int,
        aten.dsplit.array,
    }
)
_INT_MAX = torch.iinfo(torch.int64).max


def is_metadata_only(node: fx.Node) -> bool:
    """Is this an in-place operator that writes nothing: that makes a view (`squeeze_`, `t_` …) or sets a flag?"""
    return node.target in _METADATA_ONLY or node.target in _NOT_A_WRITE or node.target is aten.resize_.default


def make_functional(node: fx.Node) -> None:
    """Turn an operator that `is_metadata_only` into the view that it makes.

    Raises:
        UnsupportedOpError: a `resize_` to another number of elements, which shows memory that nothing wrote to.
    """
    if node.target in _NOT_A_WRITE:
        node.target, node.args = aten.alias.default, node.args[:1]
    elif node.target is aten.resize_.default:
        _check_resize(node)
        node.target, node.args, node.kwargs = aten.reshape.default, node.args[:2], {}
    else:
        node.target = _METADATA_ONLY[node.target]  # type: ignore[index]


def _check_resize(node: fx.Node) -> None:
    old, new = node.all_input_nodes[0].meta["val"], node.meta["val"]
    if not memory.same_number(old.numel(), new.numel()) or not memory.is_row_major(old):
        raise UnsupportedOpError(
            "aten.resize_ to another number of elements",
            where=origin.user_line(node),
            fix="make a new tensor",
        )


@dataclass(frozen=True)
class View:
    """A call that views a tensor.

    Attributes:
        call: the view call, or the `getitem` of a call that makes a list of views.
        source: the tensor that is viewed, among the arguments of the call that views.
        traced: the same as it was traced, with its place in memory.
    """

    call: fx.Node
    source: fx.Node
    traced: fx.Node

    @property
    def piece(self) -> int | None:
        """The position in the list of views; None for a call that makes one view."""
        return int(self.call.args[1]) if self.call.target is operator.getitem else None  # type: ignore[arg-type]

    @property
    def viewing(self) -> fx.Node:
        """The call of the view operator itself."""
        return self.call.args[0] if self.piece is not None else self.call  # type: ignore[return-value]

    def made_from(self, graph: fx.Graph, base: fx.Node) -> fx.Node:
        """The same view of `base`."""
        made = _again(graph, self.viewing, self.source, base)
        return made if self.piece is None else _again(graph, self.call, self.viewing, made)

    def undone(self, graph: fx.Graph, base: fx.Node, new: fx.Node, writer: fx.Node) -> fx.Node:
        """The value of `base` after `new` was written to this view of it.

        Raises:
            UnsupportedOpError: several elements of the view are one element of the base, or the view has
                another dtype.
        """
        if (made := self._undone_by_operator(graph, base, new, writer)) is not None:
            return made
        if not _moves_elements(self.viewing.target):
            raise _no_inverse(writer, self.viewing)
        memory.check_no_overlap(self.call, writer)
        if self.viewing.target is aten.as_strided.default:
            positions = memory.strided_positions(graph, self.call, base)
        else:
            positions = self._typed_again(graph, memory.element_numbers(graph, base), writer)
        flat = call(graph, aten.reshape.default, new, [-1], like=writer)
        return call(graph, aten.put.default, base, positions, flat, like=writer)

    def _typed_again(self, graph: fx.Graph, base: fx.Node, writer: fx.Node) -> fx.Node:
        """The same view of `base`, whose dtype is another one."""
        args, kwargs = fx.node.map_arg(
            (self.viewing.args, self.viewing.kwargs), lambda n: base if n is self.source else n
        )
        made = call(graph, self.viewing.target, *args, like=writer, **kwargs)  # type: ignore[arg-type]
        return made if self.piece is None else call(graph, operator.getitem, made, self.piece, like=writer)

    def _undone_by_operator(
        self, graph: fx.Graph, base: fx.Node, new: fx.Node, writer: fx.Node
    ) -> fx.Node | None:
        """The same as `undone` by an operator of its own; None where there is none."""
        target, args = self.viewing.target, tuple(_arguments(self.viewing)[1:])
        if self.piece is not None:
            return self._piece_undone(graph, base, new, writer)
        if (scatter := _SCATTERS.get(target)) is not None:
            return call(graph, scatter, base, new, *args, like=writer)
        if target is aten.narrow.default:
            return _narrow_undone(graph, base, new, args, writer)
        if target is aten.permute.default:
            order = [int(d) % len(args[0]) for d in args[0]]
            inverse = [order.index(i) for i in range(len(order))]
            return call(graph, target, new, inverse, like=writer)
        if target in _OWN_INVERSE:
            return call(graph, target, new, *args, like=writer)
        if target is aten.movedim.int or target is aten.movedim.intlist:
            return call(graph, target, new, args[1], args[0], like=writer)
        old, seen = self.traced.meta["val"], self.call.meta["val"]
        if target in _RESHAPES or (target in _EXPANSIONS and memory.same_number(old.numel(), seen.numel())):
            return call(graph, aten.reshape.default, new, sizes_of(graph, base, writer), like=writer)
        if target is aten.view.dtype and old.element_size() == seen.element_size():
            return call(graph, target, new, old.dtype, like=writer)
        return new if target is not aten.as_strided.default and memory.same_layout(old, seen) else None

    def _piece_undone(self, graph: fx.Graph, base: fx.Node, new: fx.Node, writer: fx.Node) -> fx.Node | None:
        """The base after a write to one element of a list of views."""
        target, args = self.viewing.target, _arguments(self.viewing)
        if target is aten.unbind.int:
            axis = args[1] if len(args) > 1 else 0
            return call(graph, aten.select_scatter.default, base, new, axis, self.piece, like=writer)
        axes = {a.name: i for i, a in enumerate(target._schema.arguments)}  # type: ignore[union-attr]  # noqa: SLF001
        if target not in _MOVE_ELEMENTS or "dim" not in axes:
            return None
        axis = args[axes["dim"]] if len(args) > axes["dim"] else 0
        ends = [0]
        for piece in self.viewing.meta["val"]:
            if not memory.is_number(size := piece.shape[axis]):
                return None
            ends.append(ends[-1] + int(size))
        start, end = ends[self.piece : self.piece + 2]  # type: ignore[operator]
        return call(graph, aten.slice_scatter.default, base, new, axis, start, end, like=writer)

    def is_apart_from(self, other: View) -> bool:
        """Do two views of one tensor surely have no element in common?"""
        if self.piece is not None and other.piece is not None:
            return (
                self.viewing is other.viewing and self.piece != other.piece and self.viewing.target in _APART
            )
        if self.call.target is not aten.select.int or other.call.target is not aten.select.int:
            return False
        (_, axis, index), (_, other_axis, other_index) = _arguments(self.call), _arguments(other.call)
        if axis != other_axis or not isinstance(index, int) or not isinstance(other_index, int):
            return False
        return index != other_index and (index < 0) == (other_index < 0)


_SCATTERS: dict[Any, Callable[..., Any]] = {
    aten.select.int: aten.select_scatter.default,
    aten.slice.Tensor: aten.slice_scatter.default,
    aten.diagonal.default: aten.diagonal_scatter.default,
}
_EXPANSIONS = frozenset({aten.expand.default, aten.expand_as.default, aten.broadcast_to.default})
# Lists of views that share no element.
_APART = frozenset(
    target
    for target in {*_MOVE_ELEMENTS, aten.unbind.int}
    if target.overloadpacket not in (aten.meshgrid, aten.broadcast_tensors)
)


def _moves_elements(target: Any) -> bool:
    return target in _MOVE_ELEMENTS or target is aten.as_strided.default


def _arguments(node: fx.Node) -> list[Any]:
    """A call's arguments by position, in the order of the schema; those that are left out at the end are missing."""
    formals = node.target._schema.arguments  # type: ignore[union-attr]  # noqa: SLF001
    given = list(node.args)
    for formal in formals[len(given) :]:
        if formal.name in node.kwargs:
            missing = formals[len(given) : [f.name for f in formals].index(formal.name)]
            given += [f.default_value for f in missing] + [node.kwargs[formal.name]]
    return given


def _narrow_undone(graph: fx.Graph, base: fx.Node, new: fx.Node, args: Any, writer: fx.Node) -> fx.Node:
    axis, start, length = args
    if isinstance(start, fx.Node) or isinstance(length, fx.Node):
        end: fx.Node | int = call(graph, operator.add, start, length, like=writer)
    else:
        stop: int = start + length
        end = _INT_MAX if start < 0 <= stop else stop  # counted from the end, up to the end
    return call(graph, aten.slice_scatter.default, base, new, axis, start, end, like=writer)


def _again(graph: fx.Graph, made: fx.Node, old: fx.Node, new: fx.Node) -> fx.Node:
    """A copy of a call with another tensor in place of `old`."""
    return graph.node_copy(made, lambda n: new if n is old else n)


def _no_inverse(writer: fx.Node, view: fx.Node) -> UnsupportedOpError:
    return UnsupportedOpError(
        f"{writer.target} writes through {view.target}, which cannot be undone",
        where=origin.user_line(writer),
        fix="write to the tensor itself, or to a copy",
    )
