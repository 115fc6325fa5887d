"""Cases of the operators that take parts of a tensor along an axis, or write parts back."""

from __future__ import annotations

import torch

from fx2onnx.opset.cases import Case, bools, ints, normal

aten = torch.ops.aten


def heads(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Queries and keys, added, and values."""
    q, k, v = x.reshape(2, 5, 3, 4).permute(2, 0, 1, 3).unbind(0)
    return q + k, v


PLACES = (
    Case(aten.select.int, (normal(3, 4, 5), 1, 0), why="the class token"),
    Case(aten.select.int, (normal(3, 4), -1, -1), why="a negative axis and place"),
    Case(aten.select.int, (bools(3), 0, 2), why="to no axes"),
    Case(lambda x, y: x.select(1, y.shape[0] - 1), (normal(3, 6), normal(4)), why="select at a size"),
    Case(aten.slice.Tensor, (normal(5, 4), 0, 1, 3), why="a range"),
    Case(aten.slice.Tensor, (normal(5, 4),), why="the whole is no change"),
    Case(
        aten.slice.Tensor,
        (normal(5, 4), 1, 0, torch.iinfo(torch.int64).max),
        why="to the largest int is no change",
    ),
    Case(aten.slice.Tensor, (normal(5, 4), 1, -3, -1), why="counted from the end"),
    Case(aten.slice.Tensor, (normal(5, 4), 0, -9, 99), why="clamped at both ends", dynamic=False),
    Case(aten.slice.Tensor, (normal(5, 4), 0, 3, 1), why="nothing", dynamic=False),
    Case(aten.slice.Tensor, (normal(5, 4), 0, 7, 9), why="past the end", dynamic=False),
    Case(aten.slice.Tensor, (normal(7, 4), 0, 1, None, 2), why="every second"),
    Case(aten.slice.Tensor, (normal(7, 4), 0, None, -1, 3), why="every third but the last"),
    Case(aten.slice.Tensor, (normal(0, 4), 0, 0, 2), why="an empty axis"),
    Case(lambda x: x[:, -1:], (normal(3, 4),), why="the last token"),
    Case(
        lambda x, y: x[: y.shape[0], y.shape[0] - 1 :],
        (normal(6, 7), normal(4)),
        why="bounds that are sizes",
        dynamic={0: (0, 1), 1: (0,)},
    ),
    Case(lambda x: x[:, x.shape[1] // 2 :], (normal(2, 8),), why="the second half of a free size"),
    Case(lambda x: x[..., 1::2] - x[..., ::2], (normal(2, 6),), why="even and odd places", dynamic={0: (0,)}),
    Case(aten.narrow.default, (normal(5, 4), 0, 1, 2), why="a range"),
    Case(aten.narrow.default, (normal(5, 4), 0, -2, 2), why="a start counted from the end reaches it"),
    Case(aten.narrow.default, (normal(5, 4), 0, -3, 2), why="a start counted from the end"),
    Case(lambda x, y: x.narrow(0, 1, y.shape[0]), (normal(6, 3), normal(4)), why="narrow to a size"),
)

SPLITS = (
    Case(aten.split.Tensor, (normal(6, 4), 2), why="equal parts", dynamic={0: (1,)}),
    Case(aten.split.Tensor, (normal(7, 4), 3, 0), why="the last part is shorter", dynamic={0: (1,)}),
    Case(aten.split.Tensor, (normal(7, 4), 3, 0), why="the last part is free", dynamic={0: (0,)}),
    Case(aten.split.Tensor, (normal(3, 4), 9, 1), why="one part", dynamic=False),
    Case(
        lambda x: x.split(x.shape[1] // 2, 1),
        (normal(3, 8),),
        why="split in parts of a size",
        dynamic={0: (0,)},
    ),
    Case(
        aten.split_with_sizes.default,
        (normal(7, 4), [1, 4, 2]),
        why="parts of three sizes",
        dynamic={0: (1,)},
    ),
    Case(aten.split_with_sizes.default, (normal(7, 4), [0, 7]), why="an empty part", dynamic={0: (1,)}),
    Case(aten.split.sizes, (normal(4, 7), [3, 3, 1], -1), why="the other overload", dynamic={0: (0,)}),
    Case(lambda x: x.split([2, x.shape[0] - 2]), (normal(7, 3),), why="split off a part of a free size"),
    Case(aten.chunk.default, (normal(6, 4), 3), why="equal parts"),
    Case(aten.chunk.default, (normal(6, 4), 1), why="the whole"),
    Case(aten.tensor_split.sections, (normal(6, 4), 1), why="the whole"),
    Case(aten.chunk.default, (normal(7, 4), 3), why="the last part is shorter", second=(normal(8, 4),)),
    Case(aten.chunk.default, (normal(5, 4), 4), why="fewer parts than asked for", dynamic={0: (1,)}),
    Case(aten.chunk.default, (normal(4, 6), 2, -1), why="the gates of a GLU", dynamic={0: (0,)}),
    Case(aten.tensor_split.sections, (normal(7, 4), 3), why="the first parts are larger", dynamic={0: (1,)}),
    Case(aten.tensor_split.sections, (normal(2, 4), 3), why="an empty part", dynamic=False),
    Case(aten.tensor_split.indices, (normal(7, 4), [2, 5]), why="at two places"),
    Case(aten.tensor_split.indices, (normal(7, 4), [-2]), why="at a place counted from the end"),
    Case(aten.tensor_split.indices, (normal(7, 4), [5, 2]), why="parts that overlap", dynamic=False),
    Case(torch.hsplit, (normal(4, 6), 2), why="by decomposition", dynamic=False),
    Case(torch.vsplit, (normal(4, 6), [1, 3]), why="by decomposition"),
    Case(aten.unsafe_split.Tensor, (normal(6, 4), 2), why="the form without views", dynamic={0: (1,)}),
    Case(aten.unsafe_chunk.default, (normal(6, 4), 2, 1), why="the form without views", dynamic={0: (0,)}),
    Case(aten.unbind.int, (normal(3, 4),), why="the rows", dynamic={0: (1,)}),
    Case(aten.unbind.int, (normal(4, 2), -1), why="a negative axis", dynamic={0: (0,)}),
    Case(lambda x: x.chunk(3, -1)[1], (normal(2, 9),), why="one part is used", dynamic={0: (0,)}),
    Case(
        heads,
        (normal(2, 5, 12),),
        why="queries, keys and values",
        dynamic=False,
    ),
)

WRITES = (
    Case(
        aten.slice_scatter.default,
        (normal(5, 4), normal(2, 4), 0, 1, 3),
        why="a range",
        dynamic={0: (0, 1), 1: (1,)},
    ),
    Case(aten.slice_scatter.default, (normal(5, 4), normal(5, 4)), why="the whole"),
    Case(
        aten.slice_scatter.default,
        (normal(5, 4), normal(5, 2), 1, 2),
        why="to the end",
        dynamic={0: (0,), 1: (0,)},
    ),
    Case(
        aten.slice_scatter.default,
        (normal(5, 4), normal(2, 4), 0, None, 2),
        why="from the start",
        dynamic={0: (0, 1), 1: (1,)},
    ),
    Case(
        aten.slice_scatter.default,
        (normal(5, 4), normal(2, 4), 0, -2),
        why="a start counted from the end",
        dynamic={0: (0, 1), 1: (1,)},
    ),
    Case(
        aten.slice_scatter.default,
        (normal(5, 4), normal(3, 4), 0, 1, -1),
        why="an end counted from the end",
        dynamic={0: (1,), 1: (1,)},
    ),
    Case(
        aten.slice_scatter.default,
        (normal(5, 4), normal(3, 4), 0, 0, 5, 2),
        why="every second row",
        dynamic={0: (1,), 1: (1,)},
    ),
    Case(
        aten.slice_scatter.default,
        (normal(4, 5), normal(4, 2), 1, 1, 5, 2),
        why="every second column",
        dynamic={0: (0,), 1: (0,)},
    ),
    Case(
        aten.slice_scatter.default,
        (normal(5, 4), normal(0, 4), 0, 3, 1),
        why="nothing",
        dynamic={0: (0, 1), 1: (1,)},
    ),
    Case(aten.slice_scatter.default, (bools(5, 4), bools(2, 4), 0, 1, 3), why="bools", dynamic=False),
    Case(
        aten.select_scatter.default,
        (normal(5, 4), normal(4), 0, 2),
        why="a row",
        dynamic={0: (0, 1), 1: (0,)},
    ),
    Case(
        aten.select_scatter.default,
        (normal(5, 4), normal(4), 0, -1),
        why="the last row",
        dynamic={0: (0, 1), 1: (0,)},
    ),
    Case(
        aten.select_scatter.default,
        (normal(5, 4), normal(5), 1, 2),
        why="a column",
        dynamic={0: (0,), 1: (0,)},
    ),
    Case(
        aten.select_scatter.default,
        (normal(5, 4), normal(5), -1, -1),
        why="the last column",
        dynamic={0: (0,), 1: (0,)},
    ),
    Case(aten.select_scatter.default, (normal(5, 1), normal(5), 1, 0), why="the only column"),
    Case(aten.select_scatter.default, (ints(5), ints(), 0, 3), why="a number"),
)

CASES = (*PLACES, *SPLITS, *WRITES)
