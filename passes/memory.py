"""Where the elements of a tensor lie in memory: strides, and the numbers of elements."""

from __future__ import annotations

import functools
import operator
from typing import Any

import torch
from torch import fx

from fx2onnx import origin
from fx2onnx.errors import UnsupportedOpError
from fx2onnx.rewrite import call, fake_mode_in

aten = torch.ops.aten


def is_number(size: Any) -> bool:
    """Is this size a plain number?"""
    return not isinstance(size, torch.SymInt) or size.node.maybe_as_int() is not None


def same_number(a: Any, b: Any) -> bool:
    """Are two sizes surely the same?"""
    if is_number(a) and is_number(b):
        return int(a) == int(b)
    one, other = (s.node.expr if isinstance(s, torch.SymInt) else s for s in (a, b))
    return bool((one - other).expand() == 0)


def same_layout(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Have two tensors one dtype, one shape, one place and one order in memory?"""
    if a.dtype != b.dtype or a.dim() != b.dim() or a.is_neg() != b.is_neg() or a.is_conj() != b.is_conj():
        return False
    pairs = zip((*a.shape, *a.stride()), (*b.shape, *b.stride()), strict=True)
    return same_number(a.storage_offset(), b.storage_offset()) and all(same_number(x, y) for x, y in pairs)


def is_row_major(tensor: torch.Tensor) -> bool:
    """Does a tensor lie at the start of its memory, row after row?"""
    return same_number(tensor.storage_offset(), 0) and _is_dense(tensor, range(tensor.dim()))


def memory_order(tensor: torch.Tensor) -> list[int] | None:
    """The order of axes in which a tensor fills its memory from the start, without gaps; None if it does not."""
    strides = [_hint(s) for s in tensor.stride()]
    order = sorted(range(tensor.dim()), key=lambda axis: (-strides[axis], axis))
    fills = same_number(tensor.storage_offset(), 0) and _is_dense(tensor, order)
    return order if fills else None


def _is_dense(tensor: torch.Tensor, order: Any) -> bool:
    expected: Any = 1
    for axis in reversed(order):
        size = tensor.shape[axis]
        if is_number(size) and int(size) == 1:
            continue
        if not same_number(tensor.stride(axis), expected):
            return False
        expected = expected * size
    return True


def _hint(size: Any) -> int:
    """The size in the example."""
    if is_number(size):
        return int(size)
    hint = size.node.hint
    return int(hint) if hint is not None else 1


def check_no_overlap(view: fx.Node, writer: fx.Node) -> None:
    """Refuse a write to a view that has the same element of memory at several places.

    Raises:
        UnsupportedOpError: it has, or may have.
    """
    value = view.meta["val"]
    reach = 0
    axes = sorted(
        (_hint(stride), _hint(size)) for stride, size in zip(value.stride(), value.shape, strict=True)
    )
    for stride, size in axes:
        if size > 1 and stride <= reach:
            raise UnsupportedOpError(
                f"{writer.target} writes to a view of which several elements may be the same element in memory",
                where=origin.user_line(writer),
                fix="write to a copy",
            )
        reach += stride * (size - 1)


_MAY_COPY = frozenset(
    {
        aten.reshape.default,
        aten.reshape_as.default,
        aten.flatten.using_ints,
        aten.ravel.default,
        aten.contiguous.default,
    }
)


def is_taken_for_copy(node: fx.Node) -> bool:
    """Is this a call that views its argument, whose fake value does not share the argument's memory?

    With free sizes torch cannot always tell whether a reshape is a view, and its fakes then make a copy. Whether it is
    one is a matter of strides, so the example's sizes tell.
    """
    if node.target not in _MAY_COPY:
        return False
    old, new = node.all_input_nodes[0].meta["val"], node.meta["val"]
    if storage_of(old) == storage_of(new) or all(map(is_number, (*old.shape, *new.shape))):
        return False
    shape = [_hint(s) for s in old.shape]
    example = torch.empty_strided(shape, [_hint(s) for s in old.stride()], dtype=old.dtype, device="meta")
    made = (
        example.contiguous()
        if node.target is aten.contiguous.default
        else example.reshape([_hint(s) for s in new.shape])
    )
    return storage_of(made) == storage_of(example)


def storage_of(value: torch.Tensor) -> int:
    """Equal for tensors that share memory, as long as they live."""
    address: int = value.untyped_storage()._cdata  # noqa: SLF001
    return address


# -- calls -----------------------------------------------------------------------------------------


def sizes_of(graph: fx.Graph, node: fx.Node, like: fx.Node) -> list[Any]:
    """The sizes of a tensor as arguments for a call: numbers, and nodes for free sizes."""
    return [
        int(size) if is_number(size) else call(graph, aten.sym_size.int, node, axis, like=like)
        for axis, size in enumerate(node.meta["val"].shape)
    ]


def element_numbers(graph: fx.Graph, node: fx.Node) -> fx.Node:
    """The numbers 0 … n-1 of a tensor's n elements, row after row, in its shape."""
    sizes = sizes_of(graph, node, node)
    count = functools.reduce(lambda a, b: _combined(graph, operator.mul, a, b, node), sizes, 1)
    numbers = _range(graph, count, node)
    return numbers if len(sizes) == 1 else call(graph, aten.reshape.default, numbers, sizes, like=node)


def strided_positions(graph: fx.Graph, view: fx.Node, base: fx.Node) -> fx.Node:
    """Where `as_strided` reads: the number of an element of `base`, which fills its memory row after row.

    Args:
        graph: the graph; nodes are made at its insertion point.
        view: an `as_strided` call with an explicit offset.
        base: the tensor that it reads, in memory order.
    """
    _, sizes, strides, offset = view.args
    positions: Any = offset
    for axis, (size, stride) in enumerate(zip(sizes, strides, strict=True)):  # type: ignore[arg-type]
        steps = call(graph, aten.mul.Tensor, _range(graph, size, base), stride, like=view)
        shape = [-1] + [1] * (len(sizes) - axis - 1)  # type: ignore[arg-type]
        column = call(graph, aten.reshape.default, steps, shape, like=view)
        positions = call(graph, aten.add.Tensor, column, positions, like=view)
    if not sizes:
        positions = _created(graph, aten.full.default, [], offset, like=base)
    return positions  # type: ignore[no-any-return]


def _range(graph: fx.Graph, count: Any, like: fx.Node) -> fx.Node:
    return _created(graph, aten.arange.default, count, like=like)


def _created(graph: fx.Graph, target: Any, *args: Any, like: fx.Node) -> fx.Node:
    """A call that makes an int64 tensor from numbers."""
    node = graph.call_function(target, args, {"dtype": torch.int64})
    node.meta.update({k: v for k, v in like.meta.items() if k != "val"})
    values = fx.node.map_arg(args, lambda n: n.meta["val"])
    mode = fake_mode_in(like.meta["val"])
    if mode is None:
        node.meta["val"] = target(*values, dtype=torch.int64)
    else:
        with mode:
            node.meta["val"] = target(*values, dtype=torch.int64)
    return node


def _combined(graph: fx.Graph, function: Any, a: Any, b: Any, like: fx.Node) -> Any:
    if isinstance(a, fx.Node) or isinstance(b, fx.Node):
        return call(graph, function, a, b, like=like)
    return function(a, b)
